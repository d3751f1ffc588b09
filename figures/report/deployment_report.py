"""The estimate of a deployment's clients as an offline HTML page, with refused messages, budget and limits."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ...analysis.deployed_clients.references import reference_errors
from ...design.deployment.decoder import DecodedEstimate
from ...design.deployment.deployment import Deployment
from .pages import fill_template, write_page

TEMPLATE = "deployment_report.html.jinja"
# Number of items or coordinates that are listed.
MOST_LISTED = 20
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
    from .deployment_figures import MOST_DRAWN, estimate_figure, in_order

    kind, mean, error = deployment.input_kind, np.atleast_1d(estimate.mean), np.atleast_1d(estimate.standard_error)
    shown = in_order(kind, mean)
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
        caption=_caption(kind, len(mean), MOST_DRAWN),
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


def _headline(kind: str, mean: Any, error: Any) -> str:
    if kind == "number":
        return f"The mean is {mean[0]:.6g}, with a standard error of {error[0]:.3g}."
    if kind == "vector":
        return f"The mean of {len(mean)} coordinates has an L2 error of at most {error[0]:.3g} (root mean square)."
    largest = int(np.argmax(mean))
    return (
        f"The most frequent of {len(mean):,} items is item {largest}: {mean[largest]:.4g}, with a standard error of {error[largest]:.2g}."
    )


def _caption(kind: str, size: int, most_drawn: int) -> str:
    if kind == "number":
        return "The estimated mean, with 1.96 standard errors on either side."
    if kind == "vector":
        return "The estimated mean of each coordinate. The standard error is one of the whole vector, in L2 distance."
    first = f"The {most_drawn} largest estimates" if size > most_drawn else "The estimates"
    return f"{first}, with 1.96 standard errors on either side. The largest of many estimates are likelier to be too large than too small."


def _warnings(deployment: Deployment, estimate: DecodedEstimate, today: date) -> list[str]:
    """Return sentences about an expired deployment, and about many refused messages."""
    sentences = []
    if deployment.is_expired(today):
        sentences.append(
            f"The deployment expired: it was valid until {deployment.valid_until}, and this page is of {today.isoformat()}. "
            "Clients should have moved to its successor."
        )
    refused = sum(estimate.refused.values())
    if refused > MANY_REFUSED * (refused + estimate.accepted):
        share = refused / (refused + estimate.accepted)
        sentences.append(f"{share:.3g} of all messages were refused: the estimate is of the clients whose messages arrived whole.")
    return sentences
