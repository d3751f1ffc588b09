"""How short a sketch may be: the fewest coordinates with which compression keeps the error within a slack of that without it."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Generic, TypeVar

from ...arguments import check_choice, check_integer, check_real
from ...design.central.central_sketch import CentralSketchMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.sketched_mechanism import CLIP_MARGIN, SketchedMechanism
from ...design.contracts.task import Budget
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ...design.secure_sum.sketched_sum import SketchedSum
from ...design.secure_sum.sparse_sum import SparseSum
from ...design.transforms.count_sketch import MOST_ROWS, CountMeanSketch
from ...design.transforms.gaussian_sketch import MOST_ENTRIES, GaussianSketch
from ...design.transforms.hadamard_sketch import HadamardSketch
from ...design.transforms.linear_sketch import LinearSketch
from ...design.transforms.rotation import rotated_dimension
from ...errors import InfeasibleError
from ...solvers.numerics.bisection import first_true
from .gaussian_noise import calibrate_noise_multiplier
from .shared_noise import calibrate_discrete_gaussian, discrete_gaussian_of_noise, finest_steps

Sketched = TypeVar("Sketched", bound=SketchedMechanism)
TRANSFORMS = ("count-mean", "hadamard", "gaussian")
# Measurements for each coordinate of a sparse mean, times ln d.
MEASUREMENTS = 4
# The experiments' number of rows; shorter sketches have fewer.
USUAL_ROWS = 15
LARGEST_SLACK = 1e6


@dataclass(frozen=True)
class SketchChoice:
    """Which sketch is wanted.

    Attributes
    ----------
    transform : str
        ``"count-mean"``, ``"hadamard"``, or ``"gaussian"`` for small sizes.
    rows : int or None
        Rows of a count-mean sketch, from 1 to 1024; None for 15, or the sketch's size if that is less.
    sketch_dimension : int or None
        Number of coordinates of a sketch, a multiple of the rows; None for the fewest that keep the slack.
    slack : float
        Largest predicted error over that without a sketch, above 1.
    seed : int
        Public seed.
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
        """Return the sketch of a size."""
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
        """Return the fewest coordinates with at most a distortion; None where the vectors themselves have no more."""
        if self.longest(dimension).distortion > distortion:
            return None
        most = self._most_units(dimension)
        return self.unit * first_true(1, most, lambda units: self.sketch(dimension, units * self.unit).distortion <= distortion)

    def round_up(self, sketch_dimension: int) -> int:
        """Return the least size that a sketch can have from a number on."""
        return -(-sketch_dimension // self.unit) * self.unit

    def _most_units(self, dimension: int) -> int:
        # A Gaussian ensemble is stored.
        most = MOST_ENTRIES // dimension if self.transform == "gaussian" else dimension
        return min(most, dimension - 1) // self.unit

    @property
    def unit(self) -> int:
        """What the size of a sketch is a multiple of."""
        return self.rows or USUAL_ROWS if self.transform == "count-mean" else 1


@dataclass(frozen=True)
class CalibratedSketch(Generic[Sketched]):
    """A mechanism with a sketch, and what it is measured by; squared errors of the mean of one round, in squared units of the vectors.

    Attributes
    ----------
    mechanism : SketchedMechanism
        The mechanism.
    compressed_error : float
        Its error where the mean is as long as the ball allows: compression, noise and rounding.
    plain_error : float
        That of the same mechanism without a sketch; infinite where the bits are too few for it.
    """

    mechanism: Sketched
    compressed_error: float
    plain_error: float


def calibrate_sketched_sum(ball: NormBall, clients: int, bits: int, budget: Budget, choice: SketchChoice) -> CalibratedSketch[SketchedSum]:
    """Return the distributed discrete Gaussian mechanism on the shortest sketch with which its error stays within the slack.

    The noise hardly depends on the sketch's size m: it is spread over fewer coordinates, and decoding scales it up by d/m. Compression
    adds ``distortion c**2`` at most. Sketches are clipped at 1.1 c, which takes 1.21 times the variance: a slack must be above that.

    Raises
    ------
    InfeasibleError
        If no shorter sketch keeps the slack, or the bits are too few; the message says what is needed.
    """

    def summed(of: NormBall) -> DistributedDiscreteGaussianMechanism:
        return discrete_gaussian_within(of, clients, bits, budget, choice.seed)

    def noise(mechanism: DistributedDiscreteGaussianMechanism) -> float:
        return ball.dimension * mechanism.largest_directional_variance / clients

    @cache
    def sketched(size: int) -> DistributedDiscreteGaussianMechanism:
        return summed(NormBall(size, 2.0, CLIP_MARGIN * ball.clip_norm))

    try:
        plain = noise(summed(ball))
    except InfeasibleError:
        # Fewer coordinates may fit where all of them do not: that is no reason to refuse a size that is given.
        if choice.sketch_dimension is None:
            raise
        plain = math.inf
    size = _fewest(ball, choice, plain, lambda size: noise(sketched(size)), "distributed-discrete-gaussian")
    mechanism = SketchedSum(ball, choice.sketch(ball.dimension, size), sketched(size))
    return CalibratedSketch(mechanism, mechanism.error().shared + noise(sketched(size)), plain)


def sketched_sum_of_noise(
    ball: NormBall, clients: int, bits: int, budget: Budget, choice: SketchChoice, noise_multiplier: float
) -> SketchedSum:
    """Return the mechanism of `calibrate_sketched_sum` with a given noise on a sketch of given size (`discrete_gaussian_of_noise`)."""
    size = check_sketch_of_noise(choice.sketch_dimension)
    sketched = NormBall(size, 2.0, CLIP_MARGIN * ball.clip_norm)
    inner = discrete_gaussian_of_noise(sketched, clients, bits, budget, noise_multiplier, choice.seed, "fourier")
    return SketchedSum(ball, choice.sketch(ball.dimension, size), inner)


def check_sketch_of_noise(sketch_dimension: int | None) -> int:
    """Return the size of a sketch whose noise is given, or raise ValueError: it must be given, too."""
    if sketch_dimension is None:
        raise ValueError("sketch_dimension must be given with a noise_multiplier, got None: only a budget says how short a sketch may be")
    return sketch_dimension


def calibrate_sparse_sum(
    ball: NormBall, clients: int, bits: int, budget: Budget, choice: SketchChoice, sparsity: int, *, refit: bool = True
) -> SparseSum:
    """Return the distributed discrete Gaussian mechanism on measurements that are enough for a sparse mean.

    By default there are ``4 s ln d`` of them for s coordinates, twice what the Lasso needs in the limit to find the right ones by Gaussian
    measurements with little noise (Wainwright 2009, *Sharp thresholds for high-dimensional and noisy sparsity recovery*). With a penalty
    that is noise's alone it finds a few others besides, which the refit drops; more measurements do not lower the noise.

    Raises
    ------
    InfeasibleError
        If that is no fewer than the dimension, or the bits are too few; the message says what is needed.
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
    """Return project-and-perturb with the shortest sketch with which its error stays within the slack; raises as above."""
    adjacency = budget.adjacency
    multiplier = calibrate_noise_multiplier(budget, "central")
    deviation = multiplier * ball.clip_norm * (2 if adjacency == "replace-one" else 1)
    plain = ball.dimension * (deviation / clients) ** 2
    size = _fewest(ball, choice, plain, lambda _: plain * CLIP_MARGIN**2, "central Gaussian noise")
    mechanism = CentralSketchMechanism(
        ball, choice.sketch(ball.dimension, size), clients, CLIP_MARGIN * ball.clip_norm, multiplier, budget.delta, adjacency
    )
    return CalibratedSketch(mechanism, mechanism.error().shared + mechanism.worst_variance / clients, plain)


def discrete_gaussian_within(ball: NormBall, clients: int, bits: int, budget: Budget, seed: int) -> DistributedDiscreteGaussianMechanism:
    """Return the secure sum with the least noise within the budget; its Fourier rotation pads by one coordinate at most."""
    adjacency = budget.adjacency
    padded = rotated_dimension("fourier", ball.dimension)
    found = finest_steps(calibrate_discrete_gaussian, clients, padded, ball.clip_norm, bits, budget)
    return DistributedDiscreteGaussianMechanism(
        ball, clients, bits, found["granularity"], found["local_sigma"], budget.delta, seed, "fourier", adjacency
    )


def _fewest(ball: NormBall, choice: SketchChoice, plain: float, noise_of: Callable[[int], float], without: str) -> int:
    """Return the sketch dimension that was chosen, or the smallest whose error is within the slack of that without a sketch."""
    if choice.sketch_dimension is not None:
        return choice.sketch(ball.dimension, choice.sketch_dimension).sketch_dimension
    square, allowed, most = ball.clip_norm**2, choice.slack * plain, choice.longest(ball.dimension).sketch_dimension

    def error(size: int) -> float:
        return noise_of(size) + choice.sketch(ball.dimension, size).distortion * square

    if error(most) > allowed:
        least = math.ceil(1000 * error(most) / plain) / 1000
        # A Hadamard sketch of nearly all coordinates loses nearly nothing; all others lose the whole square.
        other = replace(choice, transform="hadamard", rows=None).longest(ball.dimension)
        serves = noise_of(most) + other.distortion * square <= allowed
        instead = f"{'take the transform hadamard, or ' if serves else ''}give a sketch_dimension"
        raise InfeasibleError(
            f"slack must be at least {least:g} for a sketch of fewer than {ball.dimension} coordinates, got {choice.slack:g}: compression "
            f"costs more than noise, and {without} has none; or {instead}"
        )
    # The noise hardly depends on the size: that which fits the noise of one guess is a better guess, until guesses repeat.
    guess, tried = most, list[int]()
    while guess not in tried:
        tried.append(guess)
        guess = choice.fewest(ball.dimension, (allowed - noise_of(guess)) / square) or most
    # Of sizes that are the fewest for each other's noise, the largest has the least; it is the answer, unless the noise jumps.
    guess = max(tried[tried.index(guess) :])
    low, high = 0, most // choice.unit
    for probe in (guess // choice.unit, guess // choice.unit - 1):
        if low < probe < high:
            low, high = (low, probe) if error(probe * choice.unit) <= allowed else (probe, high)
    return choice.unit * (low + 1 + bisect_left(range(low + 1, high), True, key=lambda units: error(units * choice.unit) <= allowed))
