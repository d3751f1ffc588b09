"""What few bits cost DP-REC where its privacy is fixed: bias and error of one message by bits of a group, at several clip ratios."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...design.relative_entropy.coding import log_importance_weights
from ...design.relative_entropy.shared_randomness import SharedNormals
from ...progress import OnStep, silent
from ...solvers.divergences.dp_rec_privacy import bit_rate_bound
from ...solvers.divergences.importance_resampling import resampled_moments
from ..provenance_columns import with_provenance
from ..random_streams import named_stream

# Slopes are fitted where the leading term of the bias is at most this.
SMALL_BIAS = 0.01
MOST_SEEDS = 10**7


@dataclass(frozen=True)
class BiasStudySize:
    """How much is computed and measured.

    Attributes
    ----------
    clip_ratios : tuple of float
        Norms of the update over sigma; the Rényi divergences of the two Gaussian distributions that are coded are a c^2 / 2 at order a.
    bits : tuple of int
        Bits of the group.
    dimensions : tuple of int
        Coordinates of the group.
    measured_bits : tuple of int
        Bits at which shared samples are drawn too.
    seeds : int
        How many lists of samples are drawn for each such point; from 2.
    lost : float
        Part of delta that a message's coding may cost: where lemma 2's number of bits is marked.
    """

    clip_ratios: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    bits: tuple[int, ...] = tuple(range(17))
    dimensions: tuple[int, ...] = (1, 16)
    measured_bits: tuple[int, ...] = (2, 5, 8)
    seeds: int = 1000
    lost: float = 0.05


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


def measure_message(clip_ratio: float, dimension: int, bits: int, seeds: int, rng: np.random.Generator) -> MeasuredMessage:
    """Average the coder's messages for one update over many lists of shared samples, with the coder's own weights.

    Of the bias, only what normalising the weights changes is averaged: without that, ``sum_k ratio_k sample_k / K`` has no bias at all,
    and it varies much more.

    Parameters
    ----------
    clip_ratio : float
        Norm of the update over sigma, 0.001 to 3.
    dimension : int
        Its length.
    bits : int
        Bits of the group, 1 to 20.
    seeds : int
        Number of lists, from 2.
    rng : numpy.random.Generator
        Source of the update's direction, and of seeds.

    Returns
    -------
    MeasuredMessage
        The averages.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> found = measure_message(1.0, dimension=4, bits=5, seeds=400, rng=np.random.default_rng(0))
    >>> abs(found.relative_bias - (1 - resampled_moments(1.0, 32).mean)) < 4 * found.relative_bias_error
    True
    """
    clip_ratio = check_real("clip_ratio", clip_ratio, low=1e-3, high=3.0)
    seeds = check_integer("seeds", seeds, low=2, high=MOST_SEEDS)
    direction = rng.standard_normal(dimension)
    update = direction * (clip_ratio / np.linalg.norm(direction))
    biases, errors = np.empty(seeds), np.empty(seeds)
    for place, seed in enumerate(rng.integers(0, 2**63, seeds).tolist()):
        samples = SharedNormals(seed, dimension).vectors(0, 1 << bits).astype(float)
        ratios = np.exp(log_importance_weights(update, bits, seed))
        weights = ratios / ratios.sum()
        biases[place] = (ratios / len(ratios) - weights) @ (samples @ update) / clip_ratio**2
        errors[place] = weights @ np.sum((samples - update) ** 2, axis=1)
    return MeasuredMessage(*_mean_and_error(biases), *_mean_and_error(errors))


def bias_by_bits(size: BiasStudySize, *, seed: int, on_step: OnStep = silent) -> pd.DataFrame:
    """Compute bias and error of one message by bits, and measure some of them.

    Parameters
    ----------
    size : BiasStudySize
        How much.
    seed : int
        Root seed of what is measured.
    on_step : callable
        Called after each clip ratio as ``on_step(done, total, text)``.

    Returns
    -------
    DataFrame
        One row for each clip ratio, dimension and number of bits: ``relative_bias`` (exact, the same in all dimensions: the share of the
        update that is missing), ``leading_bias`` (exp(c^2) / 2**bits), ``fitted_slope`` (of log2 of the bias by bits, where the leading
        term is at most 0.01; missing where that are fewer than three points), ``squared_error`` (exact, over sigma**2: dimension is the
        floor, that of the target distribution), ``relative_error`` and ``floor`` (both over the update's squared norm, c^2 sigma^2);
        ``lemma_bits`` (lemma 2's, of one message, at ``lost``); ``seeds``, 0 where nothing was measured, and the fields of
        `MeasuredMessage`, with ``measured_`` before their names; ``adjacency`` and ``trust_model`` of the promise that fixes the clip
        ratio, and provenance.

    Raises
    ------
    ValueError
        If the size is out of range.
    """
    rows: list[dict[str, object]] = []
    for done, clip_ratio in enumerate(size.clip_ratios, start=1):
        laws = [resampled_moments(clip_ratio, 1 << bits) for bits in size.bits]
        biases = np.array([1 - law.mean / clip_ratio for law in laws])
        leading = np.exp(clip_ratio**2 - np.array(size.bits) * math.log(2))
        slope = _slope(np.array(size.bits)[leading <= SMALL_BIAS], biases[leading <= SMALL_BIAS])
        for dimension in size.dimensions:
            for bits, law, bias, first in zip(size.bits, laws, biases, leading, strict=True):
                squared_error = law.squared_error + dimension - 1
                rows.append(
                    {
                        "clip_ratio": clip_ratio,
                        "dimension": dimension,
                        "bits": bits,
                        "relative_bias": bias,
                        "leading_bias": first,
                        "fitted_slope": slope,
                        "squared_error": squared_error,
                        "relative_error": squared_error / clip_ratio**2,
                        "floor": dimension / clip_ratio**2,
                        "lost": size.lost,
                        "lemma_bits": bit_rate_bound(clip_ratio, size.lost, 1),
                        **_measured(size, clip_ratio, dimension, bits, seed),
                        "adjacency": "add-or-remove-one",
                        "trust_model": "central",
                    }
                )
        on_step(done, len(size.clip_ratios), f"clip ratio {clip_ratio:g}")
    return with_provenance(pd.DataFrame(rows), "bias of DP-REC by bits", seed)


def _measured(size: BiasStudySize, clip_ratio: float, dimension: int, bits: int, seed: int) -> dict[str, object]:
    names = ("measured_relative_bias", "measured_relative_bias_error", "measured_squared_error", "measured_squared_error_error")
    if bits not in size.measured_bits:
        return {"seeds": 0, **dict.fromkeys(names, math.nan)}
    rng = named_stream(seed, f"clip ratio {clip_ratio}, dimension {dimension}, {bits} bits")
    found = measure_message(clip_ratio, dimension, bits, size.seeds, rng)
    values = (found.relative_bias, found.relative_bias_error, found.squared_error, found.squared_error_error)
    return {"seeds": size.seeds, **dict(zip(names, values, strict=True))}


def _slope(bits: NDArray[np.int64], biases: FloatArray) -> float:
    return math.nan if len(bits) < 3 else float(np.polynomial.Polynomial.fit(bits, np.log2(biases), 1).convert().coef[1])


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
