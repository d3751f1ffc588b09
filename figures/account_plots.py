"""A picture of epsilon against rounds, for each account of a mechanism."""

import io
import math
import textwrap
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..analysis.composition.account import account_after_each_part
from ..analysis.composition.spec import Composition
from ..design.contracts.privacy import AccountedEpsilon
from ..design.contracts.registry import AccountReport, AccountSubject
from ..files import write_atomically
from ..solvers.accounting.renyi_curve import MOST_ROUNDS
from ..solvers.accounting.sampling import Sampling
from .drawing.directed_rounding import rounded_up
from .drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from .drawing.save import DOTS_PER_INCH, METADATA, FigureFacts
from .drawing.style import GREY, WIDTH, add_caption, print_style, solve_layout

# Largest number of rounds shown, as a multiple of the requested number.
BEYOND = 10
POINTS = 13
MARKS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLACK, SKY)
PROVEN_LINE, OTHER_LINE = "-", (0, (4, 2))
# Largest number of characters in a line of the legend, which takes the width of the page.
LEGEND_CHARACTERS = 95
# Labels of accounts whose names need explanation.
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "pure": "pure privacy, added up",
        "basic": "epsilons, added up",
        "rdp": "Rényi divergences",
        "pld": "privacy loss distribution",
        "near-gaussian": "nearly Gaussian noise",
        "exact": "exact privacy loss",
        "theorem-1": "Theorem 1 of cpSGD",
        "published": "DP-REC's theorem as printed",
        "conservative": "DP-REC's theorem, conservative",
        "any-bits": "DP-REC, any bits and groups",
        "any-clients": "DP-REC, any updates of other clients",
        "message": "the client's own messages",
        "blanket": "privacy blanket of the table",
        "clones": "closed form of Feldman, McMillan and Talwar",
        "rdp-extremes": "Rényi divergences",
    }
)


def check_plot_file(file: Path) -> str:
    """Return the format of a file's suffix: ``"svg"``, ``"pdf"`` or ``"png"``.

    Other suffixes raise a ValueError.
    """
    kind = file.suffix.removeprefix(".").lower()
    if kind not in METADATA:
        raise ValueError(f"plot must be a file that ends in {', '.join(f'.{kind}' for kind in METADATA)}, got {str(file)!r}")
    return kind


def write_account_plot(subject: AccountSubject, delta: float, rounds: int, sampling: Sampling | None, path: Path) -> None:
    """Draw all accounts of a mechanism, round after round, and write the picture atomically.

    Parameters
    ----------
    subject : AccountSubject
        The mechanism, from `AccountReport.subject`.
    delta : float
        Failure probability of all rounds together.
    rounds : int
        Number of rounds to mark; the axis reaches ten times this number.
    sampling : PoissonSampling, FixedSizeSampling or None
        Choice of the clients of a round.
    path : Path
        The file; its suffix selects the format: .svg, .pdf or .png.

    Raises
    ------
    ValueError
        If the suffix is unknown, or an argument is out of range.
    """
    check_plot_file(path)
    numbers = shown_rounds(rounds)
    _write([subject.report(delta, number, sampling) for number in numbers], numbers.index(rounds), path)


def _write(reports: list[AccountReport], asked: int, path: Path) -> None:
    kind = check_plot_file(path)
    buffer = io.BytesIO()
    with print_style():
        figure = draw_accounts(epsilon_by_rounds(reports), reports[asked])
        solve_layout(figure)
        about = FigureFacts(f"Epsilon by rounds: {reports[asked].subject.mechanism}", " ".join(figure.get_supxlabel().split()))
        figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=about.metadata(kind))
    write_atomically(path, buffer.getvalue())


