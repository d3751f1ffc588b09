"""`python -m quietbits.attack` runs every attack for its share of the minutes."""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from . import (
    calibrations,
    clients,
    commands,
    compositions,
    deployments,
    exact_accounts,
    kills,
    monotone,
    packages,
    stores,
    tables,
    trainings,
)
from .cases import Attack
from .isolation import Outcome, run_apart
from .ready_test import write_ready_test

ATTACKS: tuple[Attack, ...] = tuple(
    module.ATTACK
    for module in (
        tables,
        packages,
        stores,
        deployments,
        commands,
        calibrations,
        monotone,
        exact_accounts,
        compositions,
        trainings,
        clients,
        kills,
    )
)
FAILURES = Path(__file__).parent / "failures"
# Largest number of failures that an attack writes as tests; further failures are only printed.
MOST_WRITTEN = 20


def mount(attack: Attack, seed: int, seconds: float, most_cases: int | None, failures: Path) -> Counter[Outcome]:
    """Run cases of an attack until the time is used, print a summary, and count the outcomes."""
    counts: Counter[Outcome] = Counter()
    attack.prepare()
    start, number = time.monotonic(), 0
    while number == 0 or (time.monotonic() - start < seconds and (most_cases is None or number < most_cases)):
        case = attack.case(seed, number)
        ended = run_apart(attack, case)
        counts[ended.outcome] += 1
        if ended.outcome is Outcome.FAILED:
            last = (ended.text.strip().splitlines() or [""])[-1]
            place = write_ready_test(failures, attack, case, seed, number, ended.text) if counts[Outcome.FAILED] <= MOST_WRITTEN else ""
            print(f"FAILED {attack.name} {number}: {last[:300]} {place}", flush=True)
        number += 1
    summary = ", ".join(f"{counts[outcome]:,} {outcome.name.lower().replace('_', ' ')}" for outcome in Outcome if counts[outcome])
    print(f"{attack.name}: {number:,} cases in {time.monotonic() - start:.0f} s: {summary}", flush=True)
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen attacks; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m quietbits.attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases")
    parser.add_argument("--minutes", type=float, default=10.0, help="minutes for all attacks together")
    parser.add_argument("--cases", type=int, default=None, help="largest number of cases of each attack")
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="largest number of seconds of a case, if the attack's own limit is larger"
    )
    parser.add_argument("--only", nargs="+", choices=[attack.name for attack in ATTACKS], help="run only these attacks")
    parser.add_argument("--failures", type=Path, default=FAILURES, help="folder for the tests that failed cases become")
    asked = parser.parse_args(arguments)
    chosen = [
        replace(attack, seconds=min(attack.seconds, asked.limit)) for attack in ATTACKS if asked.only is None or attack.name in asked.only
    ]
    shares = sum(attack.share for attack in chosen)
    counts = [mount(attack, asked.seed, 60 * asked.minutes * attack.share / shares, asked.cases, asked.failures) for attack in chosen]
    failed = sum(count[Outcome.FAILED] for count in counts)
    print(f"seed {asked.seed}: {sum(sum(count.values()) for count in counts):,} cases, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
