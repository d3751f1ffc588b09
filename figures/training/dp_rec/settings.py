"""What the figures of trainings by DP-REC share: settings on the digits and on FEMNIST, methods, and what the paper reports of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ....analysis.datasets.leaf import femnist_writers
from ....analysis.training.summary import summarise_training
from ...drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ...training_settings import training_settings
from ..grids import best_of
from ..price_settings import QUICK_ROUNDS_ON_DATA, digits_dimension

PAPER = training_settings("dp-rec", "femnist")
DDG = "distributed-discrete-gaussian"
DP_REC = "dp-rec-training"
# As many groups as the paper's model has tensors.
GROUP_SIZE = -(-digits_dimension("softmax") // PAPER.value("groups"))


def best_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and budget, from the rows of all runs."""
    return best_of(summarise_training(rows), ["label", "target_epsilon"]).reset_index(drop=True)


@dataclass(frozen=True)
class Method:
    """A mechanism, in which columns it differs from others of its name, its accuracy's name in the paper, and how it looks."""

    name: str
    columns: tuple[tuple[str, Any], ...]
    reported: str
    label: str
    mark: Mark

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return its rows."""
        own = frame["mechanism"] == self.name
        for column, value in self.columns:
            own &= frame[column] == value
        return frame[own]


NO_PRIVACY = Method("none", (), "fedavg", "no privacy, floats", BLACK)
EIGHT_BITS = Method("quantised", (), "quantised", "no privacy, 8 bits", ORANGE)
DP_FEDAVG = Method("dp-fedavg", (), "dp-fedavg", "DP-FedAvg", BLUE)
PROVEN = Method(DP_REC, (("account", "any-clients"),), "dp-rec", "DP-REC, ε proven", VERMILION)
PUBLISHED = Method(DP_REC, (("account", "published"),), "dp-rec", "DP-REC, ε as published", SKY)
METHODS = (
    NO_PRIVACY,
    EIGHT_BITS,
    DP_FEDAVG,
    Method(DDG, (("bits", 16),), "ddg16", "discrete Gaussian, 16 bits", GREEN),
    Method(DDG, (("bits", 12),), "ddg12", "discrete Gaussian, 12 bits", PURPLE),
    PROVEN,
    PUBLISHED,
)


@dataclass(frozen=True)
class Ground:
    """Where the runs of a figure take place.

    Attributes
    ----------
    common : mapping
        Keys of all runs.
    sums : mapping
        Keys of noisy sums and of DP-FedAvg.
    history : mapping
        Keys of DP-REC.
    clip : mapping of float to float
        Clip norms of DP-REC by epsilon, where the paper states them.
    """

    common: Mapping[str, Any]
    sums: Mapping[str, Any]
    history: Mapping[str, Any]
    clip: Mapping[float, float]

    def dp_rec(self, epsilons: Iterable[float], account: str, **changed: Any) -> list[dict[str, Any]]:
        """Return blocks of DP-REC whose clip ratio keeps an account to each epsilon."""
        adjacency = "replace-one" if account == "any-clients" else "add-or-remove-one"
        shared = {"name": DP_REC, **self.history, "account": account, "adjacency": adjacency, **changed}
        return [{**shared, "epsilon": one, **({"clip": self.clip[one]} if one in self.clip else {})} for one in epsilons]


def digits_ground(*, quick: bool) -> Ground:
    """Return a softmax on deformed digits, replace-one adjacency."""
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
    rates = {"server_rate": 0.5 if quick else [0.3, 1.0]}
    history = {"group_bits": PAPER.value("bits_per_group"), "group_size": GROUP_SIZE, "sampling": "with-replacement"}
    return Ground(common, rates, {**rates, **history}, {})


def femnist_ground(folder: Path, *, quick: bool) -> Ground:
    """Return the paper's setting on FEMNIST, add-or-remove-one adjacency; the first rounds of it if it is to be quick."""
    clients = femnist_writers(folder)
    common: dict[str, Any] = {
        "data": PAPER.data,
        "folder": str(folder),
        "split": PAPER.value("split"),
        "clients": clients,
        "clients_per_round": min(PAPER.value("clients_per_round"), clients),
        "rounds": QUICK_ROUNDS_ON_DATA if quick else PAPER.value("fedavg_rounds"),
        "model": PAPER.value("model"),
        "local_epochs": PAPER.value("local_epochs"),
        "batch": PAPER.value("batch"),
        "client_rate": PAPER.value("client_step"),
        "server_rate": PAPER.value("server_step"),
        "clip": PAPER.value("fedavg_clip_norm"),
        "delta": clients ** PAPER.value("delta_exponent"),
        "adjacency": "add-or-remove-one",
    }
    history = {
        "group_bits": PAPER.value("bits_per_group"),
        "sampling": "with-replacement",
        "rounds": QUICK_ROUNDS_ON_DATA if quick else PAPER.value("rounds"),
    }
    clip = {one.epsilon: one.clip_ratio * PAPER.value("sigma") for one in PAPER.reported if one.epsilon and one.clip_ratio}
    return Ground(common, {"sampling": "poisson"}, history, clip)


def reported_accuracy(method: Method, epsilon: float) -> float | None:
    """Return what the paper reports of a method on FEMNIST, in per cent."""
    if method is NO_PRIVACY:
        return float(PAPER.value("no_privacy_accuracy")["fedavg"])
    if method is EIGHT_BITS:
        return float(PAPER.value("scalar_quantiser_accuracy"))
    return next((one.accuracy.get(method.reported) for one in PAPER.reported if one.epsilon == epsilon), None)


def setting_in_words(frame: pd.DataFrame) -> str:
    """Return what the runs of a figure have in common."""
    first = frame.iloc[0]
    dealt = "a client for each writer" if first["split"] == "writer" else "Dirichlet(1)"
    rounds = " or ".join(f"{number:,}" for number in sorted(frame["rounds"].unique()))
    return (
        f"{first['model']} on {first['data']}, {first['clients']:,} clients, {dealt}, {first['clients_per_round']} "
        f"secretly drawn in each of {rounds} rounds"
    )


def guarantees_in_words(frame: pd.DataFrame) -> str:
    """Return delta, and which adjacencies the curves have."""
    delta = f"δ = {frame['delta'].iloc[0]:.2g}"
    adjacency = frame.loc[frame["mechanism"] != DP_REC, "adjacency"].iloc[0]
    if adjacency == "replace-one":
        return f"{delta}, replace-one adjacency (ε as published: not proven, add-or-remove-one)"
    return f"{delta}, add-or-remove-one adjacency (ε proven of DP-REC: replace-one; ε as published: not proven)"
