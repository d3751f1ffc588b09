"""Shared parts of the figures of DP-REC's trainings: settings, methods, results.

The settings are on the digits and on the paper's data.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from ....analysis.datasets.found_data import FoundData, found_data
from ....analysis.training.summary import summarise_training
from ...drawing.directed_rounding import rounded_up
from ...drawing.marks import DASHED, DOTTED, GREY, SOLID, TRUSTED_SERVER, Mark, mechanism_mark
from ...training_settings import ReportedResult, TrainingSettings, settings_by_data, training_settings
from ..grids import best_of, data_title, reported_handle
from ..price_settings import QUICK_ROUNDS_ON_DATA, digits_dimension

PAPER = training_settings("dp-rec", "femnist")
ON_DATA = settings_by_data("dp-rec")
DDG = "distributed-discrete-gaussian"
DP_REC = "dp-rec-training"
# Number of rounds, and of clients of a round, of a quick run, which only shows that the files are right, as a client of these data takes
# minutes.
QUICK_ON_DATA: Mapping[str, tuple[int, int]] = {"shakespeare": (1, 2), "stackoverflow-tags": (2, 4)}
# DP-REC's account assumes draws with replacement. Clients download the messages that they have missed.
_TWO_WAYS: Mapping[str, Any] = {"sampling": "with-replacement", "download": "history"}
# The digits' model has as many groups as the paper's model has tensors.
GROUP_SIZE = -(-digits_dimension("softmax") // PAPER.value("groups"))


def best_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best step of each method and budget by data set, and the `stated_epsilon`.

    The argument holds the rows of all runs.
    """
    frame = best_of(summarise_training(rows), ["data", "label", "target_epsilon"]).reset_index(drop=True)
    return frame.assign(stated_epsilon=stated_epsilon(frame))


def stated_epsilon(frame: pd.DataFrame) -> pd.Series:
    """Return the budget of each run.

    A run with the paper's noise or clip ratio has the epsilon that the paper states for them.
    """
    budgets = frame["target_epsilon"].astype(float)
    for data, paper in ON_DATA.items():
        for result in paper.reported:
            for column, value in (("noise_multiplier", result.noise_multiplier), ("clip_ratio", result.clip_ratio)):
                if column in frame and value is not None:
                    budgets = budgets.mask((frame["data"] == data) & (frame[column] == value), result.epsilon)
    return budgets


def readable_columns(table: pd.DataFrame, measured: Sequence[str]) -> pd.DataFrame:
    """Return the columns for readers: guarantees, and measurements."""
    # Tables for readers show an account of add-or-remove-one adjacency only beside rows of that adjacency; the whole table has it in all
    # rows.
    if "epsilon_published" in table:
        table = table.assign(epsilon_published=table["epsilon_published"].where(table["adjacency"] == "add-or-remove-one"))
    names = ["label", "adjacency", "trust_model", "stated_epsilon", "epsilon", "epsilon_published", *measured]
    return table[[name for name in names if name in table]]


