"""Tests that make and run mutants of a small module.

Every accepted survivor is among the mutants.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from quietbits.attack.mutants import KINDS, mutants_of
from quietbits.attack.mutate import ROOT, accepted, chosen_tests, mutated_modules

MODULE = "solvers/divergences/candidate_coding_privacy.py"
SOURCE = '''"""Text."""
import math

LARGEST_SIZE = 10
SHARE = 0.5


def bound(first, second, *, size=3):
    """Text."""
    check_integer("size", size, low=1)
    if first > second:
        raise ValueError(f"first must be at most {second - 1}")
    total = -first + math.nextafter(second * SHARE, math.inf)
    total += size if first and second else min(first, 2.0)
    note(total)
    return total
'''


def test_every_kind_of_fault_is_made() -> None:
    mutants = mutants_of("module.py", SOURCE)
    faults = {kind: {(mutant.before, mutant.after) for mutant in mutants if mutant.kind == kind} for kind in KINDS}
    assert {("-first", "(first)"), ("second * SHARE", "(second)"), ("second * SHARE", "(SHARE)")} <= faults["terms"]
    assert {("math.nextafter(second * SHARE, math.inf)", "(second * SHARE)"), ("min(first, 2.0)", "(max(first, 2.0))")} == faults[
        "roundings"
    ]
    assert {after for _, after in faults["checks"]} == {"pass", f"if first > second * (1 + 1e-9): {RAISED}"}
    assert {("first > second", "(first <= second)"), ("first and second", "(first)")} <= faults["comparisons"]
    assert {("second * SHARE", "(second / SHARE)")} <= faults["operators"]
    assert {("0.5", "(0.5 / 2)"), ("0.5", "(0.5 * 2)"), ("3", "(2)"), ("3", "(4)")} <= faults["constants"]
    assert {('check_integer("size", size, low=1)', "pass"), ("10", "(9)")} <= faults["limits"]
    # Texts, messages and ranges of checks are never mutated.
    assert not any("must be" in mutant.before and mutant.kind != "checks" for mutant in mutants)
    assert {mutant.function for mutant in mutants} == {"", "bound"}


def test_what_an_import_evaluates_is_tried_with_every_test_of_the_module() -> None:
    # Tracing assigns no test to a field or a default.
    source = "class Sum:\n    clients: int = 5\n\n    def noise(self, rounds=6):\n        return 7 * rounds\n"
    assert {(mutant.before, mutant.function) for mutant in mutants_of("module.py", source) if mutant.kind == "constants"} == {
        ("5", ""),
        ("6", ""),
        ("7", "Sum.noise"),
    }


RAISED = "raise ValueError(f'first must be at most {second - 1}')"


def test_mutants_are_python_and_differ_from_the_source() -> None:
    whole = (ROOT / MODULE).read_text(encoding="utf-8")
    for source in (SOURCE, whole):
        mutants = mutants_of(MODULE, source)
        assert len({mutant.key for mutant in mutants}) == len(mutants) > 10
        for mutant in mutants:
            assert ast.dump(ast.parse(mutant.applied_to(source))) != ast.dump(ast.parse(source))


def test_tests_that_run_the_statement_are_chosen_the_module_s_own_first() -> None:
    (mutant, *_) = (mutant for mutant in mutants_of(MODULE, (ROOT / MODULE).read_text(encoding="utf-8")) if mutant.function)
    lines = {MODULE: [mutant.line]}
    traced = {
        "tests/other/test_quick.py::test": {"seconds": 0.1, "lines": lines},
        "tests/other/test_long.py::test": {"seconds": 9.0, "lines": lines},
        "tests/other/test_elsewhere.py::test": {"seconds": 0.1, "lines": {MODULE: [1]}},
        "tests/solvers/divergences/test_candidate_coding_privacy.py::test": {"seconds": 2.0, "lines": lines},
    }
    own = "tests/solvers/divergences/test_candidate_coding_privacy.py::test"
    assert chosen_tests(mutant, traced, 5.0)[0] == [own, "tests/other/test_quick.py::test"]
    assert chosen_tests(mutant, traced, 1.0)[0] == [own]


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_faults_of_a_module_are_noticed_by_its_tests_and_kept(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "quietbits.attack.mutate",
        "--only",
        MODULE,
        "--tests",
        f"tests/{MODULE.replace('/cand', '/test_cand')}",
    ]
    command += ["--kinds", "terms", "--share", "0.2", "--processes", "1", "--state", str(tmp_path)]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stdout + first.stderr
    tried = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["outcome"] for line in tried} == {"killed"}
    assert f"all: {len(tried)} mutants: {len(tried)} killed" in first.stdout
    # A second run skips tried mutants, and names a survivor without a reason.
    tried[0]["outcome"] = "survived"
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in tried), encoding="utf-8")
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert f"SURVIVED {MODULE}" in again.stdout
    assert f"{len(tried) - 1} killed, 1 survived" in again.stdout
    assert len((tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()) == len(tried)


def test_every_accepted_survivor_is_a_mutant_and_has_its_reason() -> None:
    modules = mutated_modules()
    assert {"design/federated/joint_privacy.py", "solvers/divergences/skellam_divergence.py"} <= set(modules)
    made = {mutant.name for module in modules for mutant in mutants_of(module, (ROOT / module).read_text(encoding="utf-8"))}
    reasons = accepted()
    assert sorted(set(reasons) - made) == []
    assert all(len(reason.split()) >= 4 for reason in reasons.values())
