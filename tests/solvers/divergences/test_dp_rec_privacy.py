"""DP-REC's privacy: log moments against mpmath and quadrature, the best order, bits at the edge of what delta allows."""

import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom, norm

from quietbits.solvers.divergences.dp_rec_privacy import (
    LARGEST_ORDER,
    VARIANTS,
    bit_rate_bound,
    dp_rec_epsilon,
    draw_log_moment,
    fewest_dp_rec_bits,
    lost_delta,
)

# Clip ratio, population, draws and delta: small and large populations, rare and frequent draws.
TRAININGS = [
    (0.545, 100, 10_000, 100**-1.1),
    (1.41, 3500, 400_000, 3500**-1.1),
    (1.227, 342_477, 90_000, 342_477**-1.1),
    (0.1, 10, 1, 1e-5),
    (3.0, 2, 7, 1e-9),
]


def exact_moment(clip_ratio: float, population: int, order: int) -> mpmath.mpf:
    """Return the log moment with 60 digits, all its terms and no rearrangement."""
    with mpmath.workdps(60):
        probability, step = mpmath.mpf(1) / population, mpmath.exp(mpmath.mpf(clip_ratio) ** 2)

        def powers(base: mpmath.mpf) -> list[mpmath.mpf]:
            return list(itertools.accumulate(itertools.repeat(base, order), operator.mul, initial=mpmath.mpf(1)))

        choices = itertools.accumulate(range(order), lambda chosen, j: chosen * (order - j) / (j + 1), initial=mpmath.mpf(1))
        # exp(j (j - 1) clip_ratio**2 / 2)
        growths = itertools.accumulate(powers(step)[:-1], operator.mul, initial=mpmath.mpf(1))
        return mpmath.log(
            mpmath.fsum(map(math.prod, zip(choices, powers(probability), powers(1 - probability)[::-1], growths, strict=True)))
        )


def line_moment(first: Callable[[NDArray], NDArray], second: Callable[[NDArray], NDArray], order: int) -> float:
    """Return ln E_second[(first / second)^order] of two log densities on the line, by the trapezoidal rule."""
    points = np.arange(-60 * 64, 60 * 64 + 1) / 64
    return float(logsumexp(order * first(points) + (1 - order) * second(points)) - math.log(64))


def mixture(shares: list[float], means: list[float], deviation: float = 1.0) -> Callable[[NDArray], NDArray]:
    """Return the log density of a mixture of Gaussians."""
    return lambda points: logsumexp(
        [norm.logpdf(points, mean, deviation) + math.log(share) for share, mean in zip(shares, means, strict=True)], axis=0
    )


