"""The settings of docs/how-to/typical-settings.md agree with the current planner.

Run as a script, this file writes the settings into the page; the difference is then part of the change.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from click.testing import CliRunner

import quietbits
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.planner.record import Plan, PlannedMechanism
from quietbits.analysis.planner.references import Reference
from quietbits.analysis.planner.words import task_in_words
from quietbits.cli.main import app
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

PAGE = Path(quietbits.__file__).parent / "docs" / "how-to" / "typical-settings.md"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
REASON = "<!-- given: regenerated -->\n"
# Another version of a library may end at a neighbouring design.
CLOSE = 0.01


@dataclass(frozen=True)
class TypicalSetting:
    """A common task, with its trust model; None stands for all trust models.

    Attributes
    ----------
    name, title : str
        Name for programs, and title in words.
    task : Task
        The task to plan.
    trust : str or None
        Trust model, as in `plan_task`.
    """

    name: str
    title: str
    task: Task
    trust: str | None = None

    def plan(self) -> Plan:
        """Return the plan without durations, which differ between machines."""
        return plan_task(self.task, trust=self.trust, timed=False)

    @property
    def command(self) -> str:
        """Command that prints the plan."""
        task, domain = self.task, self.task.domain
        match domain:
            case Interval(low, high):
                held = f"--interval {low:g} {high:g}"
            case Categories(size):
                held = f"--categories {size}"
            case _:
                held = f"--dimension {domain.dimension}"
        words = [f"quietbits plan --clients {task.clients} {held} --epsilon {task.epsilon:g}"]
        words += [f"--delta {task.delta:g}"] if task.delta else []
        words += [f"--adjacency {task.adjacency}"]
        words += [f"--bits {task.bits:g}"] if task.bits is not None else []
        words += [f"--message-bits {task.message_bits:g}"] if task.message_bits is not None else []
        words += [f"--rounds {task.rounds}"] if task.rounds > 1 else []
        words += [f"--trust {self.trust}"] if self.trust is not None else []
        return " ".join(words)


def _vectors(dimension: int) -> NormBall:
    return NormBall(dimension, 2.0)


SETTINGS = (
    TypicalSetting("telemetry", "One number of each device, nobody trusted", Task(Interval(), 100_000, 1.0, 0.0, "replace-one", bits=2)),
    TypicalSetting(
        "local-vectors",
        "Vectors, nobody trusted, a bit a coordinate",
        Task(_vectors(256), 10_000, 4.0, 0.0, "replace-one", bits=1),
        "local",
    ),
    TypicalSetting(
        "secure-vectors",
        "A step of federated learning under a secure sum",
        Task(_vectors(4096), 500, 4.0, 1e-5, "add-or-remove-one"),
        "secure-sum",
    ),
    TypicalSetting(
        "short-messages",
        "The same for a large model, two bits a parameter, ten rounds",
        Task(_vectors(2**17), 500, 4.0, 1e-5, "add-or-remove-one", rounds=10, bits=2),
    ),
    TypicalSetting(
        "local-items",
        "How often each item is held, nobody trusted",
        Task(Categories(1000), 100_000, 1.0, 0.0, "replace-one"),
        "local",
    ),
    TypicalSetting(
        "trusted-items",
        "How often each item is held: what a shuffler or a secure sum buys",
        Task(Categories(100), 10_000, 1.0, 1e-6, "replace-one"),
    ),
)


HEADINGS = ("trust model", "mechanism", "error", "worst", "bits a coordinate", "over bound", "over central", "options")


def setting_lines(setting: TypicalSetting) -> list[str]:
    """Return a Markdown section of a setting, its command, ranking and infeasible mechanisms."""
    plan = setting.plan()
    ruler = ["---", "---", *["---:"] * (len(HEADINGS) - 3), "---"]
    zero, *central = plan.references
    refused = [refusal for refusal in plan.refusals if not refusal.reason.startswith(("clients must hold", "trust must"))]
    lines = [
        f"## {setting.title}",
        "",
        f"    {setting.command}",
        "",
        f"{task_in_words(plan.task)}.",
        "",
        _row(HEADINGS),
        _row(ruler),
        *(_row(_cells(planned)) for planned in plan.feasible),
        "",
        f"Answer zero: {_short(zero.predicted_error)}. {_trusted_servers(central)}.{_worse_than_zero(plan)}",
    ]
    if refused:
        reasons = [f"{', '.join(refusal.mechanisms)} ({refusal.reason})" for refusal in refused]
        lines += ["", f"Cannot serve: {'; '.join(reasons)}."]
    return lines


def _trusted_servers(references: Iterable[Reference]) -> str:
    """Return the errors of the mechanisms of a trusted server that serve."""
    serving = [f"{reference.name} {_short(reference.predicted_error)}" for reference in references if reference.predicted_error]
    return f"A trusted server: {', '.join(serving) or 'none'}"


def _cells(planned: PlannedMechanism) -> tuple[str, ...]:
    return (
        planned.trust_model,
        f"{planned.name}{' *' if planned.recommended else ''}",
        _short(planned.predicted_error),
        _short(planned.worst_error),
        _short(planned.bits_per_coordinate),
        "no proven bound" if planned.ratio_to_bound is None else _short(planned.ratio_to_bound),
        _short(planned.ratio_to_central),
        ", ".join(f"{name} {value}" for name, value in planned.options),
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _worse_than_zero(plan: Plan) -> str:
    """Return a sentence on recommended mechanisms worse than no messages, empty without any."""
    zero = plan.references[0].predicted_error_of_rounds
    worse = [name for name in plan.recommended.values() if plan.named(name).predicted_error_of_rounds >= zero]
    rounds = " of the average of all rounds" if plan.task.rounds > 1 else ""
    return f" Answering without messages has less error{rounds} than {' and '.join(worse)}." if worse else ""


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def sections(text: str) -> dict[str, str]:
    """Return the settings' sections by title."""
    _, *result = re.split(r"^## ", text, flags=re.MULTILINE)
    return {section.partition("\n")[0]: section.partition("\n")[2].strip() for section in result}


