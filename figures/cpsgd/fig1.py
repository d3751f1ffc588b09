"""Figure 1 of cpSGD: error against epsilon, for Gaussian and binomial noise.

The paper is Agarwal, Suresh, Yu, Kumar, McMahan 2018.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.registry import entry_named
from ...arguments import check_choice, check_real
from ...design.secure_sum.binomial_account import worst_shift
from ...errors import InfeasibleError
from ...solvers.accounting.gaussian_privacy import gaussian_epsilon, gaussian_noise_multiplier
from ...solvers.divergences.binomial_divergence import MOST_EXACT_TRIALS, shifted_binomial_epsilon
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS, binomial_squared_error, binomial_theorem_epsilon
from ...solvers.numerics.bisection import first_true
from ..drawing.marks import DASHED, LOWER_BOUND, SOLID, TRUSTED_SERVER, Mark, series_marks
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from ..point import Point

PROBABILITY = 0.5
# Ways to account for Gaussian and for binomial noise.
GAUSSIAN, BINOMIAL = ("analytic", "classic"), ("theorem", "exact")
# Ratio between successive candidates for the number of trials.
GROWTH = 4
DELTA = 1e-6
EPSILONS = (0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
QUICK_EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
THEOREM_SCALES = (1.0, 0.1, 0.01, 0.001)
# Scales of binomial noise. The smallest scale makes binomial noise as good as Gaussian noise; smaller scales would only take longer.
EXACT_SCALES = (1.0, 0.1, 0.01)
# Scales are settings of one mechanism, so the marks are the same in both panels.
MARKS: Mapping[float, Mark] = MappingProxyType(dict(zip(THEOREM_SCALES, series_marks(len(THEOREM_SCALES)), strict=True)))
ANALYTIC_LOOK: Mapping[str, Any] = MappingProxyType(TRUSTED_SERVER.rule | {"linestyle": SOLID, "linewidth": 0.9})
CLASSIC_LOOK: Mapping[str, Any] = MappingProxyType(TRUSTED_SERVER.rule | {"linestyle": DASHED, "linewidth": 0.9})
HOLLOW: Mapping[str, Any] = MappingProxyType({"color": LOWER_BOUND.colour, "marker": "o", "markerfacecolor": "white", "linestyle": ""})
TITLES = {"theorem": "accounted for by Theorem 1", "exact": "accounted for exactly"}


@dataclass(frozen=True, kw_only=True)
class NoisePoint(Point):
    """The least noise that keeps a guarantee, for one number with sensitivity 1.

    Gaussian noise is calibrated exactly (``"analytic"``, Balle, Wang 2018) or by the ``"classic"`` rule sigma = sqrt(2 ln(1.25 / delta)) /
    epsilon, which is proven for epsilon up to 1 and is the first term of cpSGD's Theorem 1. Binomial noise s (Z - N / 2) has the fewest
    trials N whose epsilon is within the target, by Theorem 1 (``"theorem"``) or exactly (``"exact"``). The number has to be a multiple of
    s; the error excludes its rounding.

    Attributes
    ----------
    accounting : str
        Name of the accounting: ``"analytic"``, ``"classic"``, ``"theorem"`` or ``"exact"``.
    epsilon : float
        The target, above 0.
    delta : float
        Failure probability, above 0 and below 1.
    scale : float or None
        Scale s of binomial noise, which divides 1; None for Gaussian noise.
    """

    accounting: str
    epsilon: float
    delta: float
    scale: float | None = None

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with the noise.

        ``realised_epsilon`` is an upper bound, and infinite where the accounting proves nothing; ``noise_squared_error`` is the noise's
        variance, in squared units of the number; ``condition_binds`` states whether one trial fewer breaks the condition of Theorem 1, or
        makes the ends of the support likelier than delta; ``certified_error`` is `unbiased_error_bound`.

        Raises
        ------
        ValueError
            If a field is out of range, or the scale does not divide 1.
        InfeasibleError
            If no number of trials suffices.

        Examples
        --------
        >>> targets = [("analytic", None), ("classic", None), ("theorem", 1.0), ("exact", 1.0)]
        >>> points = [NoisePoint(seed=0, accounting=name, epsilon=1.0, delta=1e-6, scale=scale) for name, scale in targets]
        >>> [round(point.run()[0]["noise_squared_error"], 2) for point in points]
        [17.85, 28.08, 370.75, 20.0]
        """
        check_choice("accounting", self.accounting, GAUSSIAN if self.scale is None else BINOMIAL)
        noise = self._gaussian() if self.scale is None else self._binomial(self.scale)
        return [
            {
                "mechanism": "Gaussian" if self.scale is None else "Binomial",
                "accounting": self.accounting,
                "scale": math.nan if self.scale is None else self.scale,
                "epsilon": self.epsilon,
                **noise,
                "trust_model": "central" if self.scale is None else "secure-sum",
                "delta": self.delta,
                "certified_error": unbiased_error_bound(self.epsilon, self.delta),
                "adjacency": "replace-one",
            }
        ]

    def _gaussian(self) -> dict[str, Any]:
        if self.accounting == "analytic":
            deviation = gaussian_noise_multiplier(self.epsilon, self.delta)
        else:
            deviation = math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        return {
            "realised_epsilon": gaussian_epsilon(deviation, self.delta),
            "trials": 0,
            "noise_squared_error": deviation**2,
            "condition_binds": False,
        }

    def _binomial(self, scale: float) -> dict[str, Any]:
        epsilon_of, most = self._account(scale)
        trials = first_true(1, most, lambda number: epsilon_of(number) <= self.epsilon, growth=GROWTH)
        reached = epsilon_of(trials)
        if reached > self.epsilon:
            raise InfeasibleError(f"epsilon must be larger: no number of trials up to {most} gives {self.epsilon:g}")
        return {
            "realised_epsilon": reached,
            "trials": trials,
            "noise_squared_error": binomial_squared_error(trials, PROBABILITY, scale, 1),
            "condition_binds": trials == 1 or math.isinf(epsilon_of(trials - 1)),
        }

    def _account(self, scale: float) -> tuple[Callable[[int], float], int]:
        """Return epsilon as a function of the number of trials, and the largest number."""
        shift = worst_shift(PROBABILITY, scale, 1, 1.0, 1.0, 1.0).shift
        if shift is None:
            raise ValueError(f"scale must divide 1, got {scale!r}")
        if self.accounting == "exact":
            return (lambda trials: shifted_binomial_epsilon(trials, PROBABILITY, shift, self.delta)), MOST_EXACT_TRIALS

        def by_theorem(trials: int) -> float:
            try:
                return binomial_theorem_epsilon(trials, PROBABILITY, scale, 1, 1.0, 1.0, 1.0, self.delta)
            except InfeasibleError:
                return math.inf

        return by_theorem, MOST_TRIALS


