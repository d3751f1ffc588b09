"""The page of a plan, with recommendations, their reasons, a picture, and sortable tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from ...analysis.planner.record import Plan, PlannedMechanism
from ...analysis.planner.words import (
    bound_reasons_in_words,
    drop_outs_in_words,
    guarantees_in_words,
    percentage,
    population_in_words,
    recommendations_in_words,
    task_in_words,
)
from ...design.contracts.registry import REAL_NUMBERS
from ...shown import in_figures, with_powers
from ..drawing.style import print_style
from ..report.pages import fill_template, write_page
from ..report.report_figures import svg_text
from .pareto import draw_plan

TEMPLATE = "plan.html.jinja"
# Units of durations, the largest first.
UNITS = ((60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True)
class PlanColumn:
    """A column of a plan's table, with its heading and a row's number and text."""

    heading: str
    value: Callable[[PlannedMechanism], float | str | None]
    words: Callable[[float], str] = in_figures

    def text(self, planned: PlannedMechanism) -> str:
        """Return the cell of a mechanism."""
        value = self.value(planned)
        return "none" if value is None else value if isinstance(value, str) else self.words(value)

    def order(self, planned: PlannedMechanism) -> float | str:
        """Return the sort key of a cell; it is empty for missing numbers."""
        value = self.value(planned)
        return "" if value is None else value


@dataclass(frozen=True)
class PlanTable:
    """The table of a trust model, with shown and folded rows, and the sentences below."""

    columns: tuple[PlanColumn, ...]
    shown: Sequence[PlannedMechanism]
    folded: Sequence[PlannedMechanism]
    title: str
    guarantee: str
    notes: tuple[str, ...]


def write_plan_page(plan: Plan, path: Path) -> None:
    """Write a plan as a self-contained HTML file; replace an existing file."""
    write_page(path, plan_page_html(plan))


def plan_page_html(plan: Plan) -> str:
    """Return a plan with its advice as self-contained HTML."""
    figure = Markup()
    if plan.feasible:
        with print_style():
            # Only the figure is marked as safe, because matplotlib escapes the names in it.
            figure = Markup(svg_text(draw_plan(plan.designs_frame()), "plan"))  # noqa: S704 -- see above
    return fill_template(
        TEMPLATE,
        {"powers": with_powers, "figures": in_figures, "percent": percentage},
        folder=Path(__file__).parent,
        plan=plan,
        words=task_in_words(plan.task),
        headline=recommendations_in_words(plan),
        population=population_in_words(plan),
        figure=figure,
        tables={model: plan_table(plan, model) for model in plan.trust_models},
        references_on_real_numbers=[mechanism.name for mechanism in plan.feasible if mechanism.on_real_numbers],
        real_numbers=REAL_NUMBERS,
    )


def plan_table(plan: Plan, trust_model: str) -> PlanTable:
    """Return the table of a trust model; dominated mechanisms and references are folded."""
    every = plan.of(trust_model)
    shown = plan.frontier(trust_model)
    folded = [planned for planned in every if planned not in shown]
    columns = [
        PlanColumn("Mechanism", lambda planned: planned.name),
        PlanColumn("Bits per client", lambda planned: planned.bits_per_client),
        PlanColumn("Relative error", lambda planned: planned.relative_error, percentage),
        PlanColumn("Error per coordinate", lambda planned: planned.error_per_coordinate),
        PlanColumn("Squared error", lambda planned: planned.predicted_error),
        PlanColumn("Average of all rounds", lambda planned: planned.predicted_error_of_rounds),
        PlanColumn("Worst squared error", lambda planned: planned.worst_error),
        PlanColumn("Worst over proven bound", lambda planned: planned.ratio_to_bound),
        PlanColumn("Over central", lambda planned: planned.ratio_to_central),
        _times("Client", [planned.client_seconds for planned in every], lambda planned: planned.client_seconds),
        _times("Server", [planned.server_seconds for planned in every], lambda planned: planned.server_seconds),
        PlanColumn(
            "Measured", lambda planned: None if planned.check is None else planned.check.excess, lambda share: f"{100 * share:+.1f} %"
        ),
    ]
    single = plan.task.rounds == 1
    kept = (column for column in columns if not (single and column.heading == "Average of all rounds"))
    left = drop_outs_in_words(plan, every)
    return PlanTable(
        tuple(column for column in kept if any(column.value(planned) is not None for planned in every)),
        shown,
        folded,
        f"{len(folded)} more: no shorter and no better than another mechanism, or references on real numbers",
        guarantees_in_words(plan, trust_model),
        (*((left,) if left else ()), *bound_reasons_in_words(shown)),
    )


def _times(heading: str, seconds: Sequence[float | None], value: Callable[[PlannedMechanism], float | None]) -> PlanColumn:
    """Return a column of durations in the unit that suits their median."""
    durations = sorted(number for number in seconds if number is not None)
    middle = durations[len(durations) // 2] if durations else 1.0
    size, unit = next(((size, unit) for size, unit in UNITS if middle >= size), UNITS[-1])
    return PlanColumn(f"{heading} ({unit})", value, lambda number: in_figures(float(f"{number / size:.3g}")))
