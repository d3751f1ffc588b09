"""Training by cpSGD: accuracy against bits of a coordinate, with and without rotation.

The training passes once over endless deformed digits, with two budgets.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.datasets.found_data import found_data
from ...analysis.datasets.idx import mnist_images
from ...analysis.training.task import TrainingTask
from ..drawing.marks import DOTTED, TRUSTED_SERVER, mechanism_mark
from ..drawing.style import add_caption
from ..training_settings import training_settings
from .grids import accuracy_panels, add_legend, draw_accuracies, draw_level, draw_no_privacy, grid_tasks
from .training_figure import training_figure

PAPER = training_settings("cpsgd", "infinite-mnist")
KINDS = (
    (True, "cpSGD, rotated", mechanism_mark("cpsgd")),
    (False, "cpSGD, not rotated", replace(mechanism_mark("cpsgd"), marker="o", line=DOTTED)),
)
QUICK_BITS, FULL_BITS = (16, 18, 20), (17, 18, 20, 22)
# Number of seeds of the runs on the digits.
SEEDS = 2
# Shares of the paper's number of clients of a step, and of its number of steps.
QUICK_COHORTS, QUICK_ROUNDS, FULL_SHARE = 5, 8, 25
MODEL = f"mlp-{'-'.join(map(str, PAPER.value('hidden')))}"
# Numbers of bits of MNIST's larger model, and of a corner of its grid, whose few clients need more bits.
PAPER_BITS, CORNER_BITS = (17, 18, 20, 22, 24), (20,)


def draw_bits(frame: pd.DataFrame) -> Figure:
    """Draw a panel for each budget: accuracy against bits, beside a trusted server's."""
    budgets = sorted(frame["target_epsilon"].dropna().unique())
    figure, grid = accuracy_panels(len(budgets), 3.8)
    for axes, epsilon in zip(grid, budgets, strict=True):
        own = frame[frame["target_epsilon"] == epsilon]
        for rotated, label, mark in KINDS:
            runs = own[(own["mechanism"] == "cpsgd") & (own["rotated"] == rotated)]
            draw_accuracies(axes, runs, "bits", mark.look, label)
        draw_level(axes, own[own["mechanism"] == "dp-fedavg"], TRUSTED_SERVER, "trusted server, Gaussian noise")
        draw_no_privacy(axes, frame)
        axes.set_xlabel("bits of a coordinate")
        axes.margins(x=0.12)
        axes.set(xticks=sorted(own["bits"].dropna().unique()), title=f"ε = {epsilon:g}")
        axes.xaxis.set_major_formatter("{x:g}")
    add_legend(figure, grid[0], frame, 2)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"One pass over {first['clients']:,} clients with a deformed digit each, {first['clients_per_round']:,} a step; {first['model']}, "
        f"{first['dimension']:,} parameters; δ = {first['delta']:g}, {first['adjacency']} adjacency, secure-sum trust model. No "
        "privacy: nothing is clipped, the better of two steps.",
    )
    return figure


def cpsgd_tasks(seed: int, quick: bool) -> list[TrainingTask]:
    """Return the runs, each an epoch of the paper's network.

    Each client takes part once; the paper has more steps.
    """
    cohort = PAPER.value("clients_per_round") // (QUICK_COHORTS if quick else 1)
    rounds = QUICK_ROUNDS if quick else PAPER.value("rounds") // FULL_SHARE
    setting = {"clients": cohort * rounds, "clients_per_round": cohort, "rounds": rounds, "model": MODEL}
    return _grid(seed, setting, QUICK_BITS if quick else FULL_BITS, SEEDS)


def infinite_mnist_tasks(seed: int, quick: bool, folder: Path) -> list[TrainingTask]:
    """Return the paper's own runs, with endless deformed MNIST among 25 million clients.

    A quick run has a few of the steps.
    """
    (digits,) = found_data(folder, ("mnist",))
    mnist_images(digits.folder)
    setting: dict[str, Any] = {"data": digits.name, "folder": str(digits.folder), "model": MODEL}
    if quick:
        return _grid(seed, {**setting, "clients": 2000, "clients_per_round": 500, "rounds": 4}, CORNER_BITS)
    return _grid(seed, setting | {name: PAPER.value(name) for name in ("clients", "clients_per_round", "rounds")}, PAPER_BITS)


def _grid(seed: int, setting: dict[str, Any], bits: Sequence[int], repetitions: int = 1) -> list[TrainingTask]:
    common = setting | {
        "samples": 1,
        "sampling": "passes",
        "server": "momentum",
        "momentum": 0.5,
        "server_rate": 1.0,
        "clip": 1.0,
        "delta": PAPER.value("delta"),
        "adjacency": "replace-one",
    }
    epsilons = sorted(PAPER.value("epsilon"))
    return grid_tasks(
        seed,
        common,
        [
            # The step of an unclipped update may be too long.
            {"name": "none", "server_rate": [0.2, 1.0]},
            {"name": "dp-fedavg", "epsilon": epsilons},
            {"name": "cpsgd", "epsilon": epsilons, "bits": list(bits), "rotated": [True, False]},
        ],
        repetitions,
    )


FIGURE = training_figure(
    name="cpsgd-fig2",
    paper=PAPER.source,
    experiment="one epoch by binomial noise",
    tasks=cpsgd_tasks,
    draw=draw_bits,
    on_data=infinite_mnist_tasks,
)
