"""The tests run a few cases of each attack; a failing case becomes a test."""

import copy
import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.attack import clients, tables
from quietbits.attack.__main__ import ATTACKS, main
from quietbits.attack.cases import Attack, Refused
from quietbits.attack.exact_accounts import binomial
from quietbits.attack.ready_test import ready_test
from quietbits.attack.trainings import composed_delta
from quietbits.design.tables.file import table_document
from quietbits.design.tables.randomised_response import generalised_randomised_response

SEED = 3
# This fork of a process with threads is safe, as the fork uses no threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_cases_depend_on_the_seed_and_their_number_only(attack: Attack) -> None:
    cases = [repr(attack.case(SEED, number)) for number in range(5)]
    assert cases == [repr(attack.case(SEED, number)) for number in range(5)]
    assert len(set(cases)) > 1
    assert cases != [repr(attack.case(SEED + 1, number)) for number in range(5)]


def test_every_attack_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = main(["--seed", str(SEED), "--cases", "2", "--limit", "1", "--failures", str(tmp_path)])
    printed = capsys.readouterr().out
    assert failed == 0, printed
    assert [line.split(":")[0] for line in printed.splitlines()] == [*(attack.name for attack in ATTACKS), f"seed {SEED}"]
    assert not list(tmp_path.iterdir())


def test_most_tables_that_are_drawn_are_valid(tmp_path: Path) -> None:
    def is_held(number: int) -> bool:
        try:
            tables.ATTACK.run(tmp_path, tables.ATTACK.case(SEED, number))
        except Refused:
            return False
        return True

    assert sum(map(is_held, range(24))) >= 12


def test_the_quadrature_of_trainings_takes_the_smallest_masses() -> None:
    # The loss of an outcome of mass one half is ln(5e323), whose ratio exceeds a double.
    first, other = np.array([0.5, 0.5, 1e-15]), np.array([0.5, 5e-324, 0.5])
    assert composed_delta(first, other, 1, 1.0) == pytest.approx(0.5, rel=1e-6)


def test_what_fails_becomes_a_test_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # The attack refuses an empty file, and cannot write a file of None.
    toy = Attack("toy", lambda rng: {"content": rng.choice((b"", None))}, tables.check)
    monkeypatch.setattr("quietbits.attack.__main__.ATTACKS", (toy,))
    assert main(["--cases", "12", "--failures", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    written = sorted(tmp_path.glob("test_toy_*.py"))
    assert 0 < len(written) == printed.count("FAILED toy") < 12
    assert f"{len(written)} failed" in printed
    for path in written:
        (test,) = (value for name, value in runpy.run_path(str(path)).items() if name.startswith("test_"))
        with pytest.raises(TypeError):
            test(tmp_path)


def test_ready_tests_are_python_whatever_a_case_says() -> None:
    toy = Attack("toy", lambda _: {}, tables.check)
    source = ready_test(toy, {"number": float("nan"), "other": b'\x00"""\\'}, 0, 1, 'E: """ \\N{x} \x00 é')
    compile(source, "ready", "exec")
    assert "from math import inf, nan" in source


def test_an_attack_that_never_ends_is_ended(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(_: Path) -> None:
        while True:
            pass

    monkeypatch.setattr("quietbits.attack.__main__.ATTACKS", (Attack("toy", lambda _: {}, forever, seconds=0.1),))
    assert main(["--cases", "1"]) == 0
    assert "1 too slow" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("gcc") is None, reason="clients in C are compiled with gcc, which is missing")
@pytest.mark.parametrize("kind", clients.KINDS)
def test_clients_hold_odd_inputs_and_words(tmp_path: Path, kind: str) -> None:
    clients.check(tmp_path, kind, epsilon=1.3, size=7, seed=SEED, inputs=1_000)


# Faults in the text of a client: a field too many, a table too short, an input outside the domain, an invalid message, a cast of NaN.
FAULTS = {
    "a field beyond the last": ("subset", "place < ATTACKED_FIELDS", "place <= ATTACKED_FIELDS"),
    "a row beyond the last": ("table", "double inside = value;", "double inside = value + 1.0;"),
    "an accepted infinity": ("letters inf", " && vector[place] <= DBL_MAX", ""),
    "an item beyond the last": ("unary", "if (item >= 7u)", "if (item > 7u)"),
    "a message that no client sends": ("response", "keeps ? item : drawn", "keeps ? item + 7u : drawn"),
    "a shift by too many bits": ("sign", "word >> 11u", "word >> (64u + (uint32_t)(word & 1))"),
    "a filled-up byte": ("sign", "message[place] = 0;", "message[place] = 1;"),
}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="clients in C are compiled with gcc, which is missing")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_clients_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    kind, right, wrong = FAULTS[fault]
    translate = clients.c_client

    def faulty(description: Any) -> dict[str, str]:
        files = translate(description)
        assert all(right in text for text in files.values())
        return {path: text.replace(right, wrong) for path, text in files.items()}

    monkeypatch.setattr(clients, "c_client", faulty)
    with pytest.raises(AssertionError) as caught:
        clients.check(tmp_path, kind, epsilon=1.3, size=7, seed=SEED, inputs=1_000)
    assert "main.c" not in str(caught.value) or "exit code" in str(caught.value), "the faulty client must compile"


def test_the_checks_see_claims_that_are_false() -> None:
    document: dict[str, Any] = table_document(generalised_randomised_response(1.0, 2))
    tables.check_claims(document)
    for holder, key in (((), "epsilon"), (("certificate",), "worst_variance"), (("certificate",), "mean_variance")):
        false = copy.deepcopy(document)
        place = false["certificate"] if holder else false
        place[key] *= 0.999
        with pytest.raises(AssertionError):
            tables.check_claims(json.loads(json.dumps(false)))
    # One of the two outcomes is impossible for one neighbour: delta is 1/2 at every epsilon.
    pair, _ = binomial(trials=1, probability=0.5, shifts=1, dimension=1)
    assert pair.delta(10.0) == pytest.approx(0.5)
