"""Calibration ends on the safe side, within a millionth, and what is asked for beyond that is refused."""

import math
from collections.abc import Callable

import pytest

from quietbits.analysis.accounting.mechanism_accounting import gaussian_accounting, laplace_accounting, protocol_accounting, pure_accounting
from quietbits.analysis.accounting.privacy_account import AccountedMechanism
from quietbits.analysis.accounting.subsampling import FixedSizeSampling, PoissonSampling
from quietbits.analysis.calibration.privacy_calibration import (
    Calibration,
    calibrate_gaussian,
    calibrate_laplace,
    calibrate_pure,
    calibrate_skellam,
    calibrate_vector,
)
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier

BALL = NormBall(16, 2.0)


def assert_safe_and_tight(found: Calibration, mechanism: Callable[[float], AccountedMechanism], *, more_is_private: bool) -> None:
    """Account anew at the parameter: below the target, by less than a millionth; a little further it is above."""
    ((_, value),) = found.parameters
    account = found.account
    realised = mechanism(value).account(account.rounds, account.delta).epsilon
    assert realised == account.epsilon
    assert 0 <= found.target_epsilon - realised <= 1e-6 * min(1.0, found.target_epsilon)
    beyond = value * (1 - 1e-4) if more_is_private else value * (1 + 1e-4)
    assert mechanism(beyond).account(account.rounds, account.delta).epsilon > found.target_epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"),
    [(1.0, 1e-6, 1), (2.0, 1e-5, 100), (0.01, 1e-9, 3), (1e-4, 1e-6, 1), (50.0, 1e-6, 1000), (8.0, 1e-30, 10), (0.5, 0.3, 2)],
)
def test_gaussian_noise(epsilon: float, delta: float, rounds: int) -> None:
    found = calibrate_gaussian(epsilon, delta, rounds)
    assert_safe_and_tight(found, gaussian_accounting, more_is_private=True)
    assert found.account.method == "pld"
    if epsilon >= 1e-3:
        # The analytic calibration, of all rounds as one.
        assert found.parameters[0][1] == pytest.approx(gaussian_noise_multiplier(epsilon, delta) * math.sqrt(rounds), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "sampling", "method"),
    [
        (1.0, 100, PoissonSampling(0.05), "pld"),
        (0.05, 10, PoissonSampling(0.2), "pld"),
        (1.0, 20, FixedSizeSampling(100, 10), "rdp"),
    ],
)
def test_sampled_gaussian_noise(epsilon: float, rounds: int, sampling: PoissonSampling | FixedSizeSampling, method: str) -> None:
    found = calibrate_gaussian(epsilon, 1e-6, rounds, sampling=sampling)
    assert_safe_and_tight(found, lambda value: gaussian_accounting(value, sampling=sampling), more_is_private=True)
    assert (found.account.method, found.account.trust_model) == (method, "central")
    assert found.parameters[0][1] < calibrate_gaussian(epsilon, 1e-6, rounds).parameters[0][1]


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"), [(1.0, 1e-6, 1), (1.0, 1e-6, 50), (6.0, 1e-9, 3000), (0.01, 0.3, 3), (20.0, 1e-300, 4)]
)
def test_pure_mechanisms(epsilon: float, delta: float, rounds: int) -> None:
    found = calibrate_pure("cldp", epsilon, delta, rounds)
    assert_safe_and_tight(found, lambda value: pure_accounting("cldp", value), more_is_private=False)
    # Never less than what the simplest composition gives, up to the tolerance.
    assert found.parameters[0][1] >= epsilon / rounds * (1 - 1e-6)


@pytest.mark.parametrize(("rounds", "sampling"), [(1, None), (30, None), (30, PoissonSampling(0.1))])
def test_laplace_noise(rounds: int, sampling: PoissonSampling | None) -> None:
    found = calibrate_laplace(1.0, 1e-6, rounds, sampling=sampling)
    assert_safe_and_tight(found, lambda value: laplace_accounting(value, sampling), more_is_private=False)
    assert found.parameters[0][1] > 1.0 / rounds


