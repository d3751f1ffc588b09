"""Errors of sketched secure sums, measured part by part.

The parameters are compression rate, bits, noise, clients, dimension and rows. The task is the estimation of a mean that is at the core of
the experiments of Chen, Choquette-Choo, Kairouz, Suresh 2022 (Figures 2 to 8, Table 1), without the training around it.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ...analysis.random_streams import named_stream
from ...analysis.simulation.populations import CHUNK_COORDINATES as POPULATION_CHUNK
from ...analysis.simulation.populations import population_chunks
from ...arguments import check_real
from ...arrays import FloatArray
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.sketched_mechanism import CLIP_MARGIN
from ...design.contracts.task import Budget
from ...design.noise.random_words import WordsLike, word_source
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ...design.secure_sum.modular_arithmetic import centred_representatives, messages_modulo
from ...design.secure_sum.sketch_calibration import SketchChoice, discrete_gaussian_within
from ...design.secure_sum.sketched_sum import SketchedSum
from ...design.transforms.linear_sketch import IdentitySketch, LinearSketch
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import granularity_for_bits
from ..point import Point

CLIP_NORM, DELTA, ADJACENCY = 1.0, 1e-5, "add-or-remove-one"
ALIGNED = "aligned"
# Number of coordinates of a chunk's vectors.
CHUNK = 2**21


@dataclass(frozen=True)
class SketchErrorParts:
    """Squared L2 distances between successive estimates of the mean, one per step.

    Each estimate has one more step than its predecessor, with the same decoder. The distances add up to the whole error on average only if
    steps are independent, which clipping and compression are not.

    Attributes
    ----------
    clients : int
        Number of clients.
    squared_error : float
        Error of the estimate, from the mean of the unclipped vectors.
    clipping : float
        Error from clipping vectors to the ball.
    compression : float
        Error from sketching, and decoding the sum of sketches.
    sketch_clipping : float
        Error from clipping sketches.
    rounding, privatisation, wrap_around : float
        Errors from rounding to whole numbers, from their noise, and from sums modulo M.
    zero : float
        Error of the zero estimate.
    clipped_vectors, clipped_sketches : float
        Shares of the clients whose vector or sketch was clipped.
    wrapped_coordinates : int
        Number of coordinates of the sum that wrapped.
    """

    clients: int
    squared_error: float
    clipping: float
    compression: float
    sketch_clipping: float
    rounding: float
    privatisation: float
    wrap_around: float
    zero: float
    clipped_vectors: float
    clipped_sketches: float
    wrapped_coordinates: int


def split_sketch_error(mechanism: SketchedSum, chunks: Iterable[ArrayLike], random_words: WordsLike) -> SketchErrorParts:
    """Run clients on their vectors, chunk after chunk, and measure the error of each step.

    Parameters
    ----------
    mechanism : SketchedSum
        The mechanism.
    chunks : iterable of array_like, each of shape (clients of the chunk, dimension)
        The vectors of all of its clients; one chunk is held at a time.
    random_words : WordSource or numpy.random.Generator
        Source of the mechanism's randomness.

    Raises
    ------
    ValueError
        If the number of vectors differs from the mechanism's number of clients.
    """
    random_words, inner, clients = word_source(random_words), mechanism.inner, mechanism.clients
    seen = clipped_vectors = clipped_sketches = 0
    whole, clipped = (np.zeros(mechanism.ball.dimension) for _ in range(2))
    sketched, kept = (np.zeros(mechanism.sketch_dimension) for _ in range(2))
    rounded, noise = (np.zeros(mechanism.padded_dimension, dtype=np.int64) for _ in range(2))
    for chunk in chunks:
        vectors = mechanism.ball.check(chunk)
        inside = mechanism.ball.clip(vectors)
        sketches = mechanism.sketch.encode(inside)
        steps = inner.rounded_steps(sketches, random_words)
        seen += len(vectors)
        clipped_vectors += mechanism.ball.clipped_count(vectors)
        clipped_sketches += inner.ball.clipped_count(sketches)
        whole += vectors.sum(axis=0)
        clipped += inside.sum(axis=0)
        sketched += sketches.sum(axis=0)
        kept += inner.ball.clip(sketches).sum(axis=0)
        rounded += steps.sum(axis=0)
        noise += inner.noise_steps(len(vectors), random_words).sum(axis=0)
    if seen != clients:
        raise ValueError(f"chunks must hold the vectors of the mechanism's {clients} clients, got {seen}")

    def squared_distance(before: FloatArray, after: FloatArray) -> float:
        return float(np.sum((after - before) ** 2))

    total = rounded + noise
    wrapped = centred_representatives(messages_modulo(total, inner.modulus), inner.modulus)
    stages = [
        whole / clients,
        clipped / clients,
        *(mechanism.sketch.decode(sums / clients) for sums in (sketched, kept)),
        *(mechanism.sketch.decode(inner.mean_of_steps(steps)) for steps in (rounded, total, wrapped)),
    ]
    steps_of_the_way = ("clipping", "compression", "sketch_clipping", "rounding", "privatisation", "wrap_around")
    parts = {name: squared_distance(*pair) for name, pair in zip(steps_of_the_way, pairwise(stages), strict=True)}
    return SketchErrorParts(
        clients=clients,
        squared_error=squared_distance(stages[0], stages[-1]),
        **parts,
        zero=float(np.sum(stages[0] ** 2)),
        clipped_vectors=clipped_vectors / clients,
        clipped_sketches=clipped_sketches / clients,
        wrapped_coordinates=int(np.count_nonzero(wrapped != total)),
    )


@dataclass(frozen=True, kw_only=True)
class SketchPoint(Point):
    """A round of a secure sum of sketches, or of the vectors themselves, on vectors of norm 1.

    Attributes
    ----------
    dimension, clients, bits : int
        Length of the vectors; number of clients; bits of a coordinate of a message.
    rate : float
        Dimension over the number of coordinates of a sketch, at least 1; 1 sends the vectors themselves.
    rows : int
        Number of rows of the count-mean sketch.
    epsilon : float or None
        Privacy parameter of the round, at delta = 1e-5 and add-or-remove-one adjacency; None if the noise multiplier is given.
    noise_multiplier : float or None
        Standard deviation of the sum's noise over the norm that sketches are clipped to.
    population : str
        Population of the vectors: ``"aligned"`` for a common direction times `mean_norm` plus each client's own direction; or one of
        `population_chunks`, such as ``"digits-gradients"``.
    mean_norm : float
        Norm of the common part of aligned vectors; the mean is longer, because the clients' own directions do not cancel.
    repetition : int
        Number of the repetition, from 0; each repetition has its own vectors, sketch and noise.
    """

    dimension: int
    clients: int
    bits: int = 16
    rate: float = 1.0
    rows: int = 15
    epsilon: float | None = None
    noise_multiplier: float | None = None
    population: str = ALIGNED
    mean_norm: float = 0.1
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row with parameters, predicted errors, and measured errors with their parts.

        Errors are missing if the bits are too few.

        Raises
        ------
        ValueError
            If a field is out of range, or both or neither of epsilon and noise multiplier are given.
        """
        check_real("mean_norm", self.mean_norm, low=0.0, high=1.0)
        check_real("rate", self.rate, low=1.0, high=float(self.dimension))
        if (self.epsilon is None) == (self.noise_multiplier is None):
            raise ValueError(f"epsilon must be given where noise_multiplier is not, and only there, got {self.epsilon!r}")
        asked = {name: value for name, value in asdict(self).items() if name != "seed"}
        try:
            sketch = self._sketch()
            sums = self._sums(sketch)
        except InfeasibleError as error:
            return [asked | {"reason": str(error)}]
        mechanism = self._decoded(sketch, sums)
        words = named_stream(self.seed, f"noise: {self.name}")
        parts = asdict(split_sketch_error(mechanism, self.chunks(), words))
        guarantee = mechanism.guarantee
        noise = self.dimension * sums.largest_directional_variance / self.clients
        # The compression error is that of the mean of these vectors before clipping.
        compression = mechanism.sketch.distortion * parts["zero"]
        multiplier = sums.local_sigma * math.sqrt(self.clients) / mechanism.sketch_clip
        return [
            asked
            | {
                "sketch_dimension": mechanism.sketch_dimension,
                "bits_per_coordinate": mechanism.bits_per_client / self.dimension,
                "realised_epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "adjacency": guarantee.adjacency,
                "trust_model": guarantee.trust_model,
                "realised_noise_multiplier": multiplier,
                "predicted_squared_error": noise + compression,
                "predicted_compression": compression,
                # The reference is a trusted server's noise on the vectors themselves, for the same noise multiplier.
                "central_squared_error": self.dimension * (multiplier * CLIP_NORM / self.clients) ** 2,
                "coordinate_wrap_probability": mechanism.coordinate_wrap_probability,
                "reason": None,
            }
            | parts
        ]

    def mechanism(self) -> SketchedSum:
        """Return the secure sum; a rate of 1 is lossless and needs no margin."""
        sketch = self._sketch()
        return self._decoded(sketch, self._sums(sketch))

    def chunks(self) -> Iterator[FloatArray]:
        """Yield the vectors, the same for all rates, bits, rows and noises."""
        mean = f", mean {self.mean_norm!r}" if self.population == ALIGNED else ""
        name = f"{self.population} vectors: {self.dimension}, clients {self.clients}{mean}, repetition {self.repetition}"
        rng, size = named_stream(self.seed, name), max(1, CHUNK // self.dimension)
        if self.population != ALIGNED:
            # Small chunks are joined, since each chunk hashes its sketches once.
            parts = population_chunks(self.population, self.clients, self.dimension, rng)
            while joined := list(islice(parts, max(1, size // max(1, POPULATION_CHUNK // self.dimension)))):
                yield np.concatenate(joined)
            return
        common = _directions(1, self.dimension, rng)
        for start in range(0, self.clients, size):
            own = _directions(min(size, self.clients - start), self.dimension, rng)
            yield self.mean_norm * common + math.sqrt(1 - self.mean_norm**2) * own

    def _sketch(self) -> LinearSketch:
        if self.rate == 1:
            return IdentitySketch(self.dimension)
        choice = SketchChoice(rows=self.rows, seed=self._public_seed())
        return choice.sketch(self.dimension, choice.round_up(math.ceil(self.dimension / self.rate)))

    def _sums(self, sketch: LinearSketch) -> DistributedDiscreteGaussianMechanism:
        """Return the secure sum of sketches."""
        margin = 1.0 if self.rate == 1 else CLIP_MARGIN
        ball, seed = NormBall(sketch.sketch_dimension, 2.0, margin * CLIP_NORM), self._public_seed()
        if self.epsilon is not None:
            return discrete_gaussian_within(ball, self.clients, self.bits, Budget(self.epsilon, DELTA, ADJACENCY), seed)
        assert self.noise_multiplier is not None  # noqa: S101 - one of the two is given
        deviation = self.noise_multiplier * ball.clip_norm / math.sqrt(self.clients)
        granularity = granularity_for_bits(self.clients, ball.dimension + ball.dimension % 2, ball.clip_norm, deviation, self.bits)
        return DistributedDiscreteGaussianMechanism(
            ball, self.clients, self.bits, granularity, deviation, DELTA, seed, "fourier", ADJACENCY
        )

    def _decoded(self, sketch: LinearSketch, sums: DistributedDiscreteGaussianMechanism) -> SketchedSum:
        return SketchedSum(NormBall(self.dimension, 2.0, CLIP_NORM), sketch, sums)

    def _public_seed(self) -> int:
        return int(named_stream(self.seed, f"sketch: {self.name}").integers(2**63))


def _directions(count: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    vectors = rng.standard_normal((count, dimension))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


SETTING = ["dimension", "clients", "bits", "rate", "rows", "epsilon", "noise_multiplier", "population", "mean_norm"]


def arrange_sketches(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting: mean errors over repetitions, with their parts.

    Standard errors are those of the whole error and of compression.
    """
    complete = rows[rows["reason"].isna()].drop(columns=["reason", "repetition"])
    groups = complete.groupby(SETTING, dropna=False, sort=False)
    averages = groups.mean(numeric_only=True)
    averages.insert(0, "repetitions", groups.size())
    for error, column in (("squared_error", "standard_error"), ("compression", "compression_standard_error")):
        averages[column] = groups[error].std() / np.sqrt(groups.size())
    words = groups[["adjacency", "trust_model"]].first()
    return averages.join(words).reset_index()
