"""Numbers in a secure sum.

Points under test: a ball that is a step wider than the interval prevents bias at its ends.
"""

from dataclasses import replace

import numpy as np
import pytest

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.delegated_sum import NumberSum
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism

INTERVAL = (-1.0, 3.0)
# The ends of the interval are 2.1 steps from its middle.
STEP = 2 / 2.1


def sum_of(clip_norm: float, granularity: float = STEP) -> NumberSum:
    inner = DistributedDiscreteGaussianMechanism(NormBall(1, 2.0, clip_norm), 4, 16, granularity=granularity, local_sigma=1.0, delta=1e-5)
    return NumberSum(inner, INTERVAL)


def test_a_ball_that_is_a_step_wider_rejects_nothing() -> None:
    tight, wide = sum_of(2.0), sum_of(2.0 + STEP)
    assert tight.bias_bound > 0
    assert wide.bias_bound == 0
    ends = np.array(INTERVAL).repeat(2000)
    rng = np.random.default_rng(0)
    for mechanism, biased in ((tight, True), (wide, False)):
        assert isinstance(mechanism.inner, DistributedDiscreteGaussianMechanism)
        steps = mechanism.inner.rounded_steps((ends - 1)[:, None], rng)[:, 0]
        # Numbers are rounded to 2 or 3 steps; 3 steps are beyond the bound on the norm.
        off = abs(STEP * np.abs(steps).mean() - 2.0)
        assert (off > 0.09) == biased
        # The margin is five standard errors of the rounding.
        assert biased or off < 5 * STEP * np.sqrt(0.09 / len(steps))


def test_a_number_that_is_padded_may_be_rejected() -> None:
    # The Fourier rotation makes two coordinates of a single number, and may round both away from zero.
    wide = sum_of(2.0 + STEP)
    padded = NumberSum(replace(wide.inner, rotation="fourier"), INTERVAL)  # type: ignore[type-var]
    assert padded.bias_bound == padded.inner.bias_bound > wide.bias_bound == 0
    # Quantisation to levels rejects nothing, so the bias is 0.
    assert NumberSum(CpsgdMechanism(NormBall(1, 2.0, 2.0), 4, levels=5, trials=100, delta=1e-5), INTERVAL).bias_bound == 0


@pytest.mark.parametrize("name", ["distributed-discrete-gaussian", "distributed-skellam"])
def test_calibration_makes_room_for_that_step(name: str) -> None:
    task = Task(Interval(*INTERVAL), 1000, 1.0, 1e-5, "replace-one")
    mechanism = build_mechanism(name, task, {"bits": 20})
    assert mechanism.bias_bound == 0
    # With few bits, the steps are too long to avoid a bias.
    assert build_mechanism(name, task, {"bits": 12}).bias_bound > 0


def test_a_ball_must_hold_the_interval() -> None:
    with pytest.raises(ValueError, match="inner must be for vectors of one coordinate up to 2, got "):
        sum_of(1.9)
    inner = replace(sum_of(2.0).inner, ball=NormBall(2, 2.0, 2.0))  # type: ignore[type-var]
    with pytest.raises(ValueError, match="inner must be for vectors of one coordinate up to 2, got "):
        NumberSum(inner, INTERVAL)
    with pytest.raises(ValueError, match="inner must be for vectors of one coordinate up to 2, got Interval"):
        NumberSum(sum_of(2.0), INTERVAL)  # type: ignore[arg-type]


def test_an_interval_is_two_numbers_that_rise() -> None:
    inner = sum_of(2.0).inner
    for interval in ((3.0, -1.0), (0.0, 0.0), (0.0, float("nan")), (0.0, float("inf"))):
        with pytest.raises(ValueError, match="interval must be two finite numbers with low < high, got "):
            NumberSum(inner, interval)
    interval = NumberSum(inner, [-1, 3]).interval  # type: ignore[arg-type]
    assert interval == (-1.0, 3.0)
    assert [type(end) for end in interval] == [float, float]
