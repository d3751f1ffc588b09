"""One pass over digits without end by cpSGD: accuracy against the bits of a coordinate, rotated or not, at two budgets."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, VERMILION
from ..drawing.style import add_caption
from ..training_settings import training_settings
from .grids import TRUSTED_LOOK, add_legend, draw_accuracies, draw_no_privacy, grid_tasks, panels
from .training_figure import training_figure

PAPER = training_settings("cpsgd", "infinite-mnist")
KINDS = ((True, "cpSGD, rotated", BLUE), (False, "cpSGD, not rotated", VERMILION))
QUICK_BITS, FULL_BITS = (14, 15, 16, 18), (17, 18, 20, 22)


def draw_bits(frame: pd.DataFrame) -> Figure:
    """Draw a panel for each budget: accuracy against bits, beside a trusted server's."""
    budgets = sorted(frame["target_epsilon"].dropna().unique())
    figure, grid = panels(len(budgets), 3.8)
    for axes, epsilon in zip(grid, budgets, strict=True):
        own = frame[frame["target_epsilon"] == epsilon]
        for rotated, label, mark in KINDS:
            draw_accuracies(axes, own[(own["mechanism"] == "cpsgd") & (own["rotated"] == rotated)], "bits", mark, label)
        trusted = own.loc[own["mechanism"] == "dp-fedavg", "accuracy"].max()
        axes.axhline(100 * trusted, **TRUSTED_LOOK, label="trusted server, Gaussian noise")
        draw_no_privacy(axes, frame)
        axes.set(xlabel="bits of a coordinate", xticks=sorted(own["bits"].dropna().unique()), title=f"ε = {epsilon:g}")
        axes.xaxis.set_major_formatter("{x:g}")
    add_legend(figure, grid[0], 2)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"One pass over {first['clients']:,} clients with a deformed digit each, {first['clients_per_round']:,} a step; {first['model']}, "
        f"{first['dimension']:,} parameters; δ = {first['delta']:g}, {first['adjacency']} adjacency, secure-sum trust "
        "model. Bits set k and m: "
        f"the finest levels whose noise fits. Runs of one seed: standard error 2 %. Paper: {PAPER.value('clients'):,} "
        "clients, accuracies only in pictures.",
    )
    return figure


def cpsgd_tasks(seed: int, quick: bool) -> list[TrainingTask]:
    """Return the runs: all of one epoch, in which each client takes part once."""
    common: dict[str, Any] = {
        "clients": 20_000 if quick else PAPER.value("clients") // 25,
        "clients_per_round": 500 if quick else PAPER.value("clients_per_round"),
        "rounds": 40 if quick else PAPER.value("rounds") // 25,
        "samples": 1,
        "model": "softmax" if quick else "mlp-60-60-60",
        "sampling": "passes",
        "server": "momentum",
        "momentum": 0.5,
        "server_rate": 1.0,
        "clip": 1.0,
        "delta": PAPER.value("delta"),
        "adjacency": "replace-one",
    }
    epsilons, bits = sorted(PAPER.value("epsilon")), list(QUICK_BITS if quick else FULL_BITS)
    return grid_tasks(
        seed,
        common,
        [
            {"name": "none"},
            {"name": "dp-fedavg", "epsilon": epsilons},
            {"name": "cpsgd", "epsilon": epsilons, "bits": bits, "rotated": [True, False]},
        ],
    )


FIGURE = training_figure(
    name="cpsgd-fig2",
    paper=PAPER.source,
    experiment="one epoch by binomial noise",
    tasks=cpsgd_tasks,
    draw=draw_bits,
)
