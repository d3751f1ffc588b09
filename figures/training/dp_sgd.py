"""DP-SGD in the MVU paper's grids: accuracy against epsilon, with one model.

The mechanisms are Gaussian noise, noisy signs and optimised tables. Noise, steps and tables follow the paper's public code
(`facebookresearch/dp_compression`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...analysis.datasets.found_data import FoundData, found_data
from ...analysis.training.reference_mechanisms import SignGaussianMechanism
from ...analysis.training.task import TrainingTask
from ...design.contracts.norm_ball import NormBall
from ..drawing.directed_rounding import rounded_up
from ..drawing.marks import DOTTED, TRUSTED_SERVER, VERMILION, mechanism_mark
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..training_settings import settings_by_data, training_settings
from .grids import (
    add_legend,
    by_data,
    data_title,
    draw_accuracies,
    draw_no_privacy,
    grid_tasks,
    panel_rows,
    panel_title,
)
from .training_figure import training_figure

PAPER = training_settings("mvu", "mnist")
ON_DATA = settings_by_data("mvu")
DIGITS = 1442
METHODS = (
    ("dp-fedavg", None, "trusted server, Gaussian noise on the sum", TRUSTED_SERVER),
    ("gaussian", None, "Gaussian noise on each gradient", mechanism_mark("gaussian")),
    ("sign-gaussian", None, "signs of gradients with Gaussian noise", VERMILION),
    ("mvu", 1, "MVU, 1 bit", mechanism_mark("mvu")),
    ("mvu", 3, "MVU, 3 bits", replace(mechanism_mark("mvu"), marker="^", line=DOTTED)),
)
# Marks of runs that are not on a front.
EVERY_RUN: Mapping[str, Any] = {"markersize": 3, "alpha": 0.35, "markeredgewidth": 0.0}
# Kinds of sampling, with a title and the column of local mechanisms' epsilon. Sampling in passes, as in the paper, amplifies no guarantee.
PANELS = (
    ("passes", "all images in turn", "epsilon"),
    ("fixed", "random batches, drawn in secret", "epsilon_amplified"),
)
# Number of seeds of the runs on the digits.
SEEDS = 2
# The paper's grid is for one bit.
MVU_BITS = (1, 3)
# The paper states noise in clip norms. This code states noise in distances of two updates, which replace-one adjacency counts.
SENSITIVITY = 2


def draw_privacy(frame: pd.DataFrame) -> Figure:
    """Draw the accuracy of every run against the epsilon of the whole run, and the Pareto front of each method.

    There is a panel for each data set and assumption on sampling.
    """
    sets = by_data(frame)
    figure, grid = panel_rows(dict.fromkeys(sets, len(PANELS)), 4.2)
    for data, row in grid.items():
        for axes, (sampling, title, local) in zip(row, PANELS, strict=True):
            _draw_panel(axes, sets[data][sets[data]["sampling"] == sampling], local)
            axes.set(xlabel="ε of all rounds of a run", title=panel_title(grid, data, title))
            axes.set_xscale("log")
    add_legend(figure, (row[0] for row in grid.values()), frame)
    return figure


def _draw_panel(axes: Axes, frame: pd.DataFrame, local: str) -> None:
    for name, bits, label, mark in METHODS:
        own = frame[(frame["mechanism"] == name) & (True if bits is None else frame["bits_out"] == bits)]
        own = own.assign(epsilon=own["epsilon" if name == "dp-fedavg" else local])
        if len(own):
            axes.plot(own["epsilon"], 100 * own["accuracy"], **mark.points, **EVERY_RUN)
            draw_accuracies(axes, pareto_front(own), "epsilon", mark.look, label)
    draw_no_privacy(axes, frame)


def pareto_front(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that no run of at most their epsilon reaches in accuracy, by epsilon."""
    ordered = runs.sort_values(["epsilon", "accuracy"], ascending=[True, False])
    return ordered[ordered["accuracy"] > ordered["accuracy"].cummax().shift(fill_value=-1.0)]


def caption(frame: pd.DataFrame) -> str:
    """Return the setting, the guarantees and the meaning of the marks; the table has the settings of several data sets."""
    sets = by_data(frame)
    # Epsilon is that of a single run, as in the paper, without the additional privacy cost of choosing the best run.
    delta = rounded_up(frame["delta"].max(), 2) if len(sets) == 1 else "1/(images + 1)"
    return (
        f"{_setting_in_words(frame)}. Points: every setting of the grid; lines: Pareto fronts. "
        f"{str(frame['adjacency'].iloc[0]).capitalize()} adjacency, δ = {delta}; trusted server: central trust model; others: local, on "
        "the right against those who do not see who takes part."
    )


def _setting_in_words(frame: pd.DataFrame) -> str:
    models, rounds = ", ".join(frame["model"].unique()), frame["rounds"]
    if frame["data"].nunique() > 1:
        return f"{models} on {' and '.join(map(data_title, frame['data'].unique()))}"
    first, some = frame.iloc[0], f"{rounds.min()} to {rounds.max()}" if rounds.nunique() > 1 else f"{rounds.iloc[0]}"
    images = "images" if first["data"] == "digits" else f"images of {data_title(first['data'])}"
    return f"{models} on {first['clients']:,} {images}, {first['clients_per_round']} in each of {some} rounds"


