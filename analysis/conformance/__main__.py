"""Run the conformance suite on a mechanism.

``python -m quietbits.analysis.conformance NAME [--option NAME=VALUE] [PYTEST OPTION ...]``
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ..catalogue.registry import entry_named
from ..catalogue.shared_options import typed_options

TESTS = """\"\"\"The conformance suite of {name}.\"\"\"

from quietbits.analysis.conformance.mechanism_cases import Trial
from quietbits.analysis.conformance.mechanism_suite import conformance_suite

TestConformance = conformance_suite({name!r}, Trial(options={options!r}, slow={slow}, more_bits_may_cost={more_bits_may_cost}))
"""


def main(arguments: Sequence[str]) -> int:
    """Run the suite for command-line arguments, and return pytest's exit code.

    The code is 2 for a wrong name or option.
    """
    parser = argparse.ArgumentParser(prog="python -m quietbits.analysis.conformance", description=__doc__, allow_abbrev=False)
    parser.add_argument("name", help="The mechanism: one that quietbits mechanisms lists.")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="A design choice, such as a cheap one.")
    parser.add_argument("--slow", action="store_true", help="Draw fewer rounds.")
    parser.add_argument("--more-bits-may-cost", action="store_true", help="Do not ask that longer messages have smaller errors.")
    given, others = parser.parse_known_args(arguments)
    try:
        entry = entry_named(given.name)
        options = typed_options(entry.name, entry.options, given.option)
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    with TemporaryDirectory() as folder:
        file = Path(folder) / "test_conformance.py"
        settings = {"name": entry.name, "options": options, "slow": given.slow, "more_bits_may_cost": given.more_bits_may_cost}
        file.write_text(TESTS.format(**settings), encoding="utf-8")
        # The suite ignores the working directory's pytest settings, which are for that project's own tests.
        alone = ["-c", os.devnull, "--rootdir", folder, "--import-mode", "importlib", "-p", "no:cacheprovider"]
        # pytest in a separate process imports the suite's modules first, and can explain assertions that fail.
        return subprocess.run([sys.executable, "-m", "pytest", str(file), *alone, *others], check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
