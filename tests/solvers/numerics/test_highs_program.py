"""The common interface to HiGHS."""

import subprocess
import sys


def test_making_a_solver_prints_nothing() -> None:
    # The test uses a new process, as HiGHS 1.16 prints its banner once per process, past Python's own output, and would spoil the output of
    # `--json`.
    made = "from quietbits.solvers.numerics.highs_program import new_highs; new_highs().run()"
    run = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True, timeout=120)
    assert (run.stdout, run.stderr) == ("", "")
