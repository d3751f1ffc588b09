"""Necessary and used bits of frequencies, by the worst error of schemes.

Every scheme is a point in this plane. The bounds are Theorem 5.1 and Corollary 5.1 of Chen, Özgür, Cormode, Bharadwaj 2023 with constants
(`docs/proofs/frequency-limits.md`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.catalogue.frequency_sums import PAPER
from ...analysis.catalogue.lower_bounds import frequency_lower_bound
from ...analysis.catalogue.registry import BUILT_IN
from ...design.central.histogram import gaussian_histogram_error
from ...design.contracts.domains import Categories
from ...design.contracts.registry import Values
from ...design.contracts.task import Task
from ...errors import InfeasibleError
from ...solvers.limits.frequency_limits import necessary_frequency_bits
from ...solvers.limits.histogram_code_size import MOST_CLIENTS as MOST_CODED
from ...solvers.limits.histogram_code_size import code_size
from ...solvers.limits.histogram_entropy import uniform_histogram_entropy
from ..drawing.marks import ANSWER_ZERO, BLACK, DOTTED, TRUST_MARKS, Mark, mechanism_mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point
from .simulated_errors import ADJACENCY, DELTA, FAILURE, sketch_size

BOUNDS, IDENTITY, BERNOULLI = "bounds", "identity code", "Bernoulli code"
LOSS = "l2-squared"
# Squared errors at which necessary bits are drawn, up to 2, the largest squared distance of two vectors of frequencies.
LARGEST_ERROR, ERRORS = 2.0, 60
SECURE, LOCAL = "secure-sum", "local"
# Marks of exact codes without privacy, beside those of the registry's mechanisms.
CODE_MARKS: Mapping[str, Mark] = {IDENTITY: BLACK, BERNOULLI: replace(BLACK, marker="+")}
# Lines of the necessary bits; dotted lines are least errors.
SECURE_RULE, LOCAL_RULE, EXACT_RULE = TRUST_MARKS[SECURE].rule, TRUST_MARKS[LOCAL].rule, BLACK.rule
# Height of error-free codes on the logarithmic axis, as a share of the least drawn error.
EXACT = 0.03


@dataclass(frozen=True, kw_only=True)
class NeededPoint(Point):
    """A scheme for a problem, with its bits, its error, and the necessary bits for that error.

    ``"bounds"`` in place of a scheme gives the necessary bits against the error.

    Attributes
    ----------
    mechanism : str
        A name of the registry; ``"identity code"`` or ``"Bernoulli code"``, exact and without privacy; or ``"bounds"``.
    compressed : bool
        Whether items are sketched (`sketch_size`), for mechanisms that sketch.
    categories, clients : int
        Number of items and of clients.
    epsilon : float
        Privacy parameter of the round, at delta = 1e-5 in a secure sum and 0 otherwise, replace-one adjacency.
    """

    mechanism: str
    compressed: bool = False
    categories: int
    clients: int
    epsilon: float = 1.0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for a scheme, or a row for each error.

        ``worst_squared_error`` is expected; ``necessary_bits`` counts bits per client, for that error under the scheme's trust model. It is
        a lower bound, as are ``histogram_bits``, the bits of an exact histogram in a secure sum, and the ``_error_bound``s of privacy.
        """
        items, clients = self.categories, self.clients
        head = {name: value for name, value in asdict(self).items() if name != "seed"} | {
            "adjacency": ADJACENCY,
            "histogram_bits": uniform_histogram_entropy(items, clients).lower,
            "central_squared_error": gaussian_histogram_error(items, clients, self.epsilon, DELTA, ADJACENCY),
            "secure_sum_error_bound": self._privacy_bound(SECURE, DELTA),
            "local_error_bound": self._privacy_bound(LOCAL, 0.0),
        }
        if self.mechanism == BOUNDS:
            errors = np.geomspace(1 / clients**2, LARGEST_ERROR, ERRORS).tolist()
            return [
                head
                | {
                    "trust_model": trust,
                    "worst_squared_error": error,
                    "necessary_bits": necessary_frequency_bits(error, items, clients, trust, loss=LOSS),
                }
                for trust in (SECURE, LOCAL)
                for error in errors
            ]
        row = self._code() if self.mechanism in (IDENTITY, BERNOULLI) else self._offer()
        if "worst_squared_error" in row:
            # An observer behind a shuffler sees all messages.
            seen = SECURE if row["trust_model"] == SECURE else LOCAL
            row["necessary_bits"] = necessary_frequency_bits(row["worst_squared_error"], items, clients, seen, loss=LOSS)
        return [head | row]

    def _privacy_bound(self, trust: str, delta: float) -> float | None:
        task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
        return frequency_lower_bound(task, trust, unbiased=trust == LOCAL)

    def _code(self) -> dict[str, Any]:
        numbers = self.categories if self.mechanism == IDENTITY else code_size(self.clients, self.categories, FAILURE)
        return {"trust_model": SECURE, "worst_squared_error": 0.0, "bits_per_client": numbers * math.log2(self.clients + 1)}

    def _offer(self) -> dict[str, Any]:
        entry = BUILT_IN[self.mechanism]
        delta = 0.0 if entry.trust_model == LOCAL else DELTA
        task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
        options: Values = sketch_size(self.categories) if self.compressed else {}
        try:
            mechanism = entry.mechanism_for(task, options)
        except InfeasibleError as error:
            return {"trust_model": entry.trust_model, "reason": str(error)}
        return {
            "trust_model": entry.trust_model,
            "bits_per_client": mechanism.bits_per_client,
            "worst_squared_error": mechanism.error().of_mean(self.clients),
        }


