"""Tests of adaptive clipping.

Points under test: convergence to the quantile, joint privacy of sum and count, and refusals.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import lognorm

from quietbits import InfeasibleError, PoissonSampling
from quietbits.design.federated.adaptive_clipping import (
    AdaptiveClipping,
    adaptive_clipping_privacy,
    central_fraction,
    combined_noise_multiplier,
    sum_noise_multiplier,
    updated_clip,
    usual_count_deviation,
    within_clip,
)
from quietbits.design.secure_sum.noisy_count import NoisyCount

ADJACENCIES = ("add-or-remove-one", "replace-one")


def central(norms: np.ndarray, clip_norm: float, rng: np.random.Generator) -> float:
    return central_fraction(norms, clip_norm, len(norms), usual_count_deviation(len(norms)), rng)


def summed(norms: np.ndarray, clip_norm: float, rng: np.random.Generator) -> float:
    count = NoisyCount.of_deviation(len(norms), usual_count_deviation(len(norms)))
    messages = count.encode(within_clip(norms, clip_norm) == 1.0, rng)
    return count.fraction(messages.sum(keepdims=True))


# Tests of convergence


@pytest.mark.parametrize("fraction", [central, summed])
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_it_converges_to_the_quantile_of_log_normal_norms(fraction: Callable[..., float], quantile: float) -> None:
    rng = np.random.default_rng(1)
    clipping = AdaptiveClipping(quantile=quantile)
    state = clipping.start()
    logarithms = []
    for _ in range(300):
        norms = rng.lognormal(mean=0.7, sigma=0.5, size=100)
        state = clipping.step(state, fraction(norms, state.clip_norm, rng))
        logarithms.append(math.log(state.clip_norm))
    # Noise and sampling move the fraction by 0.05 or more, which moves the logarithm by a fifth of that.
    assert np.mean(logarithms[150:]) == pytest.approx(math.log(lognorm.ppf(quantile, s=0.5, scale=math.exp(0.7))), abs=0.06)
    assert state.rounds == 300


def test_the_first_rounds_are_as_fast_as_the_papers_bound() -> None:
    # All norms are above the clip norm, which grows by e^(0.2 / 2) per round, from 0.1.
    clipping = AdaptiveClipping()
    state = clipping.start()
    assert state.clip_norm == 0.1
    for _ in range(20):
        state = clipping.step(state, 0.0)
    assert state.clip_norm == pytest.approx(0.1 * math.exp(2.0), rel=1e-12)


@given(st.floats(1e-100, 1e100), st.floats(-1e300, 1e300), st.floats(0, 1))
def test_no_noise_takes_the_clip_norm_out_of_its_range(clip: float, fraction: float, quantile: float) -> None:
    result = updated_clip(clip, fraction, quantile)
    assert 1e-100 <= result <= 1e100
    assert (result >= clip) if fraction <= quantile else (result <= clip)


# Tests of privacy


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("add-or-remove-one", 0.5), ("replace-one", 1.0)])
def test_sum_and_count_together_are_the_composition_of_both(adjacency: str, sensitivity: float) -> None:
    # dp-accounting composes two Gaussian events: a sum of multiplier 2 and a count of noise 3, relative to their add-or-remove-one
    # sensitivities.
    ours = adaptive_clipping_privacy(2.0, 3.0, adjacency).epsilon(1e-5, rounds=7)
    event = ComposedDpEvent([GaussianDpEvent(2.0), GaussianDpEvent(3.0 / sensitivity)])
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event, 7).get_epsilon(1e-5)
    assert ours <= theirs
    assert ours == pytest.approx(theirs, rel=2e-3)


def test_no_pair_of_neighbours_moves_the_pair_by_more() -> None:
    # The test computes scaled distances for added and replaced clients. Vectors have a norm of at most 2 and are clipped to 1, and their
    # bits b count as b - 1/2.
    rng = np.random.default_rng(0)
    sum_noise, count_noise = 0.7, 0.4
    vectors = rng.standard_normal((400, 2))
    vectors *= (2 * rng.random(400) / np.linalg.norm(vectors, axis=1))[:, None]
    vectors[:4] = [[1.0, 0.0], [-2.0, 0.0], [0.0, 0.0], [1e-9, 0.0]]
    norms = np.linalg.norm(vectors, axis=1)
    clipped = vectors / np.maximum(norms, 1.0)[:, None]
    points = np.column_stack([clipped / sum_noise, (within_clip(norms, 1.0) - 0.5) / count_noise])
    present = np.linalg.norm(points, axis=1).max()
    replaced = np.linalg.norm(points[:, None] - points, axis=2).max()
    assert present == pytest.approx(1 / combined_noise_multiplier(sum_noise, count_noise), rel=1e-9)
    assert replaced == pytest.approx(1 / combined_noise_multiplier(sum_noise / 2, count_noise, "replace-one"), rel=1e-9)


@given(st.floats(0.1, 100), st.floats(1.001, 1000), st.sampled_from(ADJACENCIES))
def test_the_noise_of_the_sum_is_on_the_safe_side(total: float, ratio: float, adjacency: str) -> None:
    deviation = total * (0.5 if adjacency == "add-or-remove-one" else 1.0) * ratio
    multiplier = sum_noise_multiplier(total, deviation, adjacency)
    assert multiplier > total
    if multiplier < 1e6:
        back = combined_noise_multiplier(multiplier, deviation, adjacency)
        # Both multipliers are rounded up, together by less than the relative share that the count leaves.
        assert back == pytest.approx(total, rel=1e-12)
        exact = (multiplier**-2 + (total * ratio) ** -2) ** -0.5
        assert exact >= total * (1 - 1e-15)


def test_the_papers_count_costs_little() -> None:
    # For n = 1000 and z = 0.6, the sum needs 0.002 % more noise (section 2.2 of the paper: z_sum = (z^-2 - (2 sigma_b)^-2)^(-1/2)).
    needed = sum_noise_multiplier(0.6, usual_count_deviation(1000))
    assert needed == pytest.approx((0.6**-2 - 100.0**-2) ** -0.5, rel=1e-12)
    assert needed / 0.6 - 1 < 2e-5


def test_rounds_with_sampled_clients_are_those_of_one_gaussian() -> None:
    sampling = PoissonSampling(0.01)
    ours = adaptive_clipping_privacy(1.0, 5.0).report(1e-5, rounds=100, sampling=sampling).epsilon_by("pld")
    event = PoissonSampledDpEvent(0.01, GaussianDpEvent((1 + 0.1**2) ** -0.5))
    assert ours == pytest.approx(PLDAccountant().compose(event, 100).get_epsilon(1e-5), rel=1e-3)


# Tests of refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: within_clip([], 1.0), r"norms must have the shape \(clients,\), with at least one client, got \(0,\)"),
        (lambda: central_fraction([], 1.0, 10, 1.0, np.random.default_rng(0)), "at least one client"),
        (lambda: central_fraction([1.0], 1.0, 0, 1.0, np.random.default_rng(0)), "clients must be a whole number from 1 to .*, got 0"),
        (lambda: central_fraction([1.0], 1.0, 1, 0.0, np.random.default_rng(0)), "count_deviation must be a number from 1e-06"),
        (lambda: within_clip([1.0, -1.0], 1.0), r"norms must be finite and at least 0, got -1\.0"),
        (lambda: within_clip([1.0, math.nan], 1.0), "norms must be finite and at least 0, got nan"),
        (lambda: within_clip([1.0], 0.0), "clip_norm must be a number from 1e-100"),
        (lambda: AdaptiveClipping(quantile=1.5), r"quantile must be a number from 0 to 1, got 1\.5"),
        (lambda: AdaptiveClipping(initial_clip=0.0), "initial_clip must be a number from 1e-100"),
        (lambda: AdaptiveClipping(learning_rate=-0.2), "learning_rate must be a number from 1e-06 to 100"),
        (lambda: updated_clip(1.0, math.nan), "noisy_fraction must be a number"),
        (lambda: combined_noise_multiplier(1.0, 1.0, "zero-out"), "adjacency must be one of replace-one, add-or-remove-one"),
        (lambda: combined_noise_multiplier(0.0, 1.0), "sum_multiplier must be a number from 0.001"),
        (lambda: usual_count_deviation(0), "clients must be a whole number from 1"),
    ],
)
def test_bad_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_count_that_reveals_too_much_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match=r"count_deviation must be above 0\.5 for a noise multiplier of 1 in all, got 0\.5"):
        sum_noise_multiplier(1.0, 0.5)
    with pytest.raises(InfeasibleError, match="count_deviation must be above 1 for"):
        sum_noise_multiplier(1.0, 0.9, "replace-one")
