"""The app of docs/how-to/flower.md runs on a real SuperLink and real SuperNodes.

The test kills two SuperNodes while they train.

The mean of a local mechanism is right for all clients. The mean of a secure sum covers the survivors, or is refused with too few
survivors.
"""

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
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flwr.supercore.superexec.dependency_installer import install_app_dependencies
from sklearn.datasets import load_digits

import quietbits
from quietbits import NormBall, Task
from quietbits.analysis.federation.round_plan import RoundPlan

ROOT = Path(quietbits.__file__).parent
DOCUMENT = (ROOT / "docs" / "how-to" / "flower.md").read_text(encoding="utf-8")
EPSILON, LARGEST, LOCAL_EPSILON = 1000.0, 2500.0, 20.0
# Timeout of the second round's training, in seconds.
TIMEOUT = 10.0
# The clients read the app's data from a file: importing scikit-learn in each of their many processes takes longer than the rest of the
# test.
DATA = """    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
"""
APP = "app = ClientApp(mods=[PrivateUpdateMod()])"
# In a secure sum's first round the last node says that it trains and does not stop; in the second round, the node before it.
LOST = """
def stay_away(msg, context, call_next):
    from pathlib import Path
    from time import sleep

    number, last = msg.content["config"]["server-round"], context.node_config["num-partitions"] - 1
    if context.run_config["mechanism"] != "sqkr" and context.node_config["partition-id"] == last + 1 - number:
        Path(context.node_config["lost"] + str(number)).touch()
        sleep(600)
    return call_next(msg, context)


app = ClientApp(mods=[PrivateUpdateMod(), stay_away])
"""

START = "strategy.start(grid,"
CHOICE = 'min_train_nodes=run["clients"], min_available_nodes=run["clients"]'
# In the first round, the server waits for all nodes except the killed node, as a timeout would have to suit the slowest machine. In the
# second round Flower's own timeout ends the training, and late replies are lost, too.
IMPATIENT = """

class Impatient:
    def __init__(self, grid, killed):
        self.grid, self.killed, self.trainings, self.dead = grid, Path(killed), 0, set()

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def send_and_receive(self, messages, *, timeout=None):
        from time import sleep

        messages = list(messages)
        training = any(one.content.array_records for one in messages)
        self.trainings += training
        if training and self.trainings == 2:
            return self.grid.send_and_receive(messages, timeout=timeout)
        nodes = [one.metadata.dst_node_id for one in messages]
        missing, replies = dict(zip(self.grid.push_messages(messages), nodes)), []
        while set(missing.values()) - self.dead:
            sleep(0.2)
            arrived = list(self.grid.pull_messages(missing))
            replies += arrived
            for reply in arrived:
                del missing[reply.metadata.reply_to_message_id]
            if training and len(missing) == 1 and self.killed.exists():
                self.dead = set(missing.values())
        return replies
"""


# Flower starts thirty processes, which spend nearly all of their time importing Flower. Here a single process imports Flower, and its
# copies run Flower's commands: the commands of the test, and the commands that Flower starts itself, since a command of the same name comes
# first on the path.
ALL_IMPORTED = """
import gc, json, os, signal, socket, sys, traceback

import httpcore
from flwr.cli.app import app as flwr
from flwr.supercore.cli import flower_superexec
from flwr.superlink.cli import flower_superlink, flwr_serverapp
from flwr.supernode.cli import flower_supernode, flwr_clientapp
from quietbits.analysis.catalogue import local, secure_sum
from quietbits.analysis.federation import client_mod, strategy

# What copies do not touch is copied neither while they run nor when they end.
gc.freeze()
commands = {
    "flwr": flwr,
    "flower-superlink": flower_superlink,
    "flower-supernode": flower_supernode,
    "flower-superexec": flower_superexec,
    "flwr-serverapp": flwr_serverapp,
    "flwr-clientapp": flwr_clientapp,
}
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
while True:
    connection, _ = server.accept()
    with connection, connection.makefile("rw") as asked:
        log, command, *arguments = json.loads(asked.readline())
        process = os.fork()
        if process:
            print(process, file=asked, flush=True)
            continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    server.close()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = [command, *arguments]
    try:
        commands[command]()
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)
"""
COMMAND = """#!{python} -SE
import json, socket, sys

with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rw") as asked:
    connection.connect({address!r})
    print(json.dumps([{log!r}, {command!r}, *sys.argv[1:]]), file=asked, flush=True)
    asked.readline()
"""


