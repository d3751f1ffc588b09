"""Clients share the noise of a multiplier, in steps that rounding and sampling support."""

import math

import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget
from quietbits.design.secure_sum.shared_noise import (
    MOST_CLIP_STEPS,
    MOST_NOISE_STEPS,
    calibrate_finest_steps,
    discrete_gaussian_of_noise,
)
from quietbits.errors import InfeasibleError
from quietbits.solvers.divergences.discrete_gaussian_divergence import granularity_for_bits


@pytest.mark.parametrize(("adjacency", "times"), [("replace-one", 2), ("add-or-remove-one", 1)])
@pytest.mark.parametrize("clip", [0.5, 3.0])
def test_the_noise_of_all_clients_is_the_multiplier_times_the_sensitivity(adjacency: str, times: int, clip: float) -> None:
    clients, budget = 100, Budget(1.0, 1e-5, adjacency)
    for multiplier, bits in ((2.0, 8), (2.0, 20), (2.0, 60), (1e5, 60)):
        mechanism = discrete_gaussian_of_noise(NormBall(10, 2.0, clip), clients, bits, budget, multiplier)
        assert mechanism.adjacency == adjacency
        assert mechanism.local_sigma * math.sqrt(clients) == pytest.approx(multiplier * times * clip, rel=1e-12)
        # The steps are the finest that the bits hold (ten coordinates are padded to sixteen), and that rounding and sampling support.
        finest = (granularity_for_bits(clients, 16, clip, mechanism.local_sigma, bits), clip / MOST_CLIP_STEPS)
        assert mechanism.granularity == pytest.approx(max(*finest, mechanism.local_sigma / MOST_NOISE_STEPS), rel=1e-12)


def test_noise_that_rounds_to_zero_is_refused_with_the_least_that_does_not() -> None:
    ball, budget = NormBall(10, 2.0), Budget(1.0, 1e-5, "add-or-remove-one")
    with pytest.raises(InfeasibleError, match=r"noise_multiplier must be at least 0\.00\d+ in steps that fit 8 bits, got 1e-05") as refused:
        discrete_gaussian_of_noise(ball, 100, 8, budget, 1e-5)
    least = float(str(refused.value).split()[5])
    assert discrete_gaussian_of_noise(ball, 100, 8, budget, 1.01 * least).local_sigma > 0


@pytest.mark.parametrize(("sigma", "finest"), [(1.0, 1 / MOST_CLIP_STEPS), (1e9, 1e9 / MOST_NOISE_STEPS)])
def test_bits_beyond_the_finest_steps_are_left(sigma: float, finest: float) -> None:
    asked = []

    def calibrate(*arguments: object) -> dict[str, float]:
        bits = arguments[3]
        assert isinstance(bits, int)
        asked.append(bits)
        return {"local_sigma": sigma, "granularity": 3 * 2.0**-bits}

    result = calibrate_finest_steps(calibrate, 10, 4, 1.0, 60, Budget(1.0, 1e-5, "replace-one"))
    # Another bit would give finer steps than rounding and sampling support.
    assert finest <= result["granularity"] < 2 * finest
    assert asked == [60, 60 - math.ceil(math.log2(finest / (3 * 2.0**-60)))]
    assert calibrate_finest_steps(calibrate, 10, 4, 1.0, 8, Budget(1.0, 1e-5, "replace-one"))["granularity"] == 3 / 256


def test_steps_of_skellam_noise_are_as_fine_as_the_clip_norm_takes() -> None:
    # The calibration of Skellam noise states a variance, and no deviation that could limit the steps.
    def calibrate(*arguments: object) -> dict[str, float]:
        assert isinstance(arguments[3], int)
        return {"local_variance": 1e-40, "granularity": 3e-20 * 2.0 ** -arguments[3]}

    result = calibrate_finest_steps(calibrate, 10, 4, 1e-20, 60, Budget(1.0, 1e-5, "replace-one"))
    assert 1e-20 / MOST_CLIP_STEPS <= result["granularity"] < 2e-20 / MOST_CLIP_STEPS


def test_the_rotation_has_the_first_seed_unless_another_is_given() -> None:
    mechanism = discrete_gaussian_of_noise(NormBall(10, 2.0), 100, 20, Budget(1.0, 1e-5, "replace-one"), 2.0)
    assert (mechanism.rotation_seed, mechanism.rotation) == (0, "hadamard")
