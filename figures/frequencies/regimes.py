"""The best mechanism for items, as a map of clients and items for each epsilon and bits."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from ...analysis.catalogue.lower_bounds import frequency_lower_bound
from ...analysis.catalogue.registry import BUILT_IN
from ...analysis.simulation.populations import item_probabilities
from ...design.central.histogram import gaussian_histogram_error
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import FrequencyMechanism
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task
from ...design.frequencies.sketched_frequencies import SketchedFrequencies
from ...design.secure_sum.delegated_sum import ItemSum
from ...errors import InfeasibleError
from ..drawing.marks import TRUST_MARKS
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point
from .simulated_errors import ADJACENCY, DELTA

POPULATION = "zipf"
LOCAL, SHUFFLED, SKETCH, HISTOGRAM = "local", "shuffled", "sketch", "histogram"
# Number of tosses of all clients per coordinate above which more tosses are useless.
ENOUGH_TOSSES = 4096
# Tints of the trust models' colours that are light enough for black text: shares of the colour, over white.
TINTS = {LOCAL: ("local", 0.55), SHUFFLED: ("shuffled", 0.4), SKETCH: ("secure-sum", 0.45), HISTOGRAM: ("secure-sum", 0.15)}


def _tint(colour: str, share: float) -> str:
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


COLOURS = {kind: _tint(TRUST_MARKS[trust].colour, share) for kind, (trust, share) in TINTS.items()}
KINDS = {LOCAL: "local messages", SHUFFLED: "shuffled messages", SKETCH: "sketch in a secure sum", HISTOGRAM: "histogram in a secure sum"}
LETTERS = {
    "frequency-randomised-response": "RR",
    "hadamard-response": "HR",
    "recursive-hadamard-response": "RH",
    "projective-geometry-response": "PG",
    "unary-encoding": "UE",
    "subset-selection": "SS",
    "shuffled-frequency-randomised-response": "SR",
    "sketched-poisson-binomial": "PB",
    "sketched-discrete-gaussian-frequencies": "DG",
    "sketched-skellam-frequencies": "Sk",
    "distributed-discrete-laplace": "DL",
}
CLIENTS, CATEGORIES = (10**3, 10**4, 10**5), (10**2, 10**3, 10**4, 10**5, 10**6)
EPSILONS, BUDGETS = (1.0, 10.0), (1e3, 1e5, 1e7)
# Largest relative difference of kinds' errors that is drawn as a tie.
TIE = 0.005


@dataclass(frozen=True, kw_only=True)
class RegimePoint(Point):
    """All mechanisms for a problem, each within each number of bits.

    Attributes
    ----------
    clients, categories : int
        Number of clients and of items, whose frequencies follow Zipf's law.
    epsilon : float
        Privacy parameter of the round, at delta = 0 in the local trust model and 1e-5 otherwise, replace-one adjacency.
    budgets : tuple of float
        Largest numbers of bits of a client's message.
    """

    clients: int
    categories: int
    epsilon: float
    budgets: tuple[float, ...]

    @property
    def setting(self) -> str:
        """The point in words."""
        return f"{self.clients} clients, {self.categories} items, epsilon {self.epsilon:g}"

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each mechanism and each number of bits that it keeps.

        ``predicted_squared_error`` is the expected error of all frequencies, over noise and sketch, for Zipf's law; ``zero_squared_error``
        is the error of equal frequencies for all items. ``lower_bound`` bounds the worst case over data of any private mechanism in a
        secure sum from below.
        """
        frequencies = item_probabilities(POPULATION, self.categories)
        task = Task(Categories(self.categories), self.clients, self.epsilon, DELTA, ADJACENCY)
        head = {
            "clients": self.clients,
            "categories": self.categories,
            "epsilon": self.epsilon,
            "adjacency": ADJACENCY,
            "population": POPULATION,
            "central_squared_error": gaussian_histogram_error(self.categories, self.clients, self.epsilon, DELTA, ADJACENCY),
            "lower_bound": frequency_lower_bound(task, "secure-sum", unbiased=False),
            "zero_squared_error": float(np.sum((frequencies - 1 / self.categories) ** 2)),
        }
        rows = []
        for name, entry in BUILT_IN.items():
            # The trusted server is the reference.
            if Categories not in entry.domains or ADJACENCY not in entry.adjacencies or entry.trust_model == "central":
                continue
            for budget, mechanism in self._offers(entry, float(np.sum(frequencies**2))):
                sketch = mechanism.sketch if isinstance(mechanism, SketchedFrequencies) else None
                histogram = isinstance(mechanism, ItemSum) if sketch is None else sketch.direct
                kind = HISTOGRAM if histogram else entry.trust_model if sketch is None else SKETCH
                rows.append(
                    head
                    | {
                        "budget": budget,
                        "mechanism": name,
                        "kind": kind,
                        "trust_model": entry.trust_model,
                        "delta": 0.0 if entry.trust_model == LOCAL else DELTA,
                        "bits_per_client": mechanism.bits_per_client,
                        "rows": sketch.rows if sketch else None,
                        "width": sketch.width if sketch else None,
                        "predicted_squared_error": mechanism.variance_bound / self.clients + mechanism.shared_variance(frequencies),
                    }
                )
        return rows

    def _offers(self, entry: Entry, concentration: float) -> Iterator[tuple[float, FrequencyMechanism]]:
        """Yield the private mechanisms that exist within each number of bits."""
        names = {option.name for option in entry.options}
        if "distinct_items" in names:
            # Such mechanisms are for data with few different items, unlike data by Zipf's law.
            return
        made: FrequencyMechanism | None = None
        for budget in sorted(self.budgets, reverse=True):
            # A mechanism that uses fewer bits than its budget is also the best within smaller budgets that it keeps.
            if made is None or ("concentration" in names and made.bits_per_client > budget):
                values: Values = {}
                if "concentration" in names:
                    values = {"message_bits": budget, "concentration": concentration, "signed": False}
                if "trials" in names:
                    values = {**values, "trials": max(1, ENOUGH_TOSSES // self.clients)}
                delta = 0.0 if entry.trust_model == LOCAL else DELTA
                task = Task(Categories(self.categories), self.clients, self.epsilon, delta, ADJACENCY)
                try:
                    built = entry.mechanism_for(task, values)
                except InfeasibleError:
                    return
                if not isinstance(built, FrequencyMechanism) or built.guarantee.epsilon > self.epsilon:
                    return
                made = built
            if made.bits_per_client <= budget:
                yield budget, made


def regime_points(
    seed: int, clients: Sequence[int], categories: Sequence[int], epsilons: Sequence[float], budgets: tuple[float, ...]
) -> list[RegimePoint]:
    """Return a point for each problem, with the slowest problems first."""
    return [
        RegimePoint(seed=seed, clients=count, categories=items, epsilon=epsilon, budgets=budgets)
        for count in sorted(clients, reverse=True)
        for items in sorted(categories, reverse=True)
        for epsilon in epsilons
    ]


PROBLEM = ["epsilon", "budget", "clients", "categories"]
COLUMNS = [
    *PROBLEM,
    *("mechanism", "kind", "trust_model", "bits_per_client", "rows", "width", "predicted_squared_error"),
    *("central_squared_error", "lower_bound", "zero_squared_error", "next_kind_ratio", "useful"),
]


def winners(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the row of least predicted error for each problem and number of bits.

    The winner's margin is the ratio of the next kind's error to its own. ``useful`` states whether the error is below that of equal
    frequencies for all items.
    """
    least = rows.sort_values("predicted_squared_error", kind="stable").groupby([*PROBLEM, "kind"], as_index=False).first()
    ordered = least.sort_values([*PROBLEM, "predicted_squared_error"], kind="stable")
    groups = ordered.groupby(PROBLEM)["predicted_squared_error"]
    ordered["next_kind_ratio"] = groups.shift(-1) / ordered["predicted_squared_error"]
    best = ordered.groupby(PROBLEM, as_index=False).head(1)
    return best.assign(useful=best["predicted_squared_error"] < best["zero_squared_error"]).reset_index(drop=True)


def draw_regimes(frame: pd.DataFrame) -> Figure:
    """Draw a map for each epsilon and number of bits, with the best mechanism.

    Numbers give its error over the trusted server's.
    """
    best = winners(frame)
    epsilons, budgets = sorted(frame["epsilon"].unique()), sorted(frame["budget"].unique())
    figure = Figure(figsize=(WIDTH, 1.6 + 2.4 * len(epsilons)), layout="constrained")
    grid = figure.subplots(len(epsilons), len(budgets), sharex=True, sharey=True, squeeze=False)
    for row, epsilon in zip(grid, epsilons, strict=True):
        for axes, budget in zip(row, budgets, strict=True):
            _draw_map(axes, best[(best["epsilon"] == epsilon) & (best["budget"] == budget)], frame)
            axes.set_title(f"ε = {epsilon:g}, {_size(budget)}")
        row[0].set_ylabel("items d")
    for axes in grid[-1]:
        axes.set_xlabel("clients n")
    handles: list[Patch | Line2D] = [Patch(facecolor=COLOURS[kind], edgecolor="black", label=label) for kind, label in KINDS.items()]
    handles.append(Patch(facecolor="white", edgecolor="#777777", hatch="////", label="equal frequencies have less error"))
    if best.apply(_is_tie, axis=1).any():
        handles.append(Line2D([], [], linestyle="", label=f"=: another kind is within {100 * TIE:g} %"))
    named = sorted((letters, name) for name, letters in LETTERS.items() if name in set(best["mechanism"]))
    handles += [Line2D([], [], linestyle="", label=f"{letters}: {name}") for letters, name in named]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, columnspacing=1.2)
    first = frame.iloc[0]
    add_caption(
        figure,
        "The mechanism of least predicted squared L2 error over Zipf's frequencies, with messages of at most the given bits; below it: "
        f"its error over a trusted server's Gaussian noise. ε is for {first['adjacency']} adjacency: secure-sum trust model, and "
        f"shuffled, at δ = {frame['delta'].max():g}, local trust model at δ = 0; trusted server: central trust model.",
    )
    return figure


def _draw_map(axes: Axes, best: pd.DataFrame, frame: pd.DataFrame) -> None:
    clients, items = sorted(frame["clients"].unique()), sorted(frame["categories"].unique())
    for _, row in best.iterrows():
        x, y = clients.index(row["clients"]), items.index(row["categories"])
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=COLOURS[row["kind"]], edgecolor="white"))
        if not row["useful"]:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="#999999", hatch="////", linewidth=0))
        ratio = row["predicted_squared_error"] / row["central_squared_error"]
        box = {"facecolor": COLOURS[row["kind"]], "edgecolor": "none", "pad": 1.0}
        axes.text(
            x,
            y,
            f"{LETTERS.get(row['mechanism'], row['mechanism'])}{'=' * _is_tie(row)}\n{_ratio(ratio)}",
            horizontalalignment="center",
            verticalalignment="center",
            linespacing=1.0,
            bbox=box,
        )
    axes.set_xlim(-0.5, len(clients) - 0.5)
    axes.set_ylim(-0.5, len(items) - 0.5)
    axes.set_xticks(range(len(clients)), [_power(value) for value in clients])
    axes.set_yticks(range(len(items)), [_power(value) for value in items])
    axes.tick_params(length=0)


def _is_tie(row: "pd.Series[Any]") -> bool:
    """Return whether the next kind's error ties with that of the winner."""
    return bool(row["next_kind_ratio"] < 1 + TIE)


def _power(value: float) -> str:
    return f"$10^{{{round(math.log10(value))}}}$"


def _size(bits: float) -> str:
    return f"{bits / 1e3:g} kbit" if bits < 1e6 else f"{bits / 1e6:g} Mbit"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}" if ratio < 1000 else f"$10^{{{math.log10(ratio):.1f}}}$"


def regime_tasks(seed: int, quick: bool) -> list[RegimePoint]:
    """Return a task for each problem."""
    if quick:
        return regime_points(seed, (1000, 10_000), (100, 1000), EPSILONS, (1e3, 1e5))
    return regime_points(seed, CLIENTS, CATEGORIES, EPSILONS, BUDGETS)


def _over(best: pd.DataFrame, column: str) -> "pd.Series[float]":
    ratio: pd.Series[float] = best["predicted_squared_error"] / best[column]
    return ratio


FIGURE = FigureEntry(
    name="freq-regimes",
    paper="beyond the papers",
    experiment="which mechanism for items wins where",
    tasks=regime_tasks,
    draw=draw_regimes,
    summary=lambda rows: winners(rows)[COLUMNS],
    findings=(
        Finding("Error over that of a trusted server's Gaussian noise", lambda frame: _over(winners(frame), "central_squared_error")),
        Finding("next kind's error over it", lambda frame: winners(frame)["next_kind_ratio"]),
    ),
)