def needed_points(seed: int, sizes: Sequence[tuple[int, int]], options: Mapping[str, Any]) -> list[NeededPoint]:
    """Return the points of all schemes for problems (clients, items).

    The schemes are private mechanisms of the registry, exact codes, and bounds.
    """
    points = []
    for clients, items in sizes:
        cases = [(BOUNDS, False), (IDENTITY, False)]
        cases += [(BERNOULLI, False)] if clients <= MOST_CODED else []
        for name, entry in BUILT_IN.items():
            # The trusted server is the reference.
            served = Categories in entry.domains and ADJACENCY in entry.adjacencies
            if entry.private and served and entry.trust_model != "central":
                sketched = {"rows", "width", "slack"} <= {option.name for option in entry.options}
                cases += [(name, False), *([(name, True)] if sketched else [])]
        points += [
            NeededPoint(seed=seed, mechanism=name, compressed=compressed, categories=items, clients=clients, **options)
            for name, compressed in cases
        ]
    return points


def draw_needed_bits(frame: pd.DataFrame) -> Figure:
    """Draw necessary bits as lines and schemes as points, a panel for each problem."""
    problems = list(frame.groupby(["clients", "categories"]))
    figure = Figure(figsize=(WIDTH, 6.6), layout="constrained")
    grid = figure.subplots(1, len(problems), sharey=True, squeeze=False)[0]
    for axes, ((clients, items), panel) in zip(grid, problems, strict=True):
        _draw_panel(axes, panel)
        axes.set(title=f"n = {clients:,}, d = {items:,}", xlabel="worst expected squared L2 error")
    grid[0].set(ylabel="bits of a client's message", ylim=(0.5, 3 * frame["bits_per_client"].max()))
    handles = []
    schemes = frame[frame["bits_per_client"].notna()]
    for kind, names in _kinds(schemes).items():
        handles.append(Line2D([], [], linestyle="", label=f"{kind}:"))
        handles += [Line2D([], [], label=_label(name), **_mark(name).points) for name in names]
    handles.append(Line2D([], [], linestyle="", label="bounds:"))
    handles += [
        Line2D([], [], label="necessary in a secure sum, private or not", **SECURE_RULE),
        Line2D([], [], label="necessary where all messages are seen", **LOCAL_RULE),
        Line2D([], [], label="exact histogram in a secure sum", **EXACT_RULE),
        Line2D([], [], label="least error, secure sum, (ε, δ)", **SECURE_RULE | {"linestyle": DOTTED}),
        Line2D([], [], label="least error, local and unbiased", **LOCAL_RULE | {"linestyle": DOTTED}),
        Line2D([], [], label="answer zero: equal frequencies", **ANSWER_ZERO.rule),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, handlelength=2.6, columnspacing=1.5)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Lines: fewer bits are proven not to suffice; dotted: least worst error. Hollow marks: sketched. ε = {first['epsilon']:g}, "
        f"δ = {DELTA:g}, or 0 in the local trust model; {first['adjacency']} adjacency. Shaded, left: no error.",
    )
    return figure


