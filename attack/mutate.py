"""`python -m quietbits.attack.mutate` puts small faults into proofs."""

import argparse
import contextlib
import doctest
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from .cases import MOST_MEMORY
from .isolation import isolate
from .mutants import KINDS, Mutant, mutants_of

ROOT = Path(__file__).parents[1]
FOLDERS = ("solvers/divergences", "solvers/accounting", "design/tables", "design/secure_sum")
"""Folders of proofs and certificates; folders of the same names hold their tests."""
MODULES = (
    *(f"design/contracts/{name}.py" for name in ("accounts", "calibration", "gaussian", "privacy")),
    "design/federated/joint_privacy.py",
)
"""Modules of accounts and of calibration, in folders that hold other things too."""
ACCEPTED = Path(__file__).with_name("accepted_mutants.toml")
STATE = Path(__file__).with_name("mutation")
STEP_SECONDS = 0.005
# Time limit of a mutant: seconds, plus a multiple of its tests' time without the fault.
LEAST_SECONDS, SLOWER = 15.0, 3.0
PLACE = ("module", "function", "line", "before")
OUTCOMES = ("killed", "timed out", "survived", "untested")
# Exit code of a mutant whose turn comes after the deadline.
NOT_BEGUN = 98


class _MutatedLoader(importlib.machinery.SourceFileLoader):
    """A loader that compiles the mutant in place of the file."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the importer's signature
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _MutatedFinder(importlib.abc.MetaPathFinder):
    """A finder that finds the mutated module before the real module."""

    def __init__(self, mutant: Mutant) -> None:
        self._name, self._path, self._source = (
            _module_name(mutant.module),
            str(ROOT / mutant.module),
            mutant.applied_to((ROOT / mutant.module).read_text(encoding="utf-8")),
        )

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=_MutatedLoader(fullname, self._path, self._source))


def _module_name(module: str) -> str:
    return "quietbits." + module.removesuffix(".py").replace("/", ".")


def mutated_modules() -> list[str]:
    """Return the paths of all mutated modules, below the root."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).glob("*.py")]
    return sorted([*(file.relative_to(ROOT).as_posix() for file in files), *MODULES])


def _own_tests(module: str) -> Path:
    return ROOT / "tests" / Path(module).parent / f"test_{Path(module).stem}.py"


def _load_what_tests_import() -> None:
    """Import other packages once for all forks, but no module of quietbits that may be mutated."""
    for name in ("hypothesis", "mpmath", "pytest", "scipy.optimize", "scipy.signal", "scipy.special", "scipy.stats", "pandas", "highspy"):
        importlib.import_module(name)
    assert not any(_module_name(name) in sys.modules for name in (*FOLDERS, *MODULES))


def _fork(work: Callable[[], int]) -> int:
    """Run the work in a silent fork, the leader of a new group, and return the fork's id.

    The fork's exit code is the work's result.
    """
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        isolate(ROOT, MOST_MEMORY)
        code = work()
    finally:
        os._exit(code)


def _pytest(arguments: Sequence[str], plugins: Sequence[object] = ()) -> int:
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore:.*fork.*:DeprecationWarning"]
    return int(pytest.main([*options, *arguments], plugins=list(plugins)))


