"""The accounts of binomial noise as a picture: epsilon against rounds, by each way of accounting."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.accounting.binomial import BinomialAccount
from ...errors import InfeasibleError
from ..drawing.directed_rounding import rounded_up
from ..drawing.marks import BLUE, GREEN, VERMILION
from ..drawing.style import GREY, WIDTH, add_caption
from .account_plots import label_few_decades, shown_rounds, write_plot

WAYS = (("epsilon", "Theorem 1 of cpSGD", VERMILION), ("epsilon_rdp", "Rényi divergences", BLUE), ("epsilon_exact", "exact", GREEN))


def write_binomial_plot(account_of: Callable[[int], BinomialAccount], account: BinomialAccount, file: Path) -> None:
    """Draw the accounts of binomial noise and write them to a file, which is there whole or not at all.

    Parameters
    ----------
    account_of : callable
        The account of a number of rounds; raises InfeasibleError where there is none.
    account : BinomialAccount
        The account that was asked for.
    file : Path
        Where the picture goes; its suffix says which kind it is.

    Raises
    ------
    ValueError
        If the suffix is unknown.
    OSError
        If the file cannot be written.
    """
    write_plot(lambda: draw_binomial_account(binomial_epsilon_by_rounds(account_of, account), account), file)


def binomial_epsilon_by_rounds(account_of: Callable[[int], BinomialAccount], account: BinomialAccount) -> pd.DataFrame:
    """Return every epsilon of binomial noise for one round, for ten times the rounds of an account, and for numbers in between.

    Parameters
    ----------
    account_of, account
        As in `write_binomial_plot`; the account is one of the rows.

    Returns
    -------
    DataFrame
        Columns rounds, epsilon (by Theorem 1), epsilon_rdp and epsilon_exact, which are NaN where there is no such account; no row where
        there is none at all.
    """
    rows = []
    for rounds in shown_rounds(account.rounds):
        try:
            found = account if rounds == account.rounds else account_of(rounds)
        except InfeasibleError:
            continue
        values = [getattr(found, name) for name, _, _ in WAYS]
        rows.append([rounds, *(math.nan if value is None else value for value in values)])
    return pd.DataFrame(rows, columns=["rounds", *(name for name, _, _ in WAYS)])


def draw_binomial_account(epsilons: pd.DataFrame, account: BinomialAccount) -> Figure:
    """Draw epsilon against rounds by each way of accounting, with the rounds of the account marked.

    Parameters
    ----------
    epsilons : DataFrame
        Made by `binomial_epsilon_by_rounds`.
    account : BinomialAccount
        The account.

    Returns
    -------
    Figure
        The figure; to be made and saved inside `print_style`.
    """
    sampling = "every client takes part in every round" if account.sampling is None else account.sampling
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
    axes = figure.subplots()
    reached = []
    for name, label, mark in WAYS:
        shown = epsilons[epsilons[name] > 0]
        if len(shown):
            axes.plot(shown["rounds"], shown[name], color=mark.colour, marker=mark.marker, linestyle=mark.line, label=label)
        value = getattr(account, name)
        if value is not None:
            reached.append(f"{rounded_up(value, 4)} ({label})")
    axes.set(xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {account.delta:g}")
    label_few_decades(axes)
    axes.axvline(account.rounds, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.grid(visible=True)
    axes.legend(loc="upper left")
    add_caption(
        figure,
        f"{account.mechanism}: ε at δ = {account.delta:g} after so many rounds; each of them errs upward. After {account.rounds} "
        f"{'round' if account.rounds == 1 else 'rounds'}: {', '.join(reached)}. Guarantee: {account.adjacency} adjacency, "
        f"{account.trust_model} trust model; {sampling}.",
    )
    return figure
