"""Mechanisms for the surviving clients.

Points under test: messages stay the same, and only the survivors' noise counts for the guarantee.
"""

import numpy as np
import pytest
from built_in_trials import OPTIONS

from quietbits import REGISTRY, Categories, InfeasibleError, NormBall, SecureSumMechanism, Task

VECTORS = np.random.default_rng(5).normal(size=(6, 3))
SUMS = [name for name, entry in REGISTRY.items() if entry.trust_model == "secure-sum" and NormBall in entry.domains]
ITEMS = [name for name, entry in REGISTRY.items() if entry.trust_model == "secure-sum" and NormBall not in entry.domains]


def built(name: str, clients: int, **options: object) -> SecureSumMechanism:
    entry = REGISTRY[name]
    domain = NormBall(3, (entry.norms or (2.0,))[0], 2.0)
    mechanism = entry.mechanism_for(Task(domain, clients, 4.0, 1e-3, entry.adjacencies[0]), {**OPTIONS.get(name, {}), **options})
    assert isinstance(mechanism, SecureSumMechanism)
    return mechanism


@pytest.mark.parametrize("name", SUMS)
def test_messages_are_the_same_and_the_guarantee_is_weaker(name: str) -> None:
    many = built(name, 6, **({"rotated": False} if name == "cpsgd" else {}))
    few = many.for_clients(4)
    assert few.clients == 4
    steps = many.noisy_steps(VECTORS, np.random.default_rng(0))
    np.testing.assert_array_equal(few.noisy_steps(VECTORS, np.random.default_rng(0)), steps)
    assert few.guarantee.epsilon > many.guarantee.epsilon
    # The modulus may differ, but holds the sum of the remaining clients.
    total = steps[:4].sum(axis=0)
    np.testing.assert_array_equal(few.recovered_steps(many.aggregate(many.encode(VECTORS, np.random.default_rng(0))[:4])), total)


def test_levels_of_rotated_vectors_depend_on_the_number_of_clients() -> None:
    mechanism = built("cpsgd", 6, rotated=True)
    assert mechanism.for_clients(6) == mechanism
    with pytest.raises(InfeasibleError, match="clients must be 6, on which the messages depend, got 5"):
        mechanism.for_clients(5)


@pytest.mark.parametrize("name", ITEMS)
def test_mechanisms_for_items_are_not_said_to_serve_fewer(name: str) -> None:
    entry = REGISTRY[name]
    mechanism = entry.mechanism_for(Task(Categories(5), 6, 4.0, 1e-3, entry.adjacencies[0]), OPTIONS.get(name, {}))
    with pytest.raises(InfeasibleError, match="clients must be 6"):
        mechanism.for_clients(5)
