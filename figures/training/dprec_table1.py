"""Federated averaging by DP-REC and what it is compared with: accuracy against bytes, at equal epsilon."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.summary import summarise_training
from ...analysis.training.task import TrainingTask
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..training_settings import training_settings
from .grids import add_legend, best_of, grid_tasks, panels

PAPER = training_settings("dp-rec", "femnist")
DDG = "distributed-discrete-gaussian"
DP_REC = "dp-rec-training"
# Mechanism, its adjacency or bits where there are several, key of the paper's accuracy, label, mark.
METHODS: tuple[tuple[str, dict[str, Any], str, str, Mark], ...] = (
    ("none", {}, "fedavg", "no privacy, floats", BLACK),
    ("quantised", {}, "quantised", "no privacy, 8 bits", ORANGE),
    ("dp-fedavg", {}, "dp-fedavg", "DP-FedAvg", BLUE),
    (DDG, {"bits": 16}, "ddg16", "discrete Gaussian, 16 bits", GREEN),
    (DDG, {"bits": 12}, "ddg12", "discrete Gaussian, 12 bits", PURPLE),
    (DP_REC, {"adjacency": "replace-one"}, "dp-rec", "DP-REC, ε proven", VERMILION),
    (DP_REC, {"adjacency": "add-or-remove-one"}, "dp-rec", "DP-REC, ε as published", SKY),
)
EPSILONS = (3.0, 6.0)
# Of a softmax on the digits.
PARAMETERS = 650


def chosen(frame: pd.DataFrame, name: str, values: dict[str, Any]) -> pd.DataFrame:
    """Return a method's rows."""
    own = frame[frame["mechanism"] == name]
    for column, value in values.items():
        own = own[own[column] == value]
    return own


def arrange_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and budget, with its saving in bytes up, and what the paper reports on its own data."""
    frame = best_of(summarise_training(rows), ["label", "target_epsilon"])
    uncompressed = frame.loc[frame["mechanism"] == "dp-fedavg", "megabytes_up"].iloc[0]
    paper = pd.Series([_reported(dict(row)) for _, row in frame.iterrows()], index=frame.index, dtype=float)
    return frame.assign(times_fewer_bytes_up=uncompressed / frame["megabytes_up"], paper_femnist_percent=paper).reset_index(drop=True)


def short_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that people read."""
    names = ["label", "adjacency", "trust_model", "target_epsilon", "accuracy", "megabytes_up", "megabytes_down", "times_fewer_bytes_up"]
    return table[[*names, "paper_femnist_percent"]]


def draw_bytes(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against bytes, a point for each method, in a panel for each budget."""
    budgets = sorted(frame["target_epsilon"].dropna().unique())
    figure, grid = panels(len(budgets), 4.0)
    for axes, epsilon in zip(grid, budgets, strict=True):
        for name, values, _, label, mark in METHODS:
            own = chosen(frame, name, values)
            own = own[(own["target_epsilon"] == epsilon) | own["target_epsilon"].isna()]
            axes.errorbar(
                own["megabytes_up"],
                100 * own["accuracy"],
                yerr=100 * own["standard_error"].fillna(0.0),
                color=mark.colour,
                marker=mark.marker,
                markersize=7,
                linestyle="",
                label=label,
            )
        axes.set(xscale="log", xlabel="megabytes up, all clients and rounds", title=f"ε = {epsilon:g}")
        axes.xaxis.set_major_formatter("{x:g}")
    add_legend(figure, grid[0], 3)
    first = frame.iloc[0]
    ours = PAPER.reported[-1]
    add_caption(
        figure,
        f"Softmax on digits, {first['clients']:,} clients, Dirichlet(1), {first['clients_per_round']} secretly drawn in each of "
        f"{first['rounds']} rounds; δ = {first['delta']:.2g}, {first['adjacency']} adjacency (ε as published: not "
        "proven, add-or-remove-one). "
        f"Paper, FEMNIST, ε = {ours.epsilon:g}: "
        + ", ".join(f"{name} {value:g}" for name, value in ours.accuracy.items())
        + f"; not private {PAPER.value('no_privacy_accuracy')['fedavg']:g}, 8 bits {PAPER.value('scalar_quantiser_accuracy')} %.",
    )
    return figure


def table_tasks(seed: int, quick: bool) -> list[TrainingTask]:
    """Return a run for each method, budget and step of the server."""
    clients = 1000 if quick else PAPER.value("clients")
    common: dict[str, Any] = {
        "clients": clients,
        "clients_per_round": 50 if quick else PAPER.value("clients_per_round"),
        "rounds": 40 if quick else 400,
        "split": "dirichlet",
        "samples": 20,
        "local_epochs": PAPER.value("local_epochs"),
        "batch": PAPER.value("batch"),
        "client_rate": 0.5,
        "clip": 0.5,
        "delta": clients ** PAPER.value("delta_exponent"),
        "adjacency": "replace-one",
    }
    # Accounts of sums that secret sampling amplifies take long.
    budget: dict[str, Any] = (
        {"epsilon": EPSILONS[-1], "server_rate": 0.5} if quick else {"epsilon": list(EPSILONS), "server_rate": [0.3, 1.0]}
    )
    # As many groups as the paper's model has tensors.
    groups = {"group_bits": PAPER.value("bits_per_group"), "group_size": -(-PARAMETERS // PAPER.value("groups"))}
    history: dict[str, Any] = {**budget, "name": DP_REC, **groups, "sampling": "with-replacement"}
    return grid_tasks(
        seed,
        common,
        [
            {"name": "none"},
            {"name": "quantised"},
            {"name": "dp-fedavg", **budget},
            {"name": DDG, "bits": [16, 12], **budget},
            {**history, "account": "any-clients"},
            {**history, "account": "published", "adjacency": "add-or-remove-one"},
        ],
        repetitions=1 if quick else 3,
    )


def _reported(row: Mapping[Any, Any]) -> float | None:
    key = next(key for name, values, key, *_ in METHODS if name == row["mechanism"] and all(row[one] == values[one] for one in values))
    if key == "fedavg":
        return float(PAPER.value("no_privacy_accuracy")[key])
    if key == "quantised":
        return float(PAPER.value("scalar_quantiser_accuracy"))
    return next((one.accuracy.get(key) for one in PAPER.reported if one.epsilon == row["target_epsilon"]), None)


FIGURE = FigureEntry(
    name="dprec-table1",
    paper=PAPER.source,
    experiment="federated averaging at equal epsilon",
    tasks=table_tasks,
    table=arrange_table,
    summary=short_table,
    draw=draw_bytes,
)
