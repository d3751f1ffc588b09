"""Sweeps on a real Dask cluster.

The workers are separate processes that start late, are killed, or have other code.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from nap_tasks import Deadly, Nap

from quietbits.analysis.catalogue.plug_ins import InstalledPlugIns
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.deployed_clients.decode_messages import decode_messages
from quietbits.analysis.deployed_clients.encode_data import encode_inputs
from quietbits.analysis.sweeps import calls, engine, workers
from quietbits.analysis.sweeps.run import IncompleteSweepError, run_tasks
from quietbits.analysis.sweeps.store import RESULTS_NAME, STORE_NAME
from quietbits.analysis.sweeps.task import MeanTask, MechanismChoice
from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.task import Task
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.message_files import write_messages
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism
from quietbits.errors import DataError

PATIENCE = 30.0


class Cluster:
    """Dask scheduler with workers on request and a limit on dead workers."""

    def __init__(self, folder: Path, allowed_failures: int = 1) -> None:
        self._folder = folder
        self._failures = str(allowed_failures)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", self._file)
        # The scheduler creates the file empty before it writes the address.
        wait_until(lambda: self._file.exists() and self._file.stat().st_size > 0)
        self.address: str = json.loads(self._file.read_text())["address"]

    def _start(self, kind: str, *arguments: object, bare: bool = False) -> "subprocess.Popen[bytes]":
        # Dask tries this long to reach a killed worker that held results; its default is half a minute.
        settings = {"SCHEDULER__ALLOWED_FAILURES": self._failures, "COMM__TIMEOUTS__CONNECT": "5s"}
        environment = os.environ | {f"DASK_DISTRIBUTED__{name}": value for name, value in settings.items()}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        hidden = "import sys; sys.modules['quietbits'] = None; " if bare else ""
        program = f"{hidden}from distributed.cli.dask_{kind} import main; main()"
        command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
        process = subprocess.Popen(command, cwd=self._folder, env=environment, stderr=subprocess.DEVNULL)
        self._processes.append(process)
        return process

    def worker(self, *, nanny: bool = False, bare: bool = False) -> "subprocess.Popen[bytes]":
        """Start a single-threaded worker with or without a nanny; a bare worker lacks the package."""
        watched = "--nanny" if nanny else "--no-nanny"
        return self._start(
            "worker", self.address, watched, "--nthreads", "1", "--no-dashboard", "--local-directory", self._folder, bare=bare
        )

    @property
    def last(self) -> "subprocess.Popen[bytes]":
        """The worker or scheduler that was started last."""
        return self._processes[-1]

    def close(self) -> None:
        """End all processes, the scheduler last: workers that cannot report their end to it wait."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def served_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster that the module's tests share; at least one worker stays alive."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.worker()
    yield cluster
    cluster.close()


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the interval between checks for workers to less than a second."""
    monkeypatch.setattr(engine, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.1)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


@pytest.fixture
def unforgiving_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster that gives up a task at the first lost worker."""
    cluster = Cluster(tmp_path, allowed_failures=0)
    yield cluster
    cluster.close()


def naps(count: int) -> list[Nap]:
    return [Nap(number, design=None if number % 3 else "soft") for number in range(count)]


def test_workers_that_come_late_and_go_early_change_no_byte(served_cluster: Cluster, tmp_path: Path) -> None:
    run_tasks([Nap(task.number, 0.0, task.design) for task in naps(40)], tmp_path / "here")
    first = served_cluster.last
    others: list[subprocess.Popen[bytes]] = []

    def on_step(done: int, _: int, __: str) -> None:
        if done > 10 and not others:
            others.append(served_cluster.worker())
        if done > 25 and first.poll() is None:
            first.kill()

    run_tasks(naps(40), tmp_path / "there", dask=served_cluster.address, cache=Path("cache"), on_step=on_step)
    assert (tmp_path / "there" / RESULTS_NAME).read_bytes() == (tmp_path / "here" / RESULTS_NAME).read_bytes()
    assert first.poll() is not None
    assert others[0].poll() is None


OWN_MECHANISM = """
from dataclasses import replace
from quietbits import REGISTRY
from quietbits.design.local.cldp import CLDPMechanism


class OwnMechanism(CLDPMechanism):
    pass


def build(task, options):
    return OwnMechanism(task.epsilon / task.rounds, task.interval("own"))


ENTRY = replace(REGISTRY["cldp"], name="own", options=(), build=build)
"""


