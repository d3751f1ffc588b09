"""Error against bits per coordinate in a secure sum, for several mechanisms.

All mechanisms keep the same guarantee. No paper has this picture.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ...analysis.catalogue.registry import build_mechanism
from ...analysis.random_streams import named_stream
from ...analysis.simulation.repeated_means import repeat_mean
from ...arguments import check_choice
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Budget, Task
from ...design.secure_sum.cpsgd import MOST_BITS, calibrate_cpsgd
from ...errors import InfeasibleError
from ...progress import silent
from ..drawing.marks import ANSWER_ZERO, TRUSTED_SERVER, mechanism_mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

ADJACENCY = "replace-one"
POPULATION = "sphere"
# Number of bits of an uncompressed coordinate, a single-precision floating-point number.
UNCOMPRESSED_BITS = 32
PUBLISHED = "cpSGD, as published"
# Mechanisms of the registry, by the name of their series in pictures.
SERIES: Mapping[str, str] = MappingProxyType(
    {
        "discrete Gaussian": "distributed-discrete-gaussian",
        "Skellam": "distributed-skellam",
        "cpSGD": "cpsgd",
        PUBLISHED: "cpsgd",
        "Poisson-binomial": "poisson-binomial",
    }
)
# Least number of coordinates of a Poisson-binomial message per coordinate of the vector.
COEFFICIENTS = 2
QUICK: Mapping[str, Any] = MappingProxyType(
    {"clients": (1000,), "dimension": 128, "bits": (*range(8, 17), 18, 20, 22), "simulated_bits": (13, 16, 20), "repetitions": 2}
)
# Range of errors in a panel, as multiples of the trusted server's error.
SHOWN = (0.7, 1000.0)
CIRCLE: Mapping[str, Any] = MappingProxyType({"marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": ""})


@dataclass(frozen=True)
class SumProblem:
    """A series with a number of clients, for one guarantee.

    Attributes
    ----------
    series : str
        Name in `SERIES`. The smallest proven account calibrates all series except ``"cpSGD, as published"``, which Theorem 1 calibrates.
    clients : int
        Number of clients.
    dimension : int
        Length of the vectors, which lie in the L2 ball of radius 1.
    epsilon, delta : float
        The guarantee, for replace-one adjacency.
    """

    series: str
    clients: int
    dimension: int = 1024
    epsilon: float = 1.0
    delta: float = 1e-5

    @property
    def ball(self) -> NormBall:
        """L2 ball of the vectors."""
        return NormBall(self.dimension, 2.0)

    def mechanism(self, bits: int) -> SecureSumMechanism | None:
        """Return the mechanism with the given bits per coordinate; None if the bits are too few."""
        name = SERIES[check_choice("series", self.series, SERIES)]
        try:
            if self.series == PUBLISHED:
                budget = Budget(self.epsilon, self.delta, ADJACENCY, method="theorem-1")
                return calibrate_cpsgd(self.ball, self.clients, min(bits, MOST_BITS), budget)
            task = Task(self.ball, self.clients, self.epsilon, self.delta, ADJACENCY)
            return cast("SecureSumMechanism", build_mechanism(name, task, {"bits": bits}))
        except InfeasibleError:
            return None

    def realised_epsilon(self, mechanism: SecureSumMechanism) -> float:
        """Return epsilon, an upper bound by the account that calibrated the mechanism."""
        account = "theorem-1" if self.series == PUBLISHED else None
        return mechanism.privacy().epsilon(self.delta, ADJACENCY, account=account)

    def fewest_bits(self) -> int:
        """Return the fewest bits per coordinate for which a mechanism exists."""
        return next(bits for bits in range(1, MOST_BITS + 1) if self.mechanism(bits) is not None)


@dataclass(frozen=True, kw_only=True)
class SumPoint(Point):
    """A calibrated series at a number of bits, with predicted and simulated errors.

    Attributes
    ----------
    problem : SumProblem
        Series, clients and guarantee.
    bits : int
        Number of bits of a message's coordinate, 2 to 55.
    simulated : bool
        Whether rounds are simulated; points at the fewest bits are always simulated.
    repetitions : int
        Number of simulated rounds, at least 2.
    """

    problem: SumProblem
    bits: int
    simulated: bool = False
    repetitions: int = 3

    @property
    def setting(self) -> str:
        """The point in words."""
        return f"{self.problem.series}, {self.problem.clients} clients, {self.bits} bits"

    @property
    def design(self) -> SumProblem:
        """The series, whose points all need its fewest bits."""
        return self.problem

    def prepare(self, _: Path | None) -> int:
        """Find the fewest bits."""
        return self.problem.fewest_bits()

    def run(self, prepared: int) -> list[dict[str, Any]]:
        """Return a row, or none if the bits are too few or exceed those of an uncompressed vector.

        Errors are squared L2 distances, in squared radii of the ball. ``bits_per_coordinate`` is the length of a message over the dimension
        of the vector. ``realised_epsilon`` and ``coordinate_wrap_probability`` are upper bounds; ``worst_mean_variance`` is the mean's
        largest variance; ``central_squared_error`` is the error of a trusted server's Gaussian noise. ``measured_squared_error``, with
        ``standard_error``, and ``predicted_squared_error`` at the same vectors are means over ``rounds`` simulated rounds, and
        ``wrapped_coordinates`` counts wrapped coordinates in all rounds. These columns are NaN without simulated rounds.
        """
        problem, ball = self.problem, self.problem.ball
        mechanism = problem.mechanism(self.bits) if self.bits >= prepared else None
        if mechanism is None or mechanism.bits_per_client > UNCOMPRESSED_BITS * ball.dimension:
            return []
        fewest = self.bits == prepared
        return [
            {
                "series": problem.series,
                "clients": problem.clients,
                "dimension": ball.dimension,
                "bits": self.bits,
                "bits_per_coordinate": mechanism.bits_per_client / ball.dimension,
                "fewest_bits": fewest,
                "epsilon": problem.epsilon,
                "delta": problem.delta,
                "realised_epsilon": problem.realised_epsilon(mechanism),
                "adjacency": ADJACENCY,
                "trust_model": "secure-sum",
                "worst_mean_variance": mechanism.variance_bound / problem.clients,
                "central_squared_error": central_gaussian_error(ball, problem.clients, problem.epsilon, problem.delta, ADJACENCY),
                "coordinate_wrap_probability": mechanism.coordinate_wrap_probability,
                **self._measured(mechanism, self.repetitions if fewest or self.simulated else 0),
            }
        ]

    def _measured(self, mechanism: SecureSumMechanism, repetitions: int) -> dict[str, Any]:
        names = ("predicted_squared_error", "measured_squared_error", "standard_error", "wrapped_coordinates")
        if repetitions == 0:
            return {"rounds": 0, **dict.fromkeys(names, math.nan)}
        stream = named_stream(self.seed, f"{self.problem.series}, {self.problem.clients} clients, {self.bits} bits")
        rounds = repeat_mean(mechanism, POPULATION, repetitions, seed=int(stream.integers(2**62)), on_step=silent)
        errors = rounds["squared_error"]
        values = (rounds["predicted_squared_error"].mean(), errors.mean(), errors.sem(), float(rounds["wrapped_coordinates"].sum()))
        return {"rounds": repetitions, **dict(zip(names, values, strict=True))}


def sum_points(
    seed: int,
    *,
    clients: tuple[int, ...] = (100, 1000, 10_000),
    dimension: int = 1024,
    bits: tuple[int, ...] = tuple(range(6, 23)),
    simulated_bits: tuple[int, ...] = (13, 17, 20),
    repetitions: int = 3,
) -> list[SumPoint]:
    """Return the points of all series, most clients first because they take the longest."""

    def is_compressed(name: str, width: int) -> bool:
        return SERIES[name] != "poisson-binomial" or COEFFICIENTS * width <= UNCOMPRESSED_BITS

    problems = [SumProblem(name, number, dimension) for number in sorted(clients, reverse=True) for name in SERIES]
    return [
        SumPoint(seed=seed, problem=problem, bits=width, simulated=width in simulated_bits, repetitions=repetitions)
        for problem in problems
        for width in sorted(bits)
        if is_compressed(problem.series, width)
    ]


def select_sums(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by clients, without mechanisms that leave additional bits unused."""
    used = rows.groupby(["clients", "series"])["bits_per_coordinate"].cummax()
    before = used.groupby([rows["clients"], rows["series"]]).shift(fill_value=0.0)
    return rows[rows["bits_per_coordinate"] > before].sort_values("clients", kind="stable", ignore_index=True)