def block(kind: str, having: str) -> str:
    """Return the code block of the document that contains a line."""
    (results,) = (code for code in re.findall(rf"```{kind}\n(.*?)```", DOCUMENT, re.DOTALL) if having in code)
    return results


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for entry in sockets:
            entry.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


def wait_for(condition: Callable[[], bool], what: str, log: Path, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} took too long:\n{log.read_text()[-3000:]}"
        time.sleep(0.1)


@contextmanager
def process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a command and its copies as a group of processes, and kill the group at the end."""
    with log.open("wb") as output:
        started = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=log.parent, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def kill(number: int) -> None:
    os.kill(number, signal.SIGKILL)
    while is_alive(number):
        time.sleep(0.01)


@pytest.fixture
def client_module() -> ModuleType:
    module = ModuleType("client")
    exec(compile(block("python", "def train"), "client.py", "exec"), vars(module))  # noqa: S102
    return module


def test_a_run_of_the_app_starts_with_flowers_default_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Flower's default connection is the local simulation, which installs an app's dependencies first, or ends with exit code 608.
    (tmp_path / "pyproject.toml").write_text(block("toml", "[tool.flwr.app]"))
    for name, value in {"FLWR_HOME": str(tmp_path), "UV_OFFLINE": "1", "PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", [*sys.path])
    install_app_dependencies(tmp_path, run_id=1)
    # The installation did not change the machine's other packages.
    assert (
        subprocess.run([sys.executable, "-c", "import quietbits"], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).returncode
        == 0
    )


def test_rounds_are_right_for_those_who_stay_or_refused(tmp_path: Path, client_module: ModuleType) -> None:
    app = tmp_path / "app"
    (app / "digits").mkdir(parents=True)
    (app / "pyproject.toml").write_text(block("toml", "[tool.flwr.app]"))
    (app / "digits" / "__init__.py").touch()
    data = tmp_path / "digits.npz"
    np.savez(data, *load_digits(return_X_y=True))
    client = block("python", APP)
    for stated, changed in ((APP, LOST), (DATA, f"    pixels, digits = np.load({str(data)!r}).values()\n")):
        assert stated in client
        client = client.replace(stated, changed)
    (app / "digits" / "client.py").write_text(client)
    server = block("python", START).replace(START, f"strategy.start(Impatient(grid, {str(tmp_path / 'killed')!r}),") + IMPATIENT
    # The app accepts any two nodes, as Flower may have noticed a killed node; and it uses the adjacency of local mechanisms.
    for stated, changed in ((CHOICE, "min_train_nodes=2, min_available_nodes=2"), ('"add-or-remove-one"', '"replace-one"')):
        assert stated in server
        server = server.replace(stated, changed)
    (app / "digits" / "server.py").write_text(server)
    link, *nodes = free_ports(4)
    lost, home = tmp_path / "lost", tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'[superlink.local]\naddress = "127.0.0.1:{link}"\ninsecure = true\n')
    environment = {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "OMP_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(home), os.environ["PATH"]]),
        # The processes import the tested checkout, even if another version is installed.
        "PYTHONPATH": str(ROOT.parent) if ROOT.name == "quietbits" else os.environ.get("PYTHONPATH", ""),
    }
    log, apps, imported = tmp_path / "superlink.log", tmp_path / "apps.log", tmp_path / "imported.log"
    with ExitStack() as stack:
        # Names of sockets must be short.
        address = Path(stack.enter_context(TemporaryDirectory())) / "socket"
        for command in ("flower-superexec", "flwr-serverapp", "flwr-clientapp"):
            (home / command).write_text(COMMAND.format(python=sys.executable, address=str(address), log=str(apps), command=command))
            (home / command).chmod(0o700)
        stack.enter_context(process([sys.executable, "-c", ALL_IMPORTED, str(address)], imported, environment))
        wait_for(address.exists, "importing Flower", imported)

        def start(said: Path, *command: str) -> int:
            with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rw") as asked:
                connection.connect(str(address))
                print(json.dumps([str(said), *command]), file=asked, flush=True)
                return int(asked.readline())

        start(log, "flower-superlink", "--insecure", "--port", str(link), "--disable-runtime-dependency-installation")
        supernodes = []
        for number, port in enumerate(nodes):
            said = f'partition-id={number} num-partitions=3 lost="{lost}"'
            command = ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{link}", "--port", str(port), "--node-config", said]
            supernodes.append(start(tmp_path / f"supernode-{number}.log", *command))
        wait_for(lambda: log.read_text().count("Activated node_id") == 3, "starting SuperNodes", log)

        def begin(name: str, settings: str) -> Path:
            output, begun = tmp_path / f"{name}.json", tmp_path / f"{name}.log"
            number = start(begun, "flwr", "run", str(app), "local", "--run-config", f'{settings} output="{output}"')
            wait_for(lambda: not is_alive(number), "beginning a run", begun)
            assert "Successfully started run" in begun.read_text()
            return output

        def result(output: Path) -> dict[str, Any]:
            wait_for(lambda: output.exists() and output.read_text().endswith("}"), "the rounds", log)
            loaded: dict[str, Any] = json.loads(output.read_text())
            return loaded

        local_output = begin("local", f'mechanism="sqkr" epsilon={LOCAL_EPSILON} largest-epsilon={LOCAL_EPSILON}')
        # The other run starts while the nodes train, and the test kills no node before that node has answered.
        wait_for(lambda: log.read_text().count("[Fleet.GetRun]") == 3, "inviting SuperNodes", log)
        output = begin("sums", f"epsilon={EPSILON} largest-epsilon={LARGEST} rounds=2 training-timeout={TIMEOUT}")
        local = result(local_output)
        for number in (1, 2):
            # On a slow machine the second training may end before the node begins it, and no node is left to kill.
            wait_for(lambda path=Path(f"{lost}{number}"): path.exists() or output.exists(), "training", log)
            kill(supernodes[-number])
            (tmp_path / "killed").touch()
        sums = result(output)
    ball = NormBall(650, 2.0, 2.0)
    updates = ball.clip(np.stack([client_module.descend(np.zeros((65, 10)), part, 3).ravel() for part in (0, 1, 2)]))
    (report,) = local["reports"]
    assert (report["invited"], report["stayed"], report["refusal"]) == (3, 3, None)
    messages = RoundPlan("", "sqkr", Task(ball, 3, LOCAL_EPSILON, 1e-5, "replace-one")).built()
    assert report["guarantee"]["epsilon"] == messages.privacy().report(1e-5, "replace-one").epsilon <= LOCAL_EPSILON
    # By Markov's inequality, the squared error exceeds 100 times the stated error with probability at most 1/100.
    error = np.array(local["weights"]).ravel() - updates.mean(axis=0)
    assert 0 < np.sum(error**2) < 100 * messages.error().of_mean(3)
    first, second = sums["reports"]
    assert (first["invited"], first["stayed"], first["refusal"]) == (3, 2, None)
    # The guarantee is that of two clients' noise, which is less than the noise planned for three clients.
    plan = RoundPlan("", "distributed-discrete-gaussian", Task(ball, 3, EPSILON, 1e-5, "replace-one", rounds=2))
    mechanism = plan.built_for(2)
    assert first["guarantee"]["epsilon"] == pytest.approx(mechanism.guarantee.epsilon, rel=1e-9)
    assert first["guarantee"]["epsilon"] > plan.built().guarantee.epsilon
    # The server does not unmask the message of a single client, so the model stays that of the first round.
    assert second["stayed"] <= 1
    assert "clients must be at least 2 of" in second["refusal"]
    assert second["guarantee"] is None
    error = np.array(sums["weights"]).ravel() - updates[:2].mean(axis=0)
    assert np.sum(error**2) < 100 * mechanism.error().of_mean(2)