@pytest.mark.parametrize("rounds", [1, 10])
def test_skellam_noise(rounds: int) -> None:
    mechanism, found = calibrate_skellam(2.0, 1e-6, BALL, 12, rounds)
    assert found.parameters == (("granularity", mechanism.granularity), ("variance", mechanism.noise_variance))
    realised = protocol_accounting("skellam", mechanism).account(rounds, 1e-6).epsilon
    assert realised == found.account.epsilon
    assert 0 <= 2.0 - realised <= 1e-6
    assert found.account.method == "rdp"


def test_a_table_for_vectors() -> None:
    mechanism, found = calibrate_vector(4.0, 1e-5, BALL, 2, 1, "l1", rounds=2)
    assert found.parameters == (("table_epsilon", mechanism.table.epsilon),)
    assert 0 <= 4.0 - found.account.epsilon <= 1e-6
    assert found.document()["target_epsilon"] == 4.0


@pytest.mark.parametrize(("ball", "metric", "rounds"), [(NormBall(1, 2.0), "l1", 10), (NormBall(4, math.inf), None, 3)])
def test_a_table_meets_the_target_by_the_smaller_account(ball: NormBall, metric: str | None, rounds: int) -> None:
    mechanism, found = calibrate_vector(3.0, 1e-3, ball, 2, 1, metric, rounds=rounds)
    assert found.account.method == "pld"
    assert found.account.epsilon_rdp > 3.0
    assert 0 <= 3.0 - found.account.epsilon <= 1e-6
    assert protocol_accounting("table", mechanism).account(rounds, 1e-3).epsilon == found.account.epsilon


def test_the_document_has_the_parameter_beside_the_account() -> None:
    found = calibrate_pure("cldp", 1.0, 1e-6, 2)
    assert found.document() == {"epsilon_per_round": found.parameters[0][1], "target_epsilon": 1.0, **found.account.document()}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calibrate_gaussian(0.0, 1e-6), "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (lambda: calibrate_gaussian(1.0, 1.0), "delta must be a number above 0 and below 1, got 1.0"),
        (lambda: calibrate_gaussian(1.0, 1e-6, 0), "rounds must be a whole number from 1"),
        (lambda: calibrate_gaussian(1.0, 1e-6, adjacency="swap"), "adjacency must be one of"),
        (lambda: calibrate_pure("cldp", 1.0, 1e-6, sampling=PoissonSampling(0.1)), "the server sees who reports"),
        (lambda: calibrate_laplace(1.0, 1e-6, sampling=FixedSizeSampling(9, 3)), "dp-accounting does not support this event"),
        (lambda: calibrate_skellam(1.0, 1e-6, NormBall(16, 1.0), 12), "norm"),
    ],
)
def test_bad_arguments(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calibrate_pure("cldp", 1e-5, 1e-6, 1000), "epsilon per round would have to be below 1e-06"),
        (lambda: calibrate_pure("cldp", 9000.0, 1e-6), "epsilon per round would have to be above 100"),
        (lambda: calibrate_gaussian(1e-3, 1e-300, 10**12), "one over the noise multiplier would have to be below 1e-06"),
        (
            lambda: calibrate_skellam(1.0, 1e-6, BALL, 3, rounds=100),
            r"bits must be at least \d+ .* epsilon = 0.1, .* in each of the 100 rounds that together have epsilon = 1$",
        ),
    ],
)
def test_what_cannot_be_reached_is_infeasible(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        make()


@pytest.mark.parametrize("delta", [0.5, 0.9, 0.9995])
def test_a_small_epsilon_at_a_large_delta_is_met_too(delta: float) -> None:
    # There epsilon is a steep function of the noise, and no Rényi order proves anything but zero.
    found = calibrate_gaussian(1e-5, delta)
    assert 0 <= 1e-5 - found.account.epsilon <= 1e-11
