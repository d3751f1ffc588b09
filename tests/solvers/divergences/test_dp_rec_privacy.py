"""Tests of DP-REC's privacy.

Points under test: log moments against mpmath and quadrature, the best order, and bits at the edge of delta.

The bound on the privacy loss of DP-REC's indices agrees with quadrature over few samples and groups, and with all other orders.

Moments of a loss that occurs with a small probability agree with the binomial sum in many digits.
"""

import functools
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

from quietbits.arrays import FloatArray
from quietbits.solvers.divergences.dp_rec_privacy import (
    LARGEST_ORDER,
    ORDERS,
    VARIANTS,
    bit_rate_bound,
    dp_rec_epsilon,
    draw_log_moment,
    fewest_dp_rec_bits,
    index_epsilon,
    index_log_moment,
    lost_delta,
    message_divergences,
    sampled_log_moment,
)
from quietbits.solvers.divergences.importance_resampling import resampling_renyi_divergences

# Each row has clip ratio, population, draws and delta, with small and large populations, and rare and frequent draws.
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
        # The growths are exp(j (j - 1) clip_ratio**2 / 2).
        growths = itertools.accumulate(powers(step)[:-1], operator.mul, initial=mpmath.mpf(1))
        return mpmath.log(
            mpmath.fsum(map(math.prod, zip(choices, powers(probability), powers(1 - probability)[::-1], growths, strict=True)))
        )


def line_moment(first: Callable[[NDArray], NDArray], second: Callable[[NDArray], NDArray], order: int) -> float:
    """Return ln E_second[(first / second)^order] of two log densities, by the trapezoidal rule."""
    points = np.arange(-60 * 64, 60 * 64 + 1) / 64
    return float(logsumexp(order * first(points) + (1 - order) * second(points)) - math.log(64))


def mixture(shares: list[float], means: list[float], deviation: float = 1.0) -> Callable[[NDArray], NDArray]:
    """Return the log density of a mixture of Gaussians."""
    return lambda points: logsumexp(
        [norm.logpdf(points, mean, deviation) + math.log(share) for share, mean in zip(shares, means, strict=True)], axis=0
    )


def index_moments(clip_ratio: float, population: int, samples: int, order: int) -> tuple[float, float]:
    """Return ln E[(P/Q)^order] of samples and the sent index, in both directions, by quadrature.

    Under Q, all indices are equally likely. Under P, they have the probabilities of a client's weights with probability 1 / population.
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
    # The exponents first / order and second / order have reciprocals that sum to 1, and give moments of whole orders.
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
    result = dp_rec_epsilon(clip_ratio, population, draws, bits, delta, variant)
    constant = -factor * math.log(delta - 12 * draws * math.exp(clip_ratio**2) / 2**bits)
    tried = {order: (2 * draws * moment + constant) / (order - 1) for order, moment in moments_by_order(clip_ratio, population).items()}
    assert result.order == min(tried, key=tried.__getitem__)
    assert not result.at_edge
    assert 0 <= result.epsilon - tried[result.order] <= 1e-12 * result.epsilon


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
    epsilon = dp_rec_epsilon(1e-5, 100, 1, 60, 1e-5)
    assert (epsilon.order, epsilon.at_edge) == (LARGEST_ORDER, True)


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
    # delta is 12 / 2**bits, and exp(c^2) - 1 is 1e-12.
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


@functools.cache
def samples_by_quadrature(samples: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return lists of samples with probabilities, by Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    lists = np.stack(np.meshgrid(*[points] * samples, indexing="ij")).reshape(samples, -1)
    masses = np.prod(np.meshgrid(*[weights / weights.sum()] * samples, indexing="ij"), axis=0).ravel()
    return lists, masses


def relative_weights(length: float, samples: int, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights of each list's indices, and their probabilities if uniform."""
    lists, masses = samples_by_quadrature(samples, nodes)
    weights = np.exp(length * lists)
    return (weights / weights.mean(axis=0)).ravel(), np.tile(masses / samples, samples)


def moments(weights: FloatArray, masses: FloatArray, population: int, order: int) -> tuple[float, float]:
    """Return ln E[(P/Q)^order] in both directions, for uniform indices Q and sent indices P."""
    ratios = 1 - 1 / population + weights / population
    return math.log(masses @ ratios**order), math.log(masses @ ratios ** (1 - order))