def write_composition_plot(composition: Composition, delta: float, adjacency: str | None, path: Path) -> None:
    """Draw all accounts of a composition after each of its parts, and write the picture atomically.

    Parameters
    ----------
    composition : Composition
        The parts, in the order of their time.
    delta : float
        Failure probability of all parts together.
    adjacency : str or None
        Adjacency, as in `account_composition`.
    path : Path
        The file; its suffix selects the format: .svg, .pdf or .png.
    """
    check_plot_file(path)
    _write(account_after_each_part(composition, delta=delta, adjacency=adjacency), -1, path)


def shown_rounds(rounds: int) -> list[int]:
    """Return the rounds to plot, ascending, from one to ten times the requested number.

    The requested number is among them.

    Examples
    --------
    >>> shown_rounds(1)
    [1, 2, 3, 4, 5, 6, 7, 8, 10]
    """
    spaced = np.geomspace(1, min(BEYOND * rounds, MOST_ROUNDS), POINTS).round().astype(int)
    return [int(number) for number in np.union1d(spaced, [rounds])]


def epsilon_by_rounds(reports: list[AccountReport]) -> pd.DataFrame:
    """Return each account's epsilon (columns) after each number of rounds (index).

    Epsilon is infinite for an account without a proof.
    """
    rows = [{account.name: account.bound.epsilon for account in report.privacy.accounts} for report in reports]
    return pd.DataFrame(rows, index=pd.Index([report.privacy.rounds for report in reports], name="rounds"))


def draw_accounts(epsilons: pd.DataFrame, asked: AccountReport) -> Figure:
    """Draw every account's epsilon against rounds.

    Lines of guarantees are solid; other lines are dashed, and their labels state the assumption.
    """
    privacy = asked.privacy
    figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
    axes = figure.subplots()
    for account, mark in zip(privacy.accounts, cycle(MARKS), strict=False):
        own = epsilons[account.name]
        shown = own[np.isfinite(own) & (own > 0)]
        if len(shown):
            line = PROVEN_LINE if account.proven and account.assumes is None else OTHER_LINE
            look: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "linestyle": line, "markersize": 3}
            axes.plot(shown.index, shown, label=_label(account, privacy.adjacency), **look)
    axes.set(xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {privacy.delta:g}")
    axes.axvline(privacy.rounds, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    if 0 < privacy.epsilon < math.inf:
        circle: dict[str, Any] = {"color": GREY, "marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": ""}
        axes.plot([privacy.rounds], [privacy.epsilon], label=f"guarantee: ε = {rounded_up(privacy.epsilon, 4)}", **circle)
    axes.grid(visible=True)
    figure.legend(loc="outside upper left", ncols=1, handlelength=3.5)
    add_caption(figure, _caption(asked))
    return figure


def _label(account: AccountedEpsilon, adjacency: str) -> str:
    notes = [LABELS.get(account.name, account.name)]
    if account.adjacency != adjacency:
        notes.append(f"{account.adjacency} adjacency")
    if not account.proven:
        notes.append("not proven")
    if account.assumes is not None:
        notes.append(f"assumes: {account.assumes}")
    return textwrap.fill("; ".join(notes), LEGEND_CHARACTERS)


def _caption(asked: AccountReport) -> str:
    privacy, subject = asked.privacy, asked.subject
    rounds = f"{privacy.rounds} {'round' if privacy.rounds == 1 else 'rounds'}"
    # DP-REC itself samples its clients.
    everybody = subject.details.get("drawn", "every client takes part in every round")
    sampling = everybody if privacy.sampling is None else privacy.sampling
    where = f"{privacy.adjacency} adjacency, {privacy.trust_model} trust model; {sampling}"
    if math.isinf(privacy.epsilon):
        promise = f"Nothing is proven without an assumption for {rounds}, {where}."
    else:
        promise = f"Guarantee: ε = {rounded_up(privacy.epsilon, 4)}, δ = {privacy.delta:g} after {rounds}, {where}."
    return (
        f"{subject.mechanism[:1].upper()}{subject.mechanism[1:]}: ε at δ = {privacy.delta:g} by rounds. Solid: proven; dashed: "
        f"not, or under an assumption. {promise}"
    )
