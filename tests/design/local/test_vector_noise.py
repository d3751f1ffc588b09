"""Laplace and Gaussian noise on vectors.

Points under test: privacy, sensitivities, and the error of a trusted server.
"""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

from quietbits.design.contracts.accounts import MOST_COMPOSITIONS, pure_privacy
from quietbits.design.contracts.gaussian import central_gaussian_error, l2_radius
from quietbits.design.contracts.mechanism import VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.cldp import vector_cldp_mechanism
from quietbits.design.local.laplace import VectorLaplaceMechanism, laplace_privacy
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.design.local.vector_gaussian import VectorGaussianMechanism
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling
from quietbits.solvers.divergences.laplace_divergence import laplace_renyi_divergences, laplace_vector_divergences

DIMENSION, CLIP_NORM = 6, 2.0
ORDERS = [1.01, 1.5, 2.0, 8.0, 100.0]


def surface(ball: NormBall, seed: int, count: int) -> np.ndarray:
    directions = np.random.default_rng(seed).normal(size=(count, ball.dimension))
    return directions / np.linalg.norm(directions, ord=ball.norm, axis=1, keepdims=True) * ball.clip_norm


@pytest.mark.parametrize("rounds", [1, 10])
@pytest.mark.parametrize(
    "mechanism",
    [
        # With other finite norms, the Rényi divergences of Laplace noise are closer bounds than its losses.
        *(VectorLaplaceMechanism(1.5, NormBall(DIMENSION, norm, CLIP_NORM)) for norm in (1.0, math.inf)),
        VectorGaussianMechanism.of_epsilon(1.5, 1e-5, NormBall(DIMENSION, 2.0, CLIP_NORM)),
        PrivUnitGMechanism(1.5, NormBall(DIMENSION, 2.0, CLIP_NORM)),
        vector_cldp_mechanism(1.5, NormBall(DIMENSION, 1.0, CLIP_NORM)),
    ],
    ids=["laplace 1", "laplace inf", "gaussian", "privunit", "cldp"],
)
def test_losses_prove_less_epsilon_than_renyi_divergences_and_pure_privacy(mechanism: VectorMechanism, rounds: int) -> None:
    report = mechanism.privacy().report(1e-5, rounds=rounds)
    by_loss = report.account("pld").bound.epsilon
    # Divergences are converted upward, and losses are rounded upward on a grid.
    assert by_loss <= report.account("rdp").bound.epsilon * (1 + 1e-6)
    if mechanism.delta == 0:
        assert by_loss <= 1.5 * rounds
    assert report.epsilon == by_loss


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 101.0, math.nan, "1"])
def test_a_bad_epsilon_is_refused(epsilon: float) -> None:
    ball = NormBall(DIMENSION, 2.0)
    for build in (
        vector_cldp_mechanism,
        VectorLaplaceMechanism,
        PrivUnitGMechanism,
        lambda e, b: VectorGaussianMechanism.of_epsilon(e, 1e-5, b),
    ):
        with pytest.raises(ValueError, match=r"epsilon must be a number from 0\.001 to 100"):
            build(epsilon, ball)


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_a_bad_delta_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match=r"delta must be a number from 1e-300 to 0\.999"):
        VectorGaussianMechanism.of_epsilon(1.0, delta, NormBall(DIMENSION, 2.0))


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_sensitivities_are_attained_and_not_exceeded(norm: float) -> None:
    ball = NormBall(5, norm, CLIP_NORM)
    corners = np.vstack([surface(ball, 6, 500), CLIP_NORM * np.eye(5), np.full((1, 5), CLIP_NORM / 5 ** (1 / norm))])
    l1 = VectorLaplaceMechanism(1.0, ball).l1_sensitivity
    assert 2 * np.abs(corners).sum(axis=1).max() == pytest.approx(l1, rel=1e-12)
    assert 2 * np.linalg.norm(corners, axis=1).max() == pytest.approx(2 * l2_radius(ball), rel=1e-12)
    assert VectorGaussianMechanism.of_epsilon(1.0, 1e-5, ball).l2_sensitivity == 2 * l2_radius(ball)