@pytest.mark.parametrize(("clip_ratio", "population"), [(0.1, 10**4), (0.545, 100), (1.2, 10), (0.5, 2), (0.3, 1), (1.0, 1)])
@pytest.mark.parametrize(("samples", "nodes"), [(2, 40), (3, 24), (4, 14)])
@pytest.mark.parametrize("order", [2, 3, 6])
def test_the_indices_reveal_no_more_than_the_bound(clip_ratio: float, population: int, samples: int, nodes: int, order: int) -> None:
    result = moments(*relative_weights(clip_ratio, samples, nodes), population, order)
    assert max(result) <= index_log_moment(clip_ratio, population, order)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize(("clip_ratio", "population"), [(0.545, 100), (1.2, 10), (0.3, 1)])
@pytest.mark.parametrize("order", [2, 5])
def test_nor_do_those_of_two_groups(share: float, clip_ratio: float, population: int, order: int) -> None:
    # The first group has two samples and a share of the squared norm, the second has three samples and the rest.
    first, first_masses = relative_weights(clip_ratio * math.sqrt(share), 2, 12)
    second, second_masses = relative_weights(clip_ratio * math.sqrt(1 - share), 3, 8)
    result = moments(np.outer(first, second).ravel(), np.outer(first_masses, second_masses).ravel(), population, order)
    assert max(result) <= index_log_moment(clip_ratio, population, order)


@pytest.mark.parametrize("length", [0.3, 1.0])
@pytest.mark.parametrize("samples", [2, 3])
@pytest.mark.parametrize("power", [2, 4])
def test_moments_of_weights_over_their_mean(length: float, samples: int, power: int) -> None:
    weights, masses = relative_weights(length, samples, 60)
    assert masses @ weights == pytest.approx(1.0, rel=1e-10)
    assert masses @ weights**power <= math.exp(power**2 * length**2 * (1 - 1 / samples) / 2)
    assert masses @ weights**-power <= 1 / samples + (1 - 1 / samples) * math.exp(power**2 * length**2)


@pytest.mark.parametrize(
    ("clip_ratio", "population", "order"), [(0.545, 100, 4), (1e-6, 10**12, 100), (1.7, 3500, 9), (30.0, 2, 5), (2.0, 1, 7)]
)
def test_it_is_the_formula_and_errs_upward(clip_ratio: float, population: int, order: int) -> None:
    with mpmath.workdps(60):
        share, square, less = mpmath.mpf(1) / population, mpmath.mpf(clip_ratio) ** 2, order - 1
        powers = [0, 0, *(j * j * square / 2 for j in range(2, order + 1))]
        terms = (mpmath.binomial(order, j) * share**j * (1 - share) ** (order - j) * mpmath.exp(powers[j]) for j in range(order + 1))
        back = share * mpmath.expm1(less**2 * square)
        if population > 1:
            back = min(back, mpmath.mpf(less * order) / 2 * share**2 * (1 - share) ** (-less - 2) * mpmath.expm1(2 * square))
        exact = max(mpmath.log(mpmath.fsum(terms)), mpmath.log(1 + back))
        assert 0 <= (mpmath.mpf(index_log_moment(clip_ratio, population, order)) - exact) / exact <= 1e-11


def test_it_is_larger_than_the_moment_of_infinitely_many_samples() -> None:
    for order in (2, 5, 20):
        assert index_log_moment(0.545, 100, order) > draw_log_moment(0.545, 100, order)


