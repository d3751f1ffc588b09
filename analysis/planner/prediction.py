"""Predicted errors of a mechanism's mean: for a stated population, and in the worst case."""

import math
from dataclasses import dataclass

import numpy as np

from ...design.contracts.mechanism import Mechanism
from ..random_streams import named_stream
from .population import PopulationSample, mean_of_clients

# Least and largest number of draws of the noise for nonlinear decoders, and largest number of their coordinates.
FEWEST_DRAWS, MOST_DRAWS, DRAWN_COORDINATES = 16, 96, 2**20
# Number of drawn means of all clients' inputs for nonlinear decoders.
MEANS = 8


@dataclass(frozen=True)
class PredictedError:
    """Squared L2 errors of the mean (or the frequencies), in squared units of the inputs.

    Attributes
    ----------
    of_population : float
        Expected error of one round, for the stated population.
    of_all_rounds : float
        Expected error of the average over all rounds, if all rounds estimate the same mean.
    worst : float
        Upper bound on the expected error of a round over all inputs of the domain, with the bound on the bias.
    bias_bound : float
        Upper bound on the norm of the bias.
    squared_bias : float
        Part of `of_population` that is the squared norm of the bias.
    """

    of_population: float
    of_all_rounds: float
    worst: float
    bias_bound: float
    squared_bias: float


def predict_error(mechanism: Mechanism, sample: PopulationSample, rounds: int = 1) -> PredictedError:
    """Return the errors that a mechanism states, without simulating it.

    As `simulate_mean` does, errors for the population add up variances, the cost of a common sketch, and the bias if the mechanism states
    it (most mechanisms state only a bound). They omit wrap-around.
    """
    clients = sample.clients
    law = mechanism.law(sample.inputs)
    variance = float(np.mean(law.variance))
    if mechanism.decodes_linearly:
        errors = [mechanism.predicted_error(sample.mean, variance)]
    else:
        draws = max(FEWEST_DRAWS, min(MOST_DRAWS, DRAWN_COORDINATES // mechanism.domain.dimension))
        means = sample.drawn_means(MEANS, named_stream(0, "planner: means of all clients"))
        errors = [mechanism.renewed(number).predicted_error(mean, variance, draws // MEANS) for number, mean in enumerate(means)]
    bias = mean_of_clients(law.bias, clients) if law.bias.ndim == 2 else np.zeros(1)
    decoding = float(np.mean([error.bias**2 for error in errors]))
    noise = float(np.mean([error.of_mean(clients) for error in errors])) - decoding
    square = float(bias @ bias) + decoding
    worst = mechanism.error()
    if not math.isfinite(noise + square):
        raise ValueError(f"error must be known for these inputs, got {noise + square}")
    return PredictedError(
        of_population=noise + square,
        of_all_rounds=noise / rounds + square,
        worst=worst.of_mean(clients),
        bias_bound=worst.bias,
        squared_bias=square,
    )


@dataclass(frozen=True)
class ErrorParts:
    """Expected squared error of one round's mean by cause, for a stated population; the parts add up to `PredictedError.of_population`.

    Attributes
    ----------
    bias : float
        Squared norm of the bias, if the mechanism states it.
    compression : float
        Variance of the choices of clients (`VarianceParts`), and the error of a common sketch.
    rounding, noise : float
        Variance of rounding and of noise.
    unsplit : float
        Variance whose parts no formula separates, such as that of nonlinear decoders.
    """

    bias: float
    compression: float
    rounding: float
    noise: float
    unsplit: float


def predict_parts(mechanism: Mechanism, sample: PopulationSample) -> ErrorParts:
    """Return the parts of the error that `predict_error` returns for one round.

    Examples
    --------
    >>> from quietbits.analysis.planner.population import draw_sample
    >>> from quietbits.design.contracts.domains import Interval
    >>> from quietbits.design.local.cldp import CLDPMechanism
    >>> parts = predict_parts(CLDPMechanism(1.0), draw_sample("uniform", Interval(), 1000, seed=0))
    >>> round(parts.noise / parts.rounding, 1), parts.compression
    (5.5, 0.0)
    """
    predicted = predict_error(mechanism, sample)
    if not mechanism.decodes_linearly:
        return ErrorParts(predicted.squared_bias, 0.0, 0.0, 0.0, predicted.of_population - predicted.squared_bias)
    parts = mechanism.variance_parts(sample.inputs)
    of_mean = {name: float(np.mean(getattr(parts, name))) / sample.clients for name in ("compression", "rounding", "noise", "unsplit")}
    of_mean["compression"] += mechanism.shared_variance(sample.mean)
    return ErrorParts(predicted.squared_bias, **of_mean)