@pytest.mark.parametrize("shift", [1e-6, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("order", [1 + 1e-6, 1.5, 2.0, 30.0, 1e5])
def test_laplace_divergences_against_fifty_digits(shift: float, order: float) -> None:
    with mpmath.workdps(50):
        t, a = mpmath.mpf(shift), mpmath.mpf(order)
        exact = mpmath.log((a * mpmath.exp((a - 1) * t) + (a - 1) * mpmath.exp(-a * t)) / (2 * a - 1)) / (a - 1)
    assert laplace_renyi_divergences(shift, [order])[0] == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("norm", [1.0, 1.3, 1.7, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 30.0])
def test_no_allocation_of_a_distance_reveals_more_than_the_bound(norm: float, epsilon: float) -> None:
    rng, dimension = np.random.default_rng(9), 7
    bound = laplace_vector_divergences(epsilon, dimension, norm, ORDERS)
    # The shifts have norm T = epsilon / dimension^(1 - 1/p). They are sparse and dense, equal and unequal.
    shifts = np.abs(rng.normal(size=(60, dimension))) ** rng.choice([0.0, 0.2, 1.0, 4.0], (60, 1))
    shifts[rng.random(shifts.shape) < rng.choice([0.0, 0.5, 0.9], (60, 1))] = 0.0
    shifts[0], shifts[1] = 1.0, np.eye(dimension)[0]
    shifts = shifts[shifts.any(axis=1)]
    shifts *= epsilon / dimension ** (1 - 1 / norm) / np.linalg.norm(shifts, ord=norm, axis=1, keepdims=True)
    # Equal shifts of several coordinates are counted once with their number; a zero shift reveals nothing.
    counted = [np.unique(row[row > 0], return_counts=True) for row in shifts]
    revealed = np.array([counts @ [laplace_renyi_divergences(shift, ORDERS) for shift in row] for row, counts in counted])
    assert (revealed <= bound * (1 + 1e-10)).all()
    if norm == 1 or norm >= 2:
        np.testing.assert_allclose(revealed.max(axis=0), bound, rtol=1e-10)


def test_a_bad_norm_of_a_distance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"norm must be a number from 1 to 64, got 0\.5"):
        laplace_vector_divergences(1.0, 3, 0.5, [2.0])
    with pytest.raises(ValueError, match="shift must be a number from 0"):
        laplace_renyi_divergences(-1.0, [2.0])


def test_many_coordinates_of_a_cube_reveal_far_less_than_pure_privacy_says() -> None:
    cube, pure = VectorLaplaceMechanism(5.0, NormBall(128, math.inf)).privacy(), pure_privacy(5.0)
    assert cube.epsilon(1e-5, rounds=10) < 8 < 27 < pure.epsilon(1e-5, rounds=10)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_the_central_error_is_that_of_the_noise_of_one_client_over_their_square(norm: float) -> None:
    ball = NormBall(10, norm, 3.0)
    replaced = central_gaussian_error(ball, 50, 1.0, 1e-5, "replace-one")
    assert replaced == pytest.approx(VectorGaussianMechanism.of_epsilon(1.0, 1e-5, ball).variance_bound / 50**2, rel=1e-12)
    assert central_gaussian_error(ball, 50, 1.0, 1e-5, "add-or-remove-one") == pytest.approx(replaced / 4, rel=1e-12)


def test_bad_arguments_of_the_central_error_are_refused() -> None:
    ball = NormBall(10, 2.0)
    with pytest.raises(ValueError, match="adjacency must be one of replace-one, add-or-remove-one, got 'both'"):
        central_gaussian_error(ball, 50, 1.0, 1e-5, "both")
    with pytest.raises(ValueError, match="clients must be a whole number from 1"):
        central_gaussian_error(ball, 0, 1.0, 1e-5, "replace-one")


# Tests of Laplace noise over rounds


def test_laplace_noise_loses_less_than_pure_privacy_allows() -> None:
    laplace, pure = (privacy.report(1e-6, rounds=30) for privacy in (laplace_privacy(0.3), pure_privacy(0.3)))
    for name in ("rdp", "pld"):
        assert laplace.epsilon_by(name) < pure.epsilon_by(name)
    assert laplace.epsilon_by("pure") == pure.epsilon_by("pure") == pytest.approx(9.0)
    assert math.isinf(laplace_privacy(0.01).report(1e-6, rounds=MOST_COMPOSITIONS + 1).epsilon_by("pld"))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.25, 0.25, 0.5)])
def test_a_shift_of_one_coordinate_dominates_for_laplace_noise(shares: tuple[float, ...]) -> None:
    sensitivity = 2.0
    whole = from_laplace_mechanism(1.0, sensitivity=sensitivity)
    parts = [from_laplace_mechanism(1.0, sensitivity=share * sensitivity) for share in shares]
    shared = parts[0]
    for part in parts[1:]:
        shared = shared.compose(part)
    epsilons = np.linspace(0, sensitivity, 21)
    # Both losses are rounded up to a grid of 1e-4, by much less than the tolerance.
    assert np.all(np.array(shared.get_delta_for_epsilon(epsilons)) <= np.array(whole.get_delta_for_epsilon(epsilons)) + 1e-7)
    assert shared.get_delta_for_epsilon(1.0) < whole.get_delta_for_epsilon(1.0) - 1e-3


def test_sampled_laplace_noise() -> None:
    privacy = laplace_privacy(1.0, adjacency="add-or-remove-one", trust_model="central")
    report = privacy.report(1e-6, rounds=20, sampling=PoissonSampling(0.1))
    assert report.epsilon_by("pure") == pytest.approx(20 * math.log1p(0.1 * math.expm1(1.0)))
    assert report.epsilon == report.epsilon_by("pld") < report.epsilon_by("pure")
    everyone = privacy.report(1e-6, rounds=20, sampling=PoissonSampling(1.0))
    assert everyone.epsilon_by("pld") == laplace_privacy(1.0).report(1e-6, rounds=20).epsilon_by("pld")
    fixed = laplace_privacy(1.0, trust_model="central")
    with pytest.raises(ValueError, match=r"it is not accounted for by"):
        fixed.report(1e-6, sampling=FixedSizeSampling(9, 3))


@pytest.mark.parametrize("epsilon", [0.0, 101.0])
def test_an_epsilon_of_noise_out_of_range_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be a number from 1e-06 to 100, got "):
        laplace_privacy(epsilon)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_one_round_of_laplace_noise_is_what_dp_accounting_rounds_upward(epsilon: float, delta: float) -> None:
    result = laplace_privacy(epsilon).report(delta).account("pld").bound.epsilon
    theirs = from_laplace_mechanism(1 / epsilon, value_discretization_interval=epsilon / 1000).get_epsilon_for_delta(delta)
    assert result <= theirs + 1e-12 * epsilon
    assert theirs - result <= 1e-3 * epsilon
    # The divergence at the computed epsilon is delta.
    if result > 0:
        assert -math.expm1((result - epsilon) / 2) == pytest.approx(delta, rel=1e-9, abs=1e-15 * max(1.0, epsilon))
