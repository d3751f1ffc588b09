"""Exact secure histograms: the share of recovered histograms by measurements, for each code.

Items are drawn from a distribution, encoded, summed modulo M and decoded. The codes are the Bernoulli code, with its integer program or the
linear relaxation of it, Rademacher compressed sensing, and the identity code. The figure also shows bounds on the number of measurements.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...design.frequencies.exact_histogram import BernoulliCode, IdentityCode, RademacherCode
from ...design.secure_sum.modular_arithmetic import modular_sum
from ...errors import ConvergenceError, InfeasibleError
from ...solvers.decoders.histogram_problem import pose_histogram_problem, relaxed_histogram
from ...solvers.limits.histogram_code_size import code_size, code_size_of_histogram
from ..drawing.marks import BLUE, GREEN, ORANGE, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

CODES = ("bernoulli", "relaxation", "rademacher", "identity")
PRIORS = ("uniform", "zipf", "geometric")
GEOMETRIC_RATIO = 0.8
MOST_CLIENTS, MOST_ITEMS = 1000, 10**6
FAILURE_PROBABILITY = 0.01
USUAL_CLIENTS, USUAL_DIMENSION, USUAL_REPETITIONS, USUAL_TIME_LIMIT = 30, 1000, 10, 60.0
MEASUREMENTS = (20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 150, 180, 210)
# Standard normal quantile of the 95% intervals.
QUANTILE = 1.959963984540054
MARKS: dict[str, Mark] = {"bernoulli": BLUE, "relaxation": GREEN, "rademacher": VERMILION, "identity": ORANGE}
LABELS = {
    "bernoulli": "Bernoulli code, integer program",
    "relaxation": "its linear relaxation",
    "rademacher": "signs, basis pursuit",
    "identity": "identity code",
}
PRIOR_TITLES = {"uniform": "uniform items", "zipf": "Zipf's law", "geometric": "geometric, ratio 0.8"}
# Bounds on the number of measurements, and their grey lines, which differ by their dashes.
BOUNDS: dict[str, tuple[str, dict[str, Any]]] = {
    "reference_measurements": ("n ln d / ln n", {"color": GREY, "linewidth": 1.0, "linestyle": (0, (1, 1.5))}),
    "histogram_measurements": ("enough for this histogram", {"color": GREY, "linewidth": 1.0, "linestyle": (0, (5, 2))}),
    "rigorous_measurements": ("enough for all histograms", {"color": GREY, "linewidth": 1.0, "linestyle": "-"}),
}
CLIENTS, DIMENSION = 10, 100
# Time limit of a decoding in seconds, far above any decoding's time, so that the figure does not depend on the machine.
TIME_LIMIT = 3600.0


@dataclass(frozen=True, kw_only=True)
class ExactRecoveryPoint(Point):
    """A histogram, encoded and decoded.

    Attributes
    ----------
    code : str
        Name in `CODES`; ``"relaxation"`` is the Bernoulli code, decoded by the linear relaxation of its integer program.
    prior : str
        Distribution of items: ``"uniform"``, ``"zipf"`` with exponent 1, ``"geometric"`` with ratio 0.8, all truncated to the dimension.
    measurements : int
        Number m of measurements; the dimension for the identity code.
    clients, dimension : int
        Number n of clients, up to 1000, and number d of items, up to 10**6.
    time_limit : float
        Time limit of one decoding, in seconds. Near it, recovery depends on the machine.
    repetition : int
        Number of the repetition, from 0.
    """

    code: str
    prior: str
    measurements: int
    clients: int = USUAL_CLIENTS
    dimension: int = USUAL_DIMENSION
    time_limit: float = USUAL_TIME_LIMIT
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row, with flags that the histogram was ``recovered`` and ``proven`` unique.

        ``seconds`` is the time of the decoding. ``distinct`` is the number of different items; ``rigorous_measurements`` distinguish all
        histograms of n items, and ``histogram_measurements`` distinguish this histogram from all others, except with probability 0.01.
        ``reference_measurements`` is n ln d / ln n.

        Raises
        ------
        ValueError
            If a field is out of range.
        """
        clients = check_integer("clients", self.clients, low=2, high=MOST_CLIENTS)
        dimension = check_integer("dimension", self.dimension, low=1, high=MOST_ITEMS)
        check_real("time_limit", self.time_limit, low=1e-3, high=1e6)
        rng = named_stream(self.seed, f"exact recovery: {clients} of {dimension} {self.prior}, repetition {self.repetition}")
        items = rng.choice(dimension, clients, p=item_probabilities(self.prior, dimension))
        counts = np.bincount(items, minlength=dimension)
        code = self._code(int(rng.integers(2**62)))
        total = modular_sum(code.encode(items), code.modulus)
        start = time.monotonic()
        try:
            if self.code == "relaxation" and isinstance(code, BernoulliCode):
                real = relaxed_histogram(pose_histogram_problem(code.matrix(), total, clients))
                recovered, proven = np.array_equal(np.rint(real), counts), False
            elif isinstance(code, BernoulliCode):
                solution = code.solve(total, clients, time_limit=self.time_limit)
                recovered, proven = np.array_equal(solution.counts, counts), solution.unique is True
            else:
                recovered = np.array_equal(code.decode(total, clients, time_limit=self.time_limit), counts)
                proven = isinstance(code, IdentityCode)
        except (ConvergenceError, InfeasibleError):
            recovered = proven = False
        return [
            {
                "code": self.code,
                "prior": self.prior,
                "clients": clients,
                "dimension": dimension,
                "measurements": code.measurements,
                "repetition": self.repetition,
                "time_limit": self.time_limit,
                "distinct": int(np.count_nonzero(counts)),
                "recovered": recovered,
                "proven": proven,
                "seconds": time.monotonic() - start,
                "bits_per_client": code.bits_per_client,
                "rigorous_measurements": code_size(clients, dimension, FAILURE_PROBABILITY),
                "histogram_measurements": code_size_of_histogram(counts, dimension, FAILURE_PROBABILITY),
                "reference_measurements": clients * math.log(dimension) / math.log(clients),
            }
        ]

    def _code(self, seed: int) -> BernoulliCode | RademacherCode | IdentityCode:
        match check_choice("code", self.code, CODES):
            case "bernoulli" | "relaxation":
                return BernoulliCode(self.dimension, self.clients, self.measurements, seed)
            case "rademacher":
                return RademacherCode(self.dimension, self.clients, self.measurements, seed)
            case _:
                return IdentityCode(self.dimension, self.clients)


