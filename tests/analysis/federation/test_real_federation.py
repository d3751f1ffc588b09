"""The app of docs/flower.md on a real SuperLink and real SuperNodes: one is killed as it trains, and the round is right for the others."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import quietbits
from quietbits import NormBall, Task
from quietbits.analysis.federation.round_plan import RoundPlan

ROOT = Path(quietbits.__file__).parent
DOCUMENT = (ROOT / "docs" / "flower.md").read_text(encoding="utf-8")
COMMANDS = Path(sys.executable).parent
EPSILON = 500.0
APP = "app = ClientApp(mods=[PrivateUpdateMod()])"
# The last node says that it trains, and does not stop.
LOST = """
def stay_away(msg, context, call_next):
    if "lost" in context.node_config:
        from pathlib import Path
        from time import sleep

        Path(context.node_config["lost"]).touch()
        sleep(600)
    return call_next(msg, context)


app = ClientApp(mods=[PrivateUpdateMod(), stay_away])
"""

START = "strategy.start(grid,"
# What a timeout does, which would have to suit the slowest machine: stop waiting for the node that was killed, and for no other one.
IMPATIENT = """

class Impatient:
    def __init__(self, grid, killed):
        self.grid, self.killed = grid, Path(killed)

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def send_and_receive(self, messages, *, timeout=None):
        from time import sleep

        messages = list(messages)
        missing, replies = set(self.grid.push_messages(messages)), []
        while missing and not (len(messages) == 3 and len(missing) == 1 and self.killed.exists()):
            sleep(0.5)
            arrived = list(self.grid.pull_messages(missing))
            replies += arrived
            missing -= {reply.metadata.reply_to_message_id for reply in arrived}
        return replies
"""


def block(kind: str, having: str) -> str:
    """Return the code block of the document that has a line in it."""
    (found,) = (code for code in re.findall(rf"```{kind}\n(.*?)```", DOCUMENT, re.DOTALL) if having in code)
    return found


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_for(condition: Callable[[], bool], what: str, log: Path, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} took too long:\n{log.read_text()[-3000:]}"
        time.sleep(0.1)


@contextmanager
def process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command and what it starts as a group of processes, and end them all."""
    with log.open("wb") as output:
        started = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=log.parent, start_new_session=True
        )
        try:
            yield started
        finally:
            kill(started)


def kill(started: subprocess.Popen[bytes]) -> None:
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


@pytest.fixture
def client_module() -> ModuleType:
    module = ModuleType("client")
    exec(compile(block("python", "def train"), "client.py", "exec"), vars(module))  # noqa: S102
    return module


def test_a_round_is_right_when_a_node_is_killed_while_it_trains(tmp_path: Path, client_module: ModuleType) -> None:
    app = tmp_path / "app"
    (app / "digits").mkdir(parents=True)
    (app / "pyproject.toml").write_text(block("toml", "[tool.flwr.app]"))
    (app / "digits" / "__init__.py").touch()
    (app / "digits" / "client.py").write_text(block("python", APP).replace(APP, LOST))
    (app / "digits" / "server.py").write_text(
        block("python", START).replace(START, f"strategy.start(Impatient(grid, {str(tmp_path / 'killed')!r}),") + IMPATIENT
    )
    link, *nodes = free_ports(4)
    output, lost, home = tmp_path / "digits.json", tmp_path / "lost", tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'[superlink.local]\naddress = "127.0.0.1:{link}"\ninsecure = true\n')
    environment = {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(COMMANDS), os.environ["PATH"]]),
        # The checkout that is tested, whatever is installed.
        "PYTHONPATH": str(ROOT.parent) if ROOT.name == "quietbits" else os.environ.get("PYTHONPATH", ""),
    }
    log = tmp_path / "superlink.log"
    with ExitStack() as stack:
        runs = [str(COMMANDS / "flower-superlink"), "--insecure", "--port", str(link), "--disable-runtime-dependency-installation"]
        stack.enter_context(process(runs, log, environment))
        supernodes = []
        for number, port in enumerate(nodes):
            said = f"partition-id={number} num-partitions=3" + (f' lost="{lost}"' if number == 2 else "")
            runs = [str(COMMANDS / "flower-supernode"), "--insecure", "--superlink", f"127.0.0.1:{link}", "--port", str(port)]
            node = process([*runs, "--node-config", said], tmp_path / f"supernode-{number}.log", environment)
            supernodes.append(stack.enter_context(node))
        wait_for(lambda: log.read_text().count("Activated node_id") == 3, "starting SuperNodes", log)
        settings = f'epsilon={EPSILON} largest-epsilon=1000.0 output="{output}"'
        command = [str(COMMANDS / "flwr"), "run", str(app), "local", "--run-config", settings]
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=120)
        wait_for(lambda: lost.exists() or output.exists(), "training", log)
        kill(supernodes[2])
        (tmp_path / "killed").touch()
        wait_for(lambda: output.exists() and output.read_text().endswith("}"), "the round", log)
    found = json.loads(output.read_text())
    (report,) = found["reports"]
    assert (report["invited"], report["stayed"], report["refusal"]) == (3, 2, None)
    # The guarantee is that of the noise of two, which is less than what was built for three.
    plan = RoundPlan("", "distributed-discrete-gaussian", Task(NormBall(650, 2.0, 2.0), 3, EPSILON, 1e-5, "add-or-remove-one"))
    mechanism = plan.built_for(2)
    assert report["guarantee"]["epsilon"] == pytest.approx(mechanism.guarantee.epsilon, rel=1e-9)
    assert report["guarantee"]["epsilon"] > plan.built().guarantee.epsilon
    # The mean of two clipped updates, within the error that is stated: Markov's inequality, with probability 1/100 at most.
    updates = np.stack([client_module.descend(np.zeros((65, 10)), part, 3).ravel() for part in (0, 1)])
    error = np.array(found["weights"]).ravel() - plan.ball.clip(updates).mean(axis=0)
    assert np.sum(error**2) < 100 * mechanism.error().of_mean(2)
