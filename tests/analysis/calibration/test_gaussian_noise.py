"""The least Gaussian noise within a budget: just above what is needed, never below."""

import pytest

from quietbits.analysis.calibration.gaussian_noise import calibrate_noise_multiplier
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.registry import Target
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.accounting.sampling import PoissonSampling

TARGETS = [Target(1.0, 1e-5), Target(0.1, 1e-8, rounds=7), Target(8.0, 1e-5, adjacency="replace-one"), Target(1.0, 1e-5, method="rdp")]


@pytest.mark.parametrize("trust_model", ["local", "central"])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_the_budget_is_kept_and_hardly_more(trust_model: str, target: Target) -> None:
    multiplier = calibrate_noise_multiplier(target, trust_model)
    adjacency = target.adjacency or "add-or-remove-one"

    def epsilon(noise: float) -> float:
        return gaussian_privacy(noise, adjacency, trust_model).report(target.delta, adjacency, target.rounds).epsilon_by(target.method)

    assert epsilon(multiplier) <= target.epsilon < epsilon(multiplier * (1 - 1e-4))


def test_one_round_is_the_analytic_gaussian_mechanism() -> None:
    exact = gaussian_noise_multiplier(1.0, 1e-5)
    assert calibrate_noise_multiplier(Target(1.0, 1e-5), "central") == pytest.approx(exact, rel=1e-6)
    # T rounds are one with sqrt(T) times less noise.
    assert calibrate_noise_multiplier(Target(1.0, 1e-5, rounds=16), "central") == pytest.approx(4 * exact, rel=1e-6)


def test_sampling_is_refused_where_a_message_is_private_by_itself() -> None:
    with pytest.raises(ValueError, match="sampling must be left out in the local trust model"):
        calibrate_noise_multiplier(Target(1.0, 1e-5, sampling=PoissonSampling(0.2)), "local")


def test_a_budget_that_no_noise_keeps_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="one over the noise multiplier would have to be below 1e-06"):
        calibrate_noise_multiplier(Target(1e-4, 1e-12, rounds=10**6), "central")
