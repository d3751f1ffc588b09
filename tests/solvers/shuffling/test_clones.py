"""The published closed form of amplification by shuffling."""

import math

import pytest

from quietbits.solvers.shuffling.clones import clones_epsilon, largest_clones_epsilon
from quietbits.solvers.shuffling.shuffled_letters import ShuffledLetters


@pytest.mark.parametrize(("local", "clients", "delta"), [(0.5, 1000, 1e-6), (1.0, 10_000, 1e-6), (3.0, 10_000, 1e-6), (5.0, 10**5, 1e-8)])
def test_the_computed_bound_is_below_the_closed_form(local: float, clients: int, delta: float) -> None:
    computed = ShuffledLetters([[math.exp(local), 1], [1, math.exp(local)]], clients).epsilon(delta)
    assert 2 < clones_epsilon(local, clients, delta) / computed < 5


def test_it_is_stated_for_small_local_epsilons_only() -> None:
    edge = largest_clones_epsilon(10_000, 1e-6)
    assert edge == pytest.approx(math.log(10_000 / (8 * math.log(2e6)) - 1))
    assert math.isfinite(clones_epsilon(edge, 10_000, 1e-6))
    assert math.isinf(clones_epsilon(edge + 1e-9, 10_000, 1e-6))
    assert largest_clones_epsilon(100, 1e-6) == -math.inf


def test_it_falls_like_the_root_of_the_clients() -> None:
    assert clones_epsilon(1.0, 10**8, 1e-6) / clones_epsilon(1.0, 10**10, 1e-6) == pytest.approx(10, rel=1e-2)
