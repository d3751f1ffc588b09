"""Numbers of docs/flower.md."""

from functools import cache

import numpy as np

import quietbits

TASK = quietbits.Task(quietbits.NormBall(650, 2.0, 2.0), 3, 20.0, 1e-5, "add-or-remove-one")


@cache
def epsilon_of(clients: int) -> float:
    """Return epsilon of the app's round for the surviving clients."""
    mechanism = quietbits.build_mechanism("distributed-discrete-gaussian", TASK, {})
    assert isinstance(mechanism, quietbits.SecureSumMechanism)
    return mechanism.for_clients(clients).guarantee.epsilon


@cache
def even_share(value: float) -> float:
    """Return the share of Laplace messages near a number that are multiples of 2**-53."""
    messages = quietbits.LaplaceMechanism(1.0).encode(np.full(100_000, value), np.random.default_rng(7))
    return float(np.mean(messages[np.abs(messages) < 0.25] * 2.0**53 % 1 == 0))
