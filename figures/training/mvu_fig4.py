"""A linear model by DP-SGD: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.summary import summarise_training
from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLUE, GREEN, PURPLE, VERMILION
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..training_settings import training_settings
from .grids import add_legend, best_of, draw_accuracies, draw_no_privacy, grid_tasks, panels

PAPER = training_settings("mvu", "mnist")
IMAGES = 1442
METHODS = (
    ("dp-fedavg", None, "trusted server, Gaussian noise", BLUE),
    ("sign-gaussian", None, "signs with Gaussian noise", VERMILION),
    ("mvu", 1, "MVU, 1 bit", GREEN),
    ("mvu", 3, "MVU, 3 bits", PURPLE),
)
# Titles, and whether it is secret who takes part.
PANELS = (("the server sees who reports", False), ("sampling is secret, and amplifies", True))


def draw_privacy(frame: pd.DataFrame) -> Figure:
    """Draw the best accuracy of the grid against the epsilon of the whole run, in a panel for each assumption on sampling."""
    figure, grid = panels(2, 3.8)
    for axes, (title, secret) in zip(grid, PANELS, strict=True):
        for name, bits, label, mark in METHODS:
            own = frame[(frame["mechanism"] == name) & (True if bits is None else frame["bits_out"] == bits)]
            if name == "dp-fedavg":
                own = own[own["secret_sampling"] == secret]
            elif secret:
                own = own.assign(epsilon=own["epsilon_amplified"])
            if len(own):
                draw_accuracies(axes, best_of(own, ["epsilon"]), "epsilon", mark, label)
        draw_no_privacy(axes, frame)
        axes.set(xscale="log", xlabel="ε of all rounds", title=title)
        axes.xaxis.set_major_formatter("{x:g}")
    add_legend(figure, grid[0], 3)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Softmax on {IMAGES:,} digits, {first['clients_per_round']} in each of {first['rounds']} rounds; best step and "
        "clip norm of the grid. "
        f"{str(first['adjacency']).capitalize()} adjacency, δ = {first['delta']:.2g}; signs and MVU (L1 metric, Rényi "
        "accounting): local trust model. "
        "In the paper's pictures (MNIST, no numbers) MVU is better than signs nearly everywhere.",
    )
    return figure


def mvu_tasks(seed: int, quick: bool) -> list[TrainingTask]:
    """Return the paper's grid of noise and budgets, with its clip norms and more steps if it is not to be quick."""
    common: dict[str, Any] = {
        "clients": IMAGES,
        "clients_per_round": PAPER.value("batch"),
        "rounds": 60 if quick else min(PAPER.value("iterations")),
        "server": "momentum",
        "momentum": PAPER.value("momentum"),
        "delta": 1 / (IMAGES + 1),
        "adjacency": "replace-one",
    }
    tuned: dict[str, Any] = {"clip": 1.0} if quick else {"clip": [0.5, 1.0, 2.0]}
    rates = [0.3] if quick else [0.03, 0.1, 0.3, 1.0]
    tables = {"name": "mvu", "bits_in": 5, "metric": PAPER.value("mvu_metric")}
    epsilons = [0.5, 2.0, 5.0] if quick else PAPER.value("mvu_epsilon")
    sigmas = PAPER.value("gaussian_sigma")
    trusted: dict[str, Any] = {"name": "dp-fedavg", "noise_multiplier": sigmas, "server_rate": [1.0] if quick else rates, **tuned}
    local: list[dict[str, Any]] = [
        {"name": "sign-gaussian", "noise_multiplier": [0.5, 1, 2, 5] if quick else sigmas, "server_rate": rates, **tuned},
        {**tables, "bits_out": 1, "round_epsilon": epsilons, "server_rate": rates, **tuned},
    ]
    if not quick:
        local.append({**tables, "bits_out": 3, "round_epsilon": epsilons, "server_rate": [0.1, 0.3]})
    # One bit for each coordinate leaves accuracies to chance, a trusted server's noise does not.
    found = grid_tasks(seed, common, [{"name": "none"}, {**trusted, "secret_sampling": [True, False]}])
    return found + grid_tasks(seed, common, local, repetitions=2)


FIGURE = FigureEntry(
    name="mvu-fig4",
    paper=f"{PAPER.source}: DP-SGD with one linear layer",
    experiment="DP-SGD of a linear model",
    tasks=mvu_tasks,
    table=summarise_training,
    draw=draw_privacy,
)