def draw_bits(frame: pd.DataFrame) -> Figure:
    """Draw predicted errors (lines) and measured errors (points), a panel per number of clients."""
    panels = [panel for _, panel in frame.groupby("clients")]
    figure = Figure(figsize=(WIDTH, 4.9), layout="constrained")
    grid = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    grid[0].set_ylabel("squared L2 error of the mean (squared clip norms)")
    names = [name for name in SERIES if name in set(frame["series"])]
    handles = [Line2D([], [], label=name, **_look(name)) for name in names]
    handles.append(Line2D([], [], label="trusted server, Gaussian", **TRUSTED_SERVER.rule))
    handles.append(Line2D([], [], label="no messages, at most", **ANSWER_ZERO.rule))
    handles.append(Line2D([], [], label="fewest bits", color=GREY, **CIRCLE))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.0, columnspacing=1.5)
    add_caption(figure, _caption(frame))
    return figure


def _look(series: str) -> dict[str, Any]:
    mark = mechanism_mark(SERIES[series])
    return mark.published if series == PUBLISHED else mark.look


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    central = panel["central_squared_error"].iloc[0]
    for name, series in panel.groupby("series", sort=False):
        look = _look(str(name))
        axes.plot(series["bits_per_coordinate"], series["worst_mean_variance"], **look | {"marker": ""})
        measured = series[series["rounds"] > 0]
        axes.errorbar(
            measured["bits_per_coordinate"],
            measured["measured_squared_error"],
            yerr=measured["standard_error"],
            capsize=2,
            **look | {"linestyle": ""},
        )
        fewest = series[series["fewest_bits"]]
        axes.plot(fewest["bits_per_coordinate"], fewest["worst_mean_variance"], color=look["color"], **CIRCLE)
    axes.axhline(central, **TRUSTED_SERVER.rule)
    # The answer zero errs by the squared norm of the mean, which is at most 1.
    axes.axhline(1.0, **ANSWER_ZERO.rule)
    axes.set_yscale("log")
    axes.set_ylim(SHOWN[0] * central, SHOWN[1] * central)
    axes.xaxis.set_major_locator(MultipleLocator(4))
    axes.set_xlabel("bits per coordinate")
    axes.set_title(f"{panel['clients'].iloc[0]:,} clients")
    axes.grid(visible=True)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    rounds = frame["rounds"].max()
    return (
        f"Mean of n vectors of dimension {first['dimension']} and norm at most 1. Lines: the largest variance; points: measured errors, "
        f"{rounds} rounds with standard errors; circles: no such mechanism with a bit less. As published: ε by Theorem 1, which is not "
        f"proven. ε = {first['epsilon']:g}, δ = {first['delta']:g} for {first['adjacency']} adjacency, {first['trust_model']} trust "
        "model; trusted server: central."
    )


def sum_tasks(seed: int, quick: bool) -> list[SumPoint]:
    """Return one task for each series, number of clients and number of bits."""
    return sum_points(seed, **QUICK) if quick else sum_points(seed)


def _with_most_bits(frame: pd.DataFrame, names: Sequence[str]) -> "pd.Series[float]":
    """Return largest variances at the most bits over the trusted server's error, by clients."""
    own = frame[frame["series"].isin(names)].dropna(subset=["worst_mean_variance"])
    most = own.loc[own.groupby(["series", "clients"])["bits_per_coordinate"].idxmax()]
    ratio: pd.Series[float] = most["worst_mean_variance"] / most["central_squared_error"]
    return ratio


FIGURE = FigureEntry(
    name="secure-sum-bits",
    paper="beyond the papers",
    experiment="secure sums against bits",
    tasks=sum_tasks,
    table=select_sums,
    draw=draw_bits,
    findings=(
        Finding(
            "Variance over a trusted server's with the most bits, discrete Gaussian and Skellam",
            lambda frame: _with_most_bits(frame, ("discrete Gaussian", "Skellam")),
        ),
        Finding("cpSGD", lambda frame: _with_most_bits(frame, ("cpSGD",))),
    ),
)
