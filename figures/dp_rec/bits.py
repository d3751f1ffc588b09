"""Bias and error of DP-REC by bits, at a fixed clip ratio.

The mechanism is that of Triastcyn, Reisser, Louizos 2021; the comparison goes beyond the paper.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...design.relative_entropy.coding import log_importance_weights
from ...design.relative_entropy.shared_randomness import SharedNormals
from ...solvers.divergences.dp_rec_privacy import bit_rate_bound
from ...solvers.divergences.importance_resampling import resampled_moments
from ..drawing.marks import Mark, series_marks
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from ..point import Point

# Largest leading term of the bias at the bits to which slopes are fitted.
SMALL_BIAS = 0.01
MOST_SEEDS = 10**7
CLIP_RATIOS, DIMENSIONS, BITS = (0.5, 1.0, 1.5, 2.0), (1, 16), range(17)
# Numbers of bits at which shared samples are also drawn, and number of lists of samples.
MEASURED_BITS, SEEDS, QUICK_SEEDS = (2, 5, 8), 1000, 200
FLOOR_LINE = (0, (1, 1))
LEMMA_LOOK: Mapping[str, Any] = MappingProxyType({"marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": ""})


@dataclass(frozen=True)
class MeasuredMessage:
    """Averages over seeds; the average over a list's index is exact.

    Attributes
    ----------
    relative_bias, relative_bias_error : float
        Missing share of the update in the expectation of a decoded message, and its standard error.
    squared_error, squared_error_error : float
        Expected squared distance of a decoded message from the update, over sigma**2, and its standard error.
    """

    relative_bias: float
    relative_bias_error: float
    squared_error: float
    squared_error_error: float


def measure_message(clip_ratio: float, dimension: int, group_bits: int, seeds: int, rng: np.random.Generator) -> MeasuredMessage:
    """Average the coder's messages for an update over many lists of shared samples.

    The weights are those of the coder. The average shows the bias from normalised weights: without normalisation, ``sum_k ratio_k sample_k
    / K`` has no bias, and a much larger variance.

    Parameters
    ----------
    clip_ratio : float
        Norm of the update over sigma, 0.001 to 3.
    dimension : int
        Length of the update.
    group_bits : int
        Number of bits of the group, 1 to 20.
    seeds : int
        Number of lists, from 2.
    rng : numpy.random.Generator
        Source of the update's direction, and of seeds.

    Examples
    --------
    >>> measured = measure_message(1.0, dimension=4, group_bits=5, seeds=400, rng=np.random.default_rng(0))
    >>> abs(measured.relative_bias - (1 - resampled_moments(1.0, 32).mean)) < 4 * measured.relative_bias_error
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
    """A message of a group, with its computed error, and its measured error if there are seeds.

    Attributes
    ----------
    clip_ratio : float
        Norm of the update over sigma; the Rényi divergences of the two Gaussian distributions that are coded are a c^2 / 2 at order a.
    dimension, group_bits : int
        Number of coordinates and number of bits of the group.
    seeds : int
        Number of lists of shared samples to draw, from 2; 0 for none.
    lost : float
        Part of delta that a message's coding may cost; it sets lemma 2's marked number of bits.
    """

    clip_ratio: float
    dimension: int
    group_bits: int
    seeds: int = 0
    lost: float = 0.05

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with bias and error.

        ``relative_bias`` is the exact missing share of the update, and ``leading_bias`` is exp(c^2) / 2**group_bits. ``squared_error`` is
        exact, in units of sigma**2, and tends to the dimension, the error of the coded distribution; ``relative_error`` and ``floor`` are
        these two numbers over the update's squared norm, c^2 sigma^2. ``lemma_bits`` is the number of bits of one message by lemma 2, at
        ``lost``.
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
        measured = measure_message(self.clip_ratio, self.dimension, self.group_bits, self.seeds, rng)
        return {f"measured_{name}": getattr(measured, name) for name in names}


def with_fitted_slopes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with ``fitted_slope``: the slope of log2 of the bias by bits.

    The fit uses bits where the leading term is at most 0.01. The slope is missing with fewer than three such numbers of bits.
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


