"""Secure sums of few measurements of a mean with few coordinates other than zero.

The mechanism is algorithm 3 of Chen, Choquette-Choo, Kairouz, Suresh 2022, *The Fundamental Price of Secure Aggregation in Differentially
Private Federated Learning*.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_probability
from ...arrays import FloatArray, IndexArray
from ...errors import ConvergenceError
from ..contracts.error import Error
from ..contracts.norm_ball import NormBall
from ..contracts.sketched_mechanism import error_of_draws
from ..transforms.linear_sketch import LinearSketch
from .distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from .sketched_sum import SketchedSecureSum

if TYPE_CHECKING:
    from ...solvers.decoders.lasso import LassoSolution

# Solvers are imported at their first use, as the registry imports this module, and most users of the registry need no solver. The
# tolerances are relative to the objective at zero. The first is below the noise, the second is sufficient for a mean that is not sparse.
TOLERANCE, LOOSE = 1e-8, 1e-4
# Number of normal samples that estimate the error of least squares on the right coordinates.
ORACLE_NUMBERS = 2**16


@dataclass(frozen=True)
class SparseSum(SketchedSecureSum):
    """A sum of sketches that the server decodes by the Lasso as measurements of a sparse mean.

    Noise alone exceeds the Lasso's penalty only with the failure probability (`noise_penalty`). The estimate is refitted by least squares
    on the coordinates that the Lasso selects and that are larger than noise, and projected on the ball.

    For means that are not sparse, the only guarantee is that the estimate lies in the ball (`bias_bound`). `variance` is a prediction for
    means with at most `sparsity` coordinates above the noise: the variance of least squares on the right coordinates.

    Attributes
    ----------
    ball, sketch, inner
        Ball, sketch and secure sum, as in `SketchedSecureSum`; the noise is discrete Gaussian.
    sparsity : int
        Expected number of coordinates of the mean other than zero, at most the sketch's dimension.
    refit : bool
        Whether the Lasso's estimate, which is too short, is refitted.
    failure_probability : float
        Failure probability of the penalty, above 0 and below 1.

    Examples
    --------
    >>> from quietbits.design.transforms.hadamard_sketch import HadamardSketch
    >>> sums = DistributedDiscreteGaussianMechanism(NormBall(300, 2.0, 1.1), 1000, bits=20, granularity=1e-3, local_sigma=0.1, delta=1e-5)
    >>> mechanism = SparseSum(NormBall(5000, 2.0), HadamardSketch(5000, 300, seed=1), sums, sparsity=4)
    >>> vectors = np.zeros((1000, 5000))
    >>> vectors[:, [7, 70, 700, 4000]] = 0.5
    >>> estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(0))), 1000)
    >>> np.flatnonzero(estimate).tolist(), bool(np.sum((estimate - vectors[0]) ** 2) < 5 * mechanism.variance_bound / 1000)
    ([7, 70, 700, 4000], True)
    """

    ball: NormBall
    sketch: LinearSketch
    inner: DistributedDiscreteGaussianMechanism
    sparsity: int
    refit: bool = True
    failure_probability: float = 0.05

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the penalty and the squared error of the right coordinates."""
        sparse = {"sparsity": self.sparsity, "penalty": self.penalty, "oracle_squared_error": self.variance_bound / self.clients}
        return {**super().facts(), **sparse}

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields()
        object.__setattr__(self, "sparsity", check_integer("sparsity", self.sparsity, low=1, high=self.sketch_dimension))
        object.__setattr__(self, "failure_probability", check_probability("failure_probability", self.failure_probability))

    @property
    def bias_bound(self) -> float:
        """The ball's diameter, as no estimate has a larger error."""
        return 2 * self.ball.clip_norm

    @property
    def seed_bias_bound(self) -> float:
        """The bound `bias_bound`, which holds for every seed."""
        return self.bias_bound

    @property
    def variance_bound(self) -> float:
        """Sparsity times the variance of a measurement, a prediction for sparse means.

        The variance plus the square of `bias_bound` bounds the squared error for every mean.
        """
        return self.sparsity * self.inner.largest_directional_variance / self.sketch.length_factor**2

    @property
    def worst_shared_variance(self) -> float:
        """Shared variance, 0.0, as a correctly decoded sparse mean has no compression error."""
        return 0.0

    def shared_variance(self, mean: FloatArray) -> float:  # noqa: ARG002
        """Return 0.0, as a correctly decoded sparse mean has no compression error."""
        return 0.0

    @property
    def noise_deviation(self) -> float:
        """Sub-Gaussian parameter of the noise and rounding of a coordinate of the mean of sketches."""
        return math.sqrt((self.inner.local_sigma**2 + self.inner.granularity**2 / 4) / self.clients)

    @property
    def penalty(self) -> float:
        """The penalty of the Lasso, for columns of average length."""
        from ...solvers.decoders.lasso import noise_penalty

        length = self.sketch.length_factor
        return noise_penalty(self.ball.dimension, self.noise_deviation, length, self.sketch_dimension, self.failure_probability)

    @property
    def noise_level(self) -> float:
        """Level that noise in the least-squares coordinates exceeds as rarely as the penalty."""
        return self.penalty * self.sketch_dimension / self.sketch.length_factor**2

    def sum_weights(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Return the weights of the sum of sketches, as the Lasso is not linear in the sum."""
        return self.inner.sum_weights(self.sketched(first), self.sketched(second))

    @property
    def decodes_linearly(self) -> bool:
        """Whether the estimate is linear in the sum: False, as the Lasso is not linear."""
        return False

    def predicted_error(self, mean: FloatArray, variance: float, draws: int = 64) -> Error:  # noqa: ARG002
        """Return the error of decoding noisy measurements of the mean, over sketches.

        Random draws give the error. A control variate corrects them: least squares on the right coordinates, projected on the ball, whose
        error is known far more precisely.
        """
        clipped = self.ball.clip(mean[None])[0]
        support, deviation = np.flatnonzero(clipped), math.sqrt(self.inner.largest_directional_variance / self.clients)
        rng = np.random.default_rng(self.sketch.seed)
        errors = list[FloatArray]()
        oracle = np.empty((draws, len(support)))
        for draw in range(draws):
            mechanism = self.renewed(int(rng.integers(2**63)))
            noise = deviation * rng.standard_normal(self.sketch_dimension)
            observed = self.inner.ball.clip(mechanism.sketched(mean[None]))[0] + noise
            errors.append(mechanism._decoded(observed) - clipped)
            # Decoding is the adjoint: each column has the length `length_factor` on average.
            oracle[draw] = mechanism.sketch.decode(noise)[support]
        width = deviation / self.sketch.length_factor
        many = width * rng.standard_normal((ORACLE_NUMBERS // max(1, len(support)), len(support)))
        excess = self._oracle_square(clipped[support], oracle) - self._oracle_square(clipped[support], many)
        return error_of_draws(errors, self.clients, excess)

    def _oracle_square(self, values: FloatArray, noise: FloatArray) -> float:
        """Return the mean squared error of coordinates with noise, projected on the ball."""
        noisy = values + noise
        noisy /= np.maximum(1.0, np.linalg.norm(noisy, axis=1) / self.ball.clip_norm)[:, None]
        return float(np.mean(np.sum((noisy - values) ** 2, axis=1)))

    def solution(self, aggregate: NDArray[Any], clients: int) -> "LassoSolution":
        """Return the Lasso's estimate, with its duality gap, before it is refitted."""
        return self._lasso(self.inner.decode(aggregate, clients))

    def _lasso(self, observed: FloatArray) -> "LassoSolution":
        from ...solvers.decoders.lasso import solve_lasso

        try:
            return solve_lasso(self.sketch.operator(), observed, self.penalty, tolerance=TOLERANCE)
        except ConvergenceError:
            # The mean is not sparse, so that no guarantee holds, but a loose tolerance still gives an estimate.
            return solve_lasso(self.sketch.operator(), observed, self.penalty, tolerance=LOOSE)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the refitted estimate, projected on the ball."""
        return self._decoded(self.inner.decode(aggregate, clients))

    def _decoded(self, observed: FloatArray) -> FloatArray:
        """Return the refitted estimate from the mean of sketches, projected on the ball."""
        lasso = self._lasso(observed)
        estimate = lasso.solution
        # A support larger than the number of measurements fits any observations.
        if self.refit and 0 < len(lasso.support) < self.sketch_dimension:
            estimate = self._refitted(observed, lasso.support)
        return np.asarray(self.ball.clip(estimate[None])[0])

    def _refitted(self, observed: FloatArray, support: IndexArray) -> FloatArray:
        """Return least squares on the Lasso's coordinates, repeated without noisy coordinates.

        The penalty counts only noise. The shrinkage of the selected coordinates adds to the noise and lets the Lasso select a few wrong
        coordinates.
        """
        from ...solvers.decoders.lasso import refit_support

        operator = self.sketch.operator()
        refitted = refit_support(operator, observed, support).solution
        kept = support[np.abs(refitted[support]) > self.noise_level]
        return refitted if len(kept) == len(support) else refit_support(operator, observed, kept).solution

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return `variance_bound` for each vector, a prediction for sparse means."""
        return np.full(len(self.ball.check(vectors)), self.variance_bound)
