"""One self-contained, offline HTML page with a plan: picture, rankings, bounds, commands, and who cannot serve."""

from pathlib import Path

from markupsafe import Markup

from ...analysis.planner.record import Plan
from ...analysis.planner.words import task_in_words
from ...design.contracts.registry import REAL_NUMBERS
from ..drawing.style import print_style
from ..report.pages import fill_template, write_page
from ..report.report_figures import svg_text
from .pareto import draw_plan

TEMPLATE = "plan.html.jinja"


def write_plan_page(plan: Plan, path: Path) -> None:
    """Write a plan as one HTML file that loads nothing from elsewhere; it is replaced if it exists."""
    write_page(path, plan_page_html(plan))


def plan_page_html(plan: Plan) -> str:
    """Return a plan as HTML."""
    filters = {"short": _short, "seconds": _seconds, "percent": lambda value: f"{100 * value:+.1f} %"}
    figure = Markup()
    if plan.feasible:
        with print_style():
            # Made here, from names that matplotlib escapes: nothing else on the page is marked as safe.
            figure = Markup(svg_text(draw_plan(plan.designs_frame()), "plan"))  # noqa: S704 -- see above
    words = task_in_words(plan.task)
    return fill_template(TEMPLATE, filters, folder=Path(__file__).parent, plan=plan, words=words, figure=figure, real_numbers=REAL_NUMBERS)


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:,.4g}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:,.3g} s" if value >= 1 else f"{1e3 * value:.2g} ms"
