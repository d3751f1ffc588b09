"""Run the conformance suite on a mechanism.

``python -m quietbits.analysis.conformance NAME [--option NAME=VALUE] [PYTEST OPTION ...]``
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...design.contracts.registry import Entry
from ..catalogue.registry import entry_named

TESTS = """\"\"\"The conformance suite of {name}.\"\"\"

from quietbits.analysis.conformance.mechanism_cases import Trial
from quietbits.analysis.conformance.mechanism_suite import conformance_suite

TestConformance = conformance_suite({name!r}, Trial(options={options!r}, slow={slow}, more_bits_may_cost={more_bits_may_cost}))
"""


def main(arguments: Sequence[str]) -> int:
    """Run the suite for command-line arguments; return pytest's exit code, or 2 on a bad name."""
    parser = argparse.ArgumentParser(prog="python -m quietbits.analysis.conformance", description=__doc__, allow_abbrev=False)
    parser.add_argument("name", help="The mechanism: one that quietbits mechanisms lists.")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="A design choice that makes it cheap.")
    parser.add_argument("--slow", action="store_true", help="Draw fewer rounds.")
    parser.add_argument("--more-bits-may-cost", action="store_true", help="Do not ask that longer messages have smaller errors.")
    given, others = parser.parse_known_args(arguments)
    try:
        entry = entry_named(given.name)
        options = typed_options(entry, given.option)
    except ValueError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    with TemporaryDirectory() as folder:
        file = Path(folder) / "test_conformance.py"
        settings = {"name": entry.name, "options": options, "slow": given.slow, "more_bits_may_cost": given.more_bits_may_cost}
        file.write_text(TESTS.format(**settings), encoding="utf-8")
        # The working directory's pytest settings are for that project's own tests.
        alone = ["-c", os.devnull, "--rootdir", folder, "--import-mode", "importlib", "-p", "no:cacheprovider"]
        # In a process of its own, pytest imports the suite's modules first, and can explain assertions that fail.
        return subprocess.run([sys.executable, "-m", "pytest", str(file), *alone, *others], check=False).returncode  # noqa: S603


def typed_options(entry: Entry, typed: Sequence[str]) -> Mapping[str, Any]:
    """Parse design choices written as NAME=VALUE, each by its option's type."""
    kinds = {option.name: option.kind for option in entry.options}
    options: dict[str, Any] = {}
    for text in typed:
        name, equals, value = text.partition("=")
        if not equals or name not in kinds:
            raise ValueError(f"option must be NAME=VALUE with one of {', '.join(kinds) or 'no options'} for {entry.name}, got {text!r}")
        options[name] = value == "true" if kinds[name] is bool else kinds[name](value)
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
