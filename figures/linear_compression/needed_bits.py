"""Necessary and sufficient bits against clients times epsilon, with all mechanisms.

Every mechanism of the registry is a point. The figure goes beyond Chen, Choquette-Choo, Kairouz, Suresh 2022, whose necessary bits have no
constants.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.lower_bounds import (
    central_lower_bound,
    inscribed_radius,
    local_lower_bound,
    unbiased_central_lower_bound,
    unbiased_local_lower_bound,
)
from ...analysis.catalogue.registry import BUILT_IN, CENTRAL_REFERENCES, entry_named
from ...arguments import check_real
from ...design.contracts.gaussian import central_gaussian_error, l2_radius
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Budget, Task
from ...design.secure_sum.sketch_calibration import cheapest_rate_and_bits
from ...errors import InfeasibleError
from ...solvers.limits.compression import necessary_bits
from ..drawing.marks import BLACK, GREEN, SKY, Mark, mechanism_mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point
from .error_panels import ZERO_LOOK

CLIP_NORM, DELTA, ADJACENCY = 1.0, 1e-5, "replace-one"
SLACK = 2.0
# Options of mechanisms whose usual options take long or do not exist.
OPTIONS: Mapping[str, Values] = MappingProxyType(
    {"mvu": {"bits_in": 3, "bits_out": 2, "metric": "l2"}, "sparse-discrete-gaussian": {"sparsity": 4}}
)
# Powers of ten by which marks of the same number of clients are spread to either side, as many mechanisms have the same bits.
SPREAD = 0.35
# Heights in inches: of the figure, of an entry of the legend, and of the caption below the legend.
LEAST_HEIGHT, ENTRY_HEIGHT, CAPTION_HEIGHT = 5.6, 0.17, 0.75


@dataclass(frozen=True)
class MeanLimits:
    """Limits of a task in one trust model, as squared L2 errors of the mean.

    Attributes
    ----------
    gaussian_error : float
        Error of a trusted server with Gaussian noise, rounded up.
    zero_error : float
        Worst error of the estimate zero, which is biased and private and needs no bits.
    private_error, unbiased_private_error : float or None
        Lower bound on the error that privacy alone makes necessary, for all mechanisms and for unbiased mechanisms; None without a known
        bound.
    necessary_bits, necessary_unbiased_bits : float
        Lower bound on the bits of a message: with fewer bits no mechanism, private or not, has an error of at most `slack` times
        `gaussian_error`.
    """

    gaussian_error: float
    zero_error: float
    private_error: float | None
    unbiased_private_error: float | None
    necessary_bits: float
    necessary_unbiased_bits: float


def mean_limits(task: Task, trust_model: str, slack: float = 2.0) -> MeanLimits:
    """Return the limits of a task for vectors of a ball.

    Parameters
    ----------
    task : Task
        Task of a single round in which all clients take part.
    trust_model : str
        Trust model: with ``"secure-sum"`` the server sees one sum, in as many bits as a message; with ``"local"`` every message, which is
        private by itself; with ``"central"`` every message.
    slack : float
        Target error over the error of Gaussian noise, above 0.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> task = Task(NormBall(2**14, 2.0), clients=10_000, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    >>> limits = mean_limits(task, "secure-sum")
    >>> round(limits.gaussian_error, 5), round(limits.unbiased_private_error, 6), round(limits.necessary_unbiased_bits)
    (0.00912, 0.000368, 47534)
    """
    ball = task.ball("limits")
    if task.rounds > 1 or task.sampling is not None:
        raise ValueError(f"task must be one round in which all clients take part, got {task.rounds} rounds, sampling {task.sampling}")
    gaussian = central_gaussian_error(ball, task.clients, task.epsilon, task.delta, task.adjacency)
    target = check_real("slack", slack, low=1e-6, high=1e6) * gaussian
    size = (ball.dimension, task.clients, trust_model)
    bits = [necessary_bits(target, *size, unbiased=unbiased, radius=inscribed_radius(ball)) for unbiased in (False, True)]
    biased, unbiased = (
        (local_lower_bound, unbiased_local_lower_bound) if trust_model == "local" else (central_lower_bound, unbiased_central_lower_bound)
    )
    return MeanLimits(gaussian, l2_radius(ball) ** 2, biased(task), unbiased(task), *bits)


@dataclass(frozen=True, kw_only=True)
class PricePoint(Point):
    """A number of clients, with the bits of the best mechanism or of a named mechanism.

    For ``"bounds"``, necessary and sufficient bits enclose the bits of the best mechanism.

    Attributes
    ----------
    mechanism : str
        A name of the registry; ``"bounds"`` for necessary and sufficient bits.
    clients, dimension : int
        Number of clients, and of coordinates of their vectors of norm at most 1.
    epsilon : float
        Privacy parameter of the round, at delta = 1e-5 and replace-one adjacency.
    """

    mechanism: str
    clients: int
    dimension: int
    epsilon: float

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row with bits, worst error and the trusted server's error.

        For ``"bounds"`` the row has the bits for twice that error.
        """
        ball = NormBall(self.dimension, 2.0, CLIP_NORM)
        central = central_gaussian_error(ball, self.clients, self.epsilon, DELTA, ADJACENCY)
        head = {
            "mechanism": self.mechanism,
            "clients": self.clients,
            "dimension": self.dimension,
            "epsilon": self.epsilon,
            "delta": DELTA,
            "adjacency": ADJACENCY,
            "budget": self.clients * self.epsilon,
            "central_squared_error": central,
            "zero_squared_error": CLIP_NORM**2,
        }
        row = self._bounds(ball) if self.mechanism == "bounds" else self._offer(ball, central)
        return [head | row]

    def _bounds(self, ball: NormBall) -> dict[str, Any]:
        limits = mean_limits(Task(ball, self.clients, self.epsilon, DELTA, ADJACENCY), "secure-sum", SLACK)
        necessary = {
            "necessary_bits_any": limits.necessary_bits,
            "necessary_bits_unbiased": limits.necessary_unbiased_bits,
            "lower_bound": limits.private_error,
        }
        budget = Budget(self.epsilon, DELTA, ADJACENCY)
        try:
            best = cheapest_rate_and_bits(ball, self.clients, budget, SLACK)[0]
        except InfeasibleError as error:
            return necessary | {"reason": str(error)}
        return necessary | {
            "sufficient_bits": best.bits_per_parameter * self.dimension,
            "rate": best.rate,
            "bits": best.bits,
            "compressed_error": best.compressed_error,
        }

    def _offer(self, ball: NormBall, central: float) -> dict[str, Any]:
        entry = BUILT_IN[self.mechanism]
        task = Task(ball, self.clients, self.epsilon, DELTA, ADJACENCY)
        try:
            mechanism = _built(entry, task)
        except InfeasibleError as error:
            return {"trust_model": entry.trust_model, "reason": str(error)}
        worst = mechanism.error()
        predicted = worst.variance / self.clients + worst.shared
        return {
            "trust_model": entry.trust_model,
            "bits_per_client": mechanism.bits_per_client,
            "compressed_error": predicted,
            "ratio_to_central": predicted / central,
            "within_slack": bool(predicted <= SLACK * central * (1 + 1e-9)),
        }


def _built(entry: Entry, task: Task) -> Mechanism:
    """Return a mechanism at its usual options, or the best of the planner's candidates."""
    own = OPTIONS.get(entry.name, {})
    try:
        return entry.mechanism_for(task, own)
    except InfeasibleError:
        mechanisms = []
        for values in entry.candidates(task):
            with suppress(InfeasibleError):
                mechanisms.append(entry.mechanism_for(task, {**values, **own}))
        if not mechanisms:
            raise
        return min(mechanisms, key=lambda mechanism: mechanism.error().of_mean(task.clients))


def serving(entry: Entry) -> bool:
    """Return whether an entry is for vectors of the L2 ball, with replace-one adjacency."""
    served = NormBall in entry.domains and (entry.norms is None or 2.0 in entry.norms) and ADJACENCY in entry.adjacencies
    # Exact noise of a trusted server is the reference.
    return served and entry.name not in CENTRAL_REFERENCES


def price_points(seed: int, clients: Sequence[int], offered: Sequence[int], dimension: int, epsilon: float) -> list[PricePoint]:
    """Return tasks for the bounds at each number of clients, and for each mechanism.

    Mechanisms have tasks at each number of `offered`.
    """
    names = [name for name, entry in BUILT_IN.items() if serving(entry)]
    settings = [("bounds", count) for count in clients] + [(name, count) for count in offered for name in names]
    return [PricePoint(seed=seed, mechanism=name, clients=count, dimension=dimension, epsilon=epsilon) for name, count in settings]


def draw_needed_bits(frame: pd.DataFrame) -> Figure:
    """Draw the bounds as lines, and mechanisms as points at a few numbers of clients.

    A filled point has an error within the slack.
    """
    figure = Figure(figsize=(WIDTH, LEAST_HEIGHT), layout="constrained")
    axes = figure.subplots()
    bounds = frame[frame["mechanism"] == "bounds"].sort_values("budget")
    lines: tuple[tuple[str, str, Mark], ...] = (
        ("necessary_bits_any", "necessary for any estimate", BLACK),
        ("necessary_bits_unbiased", "necessary for an unbiased one", GREEN),
        ("sufficient_bits", "sufficient: sketch, discrete Gaussian", SKY),
    )
    handles = []
    for column, label, mark in lines:
        (line,) = axes.plot(bounds["budget"], bounds[column].replace(0, math.nan), color=mark.colour, linestyle=mark.line, label=label)
        handles.append(line)
    free = bounds[bounds["zero_squared_error"] <= SLACK * bounds["central_squared_error"]]
    if not free.empty:
        handles.append(axes.axvline(free["budget"].max(), label="zero is as good, to the left", **ZERO_LOOK))
    offers = frame[(frame["mechanism"] != "bounds") & frame["bits_per_client"].notna()]
    sideways = iter(10.0 ** np.linspace(-SPREAD, SPREAD, offers["mechanism"].nunique()))
    for trust_model, drawn in offers.groupby("trust_model", sort=False):
        handles.append(Line2D([], [], linestyle="", label=f"{trust_model} trust model:"))
        for name, series in drawn.groupby("mechanism", sort=False):
            place, mark = next(sideways), mechanism_mark(str(name))
            for filled, part in series.groupby("within_slack"):
                face = mark.colour if filled else "white"
                axes.plot(part["budget"] * place, part["bits_per_client"], **mark.points, markerfacecolor=face, markersize=5)
            handles.append(Line2D([], [], **mark.points, label=str(name)))
    axes.set(xscale="log", yscale="log", xlabel="clients \N{MULTIPLICATION SIGN} ε", ylabel="bits of a client's message")
    axes.grid(visible=True)
    figure.set_figheight(max(LEAST_HEIGHT, len(handles) * ENTRY_HEIGHT + CAPTION_HEIGHT))
    figure.legend(handles=handles, loc="outside right upper", handlelength=2.2)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Mean of n vectors of dimension {first['dimension']:,.0f}, norm at most 1, at ε = {first['epsilon']:g}, δ = "
        f"{first['delta']:g}, {first['adjacency']} adjacency. Lines: bits for a worst error of at most {SLACK:g} times that of a "
        f"trusted server. Marks: mechanisms for {in_words(offers['clients'])} clients, side by side; hollow: above that factor.",
    )
    return figure


def in_words(clients: "pd.Series[int]") -> str:
    """Return the drawn numbers of clients, in words."""
    return " or ".join(f"{count:,}" for count in sorted(clients.unique()))


def needed_tasks(seed: int, quick: bool) -> list[PricePoint]:
    """Return a task for the bounds and each mechanism, at each number of clients."""
    dimension, points, offered = (2**6, 5, (100, 1000)) if quick else (2**12, 17, (100, 1000, 10_000))
    clients = [round(10 ** (1 + 4 * step / (points - 1))) for step in range(points)]
    return price_points(seed, clients, offered, dimension, 1.0)


def sufficient_over_necessary(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return sufficient over necessary bits, for estimates that need bits."""
    bounds = frame[(frame["mechanism"] == "bounds") & (frame["necessary_bits_any"] > 0)]
    ratio: pd.Series[float] = bounds["sufficient_bits"] / bounds["necessary_bits_any"]
    return ratio


FIGURE = FigureEntry(
    name="price-needed-bits",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}; bounds with constants are beyond the paper",
    experiment="necessary and sufficient bits",
    tasks=needed_tasks,
    draw=draw_needed_bits,
    findings=(Finding("Sufficient bits of a sketch over necessary bits", sufficient_over_necessary),),
)
