"""Clip norms that follow a quantile of the clients' norms, and their privacy cost.

Andrew, Thakkar, McMahan, Ramaswamy 2021, *Differentially private learning with adaptive clipping*.

*The joint guarantee.* In a round with clip C a client sends its vector, clipped to C, and a bit b, whether the norm was at most C, counted
as b - 1/2. Divide the sum by its noise s, and the count by its noise t. Under add-or-remove-one adjacency, the pair moves by at most
``sqrt((C / s)**2 + (1 / (2 t))**2)``, with equality for every vector of norm C. Under replace-one adjacency, the pair moves by at most
``sqrt((2 C / s)**2 + (1 / t)**2)``, with equality for opposite vectors of which exactly one was clipped. Both noises together are one
Gaussian noise whose multiplier is the inverse of that bound: ``(z**-2 + (h / t)**2)**(-1/2)``, with z the sum's own noise over its own
sensitivity, and the count's sensitivity h, 1/2 or 1. (Counted as b itself, a client's presence would move the count by 1.)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.numerics.rounding import UNIT
from ..contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from ..contracts.guarantee import ADJACENCIES
from ..contracts.norm_ball import LARGEST_CLIP_NORM
from ..contracts.privacy import Privacy
from ..contracts.real_numbers import experiment_words
from ..noise.random_words import WordsLike

LARGEST_RATE = 100.0
SMALLEST_DEVIATION, LARGEST_DEVIATION = 1e-6, 1e15
# Largest exponent of an update, with which no clip norm in the range of doubles overflows.
LARGEST_EXPONENT = 300.0
# The paper's noise in the count is a twentieth of the clients of a round (section 2.2).
CLIENTS_PER_DEVIATION = 20
COUNT_SENSITIVITY = {"add-or-remove-one": 0.5, "replace-one": 1.0}
"""Largest change of the count of b - 1/2 by a client, for each adjacency."""
# The bound covers a chain of fewer than ten operations, and twice as many for its inverse.
ROUNDING = 32 * UNIT


@dataclass(frozen=True)
class ClippingState:
    """The clip norm after a number of rounds."""

    rounds: int
    clip_norm: float


@dataclass(frozen=True)
class AdaptiveClipping:
    """Geometric updates of a clip norm toward a quantile of the clients' norms.

    Attributes
    ----------
    initial_clip : float
        Clip norm of the first round, from 1e-100 to 1e100.
    quantile : float
        Long-run share of the clients that are not clipped; from 0 to 1.
    learning_rate : float
        Factor of the exponent; above 0, up to 100. Without noise in the count, the clip norm grows by at most
        ``exp(learning_rate * quantile)`` a round.

    Examples
    --------
    Half of the norms are at most 1.

    >>> clipping = AdaptiveClipping()
    >>> state = clipping.start()
    >>> for _ in range(100):
    ...     state = clipping.step(state, within_clip(np.linspace(0.5, 1.5, 101), state.clip_norm).mean())
    >>> state.rounds, round(state.clip_norm, 2)
    (100, 1.0)
    """

    initial_clip: float = 0.1
    quantile: float = 0.5
    learning_rate: float = 0.2

    def __post_init__(self) -> None:
        """Check the fields."""
        clip = check_real("initial_clip", self.initial_clip, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
        object.__setattr__(self, "initial_clip", clip)
        object.__setattr__(self, "quantile", check_real("quantile", self.quantile, low=0.0, high=1.0))
        object.__setattr__(self, "learning_rate", check_real("learning_rate", self.learning_rate, low=1e-6, high=LARGEST_RATE))

    def start(self) -> ClippingState:
        """Return the state before the first round."""
        return ClippingState(0, self.initial_clip)

    def step(self, state: ClippingState, noisy_fraction: float) -> ClippingState:
        """Return the state after another round, from the noisy fraction of norms within the clip."""
        return ClippingState(state.rounds + 1, updated_clip(state.clip_norm, noisy_fraction, self.quantile, self.learning_rate))


def updated_clip(clip_norm: float, noisy_fraction: float, quantile: float = 0.5, learning_rate: float = 0.2) -> float:
    """Return the clip norm after a step toward the quantile, kept between 1e-100 and 1e100.

    The step is ``clip_norm * exp(-learning_rate * (noisy_fraction - quantile))``.

    Noise may put the fraction outside [0, 1]; algorithm 1 takes it unchanged.

    Examples
    --------
    >>> round(updated_clip(1.0, 0.0), 4), round(updated_clip(1.0, 1.0), 4)
    (1.1052, 0.9048)
    """
    clip = check_real("clip_norm", clip_norm, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
    fraction = check_real("noisy_fraction", noisy_fraction, low=-1e300, high=1e300)
    quantile = check_real("quantile", quantile, low=0.0, high=1.0)
    exponent = -check_real("learning_rate", learning_rate, low=1e-6, high=LARGEST_RATE) * (fraction - quantile)
    moved = clip * math.exp(max(-LARGEST_EXPONENT, min(LARGEST_EXPONENT, exponent)))
    return max(1 / LARGEST_CLIP_NORM, min(LARGEST_CLIP_NORM, moved))


def within_clip(norms: ArrayLike, clip_norm: float) -> FloatArray:
    """Return 1.0 for each norm that is at most the clip norm, else 0.0; shape (clients,)."""
    array = np.asarray(norms, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"norms must have the shape (clients,), with at least one client, got {array.shape}")
    if not np.all(array >= 0) or not np.all(np.isfinite(array)):
        raise ValueError(f"norms must be finite and at least 0, got {float(array[~((array >= 0) & np.isfinite(array))][0])!r}")
    clip = check_real("clip_norm", clip_norm, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
    return np.asarray(array <= clip, dtype=float)


def usual_count_deviation(clients: int) -> float:
    """Return the paper's standard deviation of the count's noise, a twentieth of the clients."""
    return check_integer("clients", clients, low=1, high=MOST_CLIENTS) / CLIENTS_PER_DEVIATION


def central_fraction(
    norms: ArrayLike, clip_norm: float, clients: int, count_deviation: float, random_words: WordsLike, *, allow_real_numbers: bool = False
) -> float:
    """Return the fraction of norms within the clip, with central Gaussian noise.

    Parameters
    ----------
    norms : array_like of shape (clients that came,)
        L2 norms before clipping, of at least one client.
    clip_norm : float
        The round's clip norm.
    clients : int
        The public divisor of the count: the number of clients of a round; with Poisson sampling, the expected number.
    count_deviation : float
        Standard deviation of the noise in the count; `usual_count_deviation` is the paper's.
    random_words : WordSource or numpy.random.Generator
        Source of the noise: seeded words, unless `allow_real_numbers`.
    allow_real_numbers : bool
        Whether the fraction may be released: its noise is a floating-point number, whose low bits reveal more than
        `adaptive_clipping_privacy` states. `NoisyCount` adds whole numbers instead.

    Returns
    -------
    float
        ``1/2 + (sum(b - 1/2) + noise) / clients``, which may be outside [0, 1]. (Under a secure sum: `NoisyCount`.)

    Examples
    --------
    >>> round(central_fraction(np.linspace(0.0, 2.0, 1000), 1.0, 1000, 50.0, np.random.default_rng(0)), 3)
    0.506
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    deviation = check_real("count_deviation", count_deviation, low=SMALLEST_DEVIATION, high=LARGEST_DEVIATION)
    bits = within_clip(norms, clip_norm)
    source = experiment_words(random_words, "central_fraction", allow_real_numbers=allow_real_numbers)
    return 0.5 + (float(np.sum(bits - 0.5)) + deviation * float(source.normals(1)[0])) / clients


