"""The least Gaussian noise within a budget: just above the exact need, never below."""

from dataclasses import replace

import pytest

from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.task import Budget
from quietbits.design.local.vector_gaussian import calibrate_noise_multiplier
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.accounting.sampling import PoissonSampling

BUDGETS = [
    Budget(1.0, 1e-5, "add-or-remove-one"),
    Budget(0.1, 1e-8, "add-or-remove-one", rounds=7),
    Budget(8.0, 1e-5, "replace-one"),
    Budget(1.0, 1e-5, "add-or-remove-one", method="rdp"),
]


@pytest.mark.parametrize("trust_model", ["local", "central"])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_budget_is_kept_and_hardly_more(trust_model: str, budget: Budget) -> None:
    budget = replace(budget, adjacency="replace-one") if trust_model == "local" else budget
    multiplier, adjacency = calibrate_noise_multiplier(budget, trust_model), budget.adjacency

    def epsilon(noise: float) -> float:
        return gaussian_privacy(noise, adjacency, trust_model).report(budget.delta, adjacency, budget.rounds).epsilon_by(budget.method)

    assert epsilon(multiplier) <= budget.epsilon < epsilon(multiplier * (1 - 1e-4))


def test_one_round_is_the_analytic_gaussian_mechanism() -> None:
    exact = gaussian_noise_multiplier(1.0, 1e-5)
    assert calibrate_noise_multiplier(Budget(1.0, 1e-5, "add-or-remove-one"), "central") == pytest.approx(exact, rel=1e-6)
    # T rounds are equivalent to one round with sqrt(T) times less noise.
    assert calibrate_noise_multiplier(Budget(1.0, 1e-5, "add-or-remove-one", rounds=16), "central") == pytest.approx(4 * exact, rel=1e-6)


def test_sampling_is_refused_where_a_message_is_private_by_itself() -> None:
    with pytest.raises(ValueError, match="sampling must be left out in the local trust model"):
        calibrate_noise_multiplier(Budget(1.0, 1e-5, "replace-one", sampling=PoissonSampling(0.2)), "local")


def test_a_budget_that_no_noise_keeps_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="one over the noise multiplier would have to be below 1e-06"):
        calibrate_noise_multiplier(Budget(1e-4, 1e-12, "add-or-remove-one", rounds=10**6), "central")
