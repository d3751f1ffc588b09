"""DP-SGD in the MVU paper's grids: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables, with one model."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.datasets.idx import mnist_images
from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, PURPLE, VERMILION
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..training_settings import training_settings
from .grids import add_legend, best_of, draw_accuracies, draw_no_privacy, grid_tasks, logarithmic, panels
from .training_figure import training_figure

PAPER = training_settings("mvu", "mnist")
DIGITS = 1442
METHODS = (
    ("dp-fedavg", None, "trusted server, Gaussian noise", BLUE),
    ("sign-gaussian", None, "signs with Gaussian noise", VERMILION),
    ("mvu", 1, "MVU, 1 bit", GREEN),
    ("mvu", 3, "MVU, 3 bits", PURPLE),
)
# Titles; and the columns of epsilon of a trusted server's noise, and of local mechanisms.
PANELS = (
    ("the server sees who reports", "epsilon_unamplified", "epsilon"),
    ("nobody sees who reports: amplified", "epsilon", "epsilon_amplified"),
)
# The paper's grid is for one bit.
MVU_BITS = (1, 3)
TABLES = {"name": "mvu", "bits_in": 5, "metric": PAPER.value("mvu_metric")}


def draw_privacy(frame: pd.DataFrame) -> Figure:
    """Draw the best accuracy of the grid against the epsilon of the whole run, in a panel for each assumption on sampling."""
    figure, grid = panels(2, 3.8)
    for axes, (title, trusted, local) in zip(grid, PANELS, strict=True):
        for name, bits, label, mark in METHODS:
            own = frame[(frame["mechanism"] == name) & (True if bits is None else frame["bits_out"] == bits)]
            own = own.assign(epsilon=own[trusted if name == "dp-fedavg" else local])
            if len(own):
                draw_accuracies(axes, _best(own), "epsilon", mark, label)
        draw_no_privacy(axes, frame)
        axes.set(xlabel="ε of all rounds", title=title)
        logarithmic(axes)
    add_legend(figure, grid[0], 3)
    return figure


def _best(own: pd.DataFrame) -> pd.DataFrame:
    best = best_of(own, ["epsilon"]).sort_values("epsilon")
    # Budgets of different numbers of rounds lie between each other: the best of all that cost no more.
    return best[best["accuracy"].cummax() == best["accuracy"]] if own["rounds"].nunique() > 1 else best


def caption_of(frame: pd.DataFrame) -> str:
    """Return what was done, in a sentence or two."""
    first = frame.iloc[0]
    rounds, tuned = f"{first['rounds']} rounds", "best step and clip norm"
    if frame["rounds"].nunique() > 1:
        rounds, tuned = f"{frame['rounds'].min()} to {frame['rounds'].max()} rounds", "best rounds, step and clip norm within each ε"
    return (
        f"{first['model']} on {first['clients']:,} images, {first['clients_per_round']} in each of {rounds}; {tuned} of "
        f"the grid. {str(first['adjacency']).capitalize()} adjacency, δ = {first['delta']:.2g}; signs (PLD or Rényi) and MVU (L1 "
        "metric, Rényi): local trust model, on the right against those who see no senders."
    )


def embedded_tasks(seed: int, quick: bool, model: str, quick_repetitions: int) -> list[TrainingTask]:
    """Return the paper's noise and budgets on the digits, with clip norms about its best and more steps if it is not to be quick."""
    common: dict[str, Any] = {
        "clients": DIGITS,
        "clients_per_round": PAPER.value("batch"),
        "rounds": 60 if quick else min(PAPER.value("iterations")),
        "model": model,
        "server": "momentum",
        "momentum": PAPER.value("momentum"),
        "delta": 1 / (DIGITS + 1),
        "adjacency": "replace-one",
    }
    tuned: dict[str, Any] = {"clip": 1.0} if quick else {"clip": [0.5, 1.0, 2.0]}
    rates = [0.3] if quick else [0.03, 0.1, 0.3, 1.0]
    epsilons = [0.5, 2.0, 5.0] if quick else PAPER.value("mvu_epsilon")
    sigmas = PAPER.value("gaussian_sigma")
    trusted: dict[str, Any] = {"name": "dp-fedavg", "noise_multiplier": sigmas, "server_rate": [1.0] if quick else rates, **tuned}
    local: list[dict[str, Any]] = [
        {"name": "sign-gaussian", "noise_multiplier": [0.5, 1, 2, 5] if quick else sigmas, "server_rate": rates, **tuned},
        {**TABLES, "bits_out": 1 if quick else list(MVU_BITS), "round_epsilon": epsilons, "server_rate": rates, **tuned},
    ]
    # One bit for each coordinate leaves accuracies to chance, a trusted server's noise does not.
    found = grid_tasks(seed, common, [{"name": "none", "server_rate": [0.3, 1.0]}, trusted])
    return found + grid_tasks(seed, common, local, repetitions=quick_repetitions if quick else 2)


def paper_tasks(seed: int, quick: bool, folder: Path, model: str) -> list[TrainingTask]:
    """Return the paper's grids on MNIST, each image being a client; a corner of them if it is to be quick."""
    images = mnist_images(folder)
    common: dict[str, Any] = {
        "data": PAPER.data,
        "folder": str(folder),
        "clients": images,
        "clients_per_round": min(PAPER.value("batch"), images),
        "rounds": 20 if quick else PAPER.value("iterations"),
        "model": model,
        "server": "momentum",
        "momentum": PAPER.value("momentum"),
        "delta": 1 / (images + 1),
        "adjacency": "replace-one",
        "server_rate": 0.1 if quick else PAPER.value("step"),
        "clip": 1.0 if quick else PAPER.value("clip_norm"),
    }
    sigmas, epsilons = PAPER.value("gaussian_sigma"), PAPER.value("mvu_epsilon")
    if quick:
        sigmas, epsilons = sigmas[::2], epsilons[::3]
    without = {"name": "none", "rounds": 20 if quick else max(PAPER.value("iterations")), "clip": 1.0}
    blocks = [
        without,
        {"name": "dp-fedavg", "noise_multiplier": sigmas},
        {"name": "sign-gaussian", "noise_multiplier": sigmas},
        {**TABLES, "bits_out": list(MVU_BITS), "round_epsilon": epsilons},
    ]
    return grid_tasks(seed, common, blocks)


def dp_sgd_figure(name: str, described: str, *, model: str, paper_model: str, claim: str, quick_repetitions: int) -> FigureEntry:
    """Return the figure of one of the paper's models: `model` stands for it on the digits, and `claim` is what its pictures show."""

    def draw(frame: pd.DataFrame) -> Figure:
        figure = draw_privacy(frame)
        add_caption(figure, f"{caption_of(frame)} In the paper's pictures (MNIST, no numbers) {claim}.")
        return figure

    return training_figure(
        name=name,
        paper=f"{PAPER.source}: {described}",
        experiment=described,
        tasks=lambda seed, quick: embedded_tasks(seed, quick, model, quick_repetitions),
        draw=draw,
        on_data=lambda seed, quick, folder: paper_tasks(seed, quick, folder, paper_model),
    )