def item_probabilities(prior: str, dimension: int) -> FloatArray:
    """Return the probabilities of items 0 to d - 1, in descending order."""
    places = np.arange(1, dimension + 1, dtype=np.float64)
    match check_choice("prior", prior, PRIORS):
        case "uniform":
            weights = np.ones(dimension)
        case "zipf":
            weights = 1 / places
        case _:
            weights = GEOMETRIC_RATIO**places
    shares: FloatArray = weights / weights.sum()
    return shares


def exact_recovery_tasks(
    seed: int,
    *,
    sizes: tuple[tuple[int, int], ...] = ((USUAL_CLIENTS, USUAL_DIMENSION),),
    measurements: tuple[int, ...] = MEASUREMENTS,
    priors: tuple[str, ...] = PRIORS,
    repetitions: int = USUAL_REPETITIONS,
    time_limit: float = USUAL_TIME_LIMIT,
) -> list[ExactRecoveryPoint]:
    """Return a task for each size (n, d), prior, code, number of measurements and repetition.

    The identity code has one number of measurements for each size.
    """
    tasks = []
    for clients, dimension in sizes:
        for prior in priors:
            cases = [(code, size) for code in CODES[:-1] for size in measurements if size < dimension]
            for code, size in [*cases, ("identity", dimension)]:
                tasks += [
                    ExactRecoveryPoint(
                        seed=seed,
                        code=code,
                        prior=prior,
                        measurements=size,
                        clients=clients,
                        dimension=dimension,
                        time_limit=time_limit,
                        repetition=repetition,
                    )
                    for repetition in range(repetitions)
                ]
    return tasks