def unbiased_error_bound(epsilon: float, delta: float) -> float:
    """Return a lower bound on the variance of unbiased private estimates of a number in [0, 1].

    The lower bound is on the larger of the variances at both ends. Every (epsilon, delta)-private mechanism post-processes four letters
    (Kairouz, Oh, Viswanath 2015, theorem 3.1): with probability delta the letter reveals the number, and otherwise it is randomised
    response. Letters 1/2 +- u and 1/2 +- v are unbiased if delta u + (1 - delta) t v = 1/2, t = tanh(epsilon / 2). The least second moment
    is at v = t u, and estimating from the letters with further randomness adds to it: the mean of the two variances is at least 1 / (4
    (delta + (1 - delta) t^2)) - 1 / 4, and so is the variance of noise that does not depend on the number.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 1e-6 to 100, for the two ends as neighbours.
    delta : float
        Failure probability, from 0 to 0.999.

    Examples
    --------
    >>> round(unbiased_error_bound(1.0, 1e-6), 4)
    0.9207
    """
    contrast = math.tanh(check_real("epsilon", epsilon, low=1e-6, high=100.0) / 2)
    delta = check_real("delta", delta, low=0.0, high=0.999)
    revealed = delta + (1 - delta) * contrast**2
    return (1 - revealed) / (4 * revealed)


