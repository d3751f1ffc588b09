"""The settings of docs/choosing.md are what the planner says of them now.

Run as a script, this file writes them there; the difference is then part of the change.
"""

import re
from pathlib import Path

import pytest
import typer
from click.testing import CliRunner

import quietbits
from quietbits.analysis.planner.settings import SETTINGS, TypicalSetting
from quietbits.analysis.planner.settings_page import setting_lines
from quietbits.cli.main import app

PAGE = Path(quietbits.__file__).parent / "docs" / "choosing.md"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
REASON = "<!-- given: regenerated -->\n"
# Another version of a library may end at a neighbouring design.
CLOSE = 0.01


def sections(text: str) -> dict[str, str]:
    """Return the settings' sections by title."""
    _, *found = re.split(r"^### ", text, flags=re.MULTILINE)
    return {section.partition("\n")[0]: section.partition("\n")[2].strip() for section in found}


def section(setting: TypicalSetting) -> str:
    """Return a setting's section, with the reason why its numbers are not computed in place above each paragraph and table."""
    blocks = "\n".join(setting_lines(setting)).split("\n\n")
    reasons = ("" if block.startswith(("#", " ")) else f"{REASON}\n" if block.startswith("|") else REASON for block in blocks)
    return "\n\n".join(reason + block for reason, block in zip(reasons, blocks, strict=True))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_page_says_what_the_planner_says(setting: TypicalSetting) -> None:
    printed = sections(PAGE.read_text(encoding="utf-8"))[setting.title]
    now = section(setting).partition("\n\n")[2].strip()
    # The words are the same, and numbers are close.
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", now), "run `python tests/project/test_choosing.py` if the planner should say so"
    assert [float(number) for number in NUMBER.findall(printed)] == pytest.approx([float(one) for one in NUMBER.findall(now)], rel=CLOSE)


def test_the_page_has_six_settings_and_no_other() -> None:
    assert list(sections(PAGE.read_text(encoding="utf-8"))) == [setting.title for setting in SETTINGS]
    assert len(SETTINGS) == 6


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_commands_ask_for_the_settings(setting: TypicalSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def plan_task(task: quietbits.Task, *, trust: str | None, **_: object) -> None:
        asked.append((task, trust))
        raise ValueError("enough")

    monkeypatch.setattr("quietbits.analysis.planner.plan.plan_task", plan_task)
    CliRunner().invoke(typer.main.get_command(app), setting.command.split()[1:])
    assert asked == [(setting.task, setting.trust)]


def main() -> None:
    head, _, _ = PAGE.read_text(encoding="utf-8").partition("\n### ")
    body = "\n\n".join(map(section, SETTINGS))
    PAGE.write_text(f"{head.rstrip()}\n\n{body}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
