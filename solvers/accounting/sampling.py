"""Rounds in which only some clients take part: how they are chosen, and what a secret choice does to (epsilon, delta)."""

import math
from dataclasses import dataclass

from ...arguments import check_integer, check_real
from ..numerics.bisection import first_true

LARGEST_POPULATION = 10**12
# What the incomplete beta function may be off by, as a share; 6e-14 was seen.
TAIL_ERROR = 1e-9
# Larger exponentials could overflow.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class PoissonSampling:
    """Each client takes part in a round with the same probability, above 0 and at most 1, independently of the others."""

    probability: float

    def __post_init__(self) -> None:
        """Check the probability."""
        object.__setattr__(self, "probability", check_real("sampling_probability", self.probability, low=1e-9, high=1.0))

    @property
    def adjacency(self) -> str:
        """The adjacency that amplification is proved for."""
        return "add-or-remove-one"

    @property
    def share(self) -> float:
        """Probability with which a client takes part."""
        return self.probability

    def __str__(self) -> str:
        """Return the sampling in words."""
        return f"Poisson sampling with probability {self.probability:g}"


@dataclass(frozen=True)
class FixedSizeSampling:
    """In each round `sample_size` clients of `population` take part, drawn without replacement."""

    population: int
    sample_size: int

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_integer("population", self.population, low=1, high=LARGEST_POPULATION)
        check_integer("sample_size", self.sample_size, low=1, high=self.population)

    @property
    def adjacency(self) -> str:
        """The adjacency that amplification is proved for."""
        return "replace-one"

    @property
    def share(self) -> float:
        """Probability with which a client takes part."""
        return self.sample_size / self.population

    def __str__(self) -> str:
        """Return the sampling in words."""
        return f"{self.sample_size} of {self.population} clients sampled without replacement"


Sampling = PoissonSampling | FixedSizeSampling


def sampled_share(sampling: Sampling, adjacency: str) -> float:
    """Return the probability with which a client takes part in a round.

    Parameters
    ----------
    sampling : PoissonSampling or FixedSizeSampling
        How clients are chosen.
    adjacency : str
        Adjacency of the guarantee that is to be amplified.

    Raises
    ------
    ValueError
        If the sampling is not known to amplify guarantees of this adjacency.
    """
    if adjacency != sampling.adjacency:
        raise ValueError(f"sampling must be for {adjacency} adjacency, got {sampling}, which is for {sampling.adjacency}")
    return sampling.share


def amplified_epsilon(epsilon: float, probability: float) -> float:
    """Return ln(1 + q (e^epsilon - 1)): what secret sampling with probability q makes of epsilon.

    The failure probability becomes q times as large. For add-or-remove-one adjacency with Poisson sampling, for replace-one with samples
    of a fixed size (Balle, Barthe, Gaboardi 2018, *Privacy amplification by subsampling*, theorems 8 and 9).

    Examples
    --------
    >>> round(amplified_epsilon(1.0, 0.01), 6)
    0.017037
    """
    if epsilon > LARGEST_EXPONENT:
        # What is left of the logarithm's argument, (1 - q) / e^epsilon, is below 1e-304.
        return epsilon + math.log(probability)
    return math.log1p(probability * math.expm1(epsilon))


def likely_participations(probability: float, rounds: int, failure: float) -> int:
    """Return in how many rounds a client takes part at most, except with probability `failure`; errs upward.

    It is drawn for each round with `probability`, independently of other rounds and of data.

    Examples
    --------
    >>> likely_participations(0.01, 1000, 1e-6), likely_participations(0.01, 1000, 0.0)
    (28, 1000)
    """
    from scipy.special import betainc

    if failure <= 0:
        return rounds
    allowed = failure * (1 - TAIL_ERROR)
    return first_true(0, rounds, lambda most: bool(betainc(most + 1, rounds - most, probability) <= allowed))


def delta_of_everyone(delta: float, share: float) -> float:
    """Return ``delta / share``, kept below 1: the failure probability of an unsampled round that makes `delta` of a sampled one.

    Errs downward.

    Examples
    --------
    >>> round(delta_of_everyone(1e-6, 0.01), 12), delta_of_everyone(0.5, 0.1) < 1
    (0.0001, True)
    """
    return min(delta / share * (1 - 1e-15), math.nextafter(1, 0))