def test_a_mechanism_that_a_script_registers_reaches_the_cluster(
    served_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_mechanism.py").write_text(OWN_MECHANISM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(REGISTRY, "own", import_module("own_mechanism").ENTRY)
    task = Task(Interval(0.0, 1.0), 20, 1.0, 0.0, "replace-one")
    tasks = [MeanTask(MechanismChoice(name), task, "uniform", repetition=number) for name in ("own", "cldp") for number in range(3)]
    run_tasks(tasks, tmp_path / "here")
    run_tasks(tasks, tmp_path / "there", dask=served_cluster.address)
    assert (tmp_path / "there" / RESULTS_NAME).read_bytes() == (tmp_path / "here" / RESULTS_NAME).read_bytes()


def test_a_cluster_without_a_package_fails_the_tasks_of_its_mechanism_alone(
    served_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_mechanism.py").write_text(OWN_MECHANISM)
    about = tmp_path / "own-1.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text("[quietbits.mechanisms]\nown = own_mechanism:ENTRY")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_mechanism", raising=False)
    monkeypatch.setattr(REGISTRY, "_installed", InstalledPlugIns())
    task = Task(Interval(0.0, 1.0), 20, 1.0, 0.0, "replace-one")
    tasks = [MeanTask(MechanismChoice(name), task, "uniform") for name in ("own", "cldp")]
    with pytest.raises(IncompleteSweepError, match=r"1 of 2 tasks failed.*mechanism own must be that of own 1\.5 .*, got none") as caught:
        run_tasks(tasks, tmp_path / "there", dask=served_cluster.address)
    assert set(caught.value.results["mechanism"]) == {"cldp"}


def test_a_cluster_designs_tables_that_are_written_where_the_command_was_given(served_cluster: Cluster, tmp_path: Path) -> None:
    grid = TableGrid(epsilon=(1.0, 2.0), bits_in=(1,), bits_out=(1, 2), interval=((0.0, 1.0), (-1.0, 1.0)))
    design_tables(grid, tmp_path / "there", dask=served_cluster.address)
    design_tables(grid, tmp_path / "here")
    here, there = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (tmp_path / "here", tmp_path / "there"))
    assert len(here) == 8 + 2
    assert {name for name in here if here[name] != there.get(name)} <= {STORE_NAME}


