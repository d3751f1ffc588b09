"""The least Gaussian noise with which all rounds stay within a budget."""

from ...design.contracts.calibration import calibrate_parameter
from ...design.contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.registry import usual_adjacency
from ...design.contracts.task import Budget
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.accounting.sampling import Sampling


def calibrate_noise_multiplier(budget: Budget, trust_model: str) -> float:
    """Return the least standard deviation over the L2 sensitivity for the budget's adjacency; errs toward more noise.

    Examples
    --------
    >>> round(calibrate_noise_multiplier(Budget(1.0, 1e-5, "add-or-remove-one", rounds=100), "central"), 4)
    37.3063
    """
    adjacency = noise_adjacency(budget.adjacency, budget.sampling, trust_model)

    def epsilon_of(inverse: float) -> float:
        privacy = gaussian_privacy(1 / inverse, adjacency, trust_model)
        return privacy.epsilon(budget.delta, adjacency, budget.rounds, budget.sampling, account=budget.method)

    low, high = 1 / LARGEST_MULTIPLIER, 1 / SMALLEST_MULTIPLIER
    return 1 / calibrate_parameter(epsilon_of, budget, low=low, high=high, name="one over the noise multiplier")


def noise_adjacency(adjacency: str | None, sampling: Sampling | None, trust_model: str) -> str:
    """Return the adjacency that was asked for, or the usual one: a server that sees each message sees who sends one."""
    if (trust_model, adjacency) == ("local", "add-or-remove-one"):
        raise ValueError(
            "adjacency must be replace-one in the local trust model, where the server sees who sends a message, got 'add-or-remove-one': "
            "give another trust_model, such as central"
        )
    return usual_adjacency(adjacency, sampling, ("replace-one",) if trust_model == "local" else ADJACENCIES)
