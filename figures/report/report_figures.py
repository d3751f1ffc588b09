"""The report's figures as SVG text for a self-contained HTML page."""

import io
import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...analysis.study.mean_estimation import Z95
from ...shown import printable
from ..drawing.marks import LOWER_BOUND, Mark, mechanism_mark, variant
from ..drawing.style import font_families, letters
from ..drawing.ticks import label_logarithms

if TYPE_CHECKING:
    from ...analysis.study.mean_study import MeanStudy

BOUND_NAMES = {"mean": "average over the grid", "worst": "largest value on the grid", "prior": "prior-weighted average over the grid"}


def study_marks(study: "MeanStudy") -> dict[str, Mark]:
    """Return the marks of a study's mechanisms, by their names in the study; a table's second design is a variant."""
    mechanisms = {name: study.tables[name].mechanism if name in study.tables else "laplace" for name in study.protocols}
    earlier = [list(mechanisms.values())[:place].count(mechanism) for place, mechanism in enumerate(mechanisms.values())]
    return {name: variant(mechanism_mark(mechanism), number) for (name, mechanism), number in zip(mechanisms.items(), earlier, strict=True)}


def estimates_figure(study: "MeanStudy") -> str:
    """Draw each mechanism's estimate, and the true mean, as an ``<svg>`` element.

    Error bars reach 1.96 predicted standard errors to either side.
    """
    comparison = study.comparison
    with report_style():
        figure = Figure(figsize=(8.6, 0.9 + 0.5 * len(comparison.estimates)), layout="constrained")
        axes = figure.add_subplot()
        marks = study_marks(study)
        for row, estimate in enumerate(comparison.estimates):
            mark = marks[estimate.mechanism]
            axes.errorbar(
                estimate.estimate,
                row,
                xerr=Z95 * estimate.worst_standard_error,
                color=mark.colour,
                marker=mark.marker,
                markersize=7,
                capsize=4,
            )
        axes.axvline(comparison.true_mean, color="#555555", linewidth=1.2, zorder=0)
        axes.annotate(
            "true mean", (comparison.true_mean, 1), xycoords=("data", "axes fraction"), xytext=(4, -2), textcoords="offset points", va="top"
        )
        if comparison.clipped:
            axes.axvline(comparison.clipped_mean, color="#555555", linewidth=1.2, linestyle="--", zorder=0)
        axes.set_yticks(range(len(comparison.estimates)), [estimate.mechanism for estimate in comparison.estimates])
        axes.set_ylim(len(comparison.estimates) - 0.5, -0.9)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(column_name(study.data.name))
        return svg_text(figure, "estimates")


def variance_figure(study: "MeanStudy") -> str:
    """Draw the variance of a decoded message by the client's value, as an ``<svg>`` element.

    The plot also shows the certified bound.
    """
    low, high = study.comparison.interval
    values = np.linspace(low, high, 1 + 20 * (2**study.bits_in - 1))
    with report_style():
        figure = Figure(figsize=(8.6, 4.6), layout="constrained")
        axes = figure.add_subplot()
        marks = study_marks(study)
        for index, (name, protocol) in enumerate(study.protocols.items()):
            mark = marks[name]
            axes.plot(
                values,
                protocol.variance(values),
                color=mark.colour,
                linestyle=mark.line,
                marker=mark.marker,
                # Markers are shifted from mechanism to mechanism, so that markers of meeting curves do not hide each other.
                markevery=(index * len(values) // 40, len(values) // 8),
                markersize=6,
                label=name,
            )
        _draw_bound(axes, study)
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_xlabel(f"a client's {column_name(study.data.name)}")
        axes.set_ylabel("variance of one decoded message")
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        return svg_text(figure, "variances")


def report_style() -> AbstractContextManager[None]:
    """Return the context in which the report's figures are made."""
    return mpl.rc_context(
        {
            "font.family": font_families(),
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.6,
            # The setting draws a column's name as plain text, with any characters.
            "text.parse_math": False,
            # Glyphs are drawn as outlines, so that the figure looks the same in every program, and loads no font.
            "svg.fonttype": "path",
        }
    )


def drawable(name: str) -> str:
    """Return a user's name for a figure, with control and missing characters escaped."""
    return "".join(letter if ord(letter) in letters() else letter.encode("unicode_escape").decode() for letter in printable(name))


def is_drawable(name: str) -> bool:
    """Return whether the fonts of this machine have every letter of a name."""
    return drawable(name) == printable(name)


def column_name(name: str) -> str:
    """Return a column's name for an axis, or "value" if no font of this machine has its letters; the page's text has the name."""
    return drawable(name) if is_drawable(name) else "value"


def _draw_bound(axes: Axes, study: "MeanStudy") -> None:
    bound = study.comparison.bound
    if bound is not None:
        name = f"certified: no mechanism's {BOUND_NAMES[bound.objective]} is lower"
        axes.axhline(bound.value, linewidth=2.5, alpha=0.6, label=name, **LOWER_BOUND.rule)


def svg_text(figure: Figure, name: str) -> str:
    """Return the figure as an element without prolog or metadata, with unique identifiers."""
    label_logarithms(figure)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    element = text[text.index("<svg") :]
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", element)