class _Tracer:
    """A plugin of pytest that notes each test's seconds and its lines of mutated modules."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self._failed: set[str] = set()
        self._files: dict[str, str | None] = {}
        self._lines: dict[str, set[int]] = defaultdict(set)

    def pytest_runtest_protocol(self, item: Any) -> None:  # noqa: ARG002 - the hook's signature
        self._lines, self._start = defaultdict(set), time.perf_counter()
        sys.settrace(self._call)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None)
        lines = {module: sorted(lines) for module, lines in self._lines.items()}
        self.tests[nodeid] = {"seconds": time.perf_counter() - self._start, "lines": lines, "passed": nodeid not in self._failed}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def _call(self, frame: FrameType, _: str, __: object) -> Any:
        file = frame.f_code.co_filename
        if file not in self._files:
            path = Path(file)
            module = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
            self._files[file] = module if module.startswith((*FOLDERS, *MODULES)) else None
        of_file = self._files[file]
        if of_file is None:
            return None
        lines = self._lines[of_file]

        def line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line


def trace(files: Sequence[Path], folder: Path, processes: int) -> dict[str, dict[str, Any]]:
    """Return seconds and lines of every test of the files.

    A file is run again only if the file, or a module that it ran, has changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[Path, Path] = {file: folder / (file.relative_to(ROOT).as_posix().replace("/", "-") + ".json") for file in files}

    def fresh(file: Path) -> bool:
        if not kept[file].exists():
            return False
        hashes: dict[str, str] = json.loads(kept[file].read_text())["hashes"]
        return all((ROOT / path).exists() and _hash(ROOT / path) == value for path, value in hashes.items())

    def work(file: Path) -> int:
        tracer = _Tracer()
        code = _pytest([str(file)], [tracer])
        modules = {module for test in tracer.tests.values() for module in test["lines"]}
        hashes = {name: _hash(ROOT / name) for name in (*sorted(modules), file.relative_to(ROOT).as_posix())}
        kept[file].write_text(json.dumps({"hashes": hashes, "tests": tracer.tests}))
        return code

    old = [file for file in files if not fresh(file)]
    if old:
        print(f"tracing {len(old)} of {len(files)} files of tests", flush=True)
    for file, code in _in_parallel([(file, partial(work, file), 600.0) for file in old], processes):
        if code not in (0, 1):
            raise SystemExit(f"{file} must run before anything is mutated: it ended with {code}")
    tests = {name: test for file in files for name, test in json.loads(kept[file].read_text())["tests"].items()}
    for name in sorted(name for name, test in tests.items() if not test["passed"]):
        print(f"left out, because it fails while it is traced: {name}")
    return {name: test for name, test in tests.items() if test["passed"]}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _in_parallel(jobs: Sequence[tuple[Any, Callable[[], int], float]], processes: int) -> Iterator[tuple[Any, int | None]]:
    """Run jobs in parallel; yield each job's name and exit code when it ends.

    A job has a name, its work and a limit of seconds; after the limit, the exit code is None.
    """
    waiting, running = list(reversed(jobs)), dict[int, tuple[Any, float]]()
    while waiting or running:
        while waiting and len(running) < processes:
            name, work, seconds = waiting.pop()
            running[_fork(work)] = (name, time.monotonic() + seconds)
        for child, (name, deadline) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            late = ended == 0 and time.monotonic() > deadline
            if ended or late:
                del running[child]
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child, signal.SIGKILL)
                if late:
                    os.waitpid(child, 0)
                yield name, None if late else os.waitstatus_to_exitcode(status)
        time.sleep(STEP_SECONDS)


def chosen_tests(mutant: Mutant, traced: dict[str, dict[str, Any]], seconds: float) -> tuple[list[str], float]:
    """Return the tests that run the mutant's statement, and their seconds in total.

    The module's own tests come first, then quick tests, up to a total of seconds.
    """
    own = _own_tests(mutant.module).relative_to(ROOT).as_posix()

    def runs(test: dict[str, Any]) -> bool:
        lines = test["lines"].get(mutant.module, ())
        return bool(lines) and (not mutant.function or any(mutant.first <= line <= mutant.last for line in lines))

    chosen = sorted((not name.startswith(own), test["seconds"], name) for name, test in traced.items() if runs(test))
    total, names = 0.0, list[str]()
    for _, needed, name in chosen:
        total += needed
        if total > seconds and names:
            break
        names.append(name)
    return names, total


def _try(mutant: Mutant, tests: Sequence[str]) -> int:
    """Run examples and tests with the mutant in place of its module; return 0 if none fails."""
    sys.meta_path.insert(0, _MutatedFinder(mutant))
    try:
        if doctest.testmod(importlib.import_module(_module_name(mutant.module))).failed:
            return 1
    except Exception:  # noqa: BLE001 - a module that cannot be imported is noticed
        return 1
    return _pytest(["-x", *tests]) if tests else 0


def _try_before(deadline: float, mutant: Mutant, tests: Sequence[str]) -> int:
    """Try a mutant, or return `NOT_BEGUN` after the deadline."""
    return NOT_BEGUN if time.monotonic() > deadline else _try(mutant, tests)


def _in_turn(mutants: Sequence[Mutant], rng: random.Random) -> list[Mutant]:
    """Return mutants in turns: one of each function, then a second of each, and so on."""
    functions = defaultdict(list)
    for mutant in mutants:
        functions[mutant.module, mutant.function].append(mutant)
    for some in functions.values():
        rng.shuffle(some)
    turns = [(turn, rng.random(), mutant) for some in functions.values() for turn, mutant in enumerate(some)]
    return [mutant for *_, mutant in sorted(turns, key=lambda entry: entry[:2])]


