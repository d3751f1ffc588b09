"""Numbers of docs/how-to/flower.md."""

from functools import cache

import quietbits

TASK = quietbits.Task(quietbits.NormBall(650, 2.0, 2.0), 3, 20.0, 1e-5, "add-or-remove-one")


@cache
def epsilon_of(clients: int) -> float:
    """Return epsilon of the app's round for the surviving clients."""
    mechanism = quietbits.build_mechanism("distributed-discrete-gaussian", TASK, {})
    assert isinstance(mechanism, quietbits.SecureSumMechanism)
    return mechanism.for_clients(clients).guarantee.epsilon