def embedded_tasks(seed: int, quick: bool, model: str) -> list[TrainingTask]:
    """Return the paper's noise and tables on the digits, with clip norms near its best norm.

    A full run has more steps than a quick run.
    """
    common: dict[str, Any] = {
        "clients": DIGITS,
        "clients_per_round": PAPER.value("batch"),
        "rounds": 40 if quick else min(PAPER.value("iterations")),
        "model": model,
        "server": "momentum",
        "momentum": PAPER.value("momentum"),
        "delta": 1 / (DIGITS + 1),
        "adjacency": "replace-one",
        "sampling": [sampling for sampling, *_ in PANELS],
    }
    grid = _Grid(
        sigmas=[0.5, 1, 2, 5] if quick else PAPER.value("gaussian_sigma"),
        table_epsilons=[0.5, 1, 2, 5] if quick else PAPER.value("mvu_epsilon"),
        table_bits=[1] if quick else list(MVU_BITS),
        clips=[1.0] if quick else [0.5, 1.0, 2.0],
        steps=[0.3] if quick else [0.03, 0.1, 0.3, 1.0],
    )
    without = {"name": "none", "server_rate": [0.3, 1.0]}
    return grid_tasks(seed, common, [without, grid.trusted, *grid.local], repetitions=SEEDS)


def paper_tasks(seed: int, quick: bool, data: FoundData, model: str) -> list[TrainingTask]:
    """Return the paper's grids on one of its data sets, each image a client.

    A quick run has a corner of the grids.
    """
    paper, images = ON_DATA[data.name], data.clients
    rounds, sigmas, epsilons = paper.value("iterations"), paper.value("gaussian_sigma"), paper.value("mvu_epsilon")
    common: dict[str, Any] = {
        "data": paper.data,
        "folder": str(data.folder),
        "clients": images,
        "clients_per_round": min(paper.value("batch"), images),
        "rounds": 20 if quick else rounds,
        "model": model,
        "server": "momentum",
        "momentum": paper.value("momentum"),
        "delta": 1 / (images + 1),
        "adjacency": "replace-one",
        "sampling": [sampling for sampling, *_ in PANELS],
    }
    grid = _Grid(
        sigmas=sigmas[::2] if quick else sigmas,
        table_epsilons=epsilons[::3] if quick else epsilons,
        table_bits=list(MVU_BITS),
        clips=[1.0] if quick else paper.value("clip_norm"),
        steps=[0.1] if quick else paper.value("step"),
    )
    without = {"name": "none", "rounds": 20 if quick else max(rounds), "server_rate": grid.steps}
    return grid_tasks(seed, common, [without, grid.trusted, *grid.local])


@dataclass(frozen=True)
class _Grid:
    """Noise, tables and tuned parameters, by the paper's names."""

    sigmas: list[float]
    table_epsilons: list[float]
    table_bits: list[int]
    clips: list[float]
    steps: list[float]

    @property
    def trusted(self) -> dict[str, Any]:
        """Runs of a trusted server's noise, a reference that the paper does not have."""
        return {"name": "dp-fedavg", "noise_multiplier": self.sigmas, "clip": self.clips, "server_rate": self.steps}

    @property
    def local(self) -> list[dict[str, Any]]:
        """Runs of Gaussian noise on each gradient, of the signs of noisy gradients, and of tables."""
        tuned = {"clip": self.clips, "server_rate": self.steps}
        tables = {"bits_in": PAPER.value("mvu_bits_in"), "bits_out": self.table_bits, "metric": PAPER.value("mvu_metric")}
        return [
            {"name": "gaussian", "noise_multiplier": [sigma / SENSITIVITY for sigma in self.sigmas], **tuned},
            *(self._signs(sigma, clip) for sigma in self.sigmas for clip in self.clips),
            {"name": "mvu", "table_epsilon": self.table_epsilons, **tables, **tuned},
        ]

    def _signs(self, sigma: float, clip: float) -> dict[str, Any]:
        # The paper's steps multiply means of plain signs; these steps multiply signs in units of the gradient.
        unit = SignGaussianMechanism(NormBall(1, 2.0, clip), sigma / SENSITIVITY, delta=0.0).unit
        rates = [step / unit for step in self.steps]
        return {"name": "sign-gaussian", "noise_multiplier": sigma / SENSITIVITY, "clip": clip, "server_rate": rates}


def dp_sgd_figure(name: str, described: str, *, model: str, paper_model: str, data: Sequence[str]) -> FigureEntry:
    """Return the figure of one of the paper's models.

    The paper trains its model on `data`, and draws accuracies without printing numbers; on the digits, `model` replaces it.
    """

    def draw(frame: pd.DataFrame) -> Figure:
        figure = draw_privacy(frame)
        add_caption(figure, caption(frame))
        return figure

    def on_data(seed: int, quick: bool, folder: Path) -> list[TrainingTask]:
        return [task for data_set in found_data(folder, data) for task in paper_tasks(seed, quick, data_set, paper_model)]

    return training_figure(
        name=name,
        paper=f"{PAPER.source}: {described}",
        experiment=described,
        tasks=lambda seed, quick: embedded_tasks(seed, quick, model),
        draw=draw,
        on_data=on_data,
    )


FIGURES = (
    # The paper trains a linear layer on features of a scattering network.
    dp_sgd_figure(
        "mvu-fig4",
        "DP-SGD of a linear model",
        model="softmax",
        paper_model="scatter-softmax",
        data=("mnist", "cifar10"),
    ),
    dp_sgd_figure(
        "mvu-fig6",
        "DP-SGD of a convolutional network",
        model="cnn-8-32",
        paper_model="mvu-cnn",
        data=("mnist",),
    ),
)