def arrange_exact_recovery(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per size, prior, code and number of measurements.

    ``success`` is the share of repetitions that were recovered, and ``proven`` the share that were proven. ``low`` and ``high`` are
    Wilson's 95% interval of ``success``; ``histogram_measurements`` and ``seconds`` are means, and ``most_seconds`` is the longest
    decoding.
    """
    setting = ["clients", "dimension", "prior", "code", "measurements", "time_limit"]
    order = rows.assign(
        prior=pd.Categorical(rows["prior"], PRIORS),
        code=pd.Categorical(rows["code"], CODES),
        recovered=rows["recovered"].astype(float),
        proven=rows["proven"].astype(float),
    )
    arranged = (
        order.groupby(setting, observed=True)
        .agg(
            repetitions=("recovered", "size"),
            success=("recovered", "mean"),
            proven=("proven", "mean"),
            seconds=("seconds", "mean"),
            most_seconds=("seconds", "max"),
            distinct=("distinct", "mean"),
            bits_per_client=("bits_per_client", "first"),
            rigorous_measurements=("rigorous_measurements", "first"),
            histogram_measurements=("histogram_measurements", "mean"),
            reference_measurements=("reference_measurements", "first"),
        )
        .reset_index()
        .astype({"prior": str, "code": str})
    )
    count, share = arranged["repetitions"], arranged["success"]
    scale = 1 + QUANTILE**2 / count
    middle = (share + QUANTILE**2 / (2 * count)) / scale
    reach = QUANTILE * np.sqrt(share * (1 - share) / count + QUANTILE**2 / (4 * count**2)) / scale
    return arranged.assign(low=(middle - reach).clip(lower=0.0), high=(middle + reach).clip(upper=1.0))


def recovery_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return shares of success, without durations, which differ from run to run."""
    return arrange_exact_recovery(rows).drop(columns=["seconds", "most_seconds", "time_limit"])


def draw_codes(frame: pd.DataFrame) -> Figure:
    """Draw each code's share of recovered histograms, with 95% intervals and bounds.

    Each distribution of items has a panel.
    """
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    panels = figure.subplots(1, len(PRIOR_TITLES), sharex=True, sharey=True)
    for axes, (prior, title) in zip(panels, PRIOR_TITLES.items(), strict=True):
        _draw_panel(axes, frame[frame["prior"] == prior])
        axes.set(xlabel="measurements m", title=title)
    panels[0].set(ylabel="histograms recovered (%)", ylim=(-3, 103))
    handles = [Line2D([], [], label=LABELS[code], **mark.look) for code, mark in MARKS.items()]
    handles += [Line2D([], [], label=label, **look) for label, look in BOUNDS.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.0, columnspacing=1.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"{first['clients']} clients with one item each of {first['dimension']}, in a secure sum modulo n + 1 (signs: 2 n + 1); "
        f"{first['repetitions']} repetitions; bars: Wilson's 95 % intervals. Grey: order of the paper's theorem 4.2, and numbers "
        "proven to be enough with probability 0.99, for this histogram and for all. Nothing here is private beyond the secure sum.",
    )
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    for code, mark in MARKS.items():
        series = panel[panel["code"] == code].sort_values("measurements")
        share = 100 * series["success"]
        reach = [share - 100 * series["low"], 100 * series["high"] - share]
        # Shares of 0 and 1 are ends of their intervals, up to rounding.
        axes.errorbar(series["measurements"], share, yerr=np.clip(reach, 0, None), capsize=2, elinewidth=0.8, **mark.look)
    for column, (_, look) in BOUNDS.items():
        axes.axvline(panel[column].mean(), **look)
    axes.grid(visible=True)


def code_tasks(seed: int, quick: bool) -> list[ExactRecoveryPoint]:
    """Return a task for each distribution, code, number of measurements and repetition."""
    sizes = tuple(range(8, 57, 8)) if quick else tuple(range(4, 61, 4))
    repetitions = 4 if quick else 25
    return exact_recovery_tasks(seed, sizes=((CLIENTS, DIMENSION),), measurements=sizes, repetitions=repetitions, time_limit=TIME_LIMIT)


def _measurements(frame: pd.DataFrame, code: str) -> list[float]:
    """Return the measurements from which on all histograms are recovered, or infinity."""
    enough = []
    for _, series in frame[frame["code"] == code].groupby("prior"):
        failed = series.loc[series["success"] < 1, "measurements"].max()
        later = series.loc[~(series["measurements"] <= failed), "measurements"]
        enough.append(float(later.min()) if len(later) else math.inf)
    return enough


FIGURE = FigureEntry(
    name="freq-codes",
    paper=f"{entry_named('exact-histogram').paper}, theorem 4.2; beyond the paper",
    experiment="exact secure histograms",
    tasks=code_tasks,
    table=recovery_table,
    draw=draw_codes,
    findings=(
        Finding("Measurements for a full share, integer program", lambda frame: _measurements(frame, "bernoulli")),
        Finding("its relaxation", lambda frame: _measurements(frame, "relaxation")),
    ),
)
