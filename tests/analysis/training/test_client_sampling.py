"""Who takes part: numbers, shares, repeats, and what accounting may make of it."""

import numpy as np
import pytest
from scipy.stats import binom

from quietbits.analysis.training.client_sampling import ClientSampling
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
    # Millions of clients take no memory.
    assert len(np.unique(ClientSampling("fixed", 10**11, 10_000).draw(1, rng))) == 10_000


def test_seats_are_enough_but_for_a_millionth_of_delta() -> None:
    seats = ClientSampling("poisson", 1000, 100).seats(50, 2.0, 1e-5)
    cost = (1 + np.exp(2.0)) * 50 * binom.sf(seats, 1000, 0.1)
    assert cost <= 1e-11 < (1 + np.exp(2.0)) * 50 * binom.sf(seats - 2, 1000, 0.1)
    assert ClientSampling("poisson", 120, 100).seats(50, 2.0, 1e-5) == 120
    # Of what nothing is left, e to the epsilon being no number, everyone has a seat.
    assert ClientSampling("poisson", 10**6, 100).seats(50, 800.0, 1e-5) == 10**6
    assert ClientSampling("fixed", 120, 100).seats(50, 2.0, 1e-5) == 100
    assert len(ClientSampling("poisson", 1000, 100).draw(1, np.random.default_rng(0), seats=50)) == 50


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
