"""What few bits cost DP-REC where its privacy is fixed: bias and error of one message by bits of a group, at several clip ratios."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...design.relative_entropy.coding import log_importance_weights
from ...design.relative_entropy.shared_randomness import SharedNormals
from ...solvers.divergences.dp_rec_privacy import bit_rate_bound
from ...solvers.divergences.importance_resampling import resampled_moments
from ..random_streams import named_stream
from .point import Point

# Slopes are fitted where the leading term of the bias is at most this.
SMALL_BIAS = 0.01
MOST_SEEDS = 10**7


@dataclass(frozen=True)
class MeasuredMessage:
    """Averages over seeds; of each list of samples the index is averaged over exactly.

    Attributes
    ----------
    relative_bias, relative_bias_error : float
        Share of the update that is missing from the expectation of a decoded message, and its standard error.
    squared_error, squared_error_error : float
        Expected squared distance of a decoded message from the update, over sigma**2, and its standard error.
    """

    relative_bias: float
    relative_bias_error: float
    squared_error: float
    squared_error_error: float


def measure_message(clip_ratio: float, dimension: int, group_bits: int, seeds: int, rng: np.random.Generator) -> MeasuredMessage:
    """Average the coder's messages for one update over many lists of shared samples, with the coder's own weights.

    Of the bias, only what normalising the weights changes is averaged: without that, ``sum_k ratio_k sample_k / K`` has no bias at all,
    and it varies much more.

    Parameters
    ----------
    clip_ratio : float
        Norm of the update over sigma, 0.001 to 3.
    dimension : int
        Its length.
    group_bits : int
        Bits of the group, 1 to 20.
    seeds : int
        Number of lists, from 2.
    rng : numpy.random.Generator
        Source of the update's direction, and of seeds.

    Examples
    --------
    >>> found = measure_message(1.0, dimension=4, group_bits=5, seeds=400, rng=np.random.default_rng(0))
    >>> abs(found.relative_bias - (1 - resampled_moments(1.0, 32).mean)) < 4 * found.relative_bias_error
    True
    """
    clip_ratio = check_real("clip_ratio", clip_ratio, low=1e-3, high=3.0)
    seeds = check_integer("seeds", seeds, low=2, high=MOST_SEEDS)
    direction = rng.standard_normal(dimension)
    update = direction * (clip_ratio / np.linalg.norm(direction))
    biases, errors = np.empty(seeds), np.empty(seeds)
    for place, seed in enumerate(rng.integers(0, 2**63, seeds).tolist()):
        samples = SharedNormals(seed, dimension).vectors(0, 1 << group_bits).astype(float)
        ratios = np.exp(log_importance_weights(update, group_bits, seed))
        weights = ratios / ratios.sum()
        biases[place] = (ratios / len(ratios) - weights) @ (samples @ update) / clip_ratio**2
        errors[place] = weights @ np.sum((samples - update) ** 2, axis=1)
    return MeasuredMessage(*_mean_and_error(biases), *_mean_and_error(errors))


@dataclass(frozen=True, kw_only=True)
class BiasPoint(Point):
    """One message of a group, computed, and measured where there are seeds.

    Attributes
    ----------
    clip_ratio : float
        Norm of the update over sigma; the Rényi divergences of the two Gaussian distributions that are coded are a c^2 / 2 at order a.
    dimension, group_bits : int
        Coordinates and bits of the group.
    seeds : int
        Number of lists of shared samples that are drawn, from 2; 0 for none.
    lost : float
        Part of delta that a message's coding may cost: where lemma 2's number of bits is marked.
    """

    clip_ratio: float
    dimension: int
    group_bits: int
    seeds: int = 0
    lost: float = 0.05

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with bias and error.

        ``relative_bias`` is exact, the share of the update that is missing, and ``leading_bias`` is exp(c^2) / 2**group_bits.
        ``squared_error`` is exact too, over sigma**2, and tends to the dimension, the error of the distribution that is coded;
        ``relative_error`` and ``floor`` are these two over the update's squared norm, c^2 sigma^2. ``lemma_bits`` are lemma 2's, of one
        message, at ``lost``.
        """
        law = resampled_moments(self.clip_ratio, 1 << self.group_bits)
        squared_error = law.squared_error + self.dimension - 1
        return [
            {
                "clip_ratio": self.clip_ratio,
                "dimension": self.dimension,
                "group_bits": self.group_bits,
                "relative_bias": 1 - law.mean / self.clip_ratio,
                "leading_bias": float(np.exp(self.clip_ratio**2 - self.group_bits * math.log(2))),
                "squared_error": squared_error,
                "relative_error": squared_error / self.clip_ratio**2,
                "floor": self.dimension / self.clip_ratio**2,
                "lost": self.lost,
                "lemma_bits": bit_rate_bound(self.clip_ratio, self.lost, 1),
                "seeds": self.seeds,
                **self._measured(),
                "adjacency": "add-or-remove-one",
                "trust_model": "central",
            }
        ]

    def _measured(self) -> dict[str, float]:
        names = [field.name for field in fields(MeasuredMessage)]
        if self.seeds == 0:
            return dict.fromkeys((f"measured_{name}" for name in names), math.nan)
        rng = named_stream(self.seed, f"clip ratio {self.clip_ratio}, dimension {self.dimension}, {self.group_bits} bits")
        found = measure_message(self.clip_ratio, self.dimension, self.group_bits, self.seeds, rng)
        return {f"measured_{name}": getattr(found, name) for name in names}


def with_fitted_slopes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with ``fitted_slope``: that of log2 of the bias by bits, where the leading term is at most 0.01.

    It is missing where there are fewer than three numbers of bits.
    """

    def slope(own: pd.DataFrame) -> float:
        small = own[own["leading_bias"] <= SMALL_BIAS].drop_duplicates("group_bits")
        if len(small) < 3:
            return math.nan
        fit = np.polynomial.Polynomial.fit(small["group_bits"].to_numpy(), np.log2(small["relative_bias"].to_numpy()), 1)
        return float(fit.convert().coef[1])

    slopes = {ratio: slope(own) for ratio, own in rows.groupby("clip_ratio")}
    frame = rows.copy()
    frame.insert(list(frame).index("leading_bias") + 1, "fitted_slope", [slopes[ratio] for ratio in rows["clip_ratio"]])
    return frame


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
