"""DP-SGD in the MVU paper's grids: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables, with one model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...analysis.datasets.found_data import FoundData, found_data
from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, PURPLE, VERMILION
from ..drawing.style import add_caption, extend_caption
from ..entry import FigureEntry
from ..training_settings import settings_by_data, training_settings
from .grids import (
    add_legend,
    best_of,
    by_data,
    data_title,
    draw_accuracies,
    draw_no_privacy,
    grid_tasks,
    logarithmic,
    panel_rows,
    panel_title,
)
from .training_figure import training_figure

PAPER = training_settings("mvu", "mnist")
ON_DATA = settings_by_data("mvu")
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
TABLES = {"name": "mvu", "bits_in": 5}


def draw_privacy(frame: pd.DataFrame) -> Figure:
    """Draw the best accuracy of the grid against the epsilon of the whole run, in a panel for each data and assumption on sampling."""
    sets = by_data(frame)
    figure, grid = panel_rows(dict.fromkeys(sets, len(PANELS)), 3.8)
    for data, row in grid.items():
        for axes, (title, trusted, local) in zip(row, PANELS, strict=True):
            _draw_panel(axes, sets[data], trusted, local)
            axes.set(xlabel="ε of all rounds", title=panel_title(grid, data, title))
            logarithmic(axes)
    add_legend(figure, (row[0] for row in grid.values()), 3)
    return figure


def _draw_panel(axes: Axes, frame: pd.DataFrame, trusted: str, local: str) -> None:
    for name, bits, label, mark in METHODS:
        own = frame[(frame["mechanism"] == name) & (True if bits is None else frame["bits_out"] == bits)]
        own = own.assign(epsilon=own[trusted if name == "dp-fedavg" else local])
        if len(own):
            draw_accuracies(axes, _best(own), "epsilon", mark, label)
    draw_no_privacy(axes, frame)


def _best(own: pd.DataFrame) -> pd.DataFrame:
    best = best_of(own, ["epsilon"]).sort_values("epsilon")
    # Budgets of different numbers of rounds lie between each other: the best of all that cost no more.
    return best[best["accuracy"].cummax() == best["accuracy"]] if own["rounds"].nunique() > 1 else best


def add_captions(figure: Figure, frame: pd.DataFrame, shown: str) -> None:
    """Write under a figure what was done, in a sentence or two, and what the paper's pictures show; each of several data has a line."""
    sets = by_data(frame)
    tuned = "best step and clip norm" if frame["rounds"].nunique() == 1 else "best rounds, step and clip norm within each ε"
    delta = f"{frame['delta'].iloc[0]:.2g}" if len(sets) == 1 else "1/(images + 1)"
    guarantees = (
        f"{str(frame['adjacency'].iloc[0]).capitalize()} adjacency, δ = {delta}; signs (PLD or Rényi) and MVU (L1 metric, Rényi): local "
        f"trust model, on the right against those who see no senders. In the paper's pictures {shown}."
    )
    if len(sets) == 1:
        add_caption(figure, f"{_setting_in_words(frame)}; {tuned} of the grid. {guarantees}")
        return
    add_caption(figure, f"{tuned.capitalize()} of the grid. {guarantees}")
    for own in sets.values():
        extend_caption(figure, f"{_setting_in_words(own)}.")


def _setting_in_words(frame: pd.DataFrame) -> str:
    first, rounds = frame.iloc[0], frame["rounds"]
    some = f"{rounds.min()} to {rounds.max()}" if rounds.nunique() > 1 else f"{rounds.iloc[0]}"
    images = "images" if first["data"] == "digits" else f"images of {data_title(first['data'])}"
    return f"{first['model']} on {first['clients']:,} {images}, {first['clients_per_round']} in each of {some} rounds"


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
        {
            **TABLES,
            "metric": PAPER.value("mvu_metric"),
            "bits_out": 1 if quick else list(MVU_BITS),
            "round_epsilon": epsilons,
            "server_rate": rates,
            **tuned,
        },
    ]
    # One bit for each coordinate leaves accuracies to chance, a trusted server's noise does not.
    found = grid_tasks(seed, common, [{"name": "none", "server_rate": [0.3, 1.0]}, trusted])
    return found + grid_tasks(seed, common, local, repetitions=quick_repetitions if quick else 2)


def paper_tasks(seed: int, quick: bool, found: FoundData, model: str) -> list[TrainingTask]:
    """Return the paper's grids on one of its data, each image being a client; a corner of them if it is to be quick."""
    paper, images = ON_DATA[found.name], found.clients
    common: dict[str, Any] = {
        "data": paper.data,
        "folder": str(found.folder),
        "clients": images,
        "clients_per_round": min(paper.value("batch"), images),
        "rounds": 20 if quick else paper.value("iterations"),
        "model": model,
        "server": "momentum",
        "momentum": paper.value("momentum"),
        "delta": 1 / (images + 1),
        "adjacency": "replace-one",
        "server_rate": 0.1 if quick else paper.value("step"),
        "clip": 1.0 if quick else paper.value("clip_norm"),
    }
    sigmas, epsilons = paper.value("gaussian_sigma"), paper.value("mvu_epsilon")
    if quick:
        sigmas, epsilons = sigmas[::2], epsilons[::3]
    without = {"name": "none", "rounds": 20 if quick else max(paper.value("iterations")), "clip": 1.0}
    blocks = [
        without,
        {"name": "dp-fedavg", "noise_multiplier": sigmas},
        {"name": "sign-gaussian", "noise_multiplier": sigmas},
        {**TABLES, "metric": paper.value("mvu_metric"), "bits_out": list(MVU_BITS), "round_epsilon": epsilons},
    ]
    return grid_tasks(seed, common, blocks)


def dp_sgd_figure(
    name: str, described: str, *, model: str, paper_model: str, data: Sequence[str], claim: str, quick_repetitions: int
) -> FigureEntry:
    """Return the figure of one of the paper's models, for which `model` stands on the digits.

    The paper trains it on `data`, and `claim` is what its pictures show.
    """

    def draw(frame: pd.DataFrame) -> Figure:
        figure = draw_privacy(frame)
        add_captions(figure, frame, f"({', '.join(map(data_title, data))}) {claim}")
        return figure

    def on_data(seed: int, quick: bool, folder: Path) -> list[TrainingTask]:
        return [task for found in found_data(folder, data) for task in paper_tasks(seed, quick, found, paper_model)]

    return training_figure(
        name=name,
        paper=f"{PAPER.source}: {described}",
        experiment=described,
        tasks=lambda seed, quick: embedded_tasks(seed, quick, model, quick_repetitions),
        draw=draw,
        on_data=on_data,
    )