def index_moments(clip_ratio: float, population: int, samples: int, order: int) -> tuple[float, float]:
    """Return ln E[(P/Q)^order] of two or three public samples and the index that is sent, both ways, by Gauss-Hermite quadrature.

    Q: all indices are as likely. P: with probability 1 / population they have the probabilities of a client's weights.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    points = np.stack(np.meshgrid(*[nodes] * samples, indexing="ij")).reshape(samples, -1)
    masses = np.prod(np.meshgrid(*[weights / weights.sum()] * samples, indexing="ij"), axis=0).ravel()
    ratios = np.exp(clip_ratio * points - clip_ratio**2 / 2)
    loss = 1 - 1 / population + ratios / ratios.mean(axis=0) / population
    return math.log(masses @ (loss**order).mean(axis=0)), math.log(masses @ (loss ** (1 - order)).mean(axis=0))


@pytest.mark.parametrize(
    ("clip_ratio", "population", "order"),
    [
        *((1e-6, 10**6, 2), (1e-6, 10**12, 500), (1e-3, 10**9, 40), (1e-2, 50, 500), (0.545, 100, 5), (1.227, 342_477, 16)),
        *((1.745, 3500, 60), (3.0, 10, 200), (20.0, 1000, 300), (100.0, 10**12, 2), (1.0, 2, 100), (1.0, 1, 7)),
    ],
)
def test_the_log_moment_is_exact_and_errs_upward(clip_ratio: float, population: int, order: int) -> None:
    exact = exact_moment(clip_ratio, population, order)
    assert 0 <= (mpmath.mpf(draw_log_moment(clip_ratio, population, order)) - exact) / exact <= 1e-12


@pytest.mark.parametrize(("clip_ratio", "population", "order"), [(1e-6, 2, 4000), (0.01, 100, 3000), (5.0, 10, 4000)])
def test_large_orders_err_upward_and_little(clip_ratio: float, population: int, order: int) -> None:
    exact = exact_moment(clip_ratio, population, order)
    assert 0 <= (mpmath.mpf(draw_log_moment(clip_ratio, population, order)) - exact) / exact <= 1e-7


@pytest.mark.parametrize("clip_ratio", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("population", [2, 10, 1000])
@pytest.mark.parametrize("order", [2, 3, 7])
def test_it_is_the_larger_divergence_of_the_two_directions(clip_ratio: float, population: int, order: int) -> None:
    prior, mixed = mixture([1.0], [0.0]), mixture([1 - 1 / population, 1 / population], [0.0, clip_ratio])
    there, back = line_moment(mixed, prior, order), line_moment(prior, mixed, order)
    assert there == pytest.approx(draw_log_moment(clip_ratio, population, order), rel=1e-8, abs=1e-12)
    assert back <= there + 1e-12


@pytest.mark.parametrize(("clip_ratio", "population"), [(0.545, 100), (1.2, 10), (0.5, 2), (1.0, 1)])
@pytest.mark.parametrize("samples", [2, 3])
@pytest.mark.parametrize("order", [2, 3, 6])
def test_what_is_really_sent_stays_within_twice_the_moment(clip_ratio: float, population: int, samples: int, order: int) -> None:
    bound = 2 * draw_log_moment(clip_ratio, population, order)
    assert max(index_moments(clip_ratio, population, samples, order)) <= bound


def test_the_moment_alone_would_not_cover_what_is_sent() -> None:
    assert max(index_moments(1.0, 1, 2, 6)) > 1.4 * draw_log_moment(1.0, 1, 6)


@pytest.mark.parametrize(("clip_ratio", "population", "ratio"), [(0.545, 100, 2.81), (0.87, 100, 9.97), (1.745, 3500, 1484.0)])
def test_clients_on_the_other_side_of_the_prior_hide_less_in_separate_messages(clip_ratio: float, population: int, ratio: float) -> None:
    shares = [1 - 1 / population, 1 / population]
    opposite = line_moment(mixture(shares, [-clip_ratio, clip_ratio]), mixture(shares, [-clip_ratio, 0.0]), 2)
    assert opposite / draw_log_moment(clip_ratio, population, 2) == pytest.approx(ratio, rel=2e-3)


@pytest.mark.parametrize(
    ("clip_ratio", "population", "clients", "ratio"), [(0.545, 100, 10, 0.983), (0.87, 100, 10, 0.938), (1.435, 660, 66, 0.348)]
)
def test_and_hide_enough_at_order_two_in_a_sum(clip_ratio: float, population: int, clients: int, ratio: float) -> None:
    times = np.arange(12)
    shares = (binom.pmf(times, clients, 1 / population) / binom.cdf(times[-1], clients, 1 / population)).clip(1e-300).tolist()
    deviation = math.sqrt(clients)
    there = mixture(shares, (2 * clip_ratio * times).tolist(), deviation)
    without = mixture(shares, (clip_ratio * times).tolist(), deviation)
    moments = line_moment(there, without, 2), line_moment(without, there, 2)
    assert max(moments) / (clients * draw_log_moment(clip_ratio, population, 2)) == pytest.approx(ratio, abs=2e-3)


@pytest.mark.parametrize(("first", "second"), [(3, 6), (6, 3), (4, 12), (10, 15), (2, 2), (24, 8)])
@pytest.mark.parametrize(("clip_ratio", "population"), [(0.1, 10), (1.0, 1000), (2.0, 1)])
def test_the_best_exponents_of_hoelder_are_two_and_two(first: int, second: int, clip_ratio: float, population: int) -> None:
    # Exponents first / order and second / order, whose reciprocals sum to 1: moments of whole orders.
    order = Fraction(first * second, first + second)
    assert order.denominator == 1

    def moment(whole: int) -> float:
        return draw_log_moment(clip_ratio, population, whole + 1)

    other = float(order) * (moment(first) / first + moment(second) / second)
    assert moment(2 * int(order)) <= other * (1 + 1e-12)


@cache
def moments_by_order(clip_ratio: float, population: int) -> dict[int, float]:
    return {order: draw_log_moment(clip_ratio, population, order) for order in range(2, 1000)}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("clip_ratio", "population", "draws", "delta"), TRAININGS)
def test_the_order_is_the_best_of_all(clip_ratio: float, population: int, draws: int, delta: float, variant: str) -> None:
    bits, factor = 80, 1 if variant == "published" else 2
    found = dp_rec_epsilon(clip_ratio, population, draws, bits, delta, variant)
    constant = -factor * math.log(delta - 12 * draws * math.exp(clip_ratio**2) / 2**bits)
    tried = {order: (2 * draws * moment + constant) / (order - 1) for order, moment in moments_by_order(clip_ratio, population).items()}
    assert found.order == min(tried, key=tried.__getitem__)
    assert not found.at_edge
    assert 0 <= found.epsilon - tried[found.order] <= 1e-12 * found.epsilon


@pytest.mark.parametrize(("clip_ratio", "population", "draws", "delta"), TRAININGS)
def test_the_conservative_variant_is_larger_and_at_most_twice(clip_ratio: float, population: int, draws: int, delta: float) -> None:
    published, conservative = (dp_rec_epsilon(clip_ratio, population, draws, 60, delta, variant).epsilon for variant in VARIANTS)
    assert published < conservative < 2 * published


@pytest.mark.parametrize("variant", VARIANTS)
def test_epsilon_rises_and_falls_with_what_it_should(variant: str) -> None:
    def epsilon(clip_ratio: float = 0.8, population: int = 100, draws: int = 1000, bits: int = 40, delta: float = 1e-4) -> float:
        return dp_rec_epsilon(clip_ratio, population, draws, bits, delta, variant).epsilon

    usual = epsilon()
    assert epsilon(clip_ratio=0.81) > usual < epsilon(draws=1001)
    assert epsilon(population=99) > usual < epsilon(bits=39)
    assert epsilon(delta=0.99e-4) > usual


def test_the_largest_order_is_an_edge() -> None:
    found = dp_rec_epsilon(1e-5, 100, 1, 60, 1e-5)
    assert (found.order, found.at_edge) == (LARGEST_ORDER, True)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("clip_ratio", "population", "draws", "delta"), TRAININGS)
def test_the_fewest_bits_are_the_fewest(clip_ratio: float, population: int, draws: int, delta: float, variant: str) -> None:
    fewest = fewest_dp_rec_bits(clip_ratio, draws, delta)
    with mpmath.workdps(40):
        exact = 12 * draws * mpmath.exp(mpmath.mpf(clip_ratio) ** 2) / mpmath.mpf(delta)
        assert mpmath.mpf(2) ** (fewest - 1) <= exact < mpmath.mpf(2) ** fewest
    assert math.isfinite(dp_rec_epsilon(clip_ratio, population, draws, fewest, delta, variant).epsilon)
    few = dp_rec_epsilon(clip_ratio, population, draws, fewest - 1, delta, variant)
    assert (few.epsilon, few.order) == (math.inf, None)


@pytest.mark.parametrize("bits", [4, 10, 52, 300])
def test_bits_whose_cost_is_delta_to_the_last_digit_leave_nothing(bits: int) -> None:
    # 12 / 2**bits, and exp(c^2) is 1 and 1e-12.
    delta = 12 / 2.0**bits
    assert math.isinf(dp_rec_epsilon(1e-6, 10, 1, bits, delta).epsilon)
    assert fewest_dp_rec_bits(1e-6, 1, delta) == bits + 1


@pytest.mark.parametrize(("clip_ratio", "draws", "bits"), [(1e-6, 1, 1), (1.227, 90_000, 42), (5.0, 10**9, 100), (26.0, 10, 10)])
def test_the_part_of_delta_that_is_lost(clip_ratio: float, draws: int, bits: int) -> None:
    with mpmath.workdps(40):
        exact = 12 * draws * mpmath.exp(mpmath.mpf(clip_ratio) ** 2) / mpmath.mpf(2) ** bits
        assert 0 <= mpmath.mpf(lost_delta(clip_ratio, draws, bits)) / exact - 1 <= 1e-11
    assert lost_delta(30.0, draws, 1) == math.inf


@pytest.mark.parametrize(("clip_ratio", "lost", "messages"), [(1.0, 1e-6, 1), (1.41, 1e-5, 400_000), (3.0, 0.5, 10)])
def test_the_rate_of_lemma_two_is_where_the_lost_part_is_met(clip_ratio: float, lost: float, messages: int) -> None:
    rate = bit_rate_bound(clip_ratio, lost, messages)
    assert 12 * messages * math.exp(clip_ratio**2) / 2**rate == pytest.approx(lost, rel=1e-12)
    assert lost_delta(clip_ratio, messages, math.ceil(rate)) <= lost < lost_delta(clip_ratio, messages, math.ceil(rate) - 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_log_moment(0.0, 10, 2), "clip_ratio must be a number from 1e-06 to 100, got 0.0"),
        (lambda: draw_log_moment(math.nan, 10, 2), "clip_ratio must be a number from 1e-06 to 100, got nan"),
        (lambda: draw_log_moment(1.0, 0, 2), "population must be a whole number from 1 to 1000000000000, got 0"),
        (lambda: draw_log_moment(1.0, 10, 1), "order must be a whole number from 2 to 16384, got 1"),
        (lambda: dp_rec_epsilon(1.0, 10, 0, 40, 1e-5), "draws must be a whole number from 1 to 1000000000000000, got 0"),
        (lambda: dp_rec_epsilon(1.0, 10, 10, 0, 1e-5), "bits must be a whole number from 1 to 1000000, got 0"),
        (lambda: dp_rec_epsilon(1.0, 10, 10, 40, 1.0), "delta must be a number above 0 and below 1, got 1.0"),
        (lambda: dp_rec_epsilon(1.0, 10, 10, 40, 0.1, "safe"), "variant must be one of published, conservative, got 'safe'"),
        (lambda: bit_rate_bound(1.0, 0.0, 10), "lost must be a number above 0 and below 1, got 0.0"),
        (lambda: bit_rate_bound(1.0, 0.1, 0), "messages must be a whole number from 1 to 1000000000000000, got 0"),
    ],
)
def test_a_bad_argument_is_named(call: Callable[[], float], message: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        call()
    assert str(raised.value) == message
