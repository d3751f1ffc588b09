"""What a mechanism's mean will be off by, from formulas: for a stated population, and in the worst case."""

import math
from dataclasses import dataclass

import numpy as np

from ...design.contracts.mechanism import Mechanism
from ..simulation.mean import stated_law
from .population import PopulationSample, mean_of_clients

# Draws of the noise for decoders that are not linear: as many as have this number of coordinates in all.
FEWEST_DRAWS, MOST_DRAWS, DRAWN_COORDINATES = 8, 64, 2**20


@dataclass(frozen=True)
class PredictedError:
    """Squared L2 errors of the mean (or the frequencies), in squared units of the inputs.

    Attributes
    ----------
    of_population : float
        Expected error of one round, for the stated population.
    of_all_rounds : float
        That of the average over all rounds, where all of them estimate the same mean.
    worst : float
        The largest expected error of one round over all inputs of the domain, with the bound on the bias; errs upward.
    bias_bound : float
        Bound on the norm of the bias; errs upward.
    """

    of_population: float
    of_all_rounds: float
    worst: float
    bias_bound: float


def predict_error(mechanism: Mechanism, sample: PopulationSample, rounds: int = 1) -> PredictedError:
    """Return the errors that a mechanism states, without simulating it.

    Those of the population are as `simulate_mean` predicts them: variances, what a common sketch costs, and a bias where the mechanism
    knows it (of most, only a bound is known). Wrap-around is left out.
    """
    clients = sample.clients
    law = stated_law(mechanism, sample.inputs)
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, DRAWN_COORDINATES // mechanism.domain.dimension))
    predicted = mechanism.predicted_error(sample.mean, float(np.mean(law.variance)), draws)
    bias = mean_of_clients(law.bias, clients) if law.bias.ndim == 2 else np.zeros(1)
    square = float(bias @ bias) + predicted.bias**2
    noise = predicted.of_mean(clients) - predicted.bias**2
    worst = mechanism.error()
    if not math.isfinite(noise + square):
        raise ValueError(f"error must be known for these inputs, got {noise + square}")
    return PredictedError(
        of_population=noise + square,
        of_all_rounds=noise / rounds + square,
        worst=worst.of_mean(clients),
        bias_bound=worst.bias,
    )
