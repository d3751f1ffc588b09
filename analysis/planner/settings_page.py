"""Plans of typical settings as Markdown, for the documentation."""

from collections.abc import Iterable

from .record import PlannedMechanism, task_in_words
from .settings import TypicalSetting

HEADINGS = ("trust model", "mechanism", "error", "worst", "bits a coordinate", "over bound", "over central", "options")


def setting_lines(setting: TypicalSetting) -> list[str]:
    """Return a section of Markdown: the setting, its command, the ranking, the references, and who cannot serve."""
    plan = setting.plan()
    ruler = ["---", "---", *["---:"] * (len(HEADINGS) - 3), "---"]
    zero, central = plan.references
    refused = [one for one in plan.refusals if not one.reason.startswith(("clients must hold", "trust must"))]
    lines = [
        f"### {setting.title}",
        "",
        f"    {setting.command}",
        "",
        f"{task_in_words(plan.task)}.",
        "",
        _row(HEADINGS),
        _row(ruler),
        *(_row(_cells(one)) for one in plan.feasible),
        "",
        f"Answer zero: {_short(zero.predicted_error)}. Central Gaussian: {_short(central.predicted_error)}.",
    ]
    if refused:
        reasons = [f"{', '.join(one.mechanisms)} ({one.reason})" for one in refused]
        lines += ["", f"Cannot serve: {'; '.join(reasons)}."]
    return lines


def _cells(one: PlannedMechanism) -> tuple[str, ...]:
    return (
        one.trust_model,
        one.name,
        _short(one.predicted_error),
        _short(one.worst_error),
        _short(one.bits_per_coordinate),
        "no proven bound" if one.ratio_to_bound is None else _short(one.ratio_to_bound),
        _short(one.ratio_to_central),
        ", ".join(f"{name} {value}" for name, value in one.options),
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