def draw_bias(frame: pd.DataFrame) -> Figure:
    """Draw the bias by bits (left), and a message's squared error for each dimension (right)."""
    dimensions = frame["dimension"].unique()
    figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
    panels = figure.subplots(1, 1 + len(dimensions))
    ratios_drawn = frame["clip_ratio"].unique()
    marks = dict(zip(ratios_drawn, series_marks(len(ratios_drawn)), strict=True))
    for clip_ratio, mark in marks.items():
        own = frame[frame["clip_ratio"] == clip_ratio]
        _draw_bias(panels[0], own, mark)
        for axes, dimension in zip(panels[1:], dimensions, strict=True):
            _draw_error(axes, own[own["dimension"] == dimension], mark)
    panels[0].set(yscale="log", ylabel="bias / norm of the update", title="bias of one message")
    for axes, dimension in zip(panels[1:], dimensions, strict=True):
        axes.set_yscale("log")
        axes.set_title(f"its error, {dimension} coordinate{'s' if dimension > 1 else ''}")
    panels[1].set_ylabel("squared error / squared norm of the update")
    for axes in panels:
        axes.set_xlabel("bits of the group")
        axes.xaxis.set_major_locator(MultipleLocator(4))
        axes.grid(visible=True)
    handles = [Line2D([], [], label=f"clip ratio {ratio:g}", **mark.look) for ratio, mark in marks.items()]
    handles.append(Line2D([], [], color=GREY, linestyle=FLOOR_LINE, label="leading term; floor"))
    handles.append(Line2D([], [], color=GREY, label=f"lemma 2, {frame['lost'].iloc[0]:g}", **LEMMA_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_bias(axes: Axes, frame: pd.DataFrame, mark: Mark) -> None:
    exact = frame.drop_duplicates("group_bits")
    axes.plot(exact["group_bits"], exact["relative_bias"], color=mark.colour, linestyle=mark.line)
    leading = exact[exact["leading_bias"] <= 1]
    axes.plot(leading["group_bits"], leading["leading_bias"], color=mark.colour, linestyle=FLOOR_LINE, linewidth=0.8)
    bits = exact["lemma_bits"].iloc[0]
    axes.plot(bits, 2 ** np.interp(bits, exact["group_bits"], np.log2(exact["relative_bias"])), color=mark.colour, **LEMMA_LOOK)
    # All dimensions have the same bias, so that their measurements are averaged.
    measured = frame[frame["seeds"] > 0].groupby("group_bits")
    biases, errors = measured["measured_relative_bias"], measured["measured_relative_bias_error"]
    spread = errors.agg(lambda values: math.sqrt(float((values**2).sum()))) / errors.size()
    _draw_measured(axes, pd.Series(list(measured.groups)), biases.mean(), spread, mark)


def _draw_error(axes: Axes, frame: pd.DataFrame, mark: Mark) -> None:
    axes.plot(frame["group_bits"], frame["relative_error"], color=mark.colour, linestyle=mark.line)
    axes.axhline(frame["floor"].iloc[0], color=mark.colour, linestyle=FLOOR_LINE, linewidth=0.8)
    measured = frame[frame["seeds"] > 0]
    scale = measured["clip_ratio"] ** -2
    _draw_measured(
        axes, measured["group_bits"], scale * measured["measured_squared_error"], scale * measured["measured_squared_error_error"], mark
    )


def _draw_measured(axes: Axes, bits: "pd.Series[int]", values: "pd.Series[float]", errors: "pd.Series[float]", mark: Mark) -> None:
    axes.errorbar(bits, values, yerr=errors, **mark.points, capsize=2)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    slopes = ", ".join(f"{slope:.3f}" for slope in frame.drop_duplicates("clip_ratio")["fitted_slope"])
    seeds = frame["seeds"].max()
    return (
        f"Clip ratio c: norm of the update over the samples' deviation. Lines: exact; points: {seeds:,} lists of samples with standard "
        f"errors. Slopes of log2 of small biases: {slopes}. Circles: enough bits by lemma 2. Guarantee: ε by c and sampling, "
        f"{first['adjacency']} adjacency, {first['trust_model']} trust model."
    )


def bias_tasks(seed: int, quick: bool) -> list[BiasPoint]:
    """Return a task for each clip ratio, dimension and number of bits."""
    seeds = QUICK_SEEDS if quick else SEEDS
    return [
        BiasPoint(seed=seed, clip_ratio=clip_ratio, dimension=dimension, group_bits=bits, seeds=seeds if bits in MEASURED_BITS else 0)
        for clip_ratio in CLIP_RATIOS
        for dimension in DIMENSIONS
        for bits in BITS
    ]


def _bias_by_bit(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the factor by which another bit changes the exact bias, at the same clip ratio."""
    exact = frame.drop_duplicates(["clip_ratio", "group_bits"])
    fewer = exact.assign(group_bits=exact["group_bits"] + 1)
    return ratios(exact, fewer, ("clip_ratio", "group_bits"), "relative_bias")


FIGURE = FigureEntry(
    name="dprec-bits",
    paper=f"{entry_named('dp-rec').paper}; beyond the paper",
    experiment="bias of DP-REC by bits",
    tasks=bias_tasks,
    table=with_fitted_slopes,
    draw=draw_bias,
    findings=(Finding("Bias over that at the previous number of bits", _bias_by_bit),),
)