@pytest.mark.parametrize("who", ["the worker at tcp://", "a worker has"])
def test_workers_with_other_code_are_refused(who: str, served_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep refuses workers with other code at their first contact."""
    monkeypatch.setattr(calls, "code_version", lambda: "another")
    if who == "a worker has":
        monkeypatch.setattr(workers.DaskWorkers, "_check_software", lambda *_: None)
    with pytest.raises(DataError, match=f"^{who}.* other versions of quietbits or its libraries than this process, or none"):
        run_tasks(naps(4), tmp_path / "there", dask=served_cluster.address)


class Answering:
    """Dask client whose worker gives a fixed answer about its software."""

    status = "running"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, dict[str, int]]]:
        return {"workers": {"tcp://w": {"nthreads": -n_workers}}}

    def run(self, *_: object, **__: object) -> dict[str, object]:
        return {"tcp://w": self.answer}


def test_a_worker_that_cannot_say_what_it_runs_is_refused_and_one_that_is_gone_is_not() -> None:
    with pytest.raises(DataError, match=r"^the worker at tcp://w has other versions .*, or none"):
        workers.DaskWorkers(Answering(TypeError("code() argument 13 must be str, not int")), "here").capacity()
    for answer in (OSError("it is gone"), calls.code_version()):
        assert workers.DaskWorkers(Answering(answer), "here").capacity() == workers.CALLS_PER_THREAD


def test_a_worker_without_the_package_is_refused(served_cluster: Cluster) -> None:
    bare = served_cluster.worker(bare=True)
    with workers.open_workers(1, served_cluster.address) as result, pytest.raises(DataError, match=r"^the worker at tcp://.*, or none"):
        wait_until(lambda: result.capacity() > workers.CALLS_PER_THREAD)
    bare.kill()


def test_nobody_is_waited_for_in_silence_and_a_deadly_task_fails_by_itself(unforgiving_cluster: Cluster, tmp_path: Path) -> None:
    cluster, reported = unforgiving_cluster, list[str]()

    def on_step(_: int, __: int, text: str) -> None:
        reported.append(text)
        if text == "no worker is connected: waiting for one" and reported.count(text) == 1:
            cluster.worker(nanny=True)

    with pytest.raises(IncompleteSweepError, match=r"1 of 13 tasks failed, .*nap 3: workers were lost while they ran it"):
        run_tasks([*(Nap(number) for number in range(3)), Deadly(3), *(Nap(number) for number in range(4, 13))], tmp_path / "there",
                  dask=cluster.address, on_step=on_step)  # fmt: skip
    assert reported[0] == f"connecting to the scheduler at {cluster.address}"
    assert "no worker is connected: waiting for one" in reported


def test_the_death_of_the_scheduler_is_noticed_while_there_are_no_workers(cluster: Cluster, tmp_path: Path) -> None:
    def on_step(_: int, __: int, text: str) -> None:
        if text.startswith("no worker"):
            cluster.scheduler.kill()

    with pytest.raises(ConnectionError, match=f"the scheduler at {cluster.address} is gone"):
        run_tasks(naps(3), tmp_path / "there", dask=cluster.address, on_step=on_step)


def test_the_death_of_the_scheduler_takes_one_line_and_loses_nothing(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A call waits half a minute for a scheduler that dies while it lists its workers.
    monkeypatch.setattr(workers, "POLL_SECONDS", 1.0)
    cluster.worker()
    done: list[int] = []

    def on_step(number: int, _: int, __: str) -> None:
        done.append(number)
        if number > 5 and cluster.scheduler.poll() is None:
            threading.Thread(target=cluster.scheduler.kill).start()

    with pytest.raises(ConnectionError, match=f"the scheduler at {cluster.address} is gone: what was finished is saved"):
        run_tasks([Nap(number, 0.1) for number in range(60)], tmp_path / "there", dask=cluster.address, on_step=on_step)
    steps: list[int] = []
    run_tasks([Nap(number, 0.0) for number in range(60)], tmp_path / "there", on_step=lambda number, *_: steps.append(number))
    assert steps[0] == done[-1] > 5


ALONE = """
import sys
from pathlib import Path

from nap_tasks import Nap
from quietbits.analysis.sweeps.run import run_tasks

try:
    tasks = [Nap(number, 0.1) for number in range(100)]
    run_tasks(tasks, Path(sys.argv[1]), dask=sys.argv[2], on_step=lambda done, *_: print(done, flush=True))
except ConnectionError as error:
    print(error)
"""


def test_what_dask_has_to_say_of_a_dead_scheduler_is_not_shown(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker()
    command = [sys.executable, "-c", ALONE, str(tmp_path / "there"), cluster.address]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) <= 5:
            pass
        cluster.scheduler.kill()
        shown, complaint = process.communicate(timeout=PATIENCE)
    assert f"the scheduler at {cluster.address} is gone: what was finished is saved" in shown
    assert complaint == ""


def test_dask_is_heard_again_afterwards() -> None:
    import_module("distributed")
    logger = logging.getLogger("distributed.client")
    before = logger.level
    with workers._silent_dask():
        assert not logger.isEnabledFor(logging.ERROR)
    assert logger.level == before


def test_a_cluster_decodes_the_messages_of_a_folder(served_cluster: Cluster, tmp_path: Path) -> None:
    table = generalised_randomised_response(2.0, 2)
    deployment = Deployment(TableMeanMechanism(table), table.mechanism)
    for name, seed in (("a.qbm", 1), ("b.parquet", 2)):
        inputs = np.random.default_rng(seed).random(200)
        write_messages(
            deployment, tmp_path / name, encode_inputs(deployment, inputs, random_words=seeded_words(np.random.default_rng(seed)))
        )
    alone, together = (decode_messages(deployment, [tmp_path], dask=address) for address in (None, served_cluster.address))
    assert (alone.mean, alone.standard_error, alone.accepted) == (together.mean, together.standard_error, together.accepted)
    assert together.accepted == 400
