"""The estimate of a deployment's clients as an offline HTML page, with refused messages, budget and limits."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...analysis.deployed_clients.references import reference_errors
from ...analysis.study.mean_estimation import Z95
from ...design.contracts.domains import Interval
from ...design.deployment.decoder import DecodedEstimate
from ...design.deployment.deployment import Deployment
from ..drawing.marks import BLUE
from .pages import fill_template, write_page
from .report_figures import report_style, svg_text

TEMPLATE = "deployment_report.html.jinja"
# Number of items or coordinates that are drawn, and listed.
MOST_DRAWN, MOST_LISTED = 30, 20
# Share of refused messages above which the page warns.
MANY_REFUSED = 0.05
SPREAD = (
    "The standard error of a number's mean is that of a random sample of clients: it contains the spread of their values, "
    "and is an upper bound on the error of these clients' own mean."
)


def write_deployment_report(
    deployment: Deployment, estimate: DecodedEstimate, path: Path, *, command: str | None = None, today: date | None = None
) -> None:
    """Write an estimate's report as a self-contained HTML file.

    An existing file is replaced. The page warns of an expired deployment on a day, by default the present one.
    """
    write_page(path, deployment_report_html(deployment, estimate, command=command, today=today))


def deployment_report_html(
    deployment: Deployment, estimate: DecodedEstimate, *, command: str | None = None, today: date | None = None
) -> str:
    """Return an estimate's report as HTML."""
    kind, mean, error = deployment.input_kind, np.atleast_1d(estimate.mean), np.atleast_1d(estimate.standard_error)
    shown = _shown(kind, mean)
    # Only the figure is marked as safe, because it holds numbers and fixed texts only.
    figure = Markup(estimate_figure(deployment, estimate))  # noqa: S704 -- see above
    return fill_template(
        TEMPLATE,
        {"short": lambda value: f"{value:.4g}"},
        deployment=deployment,
        estimate=estimate,
        figure=figure,
        headline=_headline(kind, mean, error),
        spread=SPREAD if kind == "number" else "",
        caption=_caption(kind, len(mean)),
        row_name={"item": "Item", "vector": "Coordinate", "number": ""}[kind],
        with_errors=kind == "item",
        rows=[]
        if kind == "number"
        else [{"place": place, "value": mean[place], "error": error[place] if kind == "item" else None} for place in shown[:MOST_LISTED]],
        squared_error=float(np.sum(error**2)),
        references=reference_errors(deployment, estimate.accepted),
        warnings=_warnings(deployment, estimate, today or date.today()),
        command=command,
    )


def estimate_figure(deployment: Deployment, estimate: DecodedEstimate) -> str:
    """Draw the estimate as an ``<svg>`` element.

    A number stands on the interval of its domain; items and numbers have error bars of 1.96 standard errors to either side.
    """
    kind, mean, error = deployment.input_kind, np.atleast_1d(estimate.mean), np.atleast_1d(estimate.standard_error)
    with report_style():
        if kind == "item":
            return _items_figure(mean, error)
        if kind == "vector":
            return _vector_figure(mean)
        domain = deployment.mechanism.domain
        assert isinstance(domain, Interval)  # noqa: S101 - the input is a number
        figure = Figure(figsize=(8.6, 1.5), layout="constrained")
        axes = figure.add_subplot()
        axes.axvspan(domain.low, domain.high, color="#eeeeee", zorder=0)
        axes.errorbar(mean, [0], xerr=Z95 * error, color=BLUE.colour, marker=BLUE.marker, markersize=7, capsize=4)
        axes.set_yticks([])
        axes.set_ylim(-1, 1)
        axes.set_xlabel("mean; the interval of the clients' numbers is grey")
        return svg_text(figure, "estimate")


def _items_figure(frequencies: Any, errors: Any) -> str:
    shown = _shown("item", frequencies)[:MOST_DRAWN]
    rows = range(len(shown))
    figure = Figure(figsize=(8.6, 1.1 + 0.27 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    axes.errorbar(frequencies[shown], rows, xerr=Z95 * errors[shown], color=BLUE.colour, marker=BLUE.marker, linestyle="", capsize=3)
    axes.axvline(0.0, color="#555555", linewidth=1.0, zorder=0)
    axes.set_yticks(rows, [f"item {item}" for item in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("share of the clients")
    return svg_text(figure, "estimate")


def _vector_figure(mean: Any) -> str:
    figure = Figure(figsize=(8.6, 2.6), layout="constrained")
    axes = figure.add_subplot()
    few = len(mean) <= MOST_DRAWN
    axes.plot(np.arange(len(mean)), mean, color=BLUE.colour, marker=BLUE.marker if few else "", linestyle="" if few else "-", linewidth=0.8)
    axes.axhline(0.0, color="#555555", linewidth=1.0, zorder=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("coordinate")
    axes.set_ylabel("mean")
    return svg_text(figure, "estimate")


def _shown(kind: str, mean: Any) -> list[int]:
    """Return coordinates in their order, and items by their estimated frequency."""
    return list(range(len(mean))) if kind != "item" else np.argsort(-mean, kind="stable").tolist()


def _headline(kind: str, mean: Any, error: Any) -> str:
    if kind == "number":
        return f"The mean is {mean[0]:.6g}, with a standard error of {error[0]:.3g}."
    if kind == "vector":
        return f"The mean of {len(mean)} coordinates has an L2 error of at most {error[0]:.3g} (root mean square)."
    largest = int(np.argmax(mean))
    return (
        f"The most frequent of {len(mean):,} items is item {largest}: {mean[largest]:.4g}, with a standard error of {error[largest]:.2g}."
    )


def _caption(kind: str, size: int) -> str:
    if kind == "number":
        return "The estimated mean, with 1.96 standard errors on either side."
    if kind == "vector":
        return "The estimated mean of each coordinate. The standard error is one of the whole vector, in L2 distance."
    first = f"The {MOST_DRAWN} largest estimates" if size > MOST_DRAWN else "The estimates"
    return f"{first}, with 1.96 standard errors on either side. The largest of many estimates are likelier to be too large than too small."


def _warnings(deployment: Deployment, estimate: DecodedEstimate, today: date) -> list[str]:
    """Return sentences about an expired deployment, and about many refused messages."""
    sentences = []
    if deployment.valid_until is not None and today > date.fromisoformat(deployment.valid_until):
        sentences.append(
            f"The deployment expired: it was valid until {deployment.valid_until}, and this page is of {today.isoformat()}. "
            "Clients should have moved to its successor."
        )
    refused = sum(estimate.refused.values())
    if refused > MANY_REFUSED * (refused + estimate.accepted):
        share = refused / (refused + estimate.accepted)
        sentences.append(f"{share:.3g} of all messages were refused: the estimate is of the clients whose messages arrived whole.")
    return sentences