def combined_noise_multiplier(sum_multiplier: float, count_deviation: float, adjacency: str = "add-or-remove-one") -> float:
    """Return a lower bound on the noise multiplier of a sum and a count released together.

    Parameters
    ----------
    sum_multiplier : float
        Standard deviation of a coordinate's noise in the sum over the sum's L2 sensitivity, which is C for add-or-remove-one and 2 C for
        replace-one adjacency; from 0.001 to 10**6.
    count_deviation : float
        Standard deviation of the noise in the count of clients.
    adjacency : str
        Adjacency of the guarantee.

    Returns
    -------
    float
        ``(sum_multiplier**-2 + (h / count_deviation)**2)**(-1/2)``, h = 1/2 for add-or-remove-one and 1 for replace-one adjacency (see the
        module's docstring); an argument for `gaussian_privacy`.

    Examples
    --------
    >>> round(combined_noise_multiplier(1.0, 50.0), 6), round(combined_noise_multiplier(0.5, 50.0, "replace-one"), 6)
    (0.99995, 0.499975)
    """
    multiplier = check_real("sum_multiplier", sum_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
    return (1 - ROUNDING) / math.hypot(1 / multiplier, _inverse_of_count(count_deviation, adjacency))


def sum_noise_multiplier(total: float, count_deviation: float, adjacency: str = "add-or-remove-one") -> float:
    """Return the noise multiplier that a sum needs beside a count, rounded up.

    The sum and the count together then have the noise multiplier `total`.

    The function inverts `combined_noise_multiplier`, with the same parameters and conventions.

    Raises
    ------
    InfeasibleError
        If the noise multiplier of the count alone is at most `total`.

    Examples
    --------
    >>> round(sum_noise_multiplier(1.0, 50.0), 6), round(sum_noise_multiplier(1.0, 0.6), 6)
    (1.00005, 1.809068)
    """
    total = check_real("total", total, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
    inverse = _inverse_of_count(count_deviation, adjacency)
    # The product (1 / total - inverse) (1 / total + inverse) loses no digits if both are close; the room counts rounding errors of both.
    room = 1 / total * (1 - ROUNDING) - inverse * (1 + ROUNDING)
    if room <= 0:
        raise InfeasibleError(
            f"count_deviation must be above {total * COUNT_SENSITIVITY[adjacency]:g} for a noise multiplier of {total:g} in all, got "
            f"{count_deviation:g}: the count alone reveals as much"
        )
    return (1 + ROUNDING) / math.sqrt(room * (1 / total + inverse))


def adaptive_clipping_privacy(
    sum_multiplier: float, count_deviation: float, adjacency: str = "add-or-remove-one", trust_model: str = "central"
) -> Privacy:
    """Return the privacy of a round's sum and count with Gaussian noise.

    The parameters are those of `combined_noise_multiplier`.

    Every round has the same privacy, whatever its clip norm: the clip is a function of earlier rounds' outputs, and the noise in the sum is
    proportional to the clip. So rounds compose like the rounds of `gaussian_privacy`.

    Examples
    --------
    >>> report = adaptive_clipping_privacy(10.0, 50.0).report(1e-5, rounds=100)
    >>> round(report.epsilon, 4), round(gaussian_privacy(10.0, "add-or-remove-one").epsilon(1e-5, rounds=100), 4)
    (4.4025, 4.3772)
    """
    return gaussian_privacy(combined_noise_multiplier(sum_multiplier, count_deviation, adjacency), adjacency, trust_model)


def _inverse_of_count(count_deviation: float, adjacency: str) -> float:
    check_choice("adjacency", adjacency, ADJACENCIES)
    return COUNT_SENSITIVITY[adjacency] / check_real("count_deviation", count_deviation, low=SMALLEST_DEVIATION, high=LARGEST_DEVIATION)
