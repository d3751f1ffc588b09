"""Leaderboards: the plans of a grid judged by proven bounds and trusted servers, winners of tasks, and standings of mechanisms."""

import datetime as dt
import os

import pandas as pd

from ...design.contracts.guarantee import TRUST_MODELS
from ...shown import counted, listed
from ..catalogue.registry import REGISTRY
from ..planner.bound import WEAK

# Columns of a grid's table that a leaderboard keeps; `date` follows them.
COLUMNS = (
    *("task", "task_epsilon", "dimension", "norm", "categories"),
    *("mechanism", "options", "trust_model", "adjacency", "epsilon", "delta", "rounds"),
    *("bits_per_client", "bits_per_coordinate", "predicted_error", "predicted_error_of_rounds", "worst_error"),
    *("lower_bound", "ratio_to_bound", "central_error", "ratio_to_central", "answer_zero_error"),
    *("recommended", "on_real_numbers", "unbiased", "provider", "provider_version", "version_quietbits", "reason"),
)
PROVEN_BOUND, TRUSTED_SERVER = "proven bound", "trusted server"


def board_rows(results: pd.DataFrame, date: dt.date) -> pd.DataFrame:
    """Return the rows of a leaderboard: columns of a grid's table (`plan_grid`), and the date of the run."""
    return results[list(COLUMNS)].assign(date=date.isoformat())


def read_board(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the rows of a leaderboard's CSV file."""
    types = {"provider_version": str, "version_quietbits": str, "reason": str}
    # Only an empty cell is missing: a mechanism may be named NA.
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])


def judged(board: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a mechanism, with columns that compare them.

    Returns
    -------
    DataFrame
        The rows with the further columns

        - ``number``: the number of the task, from 1;
        - ``reference`` and ``ratio``: what the error is compared with, and the ratio. The reference is a proven bound, which the largest
          error over the domain is divided by. Without one, or where it is weak outside the local trust model, the reference is the least
          error of a trusted server, which the predicted error is divided by. Both are missing without a reference;
        - ``over_best``: the error of the average of all rounds over the least one of a releasable mechanism of the same task and trust
          model;
        - ``zero_wins``: whether the answer without messages has at most the error of the average of all rounds.
    """
    numbers = {task: number for number, task in enumerate(board["task"].unique(), 1)}
    rows = board[board["mechanism"].notna()].copy()
    # A column without any value is stored without a type.
    floats = ("lower_bound", "ratio_to_bound", "central_error", "ratio_to_central", "answer_zero_error")
    rows = rows.astype(dict.fromkeys(("recommended", "on_real_numbers", "unbiased"), bool) | dict.fromkeys(floats, float))
    # A bound for a number is stated however weak it is: a plan's rows judge for themselves.
    weak = (rows["trust_model"] != "local") & (rows["lower_bound"] < WEAK * rows["central_error"])
    by_bound = rows["ratio_to_bound"].notna() & ~weak
    by_server = ~by_bound & rows["ratio_to_central"].notna()
    errors = rows["predicted_error_of_rounds"]
    least = errors.mask(rows["on_real_numbers"]).groupby([rows["task"], rows["trust_model"]]).transform("min")
    return rows.assign(
        number=rows["task"].map(numbers),
        reference=pd.Series(None, rows.index, dtype=object).mask(by_bound, PROVEN_BOUND).mask(by_server, TRUSTED_SERVER),
        ratio=rows["ratio_to_bound"].where(by_bound, rows["ratio_to_central"]),
        over_best=errors / least,
        zero_wins=errors >= rows["answer_zero_error"],
    )


def standings(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each mechanism of judged rows, by trust model, number of wins, and median excess.

    Returns
    -------
    DataFrame
        Columns ``mechanism``, ``provider``, ``trust_model``, ``tasks`` (number of tasks that it serves), ``wins`` (number of those for
        which the plan recommends it), the medians over these tasks of ``ratio``, ``over_best`` and ``bits_per_coordinate``, and
        ``on_real_numbers``.
    """
    table = (
        rows.groupby(["trust_model", "mechanism"], sort=False)
        .agg(
            provider=("provider", "first"),
            tasks=("number", "nunique"),
            wins=("recommended", "sum"),
            ratio=("ratio", "median"),
            over_best=("over_best", "median"),
            bits_per_coordinate=("bits_per_coordinate", "median"),
            on_real_numbers=("on_real_numbers", "any"),
        )
        .reset_index()
    )
    places = table["trust_model"].map({model: place for place, model in enumerate(TRUST_MODELS)})
    order = table.assign(place=places).sort_values(["place", "wins", "over_best"], ascending=[True, False, True], kind="stable").index
    return table.loc[order].reset_index(drop=True)


def winners_in_words(rows: pd.DataFrame) -> list[str]:
    """Return a sentence for each trust model of judged rows: the mechanism that wins most tasks, and where no message wins."""
    sentences = []
    for model in TRUST_MODELS:
        served = rows[rows["trust_model"] == model]
        chosen = served[served["recommended"]]
        if chosen.empty:
            continue
        counts = chosen["mechanism"].value_counts()
        first = [str(name) for name, count in counts.items() if count == counts.iloc[0]]
        zero = int(chosen["zero_wins"].sum())
        without = f"; answering without messages has at most the winner's error in {zero}" if zero else ""
        sentences.append(
            f"{model}: {listed(first)} {'wins' if len(first) == 1 else 'win'} {'' if len(first) == 1 else 'each '}"
            f"{counts.iloc[0]} of {counted(served['number'].nunique(), 'task')}, with {counted(len(counts), 'different winner')}{without}"
        )
    return sentences


def absent(rows: pd.DataFrame) -> dict[str, str]:
    """Return the mechanisms of the registry without a judged row, each with the reason."""
    present = set(rows["mechanism"])
    return {name: _absence(name) for name in REGISTRY.usable() if name not in present}


def _absence(name: str) -> str:
    entry = REGISTRY[name]
    if not entry.private:
        return "it keeps no budget"
    if entry.populations is not None:
        return f"its error is stated for the population {' or '.join(entry.populations)} only"
    return "it serves none of the tasks"