def _kinds(schemes: pd.DataFrame) -> dict[str, list[str]]:
    """Return the drawn schemes by trust model; exact codes are not private."""
    trusts = schemes.drop_duplicates("mechanism").set_index("mechanism")["trust_model"]
    kinds: dict[str, list[str]] = {}
    for name, trust in trusts.items():
        kinds.setdefault("not private" if name in CODE_MARKS else f"{trust} trust model", []).append(str(name))
    return kinds


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    bounds, first = panel[panel["mechanism"] == BOUNDS], panel.iloc[0]
    for trust, rule, column in ((SECURE, SECURE_RULE, "secure_sum_error_bound"), (LOCAL, LOCAL_RULE, "local_error_bound")):
        drawn = bounds[(bounds["trust_model"] == trust) & (bounds["necessary_bits"] > 0)]
        axes.plot(drawn["worst_squared_error"], drawn["necessary_bits"], **rule)
        axes.axvline(first[column], **rule | {"linestyle": DOTTED})
    axes.axhline(first["histogram_bits"], **EXACT_RULE)
    # All clients with one item are the farthest from equal frequencies.
    axes.axvline(1 - 1 / first["categories"], **ANSWER_ZERO.rule)
    left = bounds["worst_squared_error"].min() * EXACT
    for _, row in panel[panel["mechanism"] != BOUNDS].dropna(subset=["bits_per_client"]).iterrows():
        mark = _mark(row["mechanism"])
        face = "white" if row["compressed"] else mark.colour
        axes.plot(max(row["worst_squared_error"], left), row["bits_per_client"], **mark.points, markerfacecolor=face, markersize=5.5)
    axes.set(xscale="log", yscale="log")
    axes.axvspan(left / 5, left * 5, color=GREY, alpha=0.12, linewidth=0)
    axes.grid(visible=True)


def _mark(name: str) -> Mark:
    return CODE_MARKS.get(name) or mechanism_mark(name)


def _label(name: str) -> str:
    return name.removesuffix("-frequencies").removeprefix("frequency-")


def needed_tasks(seed: int, quick: bool) -> list[NeededPoint]:
    """Return a task for each scheme and problem."""
    return needed_points(seed, ((100, 1000), (3000, 1000)) if quick else ((1000, 100_000), (50_000, 100_000)), {})


def _useful_ratios(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return used over necessary bits of private schemes whose error needs a message."""
    useful = frame[frame["necessary_bits"].gt(0) & frame["worst_squared_error"].gt(0) & frame["bits_per_client"].notna()]
    ratio: pd.Series[float] = useful["bits_per_client"] / useful["necessary_bits"]
    return ratio


def _exact_ratios(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the Bernoulli code's bits over the bits that an exact histogram needs."""
    exact = frame[frame["mechanism"] == BERNOULLI]
    ratio: pd.Series[float] = exact["bits_per_client"] / exact["histogram_bits"]
    return ratio


FIGURE = FigureEntry(
    name="freq-limits",
    paper=f"{PAPER}, Theorem 5.1 and Corollary 5.1; constants are beyond the paper",
    experiment="necessary and used bits of frequencies",
    tasks=needed_tasks,
    draw=draw_needed_bits,
    findings=(
        Finding("Bits of useful private messages over needed bits", _useful_ratios),
        Finding("the exact code's over needed bits", _exact_ratios),
    ),
)
