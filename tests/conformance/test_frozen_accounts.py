"""Frozen answers of `account` and `calibrate` over the registry, number by number.

python tests/conformance/test_frozen_accounts.py    # write the answers again, after an intended change
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from quietbits.analysis.catalogue.accounts import account, calibrate, calibrates
from quietbits.analysis.catalogue.registry import accounted_names
from quietbits.design.tables.file import write_table
from quietbits.design.tables.mvu import design_mvu

FILE = Path(__file__).with_name("frozen_accounts.json")
TABLE = "TABLE"
# Tolerance of roots, within which they agree on every machine.
CLOSE = 1e-6
CALLS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def answer(call: dict[str, Any], folder: Path) -> dict[str, Any]:
    arguments = dict(call["arguments"])
    if arguments.get("table") == TABLE:
        arguments["table"] = folder / "table.json"
        write_table(design_mvu(1.0, 2, 2), arguments["table"])
    report = {"account": account, "calibrate": calibrate}[call["call"]](call["name"], **arguments)
    document: dict[str, Any] = json.loads(json.dumps(report.document(), allow_nan=False))
    document["accounts"] = {name: item["epsilon"] for name, item in document["accounts"].items()}
    return document


def differences(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the differences of two answers, by name."""
    pairs = {name: (old.get(name), new.get(name)) for name in {**old, **new}}
    return {name: pair for name, pair in pairs.items() if not same(*pair)}


def same(old: Any, new: Any) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        return not differences(old, new)
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(old == new)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call['call']}-{call['name']}")
def test_the_answer_stays(call: dict[str, Any], tmp_path: Path) -> None:
    assert differences(call["document"], answer(call, tmp_path)) == {}


def test_everything_is_frozen() -> None:
    asked = {(call["call"], call["name"]) for call in CALLS}
    assert {name for call, name in asked if call == "account"} == set(accounted_names())
    assert {name for call, name in asked if call == "calibrate"} == {name for name in accounted_names() if calibrates(name)}


def test_a_changed_number_is_noticed() -> None:
    old = {"epsilon": 1.0, "accounts": {"rdp": 1.0}}
    assert differences(old, {"epsilon": 1.0 + 1e-9, "accounts": {"rdp": 1.1}}) == {"accounts": ({"rdp": 1.0}, {"rdp": 1.1})}
    assert differences(old, {"epsilon": 1.0, "accounts": {"rdp": 1.0}, "more": 1}) == {"more": (None, 1)}


def main() -> None:
    folder = Path("/tmp")  # noqa: S108 - a table that is written again each time
    calls = [{**call, "document": answer(call, folder)} for call in CALLS]
    FILE.write_text(json.dumps(calls, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
