"""Slack of cpSGD's Theorem 1 for binomial noise: its epsilon divided by the exact epsilon.

The figure goes beyond the paper, whose authors leave a better account to future work.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...design.secure_sum.binomial_account import worst_shift
from ...errors import InfeasibleError
from ...solvers.divergences.binomial_divergence import shifted_binomial_epsilon
from ...solvers.divergences.cpsgd_theorem import binomial_squared_error, binomial_theorem_epsilon
from ..drawing.marks import DOTTED, Mark, series_marks
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

DELTA = 1e-6
TRIALS = tuple(round(10 ** (thirds / 3)) for thirds in range(6, 25))
SCALES = (1.0, 0.1, 0.01)
MARKS: Mapping[float, Mark] = MappingProxyType(dict(zip(SCALES, series_marks(len(SCALES)), strict=True)))
# Largest shown epsilon, as larger epsilons are useless as privacy parameters.
LARGEST_EPSILON = 30.0
RATIOS = (1, 1.5, 2, 2.5, 3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class SlackPoint(Point):
    """Binomial noise on one number, accounted for by the theorem and exactly.

    Attributes
    ----------
    trials : int
        Number of trials.
    scale : float
        Value of a success; the sensitivity is a whole multiple of it.
    delta : float
        Failure probability, above 0 and below 1.
    probability : float
        Probability of success.
    sensitivity : float
        Largest distance of two neighbours' values.
    """

    trials: int
    scale: float
    delta: float
    probability: float = 0.5
    sensitivity: float = 1.0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with both epsilons and their ratio.

        ``epsilon`` is the theorem's, NaN if its condition fails; ``epsilon_exact`` is infinite if the ends of the support alone are more
        likely than delta.

        Raises
        ------
        ValueError
            If a field is out of range, or the sensitivity is not a multiple of the scale.

        Examples
        --------
        >>> [round(SlackPoint(seed=0, trials=trials, scale=1.0, delta=1e-6).run()[0]["ratio"], 3) for trials in (10**4, 10**6)]
        [2.622, 1.949]
        """
        worst = worst_shift(self.probability, self.scale, 1, self.sensitivity, self.sensitivity, self.sensitivity)
        if worst.shift is None:
            raise ValueError(f"scale must divide the sensitivity {self.sensitivity:g}, got {self.scale!r}")
        theorem = self._theorem()
        exact = shifted_binomial_epsilon(self.trials, self.probability, worst.shift, self.delta)
        return [
            {
                "trials": self.trials,
                "scale": self.scale,
                "probability": self.probability,
                "sensitivity": self.sensitivity,
                "delta": self.delta,
                "noise_squared_error": binomial_squared_error(self.trials, self.probability, self.scale, 1),
                "epsilon": theorem,
                "epsilon_exact": exact,
                "ratio": theorem / exact,
                "adjacency": "replace-one",
                "trust_model": "secure-sum",
            }
        ]

    def _theorem(self) -> float:
        sensitivities = (self.sensitivity,) * 3
        try:
            return binomial_theorem_epsilon(self.trials, self.probability, self.scale, 1, *sensitivities, self.delta)
        except InfeasibleError:
            return math.nan


def draw_slack(frame: pd.DataFrame) -> Figure:
    """Draw both epsilons against trials (left), and their ratio against the exact one (right)."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for scale, series in frame[frame["epsilon_exact"] <= LARGEST_EPSILON].groupby("scale", sort=False):
        look = MARKS[float(str(scale))].look
        left.plot(series["trials"], series["epsilon"].where(series["epsilon"] <= LARGEST_EPSILON), **look)
        left.plot(series["trials"], series["epsilon_exact"], **look | {"linestyle": DOTTED, "markerfacecolor": "white"})
        right.plot(series["epsilon_exact"], series["ratio"], **look)
    left.set(xscale="log", yscale="log", xlabel="trials N", ylabel="ε")
    right.set(xscale="log", yscale="log", xlabel="exact ε", ylabel="ε by Theorem 1 / exact ε")
    right.axhline(1.0, color=GREY, linewidth=0.9)
    right.yaxis.set_major_locator(FixedLocator(RATIOS))
    right.yaxis.set_minor_formatter(NullFormatter())
    right.yaxis.set_major_formatter("{x:g}")
    for axes in (left, right):
        axes.grid(visible=True)
    handles = [Line2D([], [], label=f"s = {scale:g}", **MARKS[scale].look) for scale in frame["scale"].unique()]
    handles.append(Line2D([], [], color=GREY, marker="o", label="by Theorem 1"))
    handles.append(Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle=DOTTED, label="exact"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), handlelength=3.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Binomial noise s (Z \N{MINUS SIGN} N p), p = {first['probability']:g}, for one number that neighbours change by at most "
        f"{first['sensitivity']:g}, at δ = {first['delta']:g}. Theorem 1: where its condition holds; exact: by the privacy loss. Right: "
        f"noise of about the same privacy stands above each other. Guarantee: ε as drawn, {first['adjacency']} adjacency, "
        f"{first['trust_model']} trust model.",
    )
    return figure


def slack_tasks(seed: int, _: bool) -> list[SlackPoint]:
    """Return a task for each scale and number of trials; all of them are quick."""
    return [SlackPoint(seed=seed, trials=trials, scale=scale, delta=DELTA) for scale in SCALES for trials in TRIALS]


FIGURE = FigureEntry(
    name="binomial-slack",
    paper=f"{entry_named('cpsgd').paper}; beyond the paper",
    experiment="slack of Theorem 1",
    tasks=slack_tasks,
    draw=draw_slack,
    findings=(Finding("ε by the theorem over the exact ε", lambda frame: frame.loc[frame["epsilon_exact"] <= LARGEST_EPSILON, "ratio"]),),
)
