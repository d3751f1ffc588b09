"""A federation in one process.

A grid gives messages to ClientApps, and may lose some messages.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from quietbits.analysis.federation.client_mod import PrivateUpdateMod

# Each client has its own ledger.
LEDGER = "spent-{partition-id}.sqlite"
Lost = Callable[[int, str], bool]


def trained(msg: Message, context: Context) -> Message:
    """Train a model by adding a number, or repeated numbers, of the node's configuration to every array."""
    step, before = context.node_config["step"], msg.content["arrays"].items()
    record = ArrayRecord({name: Array(array.numpy() + np.resize(step, array.shape)) for name, array in before})
    assert list(msg.content.config_records) == ["config"]
    return Message(RecordDict({"arrays": record, "metrics": MetricRecord({"num-examples": 10, "loss": 0.5})}), reply_to=msg)


@dataclass
class Loop(Grid):
    """Grid of nodes in this process, which loses messages if `lost(node, stage)` is true."""

    steps: dict[int, float | tuple[float, ...]]
    mod: PrivateUpdateMod = field(default_factory=PrivateUpdateMod)
    # Mods of nodes that have another mod.
    mods: dict[int, PrivateUpdateMod] = field(default_factory=dict)
    lost: Lost = lambda node, stage: False  # noqa: ARG005
    contents: list[dict[str, object]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    stages: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.apps = {node: ClientApp(mods=[self.mods.get(node, self.mod)]) for node in self.steps}
        for app in self.apps.values():
            app.train()(trained)
        self.contexts = {
            node: Context(1, node, {"step": step, "partition-id": node}, RecordDict(), {}) for node, step in self.steps.items()
        }

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:  # noqa: ARG002
        answers = []
        for message in messages:
            node = message.metadata.dst_node_id
            stated = message.content.config_records.get("quietbits", ConfigRecord())
            stage = str(stated.get("stage", ""))
            self.stages.append((node, stage))
            if not self.lost(node, stage):
                answers.append(self.apps[node](message, self.contexts[node]))
                # A reply names its sender.
                answers[-1].metadata.__dict__["_src_node_id"] = node
        # The grid copies the contents, because the strategy may change the messages that it gets.
        self.contents += [dict(answer.content) for answer in answers if answer.has_content()]
        self.errors += [str(answer.error.reason) for answer in answers if answer.has_error()]
        return answers

    def get_node_ids(self) -> list[int]:
        return list(self.steps)

    def set_run(self, run: object) -> None: ...

    run = create_message = push_messages = pull_messages = None


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give messages the node numbers that Flower's processes otherwise set at their start."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture
def model() -> ArrayRecord:
    return ArrayRecord({"a": Array(np.zeros((2, 2))), "b": Array(np.zeros(4))})
