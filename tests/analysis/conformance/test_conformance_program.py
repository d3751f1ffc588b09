"""The conformance suite as a class of tests, and as a program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quietbits.analysis.catalogue.registry import BUILT_IN
from quietbits.analysis.catalogue.shared_options import typed_options
from quietbits.analysis.conformance.__main__ import main
from quietbits.analysis.conformance.mechanism_cases import Trial
from quietbits.analysis.conformance.mechanism_suite import conformance_suite

# The copied mechanism states a smaller epsilon than it has.
BOASTFUL = """
from dataclasses import replace
from quietbits import REGISTRY, pure_privacy
from quietbits.design.local.cldp import CLDPMechanism
from quietbits.design.contracts.domains import Interval


class Boastful(CLDPMechanism):
    def privacy(self):
        return pure_privacy(self.epsilon / 2)


def build(task, options):
    return Boastful(task.epsilon / task.rounds, task.interval("boastful"))


ENTRY = replace(REGISTRY["cldp"], name="boastful", domains=(Interval,), norms=None, options=(), build=build)
"""


def test_a_suite_has_the_tests_that_have_cases() -> None:
    local, exact, summed = (conformance_suite(name) for name in ("cldp", "exact-histogram", "distributed-discrete-gaussian"))
    for suite, has in ((local, False), (exact, True), (summed, True)):
        assert (suite.test_a_secure_sum_recovers_what_clients_sent is not None) == has
    assert local.test_the_budget_is_kept is not None
    assert exact.test_the_budget_is_kept is None
    assert exact.test_what_is_decoded_is_exact is not None
    assert local.test_what_is_decoded_is_exact is None


def test_a_suite_tries_its_mechanism_as_it_is_told() -> None:
    suite = conformance_suite(BUILT_IN["cldp"], Trial(options={"draws": 2}, slow=True))
    (case, *_) = suite().cases_of(*suite.entries)
    assert (case.entry, case.options, case.trial.slow) == (BUILT_IN["cldp"], {"draws": 2}, True)


def test_options_are_typed_by_their_kinds() -> None:
    dgm, cpsgd = (BUILT_IN[name] for name in ("distributed-discrete-gaussian", "cpsgd"))
    assert typed_options(dgm.name, dgm.options, ["bits=18", "rotation=none"]) == {"bits": 18, "rotation": "none"}
    assert typed_options(cpsgd.name, cpsgd.options, ["rotated=false"]) == {"rotated": False}


@pytest.mark.parametrize(
    ("name", "typed", "fault"),
    [
        ("distributed-discrete-gaussian", "width=3", "option must be one of bits, .*, got 'width'"),
        ("distributed-discrete-gaussian", "bits", "option must be NAME=VALUE, got 'bits'"),
        ("cpsgd", "rotated=yes", "rotated must be of the type bool, got 'yes'"),
    ],
)
def test_a_mistyped_option_is_refused(name: str, typed: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--option", typed]) == 2
    assert re.search(fault, capsys.readouterr().err)


def test_an_unknown_mechanism_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["laplce"]) == 2
    assert "did you mean laplace or central-laplace?" in capsys.readouterr().err


def test_the_program_fails_for_a_mechanism_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "boastful.py").write_text(BOASTFUL)
    about = tmp_path / "boastful-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: boastful\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[quietbits.mechanisms]\nboastful = boastful:ENTRY")
    command = [sys.executable, "-m", "quietbits.analysis.conformance", "boastful", "-q", "-k", "audit or well_formed"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 1 passed" in run.stdout
    # pytest explains the assertion, as it does in a file of tests.
    assert "assert not True" in run.stdout
    assert "+  where True = MechanismAudit(" in run.stdout
