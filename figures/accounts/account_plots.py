"""An account as a picture: epsilon against rounds, and the Rényi curve that it comes from."""

import io
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, StrMethodFormatter

from ...analysis.accounting.privacy_account import AccountedMechanism, PrivacyAccount
from ...files import write_atomically
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from ..drawing.directed_rounding import rounded_up
from ..drawing.marks import BLUE, GREEN, VERMILION
from ..drawing.save import DOTS_PER_INCH, METADATA
from ..drawing.style import GREY, WIDTH, add_caption, print_style

# Rounds are shown from one to this many times those that were asked for.
BEYOND = 10
POINTS = 13
LARGEST_SHOWN_ORDER = 1024.0
# A vertical axis whose ends are less than so far apart shows numbers between powers of ten.
DECADES = 1000.0


def check_plot_file(file: Path) -> str:
    """Return the kind of picture that a file's suffix asks for.

    Parameters
    ----------
    file : Path
        The file.

    Returns
    -------
    str
        ``"svg"``, ``"pdf"`` or ``"png"``.

    Raises
    ------
    ValueError
        If the suffix is another one.
    """
    kind = file.suffix.removeprefix(".").lower()
    if kind not in METADATA:
        raise ValueError(f"plot must be a file that ends in {', '.join(f'.{kind}' for kind in METADATA)}, got {str(file)!r}")
    return kind


def write_account_plot(mechanism: AccountedMechanism, account: PrivacyAccount, file: Path) -> None:
    """Draw an account and write it to a file, which is there whole or not at all.

    Parameters
    ----------
    mechanism : AccountedMechanism
        The mechanism.
    account : PrivacyAccount
        Its account, with delta.
    file : Path
        Where the picture goes; its suffix says which kind it is.

    Raises
    ------
    ValueError
        If the suffix is unknown.
    OSError
        If the file cannot be written.
    """
    write_plot(lambda: draw_account(epsilon_by_rounds(mechanism, account), mechanism, account), file)


def write_plot(draw: Callable[[], Figure], file: Path) -> None:
    """Draw a picture and write it to a file, which is there whole or not at all.

    Parameters
    ----------
    draw : callable
        Makes the figure; called inside `print_style`.
    file : Path
        Where the picture goes; its suffix says which kind it is.

    Raises
    ------
    ValueError
        If the suffix is unknown.
    OSError
        If the file cannot be written.
    """
    kind = check_plot_file(file)
    buffer = io.BytesIO()
    with print_style():
        draw().savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=METADATA[kind])
    write_atomically(file, buffer.getvalue())


def shown_rounds(rounds: int) -> list[int]:
    """Return the numbers of rounds of a picture: from one to ten times those that were asked for, and these among them.

    Parameters
    ----------
    rounds : int
        Number of rounds that was asked for.

    Returns
    -------
    list of int
        In rising order.

    Examples
    --------
    >>> shown_rounds(1)
    [1, 2, 3, 4, 5, 6, 7, 8, 10]
    """
    spaced = np.geomspace(1, min(BEYOND * rounds, MOST_ROUNDS), POINTS).round().astype(int)
    return [int(number) for number in np.union1d(spaced, [rounds])]


def epsilon_by_rounds(mechanism: AccountedMechanism, account: PrivacyAccount) -> pd.DataFrame:
    """Return a mechanism's epsilon for one round, for ten times the rounds of an account, and for numbers in between.

    Parameters
    ----------
    mechanism : AccountedMechanism
        The mechanism.
    account : PrivacyAccount
        Its account, with delta; one of the rows.

    Returns
    -------
    DataFrame
        Columns rounds, epsilon_rdp and epsilon_pld, which is NaN where it was not computed.
    """
    rows = [account if rounds == account.rounds else mechanism.account(rounds, account.delta) for rounds in shown_rounds(account.rounds)]
    return pd.DataFrame(
        {
            "rounds": [row.rounds for row in rows],
            "epsilon_rdp": [math.nan if row.epsilon_rdp is None else row.epsilon_rdp for row in rows],
            "epsilon_pld": [math.nan if row.epsilon_pld is None else row.epsilon_pld for row in rows],
        }
    )


