"""Shared parts of the figures of sketched trainings: settings, rates, and captions.

The settings are on the digits and on the paper's data.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ...analysis.datasets.found_data import FoundData, found_data
from ...analysis.training.models.named_models import network_named
from ...analysis.training.summary import summarise_training
from ...analysis.training.task import TrainingTask
from ..drawing.directed_rounding import rounded_up
from ..training_settings import settings_by_data, training_settings
from .grids import by_data, data_title, grid_tasks

PAPER = training_settings("linear-compression", "femnist")
ON_DATA = settings_by_data("linear-compression")
SKETCHED, DENSE = "sketched-discrete-gaussian", "distributed-discrete-gaussian"
# Epsilon of figures with one budget. On FEMNIST adaptive clipping alone costs 1.7, with secret draws.
EPSILON, EPSILON_ON_DATA = 3.0, 10.0
MOST_NOISE = max(result.noise_multiplier or 0.0 for result in PAPER.reported)
# The paper's results at its largest noise: without a sketch for few clients, and at the highest rate for many clients.
LARGEST_NOISE = PAPER.reported[-1]
LARGEST_NOISE_SOURCE = f"the paper, F-EMNIST, z = {LARGEST_NOISE.noise_multiplier:g}"
FEW, MANY = PAPER.value("cohort")
# Epsilon below which numbers are written without a power of ten.
LARGEST_WRITTEN_OUT = 1e6
# Largest change of a sum by a client's data under replace-one adjacency, in clip norms.
SENSITIVITY = 2
# Number of pixels and number of classes of the digits.
PIXELS, CLASSES = 64, 10
ROWS = PAPER.value("rows")
# Rotation of whole updates, which the paper states; sketches always set their rotation.
ROTATION = PAPER.value("rotation")
QUICK_ROUNDS_ON_DATA = 10
# Number of rounds, and of clients of a round, of a quick run on next words, which only shows that the files are right, as a client takes
# minutes.
QUICK_WORDS = 1, 2


def digits_common(*, quick: bool, model: str, clients_per_round: int | list[int]) -> dict[str, Any]:
    """Return the keys of runs on deformed digits, in a secure sum with replace-one adjacency."""
    clients = 2000 if quick else PAPER.value("clients")
    return {
        "clients": clients,
        "clients_per_round": clients_per_round,
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


def femnist_common(folder: Path, *, quick: bool, model: str, clients_per_round: int | list[int]) -> dict[str, Any]:
    """Return the keys of the paper's runs on FEMNIST, in or below a folder.

    Quick runs have only the first rounds.
    """
    (data,) = found_data(folder, (PAPER.data,))
    return paper_common(data, quick=quick, clients_per_round=clients_per_round) | {"model": model}


def paper_common(data: FoundData, *, quick: bool, clients_per_round: int | list[int]) -> dict[str, Any]:
    """Return the keys of the paper's runs on one of its data sets.

    Quick runs have only the first rounds.
    """
    paper, clients, most = ON_DATA[data.name], data.clients, data.clients
    rounds = QUICK_ROUNDS_ON_DATA if quick else paper.value("rounds")
    if quick and paper is not PAPER:
        rounds, most = QUICK_WORDS
    cohorts = clients_per_round if isinstance(clients_per_round, list) else [clients_per_round]
    return {
        "data": paper.data,
        "folder": str(data.folder),
        "split": paper.value("split"),
        "clients": clients,
        "clients_per_round": sorted({min(cohort, clients, most) for cohort in cohorts}),
        "rounds": rounds,
        "model": paper.value("model"),
        "local_epochs": paper.value("local_epochs"),
        "batch": paper.value("batch"),
        "client_rate": paper.value("client_step"),
        "server": "momentum",
        "server_rate": paper.value("server_step"),
        "momentum": paper.value("server_momentum"),
        "clip": paper.value("clip_start"),
        "clipping": "adaptive",
        "delta": 1 / clients,
        "adjacency": "replace-one",
    }


def digits_dimension(model: str) -> int:
    """Return the number of parameters of a model of the digits."""
    return network_named(model, PIXELS, CLASSES).layers.dimension


def row_sizes(dimension: int, rates: Iterable[float]) -> list[int]:
    """Return sizes of sketches of whole rows, at about the given rates."""
    return list(dict.fromkeys(max(1, -(-dimension // round(rate * ROWS))) * ROWS for rate in rates))


def sketch_tasks(
    seed: int, common: Mapping[str, Any], sizes: list[int], repetitions: int, *budgets: Mapping[str, Any], **private: Any
) -> list[TrainingTask]:
    """Return runs without privacy, and private runs of whole updates and of sketches.

    Each budget has a run with a secure sum of whole updates, and a run for each size of sketches. A budget is an epsilon or a noise
    multiplier; the bits are the paper's, unless `private` states other bits.
    """
    paper = ON_DATA.get(common.get("data", ""), PAPER)
    blocks: list[dict[str, Any]] = [{"name": "none"}]
    for budget in budgets:
        shared = {"bits": paper.value("bits"), **private, **budget}
        blocks += [{"name": DENSE, "rotation": ROTATION, **shared}, {"name": SKETCHED, "sketch_dimension": sizes, "rows": ROWS, **shared}]
    return grid_tasks(seed, common, blocks, repetitions)


def papers_noise(*multipliers: float) -> Mapping[str, Any]:
    """Return the paper's noise multipliers in units of trainings.

    The paper's multiplier is relative to the clip norm; the multiplier of trainings is relative to a sensitivity of two clip norms.
    """
    return {"noise_multiplier": [multiplier / SENSITIVITY for multiplier in multipliers]}


def arrange_rates(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each setting, with its rate d/m and the paper's results.

    The paper's noise multiplier and accuracy are missing for settings that it does not report. A rate of 1 has no sketch.
    """
    frame = summarise_training(rows)
    frame = frame.assign(rate=(frame["dimension"] / frame["sketch_dimension"].astype(float)).fillna(1.0))
    if "noise_multiplier" not in frame:
        return frame
    frame = frame.assign(paper_noise_multiplier=SENSITIVITY * frame["noise_multiplier"].astype(float))
    reported = pd.Series([reported_percent(row) for row in frame.to_dict("records")], index=frame.index, dtype=float)
    return frame.assign(paper_percent=reported)


