"""
Flower: a federation with private updates
=========================================

An existing `Flower <https://flower.ai>`_ app changes in two lines: a mod on the client, and a strategy around the server's own.
"""

# %%
# ``pip install 'quietbits[flower]'`` has what this program needs. The client's training function stays as it is. ``PrivateUpdateMod`` clips
# its update, encodes it and masks it, so that the server sees only the sum.

import logging

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

import quietbits

client_app = ClientApp(mods=[quietbits.PrivateUpdateMod()])


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Move the model halfway to the client's own target."""
    weights = message.content["arrays"]["weights"].numpy()
    moved = weights + 0.5 * (context.node_config["target"] - weights)
    content = {
        "arrays": ArrayRecord({"weights": Array(moved)}),
        "metrics": MetricRecord({"num-examples": 1}),
    }
    return Message(RecordDict(content), reply_to=message)


# %%
# The server states the mechanism and the task. All rounds together keep epsilon 20.

logging.getLogger("flwr").setLevel(logging.ERROR)
CLIENTS, ROUNDS = 8, 6
ball = quietbits.NormBall(dimension=4, norm=2.0, clip_norm=1.0)
task = quietbits.Task(
    ball, CLIENTS, epsilon=20.0, delta=1e-5, adjacency="add-or-remove-one", rounds=ROUNDS
)
inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS)
strategy = quietbits.PrivateMeanStrategy(inner, "distributed-discrete-gaussian", task)


# %%
# A deployed federation runs in processes of Flower's, as ``flwr run`` starts them. This page has all nodes in one process instead: a grid
# that hands each message to the client app. Flower's processes know the identities below from their start.


class OneProcess(Grid):
    """Nodes of one process, each with a target of its own."""

    def __init__(self, targets: dict[int, float]) -> None:
        self.contexts = {
            node: Context(1, node, {"target": target}, RecordDict(), {})
            for node, target in targets.items()
        }

    def get_node_ids(self):
        """Return the nodes."""
        return list(self.contexts)

    def send_and_receive(self, messages, *, timeout=None):  # noqa: ARG002
        """Return the answers of the client app."""
        answers = []
        for message in messages:
            node = message.metadata.dst_node_id
            answers.append(client_app(message, self.contexts[node]))
            answers[-1].metadata.__dict__["_src_node_id"] = node
        return answers

    def set_run(self, run):
        """Do nothing: there is one run."""

    run = create_message = push_messages = pull_messages = None


for identity in ("_task_id", "_run_id", "_node_id"):
    setattr(TaskIdentity, identity, 1)

# %%
# Six rounds move the model toward the mean of the targets, plus noise. A report of each round states what was guaranteed.

import matplotlib.pyplot as plt

grid = OneProcess({node: 0.3 * node for node in range(1, CLIENTS + 1)})
models = [np.zeros(4)]


def keep(_, arrays):
    """Keep the model of each round."""
    models.append(arrays["weights"].numpy())


strategy.start(
    grid, ArrayRecord({"weights": Array(models[0])}), num_rounds=ROUNDS, evaluate_fn=keep
)
for report in strategy.reports[:2]:
    print(f"{report.stayed} of {report.invited} clients: {report.guarantee}")

# %%
# The figure shows the model's four coordinates after each round. The targets' mean is the dashed line: updates are clipped to length 1, so
# that the model needs some rounds to get there.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(np.array(models[1:]), ".-")
axes.axhline(
    0.3 * np.mean(range(1, CLIENTS + 1)), color="0.4", linestyle="--", label="mean of the targets"
)
axes.set(xlabel="round", ylabel="coordinate of the model")
axes.legend()
plt.show()