def draw_noise(frame: pd.DataFrame) -> Figure:
    """Draw the least noise against epsilon: binomial by Theorem 1 (left) and exactly (right).

    Both panels show Gaussian noise.
    """
    figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, accounting in zip(panels, TITLES, strict=True):
        _draw_panel(axes, frame, accounting)
    panels[0].set_ylabel("variance of the noise (squared sensitivities)")
    scales = sorted(frame["scale"].dropna().unique(), reverse=True)
    handles = [Line2D([], [], label=f"binomial, s = {scale:g}", **MARKS[scale].look) for scale in scales]
    handles.append(Line2D([], [], label="Gaussian, analytic", **ANALYTIC_LOOK))
    handles.append(Line2D([], [], label="Gaussian, classic rule", **CLASSIC_LOOK))
    handles.append(Line2D([], [], label="certified lower bound", **LOWER_BOUND.rule))
    handles.append(Line2D([], [], label="fewer trials refused at any ε", **HOLLOW))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.0, columnspacing=1.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"The least noise for a number that neighbours change by at most 1, at δ = {first['delta']:g}. Certified lower "
        "bound: for unbiased estimates, on average over neighbours. Guarantee: ε as stated, "
        f"{first['adjacency']} adjacency, secure-sum trust model for binomial, central trust model for Gaussian noise.",
    )
    return figure


def _draw_panel(axes: Axes, frame: pd.DataFrame, accounting: str) -> None:
    gaussian = frame[frame["mechanism"] == "Gaussian"]
    analytic, classic = (gaussian[gaussian["accounting"] == name] for name in ("analytic", "classic"))
    kept = classic[classic["realised_epsilon"] <= classic["epsilon"]]
    axes.plot(analytic["epsilon"], analytic["noise_squared_error"], zorder=3, **ANALYTIC_LOOK)
    axes.plot(kept["epsilon"], kept["noise_squared_error"], zorder=3, **CLASSIC_LOOK)
    axes.plot(analytic["epsilon"], analytic["certified_error"], **LOWER_BOUND.rule)
    for scale, series in frame[frame["accounting"] == accounting].groupby("scale", sort=False):
        look = MARKS[float(str(scale))].look
        axes.plot(series["epsilon"], series["noise_squared_error"], **look | {"marker": ""})
        for binds, points in series.groupby("condition_binds"):
            face = "white" if binds else look["color"]
            axes.plot(points["epsilon"], points["noise_squared_error"], **look | {"linestyle": "", "markerfacecolor": face})
    axes.set(xscale="log", yscale="log", xlabel="ε", title=TITLES[accounting])
    axes.grid(visible=True)


def noise_tasks(seed: int, quick: bool) -> list[NoisePoint]:
    """Return a task for each epsilon and kind of noise."""
    kinds: list[tuple[str, float | None]] = [("analytic", None), ("classic", None)]
    kinds += [("theorem", scale) for scale in THEOREM_SCALES] + [("exact", scale) for scale in EXACT_SCALES]
    return [
        NoisePoint(seed=seed, accounting=accounting, epsilon=epsilon, delta=DELTA, scale=scale)
        for epsilon in (QUICK_EPSILONS if quick else EPSILONS)
        for accounting, scale in kinds
    ]


def _excess(frame: pd.DataFrame, accounting: str) -> "pd.Series[float]":
    """Return variances of the finest binomial noise over the Gaussian's, at equal epsilon."""
    finest = frame.loc[frame["accounting"] == "exact", "scale"].min()
    binomial = frame[(frame["accounting"] == accounting) & (frame["scale"] == finest)]
    return ratios(binomial, frame[frame["accounting"] == "analytic"], ("epsilon",), "noise_squared_error")


FIGURE = FigureEntry(
    name="cpsgd-fig1",
    paper=f"{entry_named('cpsgd').paper}, figure 1",
    experiment="noise of cpSGD",
    tasks=noise_tasks,
    draw=draw_noise,
    findings=(
        Finding("Finest binomial variance over the Gaussian's, exact account", lambda frame: _excess(frame, "exact")),
        Finding("by the theorem", lambda frame: _excess(frame, "theorem")),
    ),
)