@dataclass(frozen=True)
class Method:
    """A mechanism of the comparison, with its place in tables, results and pictures.

    Attributes
    ----------
    name : str
        The mechanism's name.
    columns : tuple of (str, object)
        Columns, with their values, that distinguish the method from other methods of its name; None stands for a missing option.
    reported : str
        Name of the method's accuracy in the paper's results.
    label : str
        Name in pictures.
    mark : Mark
        Mark of the method in pictures.
    """

    name: str
    columns: tuple[tuple[str, Any], ...]
    reported: str
    label: str
    mark: Mark

    @property
    def look(self) -> Mapping[str, Any]:
        """Keywords of matplotlib's lines; an account that is published but not proven has hollow marks."""
        return self.mark.published if ("account", "published") in self.columns else self.mark.look

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the method."""
        own = frame["mechanism"] == self.name
        for column, value in self.columns:
            # The column is missing if no run has the option.
            given = frame[column] if column in frame else pd.Series(None, index=frame.index, dtype=object)
            own &= given.isna() if value is None else given == value
        return frame[own]


# A mechanism has the mark of the registry; its variants have the same colour.
_SUM, _CODE = mechanism_mark(DDG), mechanism_mark("dp-rec")
NO_PRIVACY = Method("none", (), "fedavg", "no privacy, floats", GREY)
EIGHT_BITS = Method("quantised", (), "quantised", "no privacy, 8 bits", replace(GREY, marker="d", line=DOTTED))
DP_FEDAVG = Method("dp-fedavg", (("noise_multiplier", None), ("bits", None)), "dp-fedavg", "DP-FedAvg", TRUSTED_SERVER)
PAPERS_NOISE = Method(
    "dp-fedavg",
    (("target_epsilon", None), ("bits", None)),
    "dp-fedavg",
    "DP-FedAvg, the paper's noise",
    replace(TRUSTED_SERVER, marker="v", line=DOTTED),
)
# On the paper's data both methods have the paper's noise. The paper does not state the reach of its levels, so runs try both reaches.
LEVELS = (
    Method(
        "dp-fedavg",
        (("bits", 8), ("reach", None)),
        "dp-fedavg-8-bits",
        "DP-FedAvg, 8 bits",
        replace(TRUSTED_SERVER, marker="p", line=DASHED),
    ),
    Method(
        "dp-fedavg",
        (("bits", 8), ("reach", "clip-norm")),
        "dp-fedavg-8-bits",
        "DP-FedAvg, 8 bits to the clip norm",
        replace(TRUSTED_SERVER, marker="h", line=SOLID),
    ),
)
PROVEN = Method(DP_REC, (("account", "any-clients"),), "dp-rec", "DP-REC, ε proven", _CODE)
PUBLISHED = Method(DP_REC, (("account", "published"),), "dp-rec", "DP-REC, ε as published", _CODE)
METHODS = (
    NO_PRIVACY,
    EIGHT_BITS,
    DP_FEDAVG,
    PAPERS_NOISE,
    *LEVELS,
    Method(DDG, (("bits", 16),), "ddg16", "discrete Gaussian, 16 bits", _SUM),
    Method(DDG, (("bits", 12),), "ddg12", "discrete Gaussian, 12 bits", replace(_SUM, marker="v", line=DOTTED)),
    PROVEN,
    PUBLISHED,
)
# Methods whose noise the package calibrates, even if the paper states a noise.
CALIBRATED = (DP_FEDAVG, PROVEN)


@dataclass(frozen=True)
class Ground:
    """Data, clients and hyperparameters of a figure's runs.

    Attributes
    ----------
    common : mapping
        Keys of all runs.
    sums : mapping
        Keys of noisy sums and of DP-FedAvg.
    history : mapping
        Keys of DP-REC.
    reported : tuple of ReportedResult
        Results of the paper's runs; empty on other data.
    deviation : float or None
        Standard deviation of the prior's samples in the paper's runs; None on other data.
    """

    common: Mapping[str, Any]
    sums: Mapping[str, Any]
    history: Mapping[str, Any]
    reported: tuple[ReportedResult, ...] = ()
    deviation: float | None = None

    def dp_rec(self, epsilons: Iterable[float], account: str, **changed: Any) -> list[dict[str, Any]]:
        """Return blocks of DP-REC whose clip ratio keeps an account within each epsilon."""
        adjacency = "replace-one" if account == "any-clients" else "add-or-remove-one"
        shared = {"name": DP_REC, **self.history, "account": account, "adjacency": adjacency, **changed}
        return [{**shared, "epsilon": epsilon, **self._clip(epsilon)} for epsilon in epsilons]

    def published(self, epsilons: Iterable[float]) -> list[dict[str, Any]]:
        """Return blocks of DP-REC as published.

        The clip ratio is the paper's; if the paper states none, it is calibrated by the published account.
        """
        blocks = []
        for epsilon in epsilons:
            (block,), ratio = self.dp_rec([epsilon], "published"), self._ratio(epsilon)
            if ratio is not None:
                block = {name: value for name, value in block.items() if name != "epsilon"} | {"clip_ratio": ratio}
            blocks.append(block)
        return blocks

    def papers_noise(self, epsilons: Iterable[float]) -> list[dict[str, Any]]:
        """Return blocks of DP-FedAvg with the paper's noise multipliers for its epsilons."""
        stated = [result.noise_multiplier for result in self.reported if result.epsilon in set(epsilons)]
        return [{"name": "dp-fedavg", **self.sums, "noise_multiplier": noise} for noise in stated if noise is not None]

    def levels(self, epsilons: Iterable[float]) -> list[dict[str, Any]]:
        """Return blocks of DP-FedAvg on 8-bit updates.

        On the paper's data the blocks have the noise of the runs whose accuracy the paper reports; on other data they keep each epsilon.
        """
        shared = [{"name": method.name, **self.sums, **{key: value for key, value in method.columns if value}} for method in LEVELS]
        if self.deviation is None:
            return [{**block, "epsilon": list(epsilons)} for block in shared]
        stated = [result for result in self.reported if result.epsilon in set(epsilons) and LEVELS[0].reported in result.accuracy]
        return [{**block, "noise_multiplier": result.noise_multiplier} for result in stated for block in shared]

    def _ratio(self, epsilon: float) -> float | None:
        return next((result.clip_ratio for result in self.reported if result.epsilon == epsilon), None)

    def _clip(self, epsilon: float) -> dict[str, float]:
        """Return DP-REC's clip norm as an option, if the paper states it."""
        ratio = self._ratio(epsilon)
        return {} if ratio is None or self.deviation is None else {"clip": ratio * self.deviation}


def digits_ground(*, quick: bool) -> Ground:
    """Return the setting of a softmax on deformed digits, with replace-one adjacency."""
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
    history = {**_TWO_WAYS, "group_bits": PAPER.value("bits_per_group"), "group_size": GROUP_SIZE}
    return Ground(common, rates, {**rates, **history})