def accepted() -> dict[tuple[str, ...], str]:
    """Return the reasons of `accepted_mutants.toml` by `Mutant.name`."""
    entries = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("survivor", [])
    return {(*(entry[key] for key in PLACE), after): entry["reason"] for entry in entries for after in entry["after"]}


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m quietbits.attack.mutate", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(*FOLDERS, *MODULES), help="folders or modules below the root, as solvers/accounting")
    parser.add_argument("--tests", nargs="+", type=Path, default=None, help="files of tests, by default those of the mutated modules")
    parser.add_argument("--state", type=Path, default=STATE, help="folder of traces and outcomes")
    parser.add_argument("--functions", nargs="+", default=None, help="only functions with these names")
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS[:-1], help="kinds of faults; by default all but ranges of arguments"
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of each function's mutants that is tried")
    parser.add_argument("--seed", type=int, default=0, help="seed of the share and of the order")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="minutes after which no other mutant is begun; the same command goes on"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of tests for each mutant, as measured without the fault")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument(
        "--again", nargs="+", choices=OUTCOMES, default=(), help="try only mutants with these outcomes again, except those with a reason"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try untried mutants, print all survivors without a reason, and return 1 if there are any."""
    asked = _parsed(arguments)
    chosen = [
        module for module in mutated_modules() if any(module == name or module.startswith(name.rstrip("/") + "/") for name in asked.only)
    ]
    mutants = [mutant for module in chosen for mutant in mutants_of(module, (ROOT / module).read_text(encoding="utf-8"))]
    mutants = [mutant for mutant in mutants if mutant.kind in asked.kinds]
    if asked.functions is not None:
        mutants = [mutant for mutant in mutants if mutant.function.rpartition(".")[2] in asked.functions]
    rng = random.Random(asked.seed)
    ordered = _in_turn(mutants, rng)
    ordered = ordered[: round(asked.share * len(ordered))]
    _load_what_tests_import()
    if asked.tests is None:
        asked.tests = [file for folder in FOLDERS for file in (ROOT / "tests" / folder).glob("test_*.py")]
        asked.tests += [_own_tests(module) for module in MODULES]
    traced = trace(sorted(file.resolve() for file in asked.tests), asked.state / "traces", asked.processes)
    results = asked.state / "results.jsonl"
    ended: dict[str, str] = {}
    if results.exists():
        ended = {line["key"]: line["outcome"] for line in map(json.loads, results.read_text(encoding="utf-8").splitlines())}
    deadline, reasons = time.monotonic() + 60 * asked.minutes, accepted()
    jobs = []
    for mutant in ordered:
        if ended.get(mutant.key, "not run") not in (asked.again or ("not run",)) or (asked.again and mutant.name in reasons):
            continue
        tests, seconds = chosen_tests(mutant, traced, asked.seconds)
        jobs.append(((mutant, bool(tests)), partial(_try_before, deadline, mutant, tests), LEAST_SECONDS + SLOWER * seconds))
    with results.open("a", encoding="utf-8") as file:
        for (mutant, tested), code in _in_parallel(jobs, asked.processes):
            if code == NOT_BEGUN:
                continue
            outcome = "timed out" if code is None else "killed" if code else "survived" if tested else "untested"
            ended[mutant.key] = outcome
            file.write(json.dumps({"key": mutant.key, "outcome": outcome, "kind": mutant.kind}) + "\n")
            file.flush()
            if outcome in OUTCOMES[2:]:
                print(f"{outcome}: {mutant.module}:{mutant.line} {mutant.function}: {mutant.before} -> {mutant.after}", flush=True)
    return _summary(ordered, ended)


def _summary(mutants: Sequence[Mutant], ended: dict[str, str]) -> int:
    """Print the numbers of mutants by outcome, and the survivors without a reason."""
    reasons = accepted()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    left = []
    for mutant in mutants:
        outcome = ended.get(mutant.key, "not run")
        if outcome in OUTCOMES[2:]:
            if mutant.name in reasons:
                outcome = "accepted"
            else:
                left.append(mutant)
        counts[mutant.module][outcome] += 1
    for mutant in left:
        print(f"SURVIVED {mutant.module}:{mutant.line} {mutant.function}: {mutant.statement} | {mutant.before} -> {mutant.after}")
    for module, some in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        print(f"{module}: {sum(some.values()):,} mutants: " + ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(some.items())))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
