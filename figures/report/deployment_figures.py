"""The picture of a deployment's estimate."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...analysis.study.mean_estimation import Z95
from ...design.contracts.domains import Interval
from ...design.deployment.decoder import DecodedEstimate
from ...design.deployment.deployment import Deployment
from ..drawing.marks import Mark, mechanism_mark
from .report_figures import report_style, svg_text

# Number of items or coordinates that are drawn with a mark each.
MOST_DRAWN = 30


def estimate_figure(deployment: Deployment, estimate: DecodedEstimate) -> str:
    """Draw the estimate as an ``<svg>`` element.

    A number stands on the interval of its domain; items and numbers have error bars of 1.96 standard errors to either side.
    """
    mark = mechanism_mark(deployment.mechanism_name)
    kind, mean, error = deployment.input_kind, np.atleast_1d(estimate.mean), np.atleast_1d(estimate.standard_error)
    with report_style():
        if kind == "item":
            return _items_figure(mean, error, mark)
        if kind == "vector":
            return _vector_figure(mean, mark)
        domain = deployment.mechanism.domain
        assert isinstance(domain, Interval)  # noqa: S101 - the input is a number
        figure = Figure(figsize=(8.6, 1.5), layout="constrained")
        axes = figure.add_subplot()
        axes.axvspan(domain.low, domain.high, color="#eeeeee", zorder=0)
        axes.errorbar(mean, [0], xerr=Z95 * error, markersize=7, capsize=4, **mark.points)
        axes.set_yticks([])
        axes.set_ylim(-1, 1)
        axes.set_xlabel("mean; the interval of the clients' numbers is grey")
        return svg_text(figure, "estimate")


def _items_figure(frequencies: Any, errors: Any, mark: Mark) -> str:
    shown = in_order("item", frequencies)[:MOST_DRAWN]
    rows = range(len(shown))
    figure = Figure(figsize=(8.6, 1.1 + 0.27 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    axes.errorbar(frequencies[shown], rows, xerr=Z95 * errors[shown], capsize=3, **mark.points)
    axes.axvline(0.0, color="#555555", linewidth=1.0, zorder=0)
    axes.set_yticks(rows, [f"item {item}" for item in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("share of the clients")
    return svg_text(figure, "estimate")


def _vector_figure(mean: Any, mark: Mark) -> str:
    figure = Figure(figsize=(8.6, 2.6), layout="constrained")
    axes = figure.add_subplot()
    few = len(mean) <= MOST_DRAWN
    look = mark.points if few else mark.rule | {"linestyle": "-", "linewidth": 0.8}
    axes.plot(np.arange(len(mean)), mean, **look)
    axes.axhline(0.0, color="#555555", linewidth=1.0, zorder=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("coordinate")
    axes.set_ylabel("mean")
    return svg_text(figure, "estimate")


def in_order(kind: str, mean: Any) -> list[int]:
    """Return coordinates in their order, and items by their estimated frequency."""
    return list(range(len(mean))) if kind != "item" else np.argsort(-mean, kind="stable").tolist()