@pytest.mark.parametrize(("clip_ratio", "population", "draws"), [(0.545, 100, 10_000), (1.227, 342_477, 90_000), (0.1, 10, 1)])
def test_epsilon_is_the_least_over_whole_orders(clip_ratio: float, population: int, draws: int) -> None:
    delta = 1e-6
    tried = {
        order: draws * index_log_moment(clip_ratio, population, order) / (order - 1)
        + math.log1p(-1 / order)
        - math.log(delta * order) / (order - 1)
        for order in range(2, 600)
    }
    best = min(tried.values())
    result = index_epsilon(clip_ratio, population, draws, delta)
    assert best <= result.epsilon * (1 + 1e-12)
    # Beyond order 64 only some orders are tried.
    assert result.epsilon <= best * 1.01
    assert result.epsilon == pytest.approx(tried[int(result.order)], rel=1e-12) if result.order < 600 else result.order < ORDERS[-1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: index_log_moment(0.0, 10, 2), "clip_ratio must be a number from 1e-06 to 100, got 0.0"),
        (lambda: index_log_moment(1.0, 0, 2), "population must be a whole number from 1 to 1000000000000, got 0"),
        (lambda: index_log_moment(1.0, 10, 1), f"order must be a whole number from 2 to {ORDERS[-1]}, got 1"),
        (lambda: index_epsilon(1.0, 10, 0, 0.1), "draws must be a whole number from 1 to 1000000000000000, got 0"),
        (lambda: index_epsilon(1.0, 10, 10, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
    ],
)
def test_a_bad_argument_of_an_index_is_named(call: Callable[[], float], message: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize("samples", [2, 4, 64])
@pytest.mark.parametrize("length", [0.1, 0.8, 2.0])
def test_messages_of_opposite_updates_reveal_no_more_than_the_bound(samples: int, length: float) -> None:
    orders = [2, 3, 8]
    divergences = resampling_renyi_divergences(length, -length, samples, orders)
    assert (divergences <= message_divergences(length, orders)).all()
    # The divergence is 2 a c^2 of (5 a^2 - 6 a + 2) / (2 a - 2) c^2, less the effect of few samples.
    if (samples, length) == (64, 0.1):
        assert (divergences > 0.75 * message_divergences(length, orders)).all()


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.6, 2.5, math.pi])
@pytest.mark.parametrize(("length", "other"), [(1.0, 1.0), (1.5, 0.4), (0.0, 0.6), (0.7, 0.0)])
def test_nor_do_those_of_any_two_updates_in_two_groups(angle: float, length: float, other: float) -> None:
    # Two groups have two samples each: weights depend on differences of samples, of variance 2, along the plane of either update.
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    first, second = np.meshgrid(math.sqrt(2) * points, math.sqrt(2) * points)
    masses = np.outer(weights, weights) / weights.sum() ** 2
    order, total = 3, 0.0
    for share in (0.3, 0.7):
        target = math.sqrt(share) * length * first
        reference = math.sqrt(share) * other * (math.cos(angle) * first + math.sin(angle) * second)
        ratios = (2 / (1 + np.exp(-target))) ** order * (2 / (1 + np.exp(-reference))) ** (1 - order)
        total += math.log((masses * ratios).sum())
    assert total / (order - 1) <= message_divergences(max(length, other), [order])[0]


def test_divergences_of_messages_at_all_orders() -> None:
    divergences = message_divergences(0.3, [1.01, 1.9, 2.0, 2.5, 100.0, math.inf])
    assert divergences[0] == divergences[1] == divergences[2] == pytest.approx(5 * 0.09, rel=1e-13)
    assert divergences[3] == pytest.approx((5 * 2.5**2 - 6 * 2.5 + 2) / 3 * 0.09, rel=1e-13)
    assert (np.diff(divergences[2:]) > 0).all()
    assert divergences[-1] == math.inf
    with pytest.raises(ValueError, match="orders must be above 1, got 1"):
        message_divergences(0.3, [1.0])
    with pytest.raises(ValueError, match="clip_ratio must be a number from 1e-06 to 100, got 0"):
        message_divergences(0.0, [2.0])


@pytest.mark.parametrize(("ratio", "order"), [(0.5, 10), (3.0, 2), (3.0, 5), (10.0, 3), (10.0, 12)])
def test_a_single_client_is_as_private_as_its_own_weights(ratio: float, order: int) -> None:
    # E[y^a] is at most exp(a^2 c^2 / 2), and E[y^(1 - a)] at most exp((a - 1)^2 c^2).
    expected = max(order**2 * ratio**2 / 2, (order - 1) ** 2 * ratio**2)
    assert index_log_moment(ratio, 1, order) == pytest.approx(expected, rel=1e-9)
    assert index_log_moment(ratio, 1, order) >= expected


@pytest.mark.parametrize("population", [1, 2, 10, 10**6])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0])
@pytest.mark.parametrize("order", [2, 3, 40, 200])
def test_it_is_the_binomial_sum_and_not_below(population: int, scale: float, order: int) -> None:
    chosen = np.arange(2, order + 1)
    # The moments are those of a lognormal number.
    exponents = scale * chosen * (chosen - 1) / 2
    computed = sampled_log_moment(exponents, population)
    with mpmath.workdps(60):
        share = mpmath.mpf(1) / population
        moments = [mpmath.mpf(1), mpmath.mpf(1), *(mpmath.exp(mpmath.mpf(value)) for value in exponents.tolist())]
        terms = [math.comb(order, j) * share**j * (1 - share) ** (order - j) * moment for j, moment in enumerate(moments)]
        exact = mpmath.log(mpmath.fsum(terms))
    assert exact <= computed <= exact * (1 + mpmath.mpf(10) ** -9)
