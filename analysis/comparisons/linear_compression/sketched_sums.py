"""Errors of sketched secure sums, measured part by part: by compression rate, bits, noise, clients, dimension and rows.

The estimation of a mean that is at the core of the experiments of Chen, Choquette-Choo, Kairouz, Suresh 2022 (Figures 2 to 8, Table 1),
without the training around it.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from ....arguments import check_real
from ....arrays import FloatArray
from ....design.contracts.norm_ball import NormBall
from ....design.contracts.sketched_mechanism import CLIP_MARGIN
from ....design.contracts.task import Budget
from ....design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ....design.secure_sum.sketch_calibration import SketchChoice, discrete_gaussian_within
from ....design.secure_sum.sketched_sum import SketchedSum
from ....design.transforms.linear_sketch import IdentitySketch, LinearSketch
from ....errors import InfeasibleError
from ....solvers.divergences.discrete_gaussian_divergence import granularity_for_bits
from ...random_streams import named_stream
from ...simulation.sketch_errors import split_sketch_error
from ...simulation.vector_populations import CHUNK_COORDINATES as POPULATION_CHUNK
from ...simulation.vector_populations import population_chunks
from ..point import Point

CLIP_NORM, DELTA, ADJACENCY = 1.0, 1e-5, "add-or-remove-one"
ALIGNED = "aligned"
# Coordinates of a chunk's vectors.
CHUNK = 2**21


@dataclass(frozen=True, kw_only=True)
class SketchPoint(Point):
    """One round of a secure sum of sketches, or of the vectors themselves, on vectors of norm 1.

    Attributes
    ----------
    dimension, clients, bits : int
        Of the vectors; that send them; of a coordinate of a message.
    rate : float
        Dimension over the coordinates of a sketch, at least 1; 1 sends the vectors themselves.
    rows : int
        Rows of the count-mean sketch.
    epsilon : float or None
        Of the round, at delta = 1e-5 and add-or-remove-one adjacency; None where the noise multiplier is given.
    noise_multiplier : float or None
        Standard deviation of the sum's noise over the norm that sketches are clipped to.
    population : str
        ``"aligned"``: a common direction times `mean_norm`, and a direction of each client's own; or one of `population_chunks`, such as
        ``"digits-gradients"``.
    mean_norm : float
        Of aligned vectors; their mean is longer, as their own directions do not cancel.
    repetition : int
        Number of the repetition, from 0: vectors, sketch and noise are other ones.
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
        """Return one row: parameters, predicted errors, and measured ones with their parts; missing where the bits are too few.

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
        found = asdict(split_sketch_error(mechanism, self.chunks(), words))
        guarantee = mechanism.guarantee
        noise = self.dimension * sums.largest_directional_variance / self.clients
        # Of the mean that these vectors have, before they are clipped.
        compression = mechanism.sketch.distortion * found["zero"]
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
                # A trusted server's noise on the vectors themselves, for the same noise multiplier.
                "central_squared_error": self.dimension * (multiplier * CLIP_NORM / self.clients) ** 2,
                "coordinate_wrap_probability": mechanism.coordinate_wrap_probability,
                "reason": None,
            }
            | found
        ]

    def mechanism(self) -> SketchedSum:
        """Return the secure sum; with a rate of 1 nothing is lost, and no margin is needed."""
        sketch = self._sketch()
        return self._decoded(sketch, self._sums(sketch))

    def chunks(self) -> Iterator[FloatArray]:
        """Yield the vectors, the same for all rates, bits, rows and noises."""
        mean = f", mean {self.mean_norm!r}" if self.population == ALIGNED else ""
        name = f"{self.population} vectors: {self.dimension}, clients {self.clients}{mean}, repetition {self.repetition}"
        rng, size = named_stream(self.seed, name), max(1, CHUNK // self.dimension)
        if self.population != ALIGNED:
            # Sketches are hashed once for each chunk.
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
    """Return one row per setting, averaged over repetitions: errors, their parts, and standard errors of the whole and of compression."""
    found = rows[rows["reason"].isna()].drop(columns=["reason", "repetition"])
    groups = found.groupby(SETTING, dropna=False, sort=False)
    averages = groups.mean(numeric_only=True)
    averages.insert(0, "repetitions", groups.size())
    for error, column in (("squared_error", "standard_error"), ("compression", "compression_standard_error")):
        averages[column] = groups[error].std() / np.sqrt(groups.size())
    words = groups[["adjacency", "trust_model"]].first()
    return averages.join(words).reset_index()