def draw_account(epsilons: pd.DataFrame, mechanism: AccountedMechanism, account: PrivacyAccount) -> Figure:
    """Draw epsilon against rounds, with the rounds of the account marked, and the Rényi divergence of one round against its order.

    Parameters
    ----------
    epsilons : DataFrame
        Made by `epsilon_by_rounds`.
    mechanism : AccountedMechanism
        The mechanism.
    account : PrivacyAccount
        Its account, with delta.

    Returns
    -------
    Figure
        The figure; to be made and saved inside `print_style`.
    """
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    rounds_axes, order_axes = figure.subplots(1, 2)
    _draw_rounds(rounds_axes, epsilons, account)
    _draw_orders(order_axes, mechanism, account)
    sampling = "every client takes part in every round" if account.sampling is None else account.sampling
    ways = "by Rényi divergences and by privacy loss distributions" if account.epsilon_pld is not None else "by Rényi divergences"
    order = "" if account.order in (None, math.inf) else ", and the order that proves the least ε after all rounds"
    add_caption(
        figure,
        f"{account.mechanism}. Left: ε at δ = {account.delta:g} after so many rounds, {ways}; it errs upward. Right: Rényi divergence "
        f"of one round{order}. Guarantee: ε = {rounded_up(account.epsilon or 0.0, 4)}, "
        f"δ = {account.delta:g} after {account.rounds} {'round' if account.rounds == 1 else 'rounds'}, {account.adjacency} adjacency, "
        f"{account.trust_model} trust model; {sampling}.",
    )
    return figure


def _draw_rounds(axes: Axes, epsilons: pd.DataFrame, account: PrivacyAccount) -> None:
    for column, label, mark in (("epsilon_rdp", "Rényi divergences", BLUE), ("epsilon_pld", "privacy loss distribution", VERMILION)):
        shown = epsilons[epsilons[column] > 0]
        if len(shown):
            axes.plot(shown["rounds"], shown[column], color=mark.colour, marker=mark.marker, linestyle=mark.line, markersize=3, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {account.delta:g}")
    label_few_decades(axes)
    axes.axvline(account.rounds, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    if account.epsilon:
        axes.plot(
            [account.rounds], [account.epsilon], color=GREEN.colour, marker="o", markersize=8, fillstyle="none", linestyle="none",
            label=f"ε = {rounded_up(account.epsilon, 4)} after {account.rounds}",
        )  # fmt: skip
    axes.grid(visible=True)
    axes.legend(loc="upper left")


def _draw_orders(axes: Axes, mechanism: AccountedMechanism, account: PrivacyAccount) -> None:
    orders, divergences = mechanism.curve.orders, mechanism.curve.divergences
    shown = (orders <= LARGEST_SHOWN_ORDER) & np.isfinite(divergences) & (divergences > 0)
    axes.plot(orders[shown], divergences[shown], color=BLUE.colour, label="one round")
    if math.isfinite(mechanism.pure_epsilon):
        axes.axhline(mechanism.pure_epsilon, color=VERMILION.colour, linestyle=VERMILION.line, linewidth=1.0, label="pure ε of one round")
    if account.order is not None and math.isfinite(account.order):
        at = divergences[orders == account.order]
        axes.plot([account.order], at, color=GREEN.colour, marker="o", markersize=8, fillstyle="none", linestyle="none",
                  label=f"order {account.order:g}, best after {account.rounds}")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="order a", ylabel="Rényi divergence r(a) of one round")
    label_few_decades(axes)
    axes.grid(visible=True)
    axes.legend(loc="best")


def label_few_decades(axes: Axes) -> None:
    """Write plain numbers, also between the powers of ten, on a vertical axis that has few of those.

    Parameters
    ----------
    axes : Axes
        With a logarithmic vertical axis whose limits are settled.
    """
    low, high = axes.get_ylim()
    if high < DECADES * low:
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