def femnist_ground(folder: Path, *, quick: bool) -> Ground:
    """Return the paper's setting on FEMNIST, whose files are in or below a folder."""
    (available,) = found_data(folder, (PAPER.data,))
    return paper_ground(available, quick=quick)


def paper_ground(available: FoundData, *, quick: bool) -> Ground:
    """Return the paper's setting on one of its data sets, with add-or-remove-one adjacency.

    Quick runs have only the first rounds.
    """
    paper = ON_DATA[available.name]
    # Writers, roles and users are clients; data without them deal out the first images to a number of clients.
    written = paper.value("split") == "writer"
    clients = available.clients if written else min(paper.value("clients"), available.clients)
    rounds, cohort = paper.value("rounds"), min(paper.value("clients_per_round"), clients)
    fedavg_rounds = paper.values.get("fedavg_rounds", rounds)
    if quick:
        rounds, most = QUICK_ON_DATA.get(available.name, (QUICK_ROUNDS_ON_DATA, cohort))
        fedavg_rounds, cohort = rounds, min(most, cohort)
    common: dict[str, Any] = {
        "data": paper.data,
        "folder": str(available.folder),
        "split": paper.value("split"),
        **({} if written else {"dirichlet_alpha": paper.value("alpha"), "images": min(paper.value("samples"), available.clients)}),
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
    history = {**_TWO_WAYS, "group_bits": paper.value("bits_per_group"), "rounds": rounds}
    if "largest_group" in paper.values:
        history["largest_group"] = paper.value("largest_group")
    return Ground(common, {"sampling": "poisson"}, history, paper.reported, paper.value("sigma"))


def _optimiser(paper: TrainingSettings) -> dict[str, Any]:
    if paper.value("server") == "adam":
        # The paper's beta_2, 0.999, is the optimiser's default.
        return {"server": "adam", "momentum": paper.value("server_beta1")}
    momentum = paper.values.get("server_momentum")
    return {} if momentum is None else {"server": "momentum", "momentum": momentum}


def compared_with(data: str) -> TrainingSettings:
    """Return the paper's experiment on a data set, or on FEMNIST for unused data."""
    return ON_DATA.get(data, PAPER)


def reported_accuracy(method: Method, epsilon: float, data: str) -> float | None:
    """Return the paper's accuracy of a method on a data set, in per cent, or None."""
    paper = compared_with(data)
    if method is NO_PRIVACY:
        accuracy: float | None = paper.values.get("no_privacy_accuracy", {}).get("fedavg")
        return accuracy
    return next((result.accuracy.get(method.reported) for result in paper.reported if result.epsilon == epsilon), None)


# The clients of data sets whose files name the owner of each example.
_CLIENTS = {"femnist": "writer", "shakespeare": "role"}


def setting_in_words(frame: pd.DataFrame) -> str:
    """Return the common setting of a figure's runs, in words."""
    first = frame.iloc[0]
    dealt = f"a client for each {_CLIENTS.get(first['data'], 'user')}" if first["split"] == "writer" else "Dirichlet(1)"
    rounds = " or ".join(f"{number:,}" for number in sorted(frame["rounds"].unique()))
    return (
        f"{first['model']} on {data_title(first['data'])}, {first['clients']:,} clients, {dealt}, {first['clients_per_round']} "
        f"secretly drawn in each of {rounds} rounds"
    )


def reported_source(data: str) -> Line2D:
    """Return the legend's entry of the paper's accuracies beside those on a data set."""
    return reported_handle(f"the paper, {data_title(compared_with(data).data)}")


def guarantees_in_words(frame: pd.DataFrame) -> str:
    """Return delta, or its rule if it differs between runs, and the adjacencies of the curves."""
    delta = (
        f"δ = {rounded_up(frame['delta'].max(), 2)}" if frame["delta"].nunique() == 1 else f"δ = clients^{PAPER.value('delta_exponent')}"
    )
    adjacency = frame.loc[frame["mechanism"] != DP_REC, "adjacency"].iloc[0]
    if adjacency == "replace-one":
        return f"{delta}, replace-one adjacency (ε as published: not proven, add-or-remove-one)"
    own = PAPERS_NOISE.of(frame)
    spent = ", ".join(rounded_up(epsilon, 2) for epsilon in sorted(own["epsilon"].unique()))
    kept = f"; the paper's noise keeps ε of {spent}" if len(own) else ""
    published = PUBLISHED.of(frame)
    silent = ", ".join(map(data_title, published.loc[np.isinf(published["epsilon_published"]), "data"].unique()))
    bits = f", and on {silent} the bits are too few for its account" if silent else ""
    return f"{delta}, add-or-remove-one adjacency (ε proven of DP-REC: replace-one; ε as published: not proven{bits}{kept})"
