"""Calibration of sketches: shortest sketches within a slack, and fewest bits per parameter."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Generic, TypeVar

from ...arguments import check_choice, check_integer, check_real
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import fewest_bits
from ...solvers.numerics.bisection import first_true
from ..central.central_sketch import CentralSketchMechanism
from ..contracts.norm_ball import NormBall
from ..contracts.sketched_mechanism import CLIP_MARGIN, SketchedMechanism
from ..contracts.task import Budget
from ..local.vector_gaussian import calibrate_noise_multiplier
from ..transforms.count_sketch import MOST_ROWS, CountMeanSketch
from ..transforms.gaussian_sketch import MOST_ENTRIES, GaussianSketch
from ..transforms.hadamard_sketch import HadamardSketch
from ..transforms.linear_sketch import LinearSketch
from ..transforms.rotation import rotated_dimension
from .distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from .distributed_skellam import DistributedSkellamMechanism
from .rounded_secure_sum import RoundedSecureSum
from .shared_noise import calibrate_discrete_gaussian, calibrate_distributed_skellam, calibrate_finest_steps, discrete_gaussian_of_noise
from .sketched_sum import MedianSum, SketchedSecureSum, SketchedSum
from .sparse_sum import SparseSum

Sketched = TypeVar("Sketched", bound=SketchedMechanism)
TRANSFORMS = ("count-mean", "hadamard", "gaussian")
DECODERS = ("mean", "median")
# Number of measurements per coordinate of a sparse mean, in units of ln d.
MEASUREMENTS = 4
# Number of rows of the paper's experiments; shorter sketches have fewer rows.
USUAL_ROWS = 15
LARGEST_SLACK = 1e6
# Largest useful number of bits; more bits have no visible effect.
AMPLE_BITS = 24


@dataclass(frozen=True)
class SketchChoice:
    """The choice of a sketch.

    Attributes
    ----------
    transform : str
        ``"count-mean"``, ``"hadamard"``, or ``"gaussian"`` for small sizes.
    rows : int or None
        Number of rows of a count-mean sketch, from 1 to 1024; None for 15, or the sketch's size if that is less.
    sketch_dimension : int or None
        Number of coordinates of a sketch, a multiple of the rows; None for the fewest coordinates that keep the slack.
    slack : float
        Largest ratio of the predicted error to the error without a sketch, from 1.
    seed : int
        Public seed of the sketch.
    """

    transform: str = "count-mean"
    rows: int | None = None
    sketch_dimension: int | None = None
    slack: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields that the sketch does not check."""
        check_choice("transform", self.transform, TRANSFORMS)
        if self.rows is not None:
            check_integer("rows", self.rows, low=1, high=MOST_ROWS)
        check_real("slack", self.slack, low=1.0, high=LARGEST_SLACK)

    def sketch(self, dimension: int, sketch_dimension: int) -> LinearSketch:
        """Return the sketch with a number of coordinates."""
        size = check_integer("sketch_dimension", sketch_dimension, low=1, high=dimension)
        if self.transform == "hadamard":
            return HadamardSketch(dimension, size, self.seed)
        if self.transform == "gaussian":
            return GaussianSketch(dimension, size, self.seed)
        return CountMeanSketch.of_size(dimension, size, self.rows or min(USUAL_ROWS, size), self.seed)

    def longest(self, dimension: int) -> LinearSketch:
        """Return the longest sketch that is shorter than the vectors."""
        if dimension <= self.unit:
            raise InfeasibleError(
                f"dimension must be at least {self.unit + 1} for a shorter sketch, got {dimension}; or give rows or a sketch_dimension"
            )
        return self.sketch(dimension, self._most_units(dimension) * self.unit)

    def fewest(self, dimension: int, distortion: float) -> int | None:
        """Return the fewest coordinates with at most a distortion; None if there is no such sketch."""
        if self.longest(dimension).distortion > distortion:
            return None
        most = self._most_units(dimension)
        return self.unit * first_true(1, most, lambda units: self.sketch(dimension, units * self.unit).distortion <= distortion)

    def round_up(self, sketch_dimension: int) -> int:
        """Return the least possible size of a sketch that is at least a number."""
        return -(-sketch_dimension // self.unit) * self.unit

    def _most_units(self, dimension: int) -> int:
        # The matrix of a Gaussian ensemble is stored, which limits its size.
        most = MOST_ENTRIES // dimension if self.transform == "gaussian" else dimension
        return min(most, dimension - 1) // self.unit

    @property
    def unit(self) -> int:
        """Divisor of every size of a sketch."""
        return self.rows or USUAL_ROWS if self.transform == "count-mean" else 1


@dataclass(frozen=True)
class CalibratedSketch(Generic[Sketched]):
    """A mechanism with a sketch, and its squared errors of the mean of one round.

    Errors are in squared units of the vectors.

    Attributes
    ----------
    mechanism : SketchedMechanism
        The mechanism.
    compressed_error : float
        Error of the mechanism from compression, noise and rounding, for a mean of the largest norm in the ball.
    plain_error : float
        Error of the same mechanism without a sketch; infinite if the bits are too few for it.
    """

    mechanism: Sketched
    compressed_error: float
    plain_error: float


def calibrate_sketched_sum(
    ball: NormBall,
    clients: int,
    bits: int,
    budget: Budget,
    choice: SketchChoice,
    *,
    noise: str = "discrete-gaussian",
    decoder: str = "mean",
) -> CalibratedSketch[SketchedSecureSum]:
    """Return a distributed mechanism on the shortest sketch within the slack.

    The noise hardly depends on the sketch's size m, as it affects fewer coordinates, and decoding scales it up by d/m. Compression adds at
    most ``distortion c**2``. Sketches are clipped at 1.1 c, which multiplies the variance by 1.21, so a slack must exceed 1.21. Either
    decoder has the size for the mean over rows.

    Parameters
    ----------
    ball, clients, bits, budget, choice
        L2 ball of the vectors, number of clients, bits of a coordinate, budget, and the choice of the sketch.
    noise : str
        ``"discrete-gaussian"`` or ``"skellam"``.
    decoder : str
        ``"mean"`` over a sketch's rows, or ``"median"`` for a count-mean sketch.

    Raises
    ------
    InfeasibleError
        If no shorter sketch keeps the slack, or the bits are too few; the message states the requirement.
    """
    within = WITHIN[check_choice("noise", noise, tuple(WITHIN))]

    def summed(of: NormBall) -> RoundedSecureSum:
        return within(of, clients, bits, budget, choice.seed)

    def variance(mechanism: RoundedSecureSum) -> float:
        return ball.dimension * mechanism.largest_directional_variance / clients

    @cache
    def sketched(size: int) -> RoundedSecureSum:
        return summed(NormBall(size, 2.0, CLIP_MARGIN * ball.clip_norm))

    try:
        plain = variance(summed(ball))
    except InfeasibleError:
        # Fewer coordinates may fit even if all coordinates do not, so a given size is no reason to refuse.
        if choice.sketch_dimension is None:
            raise
        plain = math.inf
    size = _fewest(ball, choice, plain, lambda size: variance(sketched(size)), f"distributed-{noise}")
    mechanism = _decoded(ball, choice.sketch(ball.dimension, size), sketched(size), decoder)
    of_noise = mechanism.variance_bound / clients if decoder == "median" else variance(sketched(size))
    return CalibratedSketch(mechanism, mechanism.error().shared + of_noise, plain)


def sketched_sum_of_noise(
    ball: NormBall, clients: int, bits: int, budget: Budget, choice: SketchChoice, noise_multiplier: float, decoder: str = "mean"
) -> SketchedSecureSum:
    """Return the mechanism with a given noise on a sketch of given size.

    The result is the mechanism of `calibrate_sketched_sum`, with the noise of `discrete_gaussian_of_noise`.
    """
    size = check_sketch_of_noise(choice.sketch_dimension)
    sketched = NormBall(size, 2.0, CLIP_MARGIN * ball.clip_norm)
    inner = discrete_gaussian_of_noise(sketched, clients, bits, budget, noise_multiplier, choice.seed, "fourier")
    return _decoded(ball, choice.sketch(ball.dimension, size), inner, decoder)


def _decoded(ball: NormBall, sketch: LinearSketch, inner: RoundedSecureSum, decoder: str) -> SketchedSecureSum:
    """Return the secure sum of sketches with a decoder."""
    if check_choice("decoder", decoder, DECODERS) == "mean":
        return SketchedSum(ball, sketch, inner)
    if not isinstance(sketch, CountMeanSketch):
        raise InfeasibleError("transform must be count-mean for the median over rows, which other sketches lack: take the decoder mean")
    return MedianSum(ball, sketch, inner)


def check_sketch_of_noise(sketch_dimension: int | None) -> int:
    """Return the size of a sketch with a given noise, or raise ValueError without a size."""
    if sketch_dimension is None:
        raise ValueError("sketch_dimension must be given with a noise_multiplier, got None: only a budget says how short a sketch may be")
    return sketch_dimension


def calibrate_sparse_sum(
    ball: NormBall, clients: int, bits: int, budget: Budget, choice: SketchChoice, sparsity: int, *, refit: bool = True
) -> SparseSum:
    """Return the distributed discrete Gaussian on enough measurements of a sparse mean.

    By default there are ``4 s ln d`` measurements for s coordinates, twice the number that the Lasso needs in the limit to find the right
    coordinates by Gaussian measurements with little noise (Wainwright 2009, *Sharp thresholds for high-dimensional and noisy sparsity
    recovery*). With a penalty for the noise alone the Lasso also selects a few other coordinates, which the refit drops; more measurements
    do not lower the noise.

    Raises
    ------
    InfeasibleError
        If there are no fewer measurements than the dimension, or the bits are too few; the message states the requirement.
    """
    sparsity = check_integer("sparsity", sparsity, low=1, high=ball.dimension)
    size = choice.sketch_dimension
    if size is None:
        size = choice.round_up(math.ceil(MEASUREMENTS * sparsity * math.log(max(2, ball.dimension))))
        if size >= ball.dimension:
            raise InfeasibleError(
                f"sparsity must be smaller for {size} measurements to be fewer than {ball.dimension} coordinates, got {sparsity}: "
                "distributed-discrete-gaussian needs none; or give a sketch_dimension"
            )
    sketch = choice.sketch(ball.dimension, size)
    inner = discrete_gaussian_within(NormBall(size, 2.0, CLIP_MARGIN * ball.clip_norm), clients, bits, budget, choice.seed)
    return SparseSum(ball, sketch, inner, sparsity, refit)


def calibrate_central_sketch(
    ball: NormBall, clients: int, budget: Budget, choice: SketchChoice
) -> CalibratedSketch[CentralSketchMechanism]:
    """Return project-and-perturb with the shortest sketch within the slack.

    Raises ``InfeasibleError`` if no shorter sketch keeps the slack.
    """
    adjacency = budget.adjacency
    multiplier = calibrate_noise_multiplier(budget, "central")
    deviation = multiplier * ball.clip_norm * (2 if adjacency == "replace-one" else 1)
    plain = ball.dimension * (deviation / clients) ** 2
    size = _fewest(ball, choice, plain, lambda _: plain * CLIP_MARGIN**2, "central Gaussian noise")
    mechanism = CentralSketchMechanism(
        ball, choice.sketch(ball.dimension, size), clients, CLIP_MARGIN * ball.clip_norm, multiplier, budget.delta, adjacency
    )
    return CalibratedSketch(mechanism, mechanism.error().shared + mechanism.variance_bound / clients, plain)


def discrete_gaussian_within(ball: NormBall, clients: int, bits: int, budget: Budget, seed: int) -> DistributedDiscreteGaussianMechanism:
    """Return the secure sum with the least noise within the budget, by a Fourier rotation.

    The rotation pads by at most one coordinate.
    """
    adjacency = budget.adjacency
    padded = rotated_dimension("fourier", ball.dimension)
    noise = calibrate_finest_steps(calibrate_discrete_gaussian, clients, padded, ball.clip_norm, bits, budget)
    return DistributedDiscreteGaussianMechanism(
        ball,
        clients,
        bits,
        noise["granularity"],
        noise["local_sigma"],
        budget.delta,
        seed,
        "fourier",
        adjacency,
        budget.stated_survivors(clients),
    )


def skellam_within(ball: NormBall, clients: int, bits: int, budget: Budget, seed: int) -> DistributedSkellamMechanism:
    """Return the secure sum with the least Skellam noise within the budget, by a Fourier rotation."""
    padded = rotated_dimension("fourier", ball.dimension)
    noise = calibrate_finest_steps(calibrate_distributed_skellam, clients, padded, ball.clip_norm, bits, budget)
    return DistributedSkellamMechanism(
        ball,
        clients,
        bits,
        noise["granularity"],
        noise["local_variance"],
        budget.delta,
        seed,
        "fourier",
        budget.adjacency,
        budget.stated_survivors(clients),
    )


# Secure sums of a sketch by their noise.
WITHIN: Mapping[str, Callable[[NormBall, int, int, Budget, int], RoundedSecureSum]] = MappingProxyType(
    {"discrete-gaussian": discrete_gaussian_within, "skellam": skellam_within}
)


def _fewest(ball: NormBall, choice: SketchChoice, plain: float, noise_of: Callable[[int], float], without: str) -> int:
    """Return the chosen sketch dimension, or the smallest within the slack."""
    if choice.sketch_dimension is not None:
        return choice.sketch(ball.dimension, choice.sketch_dimension).sketch_dimension
    square, allowed, most = ball.clip_norm**2, choice.slack * plain, choice.longest(ball.dimension).sketch_dimension

    def error(size: int) -> float:
        return noise_of(size) + choice.sketch(ball.dimension, size).distortion * square

    if error(most) > allowed:
        least = math.ceil(1000 * error(most) / plain) / 1000
        # A Hadamard sketch of nearly all coordinates has hardly any compression error; all other sketches lose the whole square.
        other = replace(choice, transform="hadamard", rows=None).longest(ball.dimension)
        serves = noise_of(most) + other.distortion * square <= allowed
        instead = f"{'take the transform hadamard, or ' if serves else ''}give a sketch_dimension"
        raise InfeasibleError(
            f"slack must be at least {least:g} for a sketch of fewer than {ball.dimension} coordinates, got {choice.slack:g}: compression "
            f"costs more than noise, and {without} has none; or {instead}"
        )
    # The noise hardly depends on the size, so the size that fits the noise of a guess is a better guess, until guesses repeat.
    guess, tried = most, list[int]()
    while guess not in tried:
        tried.append(guess)
        guess = choice.fewest(ball.dimension, (allowed - noise_of(guess)) / square) or most
    # Several sizes may be the least sizes for each other's noise. The largest of these sizes has the least noise, and is the answer unless
    # the noise jumps.
    guess = max(tried[tried.index(guess) :])
    low, high = 0, most // choice.unit
    for probe in (guess // choice.unit, guess // choice.unit - 1):
        if low < probe < high:
            low, high = (low, probe) if error(probe * choice.unit) <= allowed else (probe, high)
    return choice.unit * (low + 1 + bisect_left(range(low + 1, high), True, key=lambda units: error(units * choice.unit) <= allowed))


@dataclass(frozen=True)
class RateAndBits:
    """Bits and predicted errors of a secure sum of sketches, or of the vectors themselves.

    Errors are those of the mean of one round, in squared units of the vectors.

    Attributes
    ----------
    bits : int
        Number of bits of a coordinate of a message.
    sketch_dimension : int
        Number of coordinates of a sketch; the dimension without a sketch.
    rate : float
        Ratio of the dimension to the sketch's dimension.
    bits_per_parameter : float
        Number of bits of a client's whole message over the dimension.
    compressed_error : float
        Error for a mean of the largest norm in the ball.
    reference_error : float
        Error of vectors without a sketch, with ample bits.
    """

    bits: int
    sketch_dimension: int
    rate: float
    bits_per_parameter: float
    compressed_error: float
    reference_error: float


def cheapest_rate_and_bits(
    ball: NormBall, clients: int, budget: Budget, slack: float, choice: SketchChoice | None = None
) -> tuple[RateAndBits, ...]:
    """Return the pairs of rate and bits within a slack of the error with ample bits.

    The pairs with the fewest bits per parameter come first. Each number of bits has the shortest sketch within the slack, or none. The
    paper chooses these pairs by hand in its Table 1 and Figures 3, 5 and 6.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients.
    budget : Budget
        Budget of all rounds.
    slack : float
        Largest ratio of the predicted error to that of vectors without a sketch and with ample bits, from 1.
    choice : SketchChoice or None
        Transform, rows and seed; None for the defaults.

    Raises
    ------
    InfeasibleError
        If even ample bits do not keep the budget.

    Examples
    --------
    >>> pairs = cheapest_rate_and_bits(NormBall(2**20, 2.0), 1000, Budget(1.0, 1e-5, "add-or-remove-one"), slack=2.0)
    >>> best = pairs[0]
    >>> best.bits, round(best.rate, 1), round(best.bits_per_parameter, 2)
    (15, 10.9, 1.38)
    """
    slack = check_real("slack", slack, low=1.0, high=LARGEST_SLACK)
    chosen = choice or SketchChoice()

    def plain(bits: int) -> float:
        mechanism = discrete_gaussian_within(ball, clients, bits, budget, chosen.seed)
        return ball.dimension * mechanism.largest_directional_variance / clients

    reference = plain(AMPLE_BITS)
    pairs = []
    for bits in range(fewest_bits(clients, 4.0), AMPLE_BITS + 1):
        try:
            without = plain(bits)
        except InfeasibleError:
            # This number of bits is too small for the budget.
            continue
        if without <= slack * reference:
            pairs.append(_pair(ball, bits, ball.dimension, float(bits), without, reference))
        if slack * reference / without < 1:
            continue
        try:
            sketched = calibrate_sketched_sum(ball, clients, bits, budget, replace(chosen, slack=slack * reference / without))
        except InfeasibleError:
            # No sketch is within the slack, so clients send vectors without a sketch.
            continue
        mechanism = sketched.mechanism
        per_parameter = mechanism.bits_per_client / ball.dimension
        pairs.append(_pair(ball, bits, mechanism.sketch_dimension, per_parameter, sketched.compressed_error, reference))
    return tuple(sorted(pairs, key=lambda pair: pair.bits_per_parameter))


def _pair(ball: NormBall, bits: int, size: int, per_parameter: float, error: float, reference: float) -> RateAndBits:
    return RateAndBits(bits, size, ball.dimension / size, per_parameter, error, reference)
