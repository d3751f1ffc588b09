"""Accuracy against the epsilon of one message: DP-REC, and Gaussian noise on each update."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ....analysis.training.summary import summarise_training
from ....analysis.training.task import TrainingTask
from ....design.contracts.task import Budget
from ....design.relative_entropy.dp_rec import DpRecTraining
from ....design.relative_entropy.shared_randomness import SEED_BITS
from ...dp_rec.references import calibrated_clip_ratio
from ...drawing.directed_rounding import rounded_up
from ...drawing.marks import mechanism_mark
from ...drawing.style import add_caption
from ..grids import accuracy_panels, add_legend, best_of, draw_accuracies, draw_no_privacy, draw_reported, grid_tasks
from ..training_figure import training_figure
from .settings import PAPER, Ground, digits_ground, femnist_ground, reported_source, setting_in_words

PROVEN, PUBLISHED = "round_epsilon", "published_round_epsilon"
# Lines: mechanism, name, the column of a message's epsilon, and the look.
LINES = (
    ("gaussian", "Gaussian noise", PROVEN, mechanism_mark("gaussian").look),
    ("dp-rec", "DP-REC, ε proven", PROVEN, mechanism_mark("dp-rec").look),
    ("dp-rec", "DP-REC, ε as published", PUBLISHED, mechanism_mark("dp-rec").published),
)
QUICK_EPSILONS, FULL_EPSILONS = [4.0, 8.0, 16.0], [2.0, 4.0, 8.0, 16.0]


def arrange_messages(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and epsilon of a message, with the message's epsilon by the paper's theorem.

    The theorem's epsilon is missing for other methods than DP-REC.
    """
    frame = best_of(summarise_training(rows), ["label", PROVEN]).reset_index(drop=True)
    coded = frame["mechanism"] == "dp-rec"
    published = [
        published_message_epsilon(row["built_clip_ratio"], int(row["bits_per_client"]) - SEED_BITS, row["delta"]) if own else math.nan
        for own, row in zip(coded, frame.to_dict("records"), strict=True)
    ]
    return frame.assign(**{PUBLISHED: published})


def published_message_epsilon(clip_ratio: float, index_bits: int, delta: float) -> float:
    """Return the epsilon of a DP-REC message by the paper's theorem, which is not proven.

    The paper doubles epsilon and delta of a client that is added or removed for a client whose update is replaced.
    """
    message = DpRecTraining(clip_ratio, population=1, clients_per_round=1, index_bits=index_bits)
    return 2 * message.privacy().account("published").bound(delta / 2, 1, None).epsilon


def draw_messages(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the epsilon of one message."""
    figure, (axes,) = accuracy_panels(1, 3.8)
    for name, label, column, look in LINES:
        own = frame[frame["mechanism"] == name]
        if len(own):
            draw_accuracies(axes, own, column, look, label)
    draw_no_privacy(axes, frame)
    for epsilon, accuracies in paper_messages():
        for accuracy, name in zip(accuracies, ("gaussian", "dp-rec"), strict=True):
            draw_reported(axes, [epsilon], [accuracy], mechanism_mark(name))
    axes.set_xscale("log")
    axes.set_xlabel("ε of one message")
    add_legend(figure, axes, frame, 3, [reported_source(PAPER.data)])
    delta = rounded_up(frame["delta"].max(), 2)
    add_caption(
        figure,
        f"{setting_in_words(frame)}; δ = {delta}, {frame['adjacency'].iloc[0]} adjacency, local trust model; ε as published is not "
        "proven. The paper states the central ε: its marks are at a message's ε by its theorem.",
    )
    return figure


def paper_messages() -> list[tuple[float, list[float]]]:
    """Return the paper's comparisons: epsilon of a message, and accuracies of Gaussian noise and of DP-REC.

    The paper states the epsilon of all rounds; a message's epsilon is that of the clip ratio which its theorem gives for it.
    """
    clients, rounds = PAPER.value("clients"), PAPER.value("fedavg_rounds")
    delta = clients ** PAPER.value("delta_exponent")
    training = DpRecTraining(1.0, clients, PAPER.value("clients_per_round"), PAPER.value("groups") * PAPER.value("bits_per_group"))
    points = []
    for epsilon, accuracies in zip(PAPER.value("equal_local_epsilon"), PAPER.value("equal_local_accuracy"), strict=True):
        budget = Budget(epsilon, delta, "add-or-remove-one", rounds, method="published")
        ratio = calibrated_clip_ratio(budget, training)
        points.append((published_message_epsilon(ratio, training.index_bits, delta), accuracies))
    return points


def message_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return a run for each method and epsilon of a message."""
    ground = digits_ground(quick=quick)
    changed = {"clients_per_round": 100} if quick else {}
    return _tasks(seed, ground, QUICK_EPSILONS if quick else FULL_EPSILONS, 2 if quick else 3, **changed)


def paper_message_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST, in the paper's setting."""
    return _tasks(seed, femnist_ground(folder, quick=quick), QUICK_EPSILONS[-1:] if quick else FULL_EPSILONS, adjacency="replace-one")


def _tasks(seed: int, ground: Ground, epsilons: list[float], repetitions: int = 1, **changed: Any) -> list[TrainingTask]:
    budget = {"round_epsilon": epsilons, "server_rate": ground.history.get("server_rate", ground.common.get("server_rate", 1.0))}
    blocks = [
        {"name": "none"},
        {"name": "gaussian", **budget},
        {"name": "dp-rec", "download": "history", "groups": PAPER.value("groups"), "group_bits": PAPER.value("bits_per_group"), **budget},
    ]
    return grid_tasks(seed, {**ground.common, **changed}, blocks, repetitions)


FIGURE = training_figure(
    name="dprec-local-epsilon",
    paper=f"{PAPER.source}: the comparison at equal local epsilon",
    experiment="accuracy against the epsilon of a message",
    tasks=message_tasks,
    table=arrange_messages,
    draw=draw_messages,
    on_data=paper_message_tasks,
)