def reported_percent(row: Mapping[Any, Any]) -> float | None:
    """Return the accuracy that the paper reports of a run, in per cent, or None."""
    paper = ON_DATA.get(row["data"])
    if paper is None or row["model"] != paper.value("model"):
        return None
    for result in paper.reported:
        if result.noise_multiplier == row["paper_noise_multiplier"] and row["bits"] == (result.bits or paper.value("bits")):
            # For few clients per round the paper reports only whole updates, and for many clients the result of the highest rate. Rates of
            # sketches with whole rows differ a little.
            rate = 1 if row["clients_per_round"] == min(PAPER.value("cohort")) else result.rate
            if round(row["rate"]) == rate:
                return result.accuracy.get(f"cohort-{row['clients_per_round']}")
    return None


def settings_in_words(frame: pd.DataFrame) -> str:
    """Return the common settings of runs on one data set, or on several, whose own settings stand in the table."""
    sets = by_data(frame)
    if len(sets) == 1:
        return setting_in_words(frame)
    titles = " and ".join(map(data_title, sets))
    return (
        f"{titles}, one local epoch a round; δ = 1/clients, {frame['adjacency'].iloc[0]} adjacency, secure-sum "
        f"trust model, clients secretly drawn.{_noise_in_words(frame)}"
    )


def setting_in_words(frame: pd.DataFrame) -> str:
    """Return the common settings of a figure's runs, in words.

    The text names the clients of a round and the budget if all runs share them.
    """
    first: Mapping[Any, Any] = frame.iloc[0].to_dict()
    data = "deformed digits" if first["data"] == "digits" else data_title(first["data"])
    model = f"{first['model']} ({first['dimension']:,} parameters) on {data}"
    source = model if frame["dimension"].nunique() == 1 else data[:1].upper() + data[1:]
    cohort = f"{first['clients_per_round']:,} in each of " if frame["clients_per_round"].nunique() == 1 else ""
    budgets = frame["target_epsilon"].dropna().unique()
    given = frame.get("paper_noise_multiplier", pd.Series(math.nan, index=frame.index)).notna()
    budget = f"ε = {budgets[0]:g}, " if len(budgets) == 1 and not given.any() else ""
    # Assumptions of the guarantee.
    drawn = "all clients in turn" if first["sampling"] == "passes" else "clients secretly drawn"
    return (
        f"{source}, {first['clients']:,} clients, {cohort}{first['rounds']} rounds of one local epoch; {budget}"
        f"δ = {rounded_up(first['delta'], 2)}, {first['adjacency']} adjacency, secure-sum trust model, {drawn}.{_noise_in_words(frame)}"
    )


def _epsilon_rounded_up(epsilon: float) -> str:
    if 100 <= epsilon < LARGEST_WRITTEN_OUT:
        return f"{math.ceil(epsilon):,}"
    return rounded_up(epsilon, 3) if epsilon < LARGEST_WRITTEN_OUT else f"{float(rounded_up(epsilon, 3)):.3g}"


def _noise_in_words(frame: pd.DataFrame) -> str:
    """Return the largest epsilon for each of the paper's noise multipliers, rounded up; nothing for runs of a budget."""
    if "paper_noise_multiplier" not in frame or frame["paper_noise_multiplier"].isna().all():
        return ""
    kept = []
    for multiplier, epsilons in frame.groupby("paper_noise_multiplier")["epsilon"]:
        kept.append(f"{_epsilon_rounded_up(epsilons.max())} (z = {multiplier:g})")
    return f" Noise / clipped norm: z; ε of at most {', '.join(kept)}."
