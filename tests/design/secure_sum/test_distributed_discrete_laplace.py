"""Tests of the distributed discrete Laplace mechanism.

Points under test: errors against predictions, the guarantee with drop-outs by enumeration of whole sums, bits and wrap-around.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.design.noise.random_words import secure_words
from quietbits.design.secure_sum.delegated_sum import ItemSum, NumberSum
from quietbits.design.secure_sum.distributed_discrete_laplace import (
    DistributedDiscreteLaplaceMechanism,
    calibrate_distributed_discrete_laplace,
)
from quietbits.errors import InfeasibleError

NAME = "distributed-discrete-laplace"
BALL = NormBall(3, 1.0, 2.0)


def mechanism_of(survivors: int = 5, clients: int = 5, scale: float = 3.0, steps: int = 2) -> DistributedDiscreteLaplaceMechanism:
    return DistributedDiscreteLaplaceMechanism(BALL, clients, 20, steps, scale, survivors)


def test_a_histogram_has_the_error_of_a_trusted_server() -> None:
    mechanism = build_mechanism(NAME, Task(Categories(100), 10_000, 1.0, 0.0, "replace-one"))
    assert isinstance(mechanism, ItemSum)
    assert mechanism.error().of_mean(10_000) == pytest.approx(7.8354e-6, rel=1e-4)
    assert mechanism.guarantee.epsilon <= 1.0
    assert mechanism.bits_per_client == 1500
    gaussian = build_mechanism("sketched-discrete-gaussian-frequencies", Task(Categories(100), 10_000, 1.0, 1e-6, "replace-one"))
    assert gaussian.error().of_mean(10_000) / mechanism.error().of_mean(10_000) > 4.5


def test_numbers_have_a_ninth_of_the_least_error_with_a_delta() -> None:
    mechanism = build_mechanism(NAME, Task(Interval(), 10_000, 1.0, 0.0, "replace-one"))
    assert isinstance(mechanism, NumberSum)
    assert mechanism.error().of_mean(10_000) == pytest.approx(2.0e-8, rel=0.01)
    rng = np.random.default_rng(1)
    values = rng.random(10_000)
    errors = []
    for _ in range(150):
        steps = mechanism.summed_steps(values, rng)
        errors.append(0.5 + steps[0] * mechanism.inner.granularity / 10_000 - values.mean())
    squares = np.square(errors)
    predicted = mechanism.error(values).of_mean(10_000)
    assert squares.mean() == pytest.approx(predicted, abs=5 * squares.std() / math.sqrt(len(squares)))


@pytest.mark.parametrize("survivors", [2, 3, 4])
def test_epsilon_with_drop_outs_by_enumeration_of_sums(survivors: int) -> None:
    # Two clients remain of `survivors`: the law of the sum is enumerated for every whole vector in the ball.
    mechanism = replace(mechanism_of(survivors, scale=2.0), ball=NormBall(2, 1.0)).for_clients(2)
    part = stats.nbinom.pmf(np.arange(400), 2 / survivors, -math.expm1(-1 / 2.0))
    law = np.convolve(part, part[::-1])
    middle = len(law) // 2
    points = np.arange(-30, 31)
    vectors = [vector for vector in itertools.product(range(-2, 3), repeat=2) if sum(map(abs, vector)) <= mechanism.steps]
    worst = 0.0
    for first, second in itertools.product(vectors, repeat=2):
        losses = [np.log(law[middle + points - a] / law[middle + points - b]).max() for a, b in zip(first, second, strict=True)]
        worst = max(worst, sum(losses))
    assert mechanism.privacy().epsilon(0.0) == pytest.approx(worst, rel=1e-9)


def test_more_survivors_than_planned_keep_the_guarantee() -> None:
    planned = calibrate_distributed_discrete_laplace(BALL, 100, None, 1.0, "replace-one", survivors=80)
    epsilons = [planned.for_clients(clients).privacy().epsilon(0.0) for clients in (100, 81, 80, 79, 60)]
    assert epsilons[0] == epsilons[1] == epsilons[2] <= 1.0 < epsilons[3] < epsilons[4]
    # The price is that of the larger noise.
    usual = calibrate_distributed_discrete_laplace(BALL, 100, None, 1.0, "replace-one")
    assert planned.variance_bound / usual.variance_bound == pytest.approx(1.25, rel=0.02)
    with pytest.raises(ValueError, match="survivors must be a whole number from 1 to 100"):
        calibrate_distributed_discrete_laplace(BALL, 100, None, 1.0, "replace-one", survivors=101)


def test_a_client_that_knows_its_own_share_sees_less_noise() -> None:
    mechanism = mechanism_of(survivors=5, scale=4.0)
    assert mechanism.facts()["epsilon_to_a_client"] == mechanism.for_clients(4).privacy().epsilon(0.0) > 1.0
    assert mechanism_of(1, 1).facts()["epsilon_to_a_client"] is None


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
def test_an_audit_comes_close_and_half_the_noise_is_refuted(adjacency: str) -> None:
    honest = replace(calibrate_distributed_discrete_laplace(NormBall(1, 1.0), 3, None, 2.0, adjacency), survivors=3)
    result = audit(honest, 40_000, np.random.default_rng(2), delta=0.0)
    assert 0.7 * 2.0 < result.measured.epsilon_lower_bound <= 2.0
    # A claim for twice the scale is false for this noise.
    quiet = replace(honest, scale=honest.scale / 2)
    assert audit(quiet, 40_000, np.random.default_rng(2), delta=0.0).measured.refutes(2.0)


def test_sums_of_messages_are_sums_of_steps() -> None:
    mechanism = mechanism_of(40, 40)
    vectors = np.random.default_rng(3).laplace(size=(40, 3))
    messages = mechanism.encode(vectors, np.random.default_rng(4))
    steps = mechanism.noisy_steps(vectors, np.random.default_rng(4))
    assert messages.dtype == np.uint32
    assert (mechanism.recovered_steps(mechanism.aggregate(messages)) == steps.sum(axis=0)).all()
    assert mechanism.decode(mechanism.aggregate(messages), 40) == pytest.approx(steps.sum(axis=0) * mechanism.granularity / 40)
    assert mechanism.encode(vectors, secure_words).shape == (40, 3)
    with pytest.raises(ValueError, match="clients must be 40"):
        mechanism.decode(mechanism.aggregate(messages), 39)


@pytest.mark.parametrize(("shape", "scale"), [(1.0, 4.0), (1.5, 4.0), (0.5, 4.0), (3.0, 0.7)])
def test_wrap_probabilities_bound_the_tail(shape: float, scale: float) -> None:
    survivors = 10
    part = stats.nbinom.pmf(np.arange(2000), shape, -math.expm1(-1 / scale))
    law = np.convolve(part, part[::-1])
    for bits in (6, 7, 8):
        mechanism = DistributedDiscreteLaplaceMechanism(NormBall(1, 1.0), round(shape * survivors), bits, 1, scale, survivors)
        room = 2 ** (bits - 1) - mechanism.clients
        if room > 0:
            exact = 2 * math.fsum(law[len(law) // 2 + room :])
            assert exact <= mechanism.coordinate_wrap_probability <= max(200 * exact, 1e-300)


def test_bits_are_as_few_as_error_and_room_permit() -> None:
    free = calibrate_distributed_discrete_laplace(NormBall(16, 1.0), 1000, None, 1.0, "replace-one")
    shorter = calibrate_distributed_discrete_laplace(NormBall(16, 1.0), 1000, free.bits - 2, 1.0, "replace-one")
    assert shorter.steps < free.steps
    assert shorter.variance_bound / free.variance_bound > 1.01
    noise = free.granularity**2 * 16 * 2 * free.scale**2 / 1000
    assert free.variance_bound < 1.0101 * noise
    assert free.wrap_probability <= 1e-9
    with pytest.raises(InfeasibleError, match="bits must be at least 12 for 1000 clients"):
        calibrate_distributed_discrete_laplace(NormBall(16, 1.0), 1000, 11, 1.0, "replace-one")


def test_the_norm_must_be_one() -> None:
    with pytest.raises(ValueError, match="ball must be of norm 1"):
        DistributedDiscreteLaplaceMechanism(NormBall(3, 2.0), 5, 20, 2, 3.0, 5)
    with pytest.raises(InfeasibleError, match="norm must be 1"):
        build_mechanism(NAME, Task(NormBall(3, 2.0), 10, 1.0, 0.0, "replace-one"))


def test_rounds_and_sampling_keep_the_budget() -> None:
    for rounds, delta in ((7, 0.0), (7, 1e-6), (200, 1e-6)):
        task = Task(BALL, 1000, 1.0, delta, "replace-one", rounds=rounds)
        mechanism = build_mechanism(NAME, task)
        reached = mechanism.privacy().epsilon(delta, "replace-one", rounds)
        assert 0.999 <= reached <= 1.0
    # Gaussian noise wins over many rounds, and loses over a few.
    numbers = {rounds: Task(Interval(), 1000, 1.0, 1e-6, "replace-one", rounds=rounds) for rounds in (4, 16)}
    errors = {
        rounds: [build_mechanism(name, task).variance_bound for name in (NAME, "central-gaussian")] for rounds, task in numbers.items()
    }
    assert errors[4][0] < errors[4][1]
    assert errors[16][0] > errors[16][1]


def test_noise_of_a_chunk_is_that_of_its_clients() -> None:
    mechanism = mechanism_of(10, 10)
    rng = np.random.default_rng(5)
    sums = np.array([mechanism.summed_steps(np.zeros((4, 3)), rng) for _ in range(4000)])
    expected = 0.4 * 2 * math.exp(-1 / 3) / math.expm1(-1 / 3) ** 2
    assert sums.var() == pytest.approx(expected, rel=0.1)
    assert mechanism._noise_variance == pytest.approx(3 * expected / 4)
    assert (mechanism.summed_steps(np.zeros((0, 3)), rng) == 0).all()
