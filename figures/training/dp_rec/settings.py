"""What the figures of trainings by DP-REC share: settings on the digits and on the paper's data, methods, and what it reports of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ....analysis.datasets.found_data import FoundData, found_data
from ....analysis.training.summary import summarise_training
from ...drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ...training_settings import TrainingSettings, settings_by_data, training_settings
from ..grids import best_of, data_title
from ..price_settings import QUICK_ROUNDS_ON_DATA, digits_dimension

PAPER = training_settings("dp-rec", "femnist")
ON_DATA = settings_by_data("dp-rec")
DDG = "distributed-discrete-gaussian"
DP_REC = "dp-rec-training"
# Rounds and clients of a round where a few are to show that files are right: a client of these takes minutes.
QUICK_ON_DATA: Mapping[str, tuple[int, int]] = {"shakespeare": (1, 2), "stackoverflow-tags": (2, 4)}
# As many groups as the paper's model has tensors.
GROUP_SIZE = -(-digits_dimension("softmax") // PAPER.value("groups"))


def best_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and budget on each data, from the rows of all runs."""
    return best_of(summarise_training(rows), ["data", "label", "target_epsilon"]).reset_index(drop=True)


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
            # No run may have the option.
            own &= frame[column] == value if column in frame else False
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
    """Return the paper's setting on FEMNIST, in or below a folder."""
    (found,) = found_data(folder, (PAPER.data,))
    return paper_ground(found, quick=quick)


def paper_ground(found: FoundData, *, quick: bool) -> Ground:
    """Return the paper's setting on some of its data, add-or-remove-one adjacency; the first rounds of it if it is to be quick."""
    paper = ON_DATA[found.name]
    # The first images are dealt out to a number of clients; writers, roles and users are clients.
    written = paper.value("split") == "writer"
    clients = found.clients if written else min(paper.value("clients"), found.clients)
    rounds, cohort = paper.value("rounds"), min(paper.value("clients_per_round"), clients)
    fedavg_rounds = paper.values.get("fedavg_rounds", rounds)
    if quick:
        rounds, most = QUICK_ON_DATA.get(found.name, (QUICK_ROUNDS_ON_DATA, cohort))
        fedavg_rounds, cohort = rounds, min(most, cohort)
    common: dict[str, Any] = {
        "data": paper.data,
        "folder": str(found.folder),
        "split": paper.value("split"),
        **({} if written else {"dirichlet_alpha": paper.value("alpha"), "images": min(paper.value("samples"), found.clients)}),
        "clients": clients,
        "clients_per_round": cohort,
        "rounds": fedavg_rounds,
        "model": paper.value("model"),
        "local_epochs": paper.value("local_epochs"),
        "batch": paper.value("batch"),
        "client_rate": paper.value("client_step"),
        "server_rate": paper.value("server_step"),
        **_optimiser(paper),
        "clip": paper.value("fedavg_clip_norm"),
        "delta": clients ** paper.value("delta_exponent"),
        "adjacency": "add-or-remove-one",
    }
    history = {"group_bits": paper.value("bits_per_group"), "sampling": "with-replacement", "rounds": rounds}
    if "largest_group" in paper.values:
        history["largest_group"] = paper.value("largest_group")
    clip = {one.epsilon: one.clip_ratio * paper.value("sigma") for one in paper.reported if one.epsilon and one.clip_ratio}
    return Ground(common, {"sampling": "poisson"}, history, clip)


def _optimiser(paper: TrainingSettings) -> dict[str, Any]:
    if paper.value("server") == "adam":
        # beta_2 is the optimiser's own.
        return {"server": "adam", "momentum": paper.value("server_beta1")}
    momentum = paper.values.get("server_momentum")
    return {} if momentum is None else {"server": "momentum", "momentum": momentum}


def compared_with(data: str) -> TrainingSettings:
    """Return what the paper has on some data: on FEMNIST for data that are not the paper's."""
    return ON_DATA.get(data, PAPER)


def reported_accuracy(method: Method, epsilon: float, data: str) -> float | None:
    """Return what the paper reports of a method on some data, in per cent; None: nothing."""
    paper = compared_with(data)
    found: float | None
    if method is NO_PRIVACY:
        found = paper.values.get("no_privacy_accuracy", {}).get("fedavg")
    elif method is EIGHT_BITS:
        found = paper.values.get("scalar_quantiser_accuracy")
    else:
        found = next((one.accuracy.get(method.reported) for one in paper.reported if one.epsilon == epsilon), None)
    return found


# Who a client is, where files say whose examples are.
_CLIENTS = {"femnist": "writer", "shakespeare": "role"}


def setting_in_words(frame: pd.DataFrame) -> str:
    """Return what the runs of a figure have in common."""
    first = frame.iloc[0]
    dealt = f"a client for each {_CLIENTS.get(first['data'], 'user')}" if first["split"] == "writer" else "Dirichlet(1)"
    rounds = " or ".join(f"{number:,}" for number in sorted(frame["rounds"].unique()))
    return (
        f"{first['model']} on {data_title(first['data'])}, {first['clients']:,} clients, {dealt}, {first['clients_per_round']} "
        f"secretly drawn in each of {rounds} rounds"
    )


def guarantees_in_words(frame: pd.DataFrame) -> str:
    """Return delta, if it is the same everywhere, and which adjacencies the curves have."""
    delta = f"δ = {frame['delta'].iloc[0]:.2g}" if frame["delta"].nunique() == 1 else f"δ = clients^{PAPER.value('delta_exponent')}"
    adjacency = frame.loc[frame["mechanism"] != DP_REC, "adjacency"].iloc[0]
    if adjacency == "replace-one":
        return f"{delta}, replace-one adjacency (ε as published: not proven, add-or-remove-one)"
    return f"{delta}, add-or-remove-one adjacency (ε proven of DP-REC: replace-one; ε as published: not proven)"
