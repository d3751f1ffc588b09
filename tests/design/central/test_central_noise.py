"""Tests of the mechanisms of a trusted server.

Points under test: errors against predictions, exact noise from summed words, guarantees, audits, and grids.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.analysis.catalogue.central_reference import central_references, central_squared_error
from quietbits.analysis.catalogue.registry import CENTRAL_REFERENCES, REGISTRY, build_mechanism
from quietbits.design.central.central_gaussian import CentralGaussianMechanism, calibrate_central_gaussian
from quietbits.design.central.central_laplace import CentralLaplaceMechanism, calibrate_central_laplace
from quietbits.design.central.central_noise import CentralItems, CentralNoise, CentralNumbers
from quietbits.design.central.central_staircase import CentralStaircaseMechanism, calibrate_central_staircase
from quietbits.design.contracts.domains import Categories, Domain, Interval
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget, Task
from quietbits.design.noise.random_words import secure_words
from quietbits.errors import InfeasibleError

CLIENTS = 40
DOMAINS: dict[str, Domain] = {
    "central-gaussian": NormBall(6, 2.0, 3.0),
    "central-laplace": NormBall(6, 1.0, 3.0),
    "central-discrete-laplace": Categories(6),
    "central-staircase": Interval(-1.0, 5.0),
}


def built(name: str, **changes: object) -> Mechanism:
    return build_mechanism(name, replace(Task(DOMAINS[name], CLIENTS, 2.0, 1e-5, "replace-one"), **changes))


def inputs(name: str) -> np.ndarray:
    rng, domain = np.random.default_rng(1), DOMAINS[name]
    if isinstance(domain, Categories):
        return rng.integers(0, domain.size, CLIENTS)
    return domain.clip(rng.normal(size=(CLIENTS, domain.dimension) if isinstance(domain, NormBall) else CLIENTS))


@pytest.mark.parametrize("name", CENTRAL_REFERENCES)
def test_errors_are_as_predicted(name: str) -> None:
    mechanism, held, rng = built(name), inputs(name), np.random.default_rng(2)
    mean = DOMAINS[name].total(held) / CLIENTS
    errors = [mechanism.decode(mechanism.aggregate(mechanism.encode(held, rng)), CLIENTS) - mean for _ in range(600)]
    squares = np.square(errors).reshape(600, -1).sum(axis=1)
    assert squares.mean() == pytest.approx(mechanism.error(held).of_mean(CLIENTS), abs=5 * squares.std() / math.sqrt(600))


@pytest.mark.parametrize("name", CENTRAL_REFERENCES)
def test_chunks_add_up_and_decoding_twice_gives_the_same(name: str) -> None:
    mechanism, held = built(name), inputs(name)
    messages = mechanism.encode(held, secure_words)
    parts = [mechanism.aggregate(messages[:15]), mechanism.aggregate(messages[15:])]
    whole = mechanism.aggregate(messages)
    # Sums of chunks also hold the offsets of all clients.
    assert (mechanism.combine(*parts) == whole).all()
    assert np.array_equal(mechanism.decode(whole, CLIENTS), mechanism.decode(whole, CLIENTS))
    again = mechanism.aggregate(mechanism.encode(held, secure_words))
    assert not np.array_equal(mechanism.decode(whole, CLIENTS), mechanism.decode(again, CLIENTS))


@pytest.mark.parametrize("name", CENTRAL_REFERENCES)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
def test_audits_stay_below_the_guarantee_and_refute_half_the_noise(name: str, adjacency: str) -> None:
    domain = {"central-gaussian": NormBall(1, 2.0), "central-laplace": NormBall(1, 1.0)}.get(name, DOMAINS[name])
    mechanism = built(name, domain=domain, clients=2, delta=1e-2, adjacency=adjacency)
    result = audit(mechanism, 3000, np.random.default_rng(3), delta=1e-2)
    assert not result.refuted
    assert result.measured.epsilon_lower_bound > 0.6
    inner = mechanism.inner if hasattr(mechanism, "inner") else mechanism
    half: dict[str, object] = {
        CentralGaussianMechanism: lambda: {"noise_multiplier": inner.noise_multiplier / 3},
        CentralLaplaceMechanism: lambda: {"scale": inner.scale / 3},
        CentralStaircaseMechanism: lambda: {"epsilon": 3 * inner.epsilon},
    }[type(inner)]()
    quiet = replace(inner, **half)
    quiet = replace(mechanism, inner=quiet) if hasattr(mechanism, "inner") else quiet
    assert audit(quiet, 3000, np.random.default_rng(3), delta=1e-2).measured.refutes(2.0)


def test_the_gaussian_is_as_good_as_on_real_numbers() -> None:
    for domain in (NormBall(64, 2.0), NormBall(9, math.inf, 2.0), Interval(0.0, 3.0), Categories(50)):
        for adjacency in ("replace-one", "add-or-remove-one"):
            error = build_mechanism("central-gaussian", Task(domain, 1000, 1.0, 1e-5, adjacency)).error().of_mean(1000)
            exact = central_gaussian_error(domain.ball(adjacency), 1000, 1.0, 1e-5, adjacency)
            assert exact < error < exact * (1 + 5e-6)


def test_histograms_have_the_error_of_discrete_laplace_noise() -> None:
    task = Task(Categories(100), 10_000, 1.0, 0.0, "replace-one")
    assert build_mechanism("central-discrete-laplace", task).error().of_mean(10_000) == pytest.approx(7.8354e-6, rel=1e-5)
    removed = build_mechanism("central-discrete-laplace", replace(task, adjacency="add-or-remove-one"))
    assert removed.error().of_mean(10_000) == pytest.approx(100 * 2 * math.exp(-1) / math.expm1(-1) ** 2 / 1e8, rel=1e-9)
    assert removed.bits_per_client == 7
    with pytest.raises(InfeasibleError, match="domain must be of the kind Categories"):
        build_mechanism("central-discrete-laplace", replace(task, domain=Interval()))


def test_the_staircase_is_the_best_for_a_large_epsilon() -> None:
    errors = {
        epsilon: [
            build_mechanism(name, Task(Interval(), 1000, epsilon, 0.0, "replace-one")).variance_bound
            for name in ("central-laplace", "central-staircase")
        ]
        for epsilon in (0.1, 1.0, 10.0)
    }
    ratios = [laplace / staircase for laplace, staircase in errors.values()]
    assert ratios == pytest.approx([1.0004, 1.0427, 23.6], rel=1e-2)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
def test_no_two_neighbours_are_further_apart_than_the_sensitivity(adjacency: str) -> None:
    rng = np.random.default_rng(4)
    ball = NormBall(5, 2.0)
    mechanism = CentralGaussianMechanism(ball, 3, 8, 4.0, 1e-5, adjacency=adjacency)
    vectors = np.concatenate([rng.normal(size=(2000, 5)), np.eye(5)]) * 3
    rounded = mechanism.encode(vectors, rng)[:, :5].astype(np.int64) - mechanism.largest_coordinate
    lengths = np.linalg.norm(rounded, axis=1).max()
    assert lengths * (2 if adjacency == "replace-one" else 1) <= mechanism.l2_sensitivity
    items = replace(mechanism, items=True)
    assert items.l2_sensitivity == pytest.approx(8 * (math.sqrt(2) if adjacency == "replace-one" else 1))


def test_the_servers_noise_is_drawn_from_its_law() -> None:
    # With no inputs the decoded sum is the noise.
    mechanism = CentralLaplaceMechanism(NormBall(2000, 1.0), 1, 1, 3.0)
    zeros = np.zeros((1, 2000))
    rng = np.random.default_rng(5)
    drawn = np.concatenate([mechanism.noisy_steps(mechanism.aggregate(mechanism.encode(zeros, rng)), 1) for _ in range(20)])
    ratio = math.exp(-1 / 3)
    points = np.arange(-15, 16)
    expected = (1 - ratio) / (1 + ratio) * ratio ** np.abs(points) * len(drawn)
    observed = np.array([np.count_nonzero(drawn == point) for point in points])
    rest = len(drawn) - observed.sum()
    assert stats.chisquare([*observed, rest], [*expected, len(drawn) - expected.sum()]).pvalue > 1e-6


def test_fewer_bits_have_coarser_steps() -> None:
    budget = Budget(1.0, 1e-5, "replace-one")
    fine, coarse = (calibrate_central_gaussian(NormBall(16, 2.0), 1000, bits, budget) for bits in (None, 6))
    assert coarse.bits_per_client == 16 * 6 < fine.bits_per_client
    assert coarse.variance_bound > 1.1 * fine.variance_bound
    assert coarse.guarantee.epsilon <= 1.0
    for calibrate in (calibrate_central_laplace, calibrate_central_staircase):
        short, long = (calibrate(NormBall(1, 1.0), 1000, bits, 3.0, "replace-one") for bits in (5, None))
        assert short.steps == 15
        assert short.variance_bound > long.variance_bound
    with pytest.raises(InfeasibleError, match="bits must be at least 6 for central-gaussian in 64 dimensions, got 5"):
        calibrate_central_gaussian(NormBall(64, 2.0), 1000, 5, budget)
    # A staircase is the optimum of its own grid, too.
    assert CentralStaircaseMechanism(NormBall(1, 1.0), 3, 4, 1.0, 8).step_noise_variance > 0
    with pytest.raises(ValueError, match="width must be at most the sensitivity, 8, got 9"):
        CentralStaircaseMechanism(NormBall(1, 1.0), 3, 4, 1.0, 9)


def test_references_are_the_best_first() -> None:
    guarantee = Guarantee(10.0, "replace-one", "local", delta=1e-6)
    numbers = central_references(Interval(), 1000, guarantee)
    assert [reference.name for reference in numbers] == ["central-staircase", "central-laplace", "central-gaussian"]
    assert central_squared_error(Interval(), 1000, guarantee) == numbers[0].error
    many = central_references(Interval(), 1000, Guarantee(1.0, "replace-one", "local", delta=1e-6), 100)
    assert many[0].name == "central-gaussian"
    pure = central_references(NormBall(4, 2.0), 1000, Guarantee(1.0, "replace-one", "central"))
    assert [reference.error for reference in pure] == [None, None]
    assert central_squared_error(NormBall(4, 2.0), 1000, Guarantee(1.0, "replace-one", "central")) is None
    assert central_squared_error(Interval(), 1000, Guarantee(math.inf, "replace-one", "local")) is None
    assert all(REGISTRY[name].trust_model == "central" for name in CENTRAL_REFERENCES)


def test_accounts_of_large_losses_are_finite_and_monotone() -> None:
    large = CentralLaplaceMechanism(NormBall(9, 1.0), 3, 228, 0.508).privacy()
    assert large.epsilon(1e-8, account="pld") == large.epsilon(0.0) == pytest.approx(897.6, rel=1e-3)
    several = CentralLaplaceMechanism(NormBall(7, 1.0), 5, 1, 0.372).privacy()
    epsilons = [several.epsilon(1e-4, rounds=rounds, account="pld") for rounds in (100, 135, 146, 219)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] <= several.epsilon(0.0, rounds=219)


def test_lists_name_every_kind_of_inputs() -> None:
    assert REGISTRY["central-gaussian"].listed()[2] == "vectors, numbers, items"
    assert REGISTRY["distributed-discrete-laplace"].listed()[2] == "vectors of an L1 ball, numbers, items"


def test_wrong_numbers_of_clients_and_shapes_are_refused() -> None:
    mechanism = built("central-laplace")
    assert isinstance(mechanism, CentralNoise)
    aggregate = mechanism.aggregate(mechanism.encode(inputs("central-laplace"), secure_words))
    with pytest.raises(ValueError, match="clients must be 40"):
        mechanism.decode(aggregate, 39)
    with pytest.raises(ValueError, match="aggregate must have the shape"):
        mechanism.decode(aggregate[1:], 40)
    assert mechanism.for_clients(39).step_noise_variance == mechanism.step_noise_variance
    assert isinstance(built("central-discrete-laplace"), CentralItems)
    assert isinstance(built("central-staircase"), CentralNumbers)
