"""Tests of client sampling.

Points under test: numbers of clients, shares, repeats, and the sampling that accounts may use.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from quietbits.analysis.training.setting import ClientSampling
from quietbits.arrays import FloatArray
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling


def test_passes_reach_every_client_once() -> None:
    sampling = ClientSampling("passes", 101, 10)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([sampling.draw(number, rng) for number in range(1, 22)])
    assert sorted(drawn[:101].tolist()) == sorted(drawn[101:202].tolist()) == list(range(101))
    assert [sampling.participations(rounds) for rounds in (1, 10, 11, 20, 21)] == [1, 1, 2, 2, 3]


def test_kinds_draw_what_they_say() -> None:
    rng = np.random.default_rng(1)
    fixed = ClientSampling("fixed", 50, 20).draw(1, rng)
    assert len(np.unique(fixed)) == 20
    sizes = [len(ClientSampling("poisson", 50, 20).draw(1, rng)) for _ in range(400)]
    assert np.mean(sizes) == pytest.approx(20, abs=5 * np.sqrt(12 / 400))
    assert np.var(sizes) == pytest.approx(12, rel=0.4)
    repeated = ClientSampling("with-replacement", 5, 20)
    assert len(repeated.draw(1, rng, repeats=True)) == 20
    assert len(repeated.draw(1, rng)) <= 5
    # Sampling among billions of clients takes no memory.
    assert len(np.unique(ClientSampling("fixed", 10**11, 10_000).draw(1, rng))) == 10_000


def test_seats_are_enough_but_for_a_millionth_of_delta() -> None:
    seats = ClientSampling("poisson", 1000, 100).seats(50, 1e-5)
    # The 999 other clients take all seats with this probability.
    assert 50 * binom.sf(seats - 1, 999, 0.1) <= 1e-11 < 50 * binom.sf(seats - 2, 999, 0.1)
    # So small probabilities are differences of sums near 1 in other formulas.
    seats = ClientSampling("poisson", 1000, 100).seats(50, 1e-12)
    assert 50 * binom.sf(seats - 1, 999, 0.1) <= 1e-18 < 50 * binom.sf(seats - 2, 999, 0.1)
    assert ClientSampling("poisson", 120, 100).seats(50, 1e-5) == 120
    assert ClientSampling("poisson", 1, 1).seats(50, 1e-5) == 1
    assert ClientSampling("fixed", 120, 100).seats(50, 1e-5) == 100
    assert len(ClientSampling("poisson", 1000, 100).draw(1, np.random.default_rng(0), seats=50)) == 50


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("value", [1, 5])
def test_a_round_without_a_seat_costs_no_more_than_its_probability(epsilon: float, value: int) -> None:
    # Four other clients of value 1 and the client itself are drawn with probability 1/2 each, for three or five seats; the sum has
    # geometric noise.
    def law(seats: int, present: int) -> FloatArray:
        result = np.zeros(120)
        noise = np.exp(-epsilon * np.abs(np.arange(-50, 51))) * np.tanh(epsilon / 2)
        for others, drawn in itertools.product(range(5), (0, present)):
            weight = math.comb(4, others) / 32
            seated = drawn * min(1.0, seats / (others + 1))
            for total, share in ((min(others, seats - 1) + value, seated), (min(others, seats), 1 - seated)):
                result[total : total + 101] += weight * share * noise
        return result

    def divergence(seats: int, order: int, claimed: float) -> float:
        first, other = (law(seats, 1), law(seats, 0))[::order]
        return float(np.maximum(0.0, first - np.exp(claimed) * other).sum())

    no_seat = 5 / 16
    for order, claimed in itertools.product((1, -1), (0.0, epsilon / 2, 2 * epsilon)):
        assert divergence(3, order, claimed) <= divergence(5, order, claimed) + no_seat + 1e-15


def test_what_amplifies() -> None:
    assert ClientSampling("fixed", 50, 20).amplifying == FixedSizeSampling(50, 20)
    assert ClientSampling("poisson", 50, 20).amplifying == PoissonSampling(0.4)
    assert ClientSampling("passes", 50, 20).amplifying is ClientSampling("with-replacement", 50, 20).amplifying is None


@pytest.mark.parametrize(
    ("fields", "message"), [(("fixed", 5, 6), "clients_per_round must be"), (("all", 5, 5), "sampling must be one of")]
)
def test_bad_numbers_are_refused(fields: tuple[str, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClientSampling(*fields)