def section(setting: TypicalSetting) -> str:
    """Return a setting's section, with the reasons for its fixed numbers."""
    blocks = "\n".join(setting_lines(setting)).split("\n\n")
    reasons = ("" if block.startswith(("#", " ")) else f"{REASON}\n" if block.startswith("|") else REASON for block in blocks)
    return "\n\n".join(reason + block for reason, block in zip(reasons, blocks, strict=True))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_page_says_what_the_planner_says(setting: TypicalSetting) -> None:
    printed = sections(PAGE.read_text(encoding="utf-8"))[setting.title]
    now = section(setting).partition("\n\n")[2].strip()
    # The words are the same, and the numbers are close.
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", now), "run `python tests/project/test_choosing.py` if the planner should say so"
    assert [float(number) for number in NUMBER.findall(printed)] == pytest.approx([float(item) for item in NUMBER.findall(now)], rel=CLOSE)


def test_the_page_has_six_settings_and_no_other() -> None:
    assert list(sections(PAGE.read_text(encoding="utf-8"))) == [setting.title for setting in SETTINGS]
    assert len(SETTINGS) == 6


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_commands_ask_for_the_settings(setting: TypicalSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def note(task: Task, *, trust: str | None, **_: object) -> None:
        asked.append((task, trust))
        raise ValueError("enough")

    monkeypatch.setattr("quietbits.analysis.planner.plan.plan_task", note)
    CliRunner().invoke(typer.main.get_command(app), setting.command.split()[1:])
    assert asked == [(setting.task, setting.trust)]


def main() -> None:
    head, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    body = "\n\n".join(map(section, SETTINGS))
    PAGE.write_text(f"{head.rstrip()}\n\n{body}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
