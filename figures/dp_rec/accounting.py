"""Accounts of DP-REC in its paper's settings, beside Gaussian noise on the sum.

The settings are those of Triastcyn, Reisser, Louizos 2021; the comparison goes beyond the paper.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ...analysis.catalogue.registry import entry_named
from ..drawing.marks import TRUSTED_SERVER, Mark, mechanism_mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from .references import ACCOUNTS, PUBLISHED_SETTINGS, ReferencePoint

QUICK_SETTINGS = (PUBLISHED_SETTINGS[0], PUBLISHED_SETTINGS[2])
# A mechanism has its colour, and each of its accounts another marker.
_CODE, _NOISE = mechanism_mark("dp-rec"), TRUSTED_SERVER
MARKS: Mapping[str, Mark] = MappingProxyType(
    {
        "DP-REC, published": _CODE,
        "DP-REC, conservative": replace(_CODE, marker="o"),
        "DP-REC, any-bits": replace(_CODE, marker="D"),
        "Gaussian, classic": replace(_NOISE, marker="v"),
        "Gaussian, optimal": replace(_NOISE, marker="^"),
        "Gaussian, pld": _NOISE,
    }
)
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "DP-REC, published": "DP-REC, as printed",
        "DP-REC, conservative": "DP-REC, conservative",
        "DP-REC, any-bits": "DP-REC, any bits and groups",
        "Gaussian, classic": "Gaussian, older conversion",
        "Gaussian, optimal": "Gaussian, optimal conversion",
        "Gaussian, pld": "Gaussian, privacy loss",
    }
)
# Mark of the noise of the paper's DP-FedAvg.
NOISE_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.8})
# Share of a row's height over which the marks of accounts spread, and half the length of the line for the paper's epsilon.
SPREAD, REACH = 0.64, 0.42


def draw_accounts(frame: pd.DataFrame) -> Figure:
    """Draw epsilons of the same noise (left), and noise at the paper's epsilon (right)."""
    settings = frame.drop_duplicates(["dataset", "paper_epsilon"])
    figure = Figure(figsize=(WIDTH, 2.3 + 0.5 * len(settings)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for row, (_, setting) in enumerate(settings.iterrows()):
        own = frame[(frame["dataset"] == setting["dataset"]) & (frame["paper_epsilon"] == setting["paper_epsilon"])]
        for axes, reference in ((left, setting["paper_epsilon"]), (right, setting["sum_noise_multiplier"])):
            axes.plot([reference] * 2, [row - REACH, row + REACH], color=GREY)
        right.plot([setting["paper_noise_multiplier"]] * 2, [row - REACH, row + REACH], **NOISE_LOOK)
        heights = row + np.linspace(-SPREAD, SPREAD, len(own)) / 2
        _draw_epsilons(left, own, heights)
        for height, (_, account) in zip(heights, own.iterrows(), strict=True):
            right.plot(account["target_noise_multiplier"], height, **_look(account["account"]))
    left.set_yticks(range(len(settings)), [f"{setting['dataset']}, ε = {setting['paper_epsilon']:g}" for _, setting in settings.iterrows()])
    left.invert_yaxis()
    left.set_xlabel("ε with the noise of the paper's setting")
    right.set_xlabel("noise on the sum / clip norm, at the paper's ε")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.margins(x=0.1)
    handles = [Line2D([], [], label=LABELS[name], **_look(name)) for name in MARKS]
    handles.append(Line2D([], [], color=GREY, label="the paper"))
    handles.append(Line2D([], [], label="the paper's DP-FedAvg", **NOISE_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    add_caption(figure, _caption(frame))
    return figure


def _draw_epsilons(axes: Axes, accounts: pd.DataFrame, heights: NDArray[np.float64]) -> None:
    """Draw the epsilons of a setting; hollow marks are epsilons at the fewest sufficient bits."""
    for height, (_, account) in zip(heights, accounts.iterrows(), strict=True):
        finite = np.isfinite(account["epsilon"])
        epsilon = account["epsilon"] if finite else account["epsilon_at_minimum_bits"]
        axes.plot(epsilon, height, **_look(account["account"]) | ({} if finite else {"markerfacecolor": "white"}))
    infinite = np.isinf(accounts["epsilon"])
    if infinite.any():
        axes.annotate(
            f"{accounts['minimum_bits'][infinite].iloc[0]} bits",
            (accounts["epsilon_at_minimum_bits"].max(), heights[infinite].mean()),
            xytext=(8, 0),
            textcoords="offset points",
            verticalalignment="center",
        )


def _look(account: str) -> dict[str, Any]:
    return MARKS[account].points


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    hollow = "Hollow: infinite with the paper's bits, drawn for enough. " if np.isinf(frame["epsilon"]).any() else ""
    return (
        f"DP-REC in its paper's settings, and Gaussian noise; δ = 1/N^1.1 for N clients. {hollow}"
        f"ε for {first['adjacency']} adjacency, {first['trust_model']} trust model. DP-REC's assume that other clients' "
        "messages are samples of the prior; the printed one is not proven even then."
    )


def reference_tasks(seed: int, quick: bool) -> list[ReferencePoint]:
    """Return a task for each setting and account."""
    settings = QUICK_SETTINGS if quick else PUBLISHED_SETTINGS
    return [ReferencePoint(seed=seed, published=setting, account=account) for setting in settings for account in ACCOUNTS]


def reference_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, with bits as whole numbers that may be missing."""
    return rows.astype({"minimum_bits": "Int64"})


def gaussian_over_published(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the Gaussian sum's epsilons over those of DP-REC's theorem, as drawn.

    Epsilons at the fewest sufficient bits replace infinite epsilons.
    """
    drawn = frame.assign(drawn=frame["epsilon"].where(np.isfinite(frame["epsilon"]), frame["epsilon_at_minimum_bits"]))
    gaussian, published = (drawn[drawn["account"] == name] for name in ("Gaussian, pld", "DP-REC, published"))
    return ratios(gaussian, published, ("dataset", "paper_epsilon"), "drawn")


FIGURE = FigureEntry(
    name="dprec-accounting",
    paper=f"{entry_named('dp-rec').paper}; beyond the paper",
    experiment="accounts of DP-REC",
    tasks=reference_tasks,
    table=reference_table,
    draw=draw_accounts,
    findings=(Finding("ε of as much Gaussian noise over DP-REC's as printed", gaussian_over_published),),
)
