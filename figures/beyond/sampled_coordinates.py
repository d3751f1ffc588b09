"""Error against bits of secretly sampled coordinates and of sketches, with a trusted server.

No paper has this picture.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import build_mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ..drawing.marks import ANSWER_ZERO, TRUSTED_SERVER, Mark, mechanism_mark, series_marks
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

ADJACENCY = "add-or-remove-one"
SHARES = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
LETTER_BITS = (2, 3, 4)
# Sketches divide the dimension by these factors.
FACTORS = (256, 128, 64, 32, 16, 8, 4)
FLOAT_SKETCH = "sketch of 64-bit floats"
SAMPLED = ("2 bits a sampled coordinate", "3 bits", "4 bits")
MARKS: Mapping[str, Mark] = MappingProxyType(
    {**dict(zip(SAMPLED, series_marks(len(SAMPLED)), strict=True)), FLOAT_SKETCH: mechanism_mark("central-sketch")}
)
QUICK: Mapping[str, Any] = MappingProxyType({"dimension": 2**14, "clients": 2000})


@dataclass(frozen=True, kw_only=True)
class SamplePoint(Point):
    """One design; `letter_bits` is None for a sketch of ``share * dimension`` coordinates."""

    letter_bits: int | None
    share: float
    clients: int = 10_000
    dimension: int = 2**17
    epsilon: float = 4.0
    delta: float = 1e-6
    rounds: int = 10

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return the bits and the largest expected error of the design."""
        task = Task(NormBall(self.dimension, 2.0), self.clients, self.epsilon, self.delta, ADJACENCY, rounds=self.rounds)
        if self.letter_bits is None:
            made = build_mechanism("central-sketch", task, {"rows": 1, "sketch_dimension": round(self.share * self.dimension)})
        else:
            made = build_mechanism("subsampled-gaussian", task, {"letter_bits": self.letter_bits, "coordinate_share": self.share})
        row = {
            "clients": self.clients,
            "dimension": self.dimension,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rounds": self.rounds,
            "adjacency": ADJACENCY,
            "series": FLOAT_SKETCH if self.letter_bits is None else SAMPLED[LETTER_BITS.index(self.letter_bits)],
            "bits_per_coordinate": made.bits_per_client / self.dimension,
            "worst_squared_error": made.error().of_mean(self.clients),
            "central_squared_error": build_mechanism("central-gaussian", task).error().of_mean(self.clients),
        }
        return [row]


def sample_tasks(seed: int, quick: bool) -> list[SamplePoint]:
    """Return the designs of all series."""
    sizes = QUICK if quick else {}
    sampled = [SamplePoint(seed=seed, letter_bits=bits, share=share, **sizes) for bits in LETTER_BITS for share in SHARES]
    return [*sampled, *(SamplePoint(seed=seed, letter_bits=None, share=1 / factor, **sizes) for factor in FACTORS)]


def sorted_designs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the designs by series and bits."""
    return rows.sort_values(["series", "bits_per_coordinate"], ignore_index=True)


def draw_samples(table: pd.DataFrame) -> Figure:
    """Draw the error of each series against bits."""
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for name, mark in MARKS.items():
        series = table[table["series"] == name]
        axes.plot(series["bits_per_coordinate"], series["worst_squared_error"], label=name, **mark.look)
    first = table.iloc[0]
    axes.axhline(first["central_squared_error"], label="unsampled noise", **TRUSTED_SERVER.rule)
    axes.axhline(1.0, label="no messages, at most", **ANSWER_ZERO.rule)
    axes.set(xscale="log", yscale="log", xlabel="bits of a message over the number of coordinates")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("largest expected squared L2 error")
    axes.grid(visible=True)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    add_caption(
        figure,
        f"Errors of one round's mean of {first['clients']:,} vectors of the unit ball, dimension {first['dimension']:,}. Guarantee: ε = "
        f"{first['epsilon']:g}, δ = {first['delta']:g} for {first['rounds']} rounds together, {ADJACENCY} adjacency, central trust model.",
    )
    return figure


def _over_unsampled(table: pd.DataFrame) -> "pd.Series[float]":
    sampled = table[table["series"] != FLOAT_SKETCH]
    ratio: pd.Series[float] = sampled["worst_squared_error"] / sampled["central_squared_error"]
    return ratio


FIGURE = FigureEntry(
    name="sampled-coordinates",
    paper="beyond the papers",
    experiment="secretly sampled coordinates against bits",
    tasks=sample_tasks,
    table=sorted_designs,
    draw=draw_samples,
    findings=(Finding("Error over that of unsampled noise", _over_unsampled),),
)
