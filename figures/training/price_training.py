"""What compression costs a model: accuracy of trainings by sketches in a secure sum, against the compression rate, bits and clients."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.models.network import network_named
from ...analysis.training.summary import summarise_training
from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, VERMILION
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..training_settings import training_settings
from .grids import add_legend, draw_accuracies, draw_no_privacy, grid_tasks, panels

PAPER = training_settings("linear-compression", "femnist")
SKETCHED, DENSE = "sketched-discrete-gaussian", "distributed-discrete-gaussian"
MARKS = (VERMILION, BLUE, GREEN)
# Pixels and classes of the digits.
PIXELS, CLASSES = 64, 10
ROWS = PAPER.value("rows")


def arrange_rates(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each setting, with its compression rate d/m; a rate of 1 has no sketch."""
    frame = summarise_training(rows)
    return frame.assign(rate=(frame["dimension"] / frame["sketch_dimension"].astype(float)).fillna(1.0))


def draw_training(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the rate, a line for each budget, and a panel for each size of the cohort."""
    cohorts = sorted(frame["clients_per_round"].unique())
    figure, grid = panels(len(cohorts), 3.8)
    for axes, cohort in zip(grid, cohorts, strict=True):
        own = frame[frame["clients_per_round"] == cohort]
        for (epsilon, series), mark in zip(own.dropna(subset=["target_epsilon"]).groupby("target_epsilon"), MARKS, strict=False):
            draw_accuracies(axes, series, "rate", mark, f"ε = {epsilon:g}")
        draw_no_privacy(axes, own)
        ticks = sorted(round(value) for value in frame["rate"].unique())
        axes.set(xscale="log", xlabel="compression rate d/m", title=f"{cohort:,} clients a round")
        axes.set_xticks(ticks, [f"{rate}" for rate in ticks])
        axes.minorticks_off()
    add_legend(figure, grid[0])
    first = frame.iloc[0]
    reported = PAPER.reported[-1]
    add_caption(
        figure,
        f"{first['model']} ({first['dimension']:,} parameters) on deformed digits, {first['clients']:,} clients, "
        f"{first['rounds']} rounds of "
        f"one local epoch; {PAPER.value('bits')} bits, δ = {first['delta']:.2g}, {first['adjacency']} adjacency, "
        "secure-sum trust model. Paper: "
        f"F-EMNIST, z = {reported.noise_multiplier:g}: {reported.accuracy['cohort-100']:g} % with 100 clients and rate 1, "
        f"{reported.accuracy['cohort-1000']:g} % with 1000 and rate {reported.rate:g}.",
    )
    return figure


def rate_tasks(seed: int, quick: bool) -> list[TrainingTask]:
    """Return a run for each cohort, budget and rate."""
    model, clients = ("mlp-32", 2000) if quick else ("mlp-60-60-60", PAPER.value("clients"))
    dimension = network_named(model, PIXELS, CLASSES).layers.dimension
    common: dict[str, Any] = {
        "clients": clients,
        "clients_per_round": [50, 200] if quick else PAPER.value("cohort"),
        "rounds": 40 if quick else 200,
        "samples": 10,
        "sampling": "passes",
        "model": model,
        "local_epochs": PAPER.value("local_epochs"),
        "batch": 10,
        "client_rate": 0.3,
        "server": "momentum",
        "server_rate": 0.5,
        "momentum": PAPER.value("server_momentum"),
        "clip": 0.5,
        "delta": 1 / clients,
        "adjacency": "replace-one",
    }
    epsilons, rates = ([3.0, 10.0], (4, 10, 40)) if quick else ([1.0, 3.0, 10.0], (2, 4, 10, 20, 50))
    private: dict[str, Any] = {"epsilon": epsilons, "bits": PAPER.value("bits")}
    return grid_tasks(
        seed,
        common,
        [
            {"name": "none"},
            {"name": DENSE, **private},
            {"name": SKETCHED, "sketch_dimension": [-(-dimension // (rate * ROWS)) * ROWS for rate in rates], "rows": ROWS, **private},
        ],
        repetitions=1 if quick else 3,
    )


FIGURE = FigureEntry(
    name="price-training",
    paper=f"{PAPER.source}: accuracy against compression rate",
    experiment="trainings by sketches",
    tasks=rate_tasks,
    table=arrange_rates,
    draw=draw_training,
)
