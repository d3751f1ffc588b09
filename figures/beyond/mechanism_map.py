"""The best mechanism of each trust model by bits and epsilon, for numbers, vectors and items.

The planner predicts every error. No paper has this picture.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray
from scipy.ndimage import label

from ...analysis.planner.plan import plan_task
from ...analysis.planner.record import TOLERANCE, PlannedMechanism, TriedDesign
from ...arguments import check_choice
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import TRUST_MODELS
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ...progress import silent
from ..drawing.marks import TRUST_MARKS, mechanism_mark
from ..drawing.style import SMALLEST_TYPE, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

ADJACENCY = "replace-one"
DELTA = 1e-6
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# Largest bits of a message in the drawn fields, by kind of data, and limits that plans are made for; None stands for no limit. A plan tries
# each mechanism in several lengths, so that fields between two limits have designs, too.
MOST_DRAWN: Mapping[str, int] = MappingProxyType({"numbers": 2**9, "vectors": 2**17, "items": 2**17})
LIMITS: Mapping[str, tuple[int | None, ...]] = MappingProxyType(
    {
        "numbers": (1, 2, 4, 8, 15, 16, 17, 18, 20, None),
        "vectors": (*(4**power for power in range(7)), None),
        "items": (*(4**power for power in range(7)), None),
    }
)
QUICK_EPSILONS = (0.5, 2.0, 8.0)
QUICK_LIMITS: Mapping[str, tuple[int | None, ...]] = MappingProxyType(dict.fromkeys(LIMITS, (None,)))
QUICK: Mapping[str, Any] = MappingProxyType({"clients": 1000, "size": 16})


@dataclass(frozen=True, kw_only=True)
class MapPoint(Point):
    """A plan for one kind of data, epsilon and limit of bits.

    Attributes
    ----------
    data : str
        ``"numbers"`` of the unit interval, ``"vectors"`` of the unit ball, or ``"items"`` of a list.
    epsilon : float
        Privacy parameter, at delta = 1e-6 for replace-one adjacency.
    most_bits : int or None
        Largest number of bits of a message; None for no limit.
    clients : int
        Number of clients.
    size : int
        Number of coordinates of a vector, and of items of the list.
    """

    data: str
    epsilon: float
    most_bits: int | None
    clients: int = 10_000
    size: int = 256

    @property
    def domain(self) -> Domain:
        """The domain of the clients' inputs."""
        domains: dict[str, Domain] = {
            "numbers": Interval(0.0, 1.0),
            "vectors": NormBall(self.size, 2.0),
            "items": Categories(self.size),
        }
        return domains[check_choice("data", self.data, domains)]

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each design of a releasable mechanism that keeps the guarantee and the limit of bits.

        Errors are squared L2 errors of the mean or the frequencies. ``predicted_error`` is expected for the planner's usual population,
        ``worst_error`` bounds the error over the domain. ``central_error`` and ``answer_zero_error`` are those of the best trusted server
        and of the answer without messages. ``lower_bound`` is the proven bound on the worst error of mechanisms that meet its hypotheses;
        it is missing for designs that the plan tried and did not choose.
        """
        domain = self.domain
        task = Task(domain, self.clients, self.epsilon, DELTA, ADJACENCY, message_bits=self.most_bits)
        plan = plan_task(task, seed=self.seed, timed=False, tolerance=0.0, on_step=silent)
        head = {
            "data": self.data,
            "clients": self.clients,
            "size": domain.dimension,
            "epsilon": self.epsilon,
            "delta": DELTA,
            "adjacency": ADJACENCY,
            "population": plan.population,
            "most_bits": math.inf if self.most_bits is None else float(self.most_bits),
            **plan.reference_columns,
        }
        return [
            head | _design_row(mechanism, design, domain.dimension)
            for mechanism in plan.feasible
            if not mechanism.on_real_numbers
            for design in mechanism.tried
        ]


def _design_row(mechanism: PlannedMechanism, design: TriedDesign, dimension: int) -> dict[str, Any]:
    is_chosen = design.options == mechanism.options
    return {
        "trust_model": mechanism.trust_model,
        "mechanism": mechanism.name,
        "options": json.dumps(dict(design.options)),
        "bits_per_client": design.bits_per_coordinate * dimension,
        "predicted_error": design.predicted_error,
        "worst_error": design.worst_error,
        "bias_bound": design.bias_bound,
        "unbiased": design.unbiased,
        "lower_bound": (mechanism.lower_bound or math.nan) if is_chosen else math.nan,
    }


def map_points(seed: int, quick: bool) -> list[MapPoint]:
    """Return a plan for each kind of data, epsilon and limit, the slowest kind first."""
    limits, epsilons, sizes = (QUICK_LIMITS, QUICK_EPSILONS, QUICK) if quick else (LIMITS, EPSILONS, {})
    return [
        MapPoint(seed=seed, data=data, epsilon=epsilon, most_bits=most, **sizes)
        for data in ("vectors", "numbers", "items")
        for most in sorted(limits[data], key=lambda bits: -math.inf if bits is None else -bits)
        for epsilon in epsilons
    ]


PANEL = ["data", "trust_model"]
COLUMNS = [
    *("data", "clients", "size", "epsilon", "delta", "adjacency", "population", "trust_model", "most_bits"),
    *("mechanism", "equally_good", "options", "bits_per_client", "predicted_error", "worst_error", "lower_bound"),
    *("central_error", "answer_zero_error", "ratio_to_central", "ratio_to_bound", "zero_wins"),
]


def best_designs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the winner of each kind of data, trust model, epsilon and limit of bits.

    The winner has the least predicted error; biased designs count only if there are no others, as in plans. ``equally_good`` lists other
    mechanisms within 2 % of the least error: of them all, the winner is the one that is so in most fields of the panel. A limit of
    infinity stands for no limit. Fields without a mechanism have no row.
    """
    # A design that several plans tried has the bound for messages of any length, which is the smallest.
    key = [*PANEL, "epsilon", "mechanism", "options"]
    designs = rows.assign(lower_bound=rows.groupby(key)["lower_bound"].transform("min")).drop_duplicates(key)
    panels = [_winners(panel, drawn_limits(str(data))) for (data, _), panel in designs.groupby(PANEL, sort=False)]
    best = pd.concat(panels, ignore_index=True)
    best["ratio_to_central"] = best["predicted_error"] / best["central_error"]
    best["ratio_to_bound"] = best["worst_error"] / best["lower_bound"]
    best["zero_wins"] = best["predicted_error"] >= best["answer_zero_error"]
    order = best["data"].map(list(MOST_DRAWN).index) * len(TRUST_MODELS) + best["trust_model"].map(list(TRUST_MODELS).index)
    best = best.loc[order.sort_values(kind="stable").index]
    return best[COLUMNS].reset_index(drop=True)


def drawn_limits(data: str) -> list[float]:
    """Return the drawn limits of bits, by factors of the root of two, and no limit."""
    return [*(2 ** (step / 2) for step in range(2 * int(math.log2(MOST_DRAWN[data])))), math.inf]


def _winners(panel: pd.DataFrame, limits: Sequence[float]) -> pd.DataFrame:
    offers: dict[tuple[float, float], dict[str, Any]] = {}
    for epsilon, designs in panel.groupby("epsilon"):
        for most in limits:
            within = designs[designs["bits_per_client"] <= most * (1 + 1e-12)]
            allowed = within[within["unbiased"]] if within["unbiased"].any() else within
            if not allowed.empty:
                best = allowed.loc[allowed.groupby("mechanism", sort=False)["predicted_error"].idxmin()]
                near = best[best["predicted_error"] <= (1 + TOLERANCE) * best["predicted_error"].min()]
                offers[cast("float", epsilon), most] = {row["mechanism"]: row for row in near.to_dict("records")}
    counts = Counter(name for near in offers.values() for name in near)
    rows = []
    for (_, most), near in offers.items():
        winner = min(near, key=lambda name: (-counts[name], name))
        rows.append(near[winner] | {"most_bits": most, "equally_good": ", ".join(name for name in near if name != winner)})
    return pd.DataFrame(rows)


TITLES: Mapping[str, str] = MappingProxyType({"numbers": "numbers", "vectors": "vectors, d = {size}", "items": "histogram of {size} items"})
# Ends of the classes of errors over a trusted server's, and the colours of the scale, on which marks and hatches show.
RATIOS = (1.0, 1.1, 2.0, 10.0, 100.0, 1e3, 1e4, 1e5)
COLOURS = ("#FFFFFF", "#FEF3D0", "#FDDF9E", "#F9BC6B", "#EB9150", "#CC6B4C", "#A35157", "#7A4A63")
UNSERVED = "#E3E3E3"
# Largest error over the least one of a trust model with which a message has enough bits.
ENOUGH = 1.1
MARK_SIZE, KEY_COLUMNS = 6.5, 3
# Heights of a map, and of a line of the key, in inches.
MAP_HEIGHT, KEY_LINE = 1.6, 0.17
ENOUGH_LOOK: Mapping[str, Any] = MappingProxyType({"color": "black", "linewidth": 1.6})
HATCH: Mapping[str, Any] = MappingProxyType({"facecolor": "none", "edgecolor": "#666666", "hatch": "////", "linewidth": 0.0})


def enough_bits(best: pd.DataFrame) -> pd.DataFrame:
    """Return the fewest bits with at most 1.1 times the least error of a trust model, for each kind of data and epsilon."""
    least = best.groupby([*PANEL, "epsilon"])["predicted_error"].transform("min")
    enough = best[best["predicted_error"] <= ENOUGH * least]
    return enough.groupby([*PANEL, "epsilon"], sort=False)["bits_per_client"].min().reset_index()


def without_limit(best: pd.DataFrame) -> pd.DataFrame:
    """Return the winners without a limit of bits, with ``enough_bits`` as in `enough_bits`."""
    enough = enough_bits(best).rename(columns={"bits_per_client": "enough_bits"})
    winners = best[np.isinf(best["most_bits"])].merge(enough, on=[*PANEL, "epsilon"])
    columns = ["mechanism", "equally_good", "bits_per_client", "enough_bits", "predicted_error", "ratio_to_central", "ratio_to_bound"]
    shown: pd.DataFrame = winners[[*PANEL, "epsilon", *columns, "zero_wins"]]
    return shown


def draw_map(best: pd.DataFrame) -> Figure:
    """Draw a map of epsilon and bits for each trust model and kind of data.

    Colours are errors over a trusted server's, marks are mechanisms, hatches are fields where answering without messages has at most the
    error. Numbers above a map are errors over the proven bound without a limit of bits.
    """
    kinds, models = list(dict.fromkeys(best["data"])), list(dict.fromkeys(best["trust_model"]))
    epsilons = sorted(best["epsilon"].unique())
    key = _key(best)
    heights = [*(MAP_HEIGHT for _ in models), KEY_LINE * math.ceil(len(key) / KEY_COLUMNS)]
    figure = Figure(figsize=(WIDTH, 1.5 + sum(heights)), layout="constrained")
    cells = figure.add_gridspec(len(heights), len(kinds), height_ratios=heights)
    maps = cells[:-1, :].subgridspec(len(models), len(kinds)).subplots(sharex=True, sharey="col", squeeze=False)
    scale = ListedColormap(COLOURS[:-1]).with_extremes(over=COLOURS[-1])
    colours = ScalarMappable(BoundaryNorm(RATIOS, scale.N), scale)
    enough = enough_bits(best)
    for row, model in zip(maps, models, strict=True):
        for axes, data in zip(row, kinds, strict=True):
            own, least = (table[(table["data"] == data) & (table["trust_model"] == model)] for table in (best, enough))
            _draw_panel(axes, own, epsilons, drawn_limits(data), scale)
            for epsilon, bits in zip(least["epsilon"], least["bits_per_client"], strict=True):
                axes.plot(_ends_of(epsilon, epsilons), [bits, bits], solid_capstyle="butt", **ENOUGH_LOOK)
            axes.spines[:].set(visible=True, color=TRUST_MARKS[model].colour, linewidth=1.4)
        row[0].set_ylabel(f"{model}\nbits of a message")
    for axes, data in zip(maps[0], kinds, strict=True):
        axes.set_title(TITLES[data].format(size=int(best.loc[best["data"] == data, "size"].iloc[0])), pad=16)
    for axes in maps[-1]:
        axes.set_xlabel("ε")
    ticks = [f"{ratio:g}" if ratio < 1e4 else f"$10^{math.log10(ratio):.0f}$" for ratio in RATIOS]
    bar = figure.colorbar(colours, ax=list(maps.flat), location="top", aspect=60, pad=0.01, extend="max", ticks=RATIOS)
    bar.set_label("squared error over a trusted server's", labelpad=5)
    bar.ax.set_xticklabels(ticks)
    below = figure.add_subplot(cells[-1, :])
    below.axis("off")
    below.legend(handles=key, loc="center", ncols=KEY_COLUMNS, columnspacing=1.0, handletextpad=0.4, borderpad=0).set_in_layout(False)
    add_caption(figure, _caption(best))
    return figure


def _caption(best: pd.DataFrame) -> str:
    first = best.iloc[0]
    return (
        f"{first['clients']:,} clients; {first['adjacency']} adjacency, δ = {first['delta']:g}. Marks: the releasable mechanism of least "
        "predicted error with messages of at most the bits; frames: trust models. Above a map: worst error over the proven lower bound "
        "without a limit of bits (k: thousand; -: no bound to judge by)."
    )


def _ends_of(epsilon: float, epsilons: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a column of fields on the logarithmic axis."""
    width = math.sqrt(epsilons[1] / epsilons[0]) if len(epsilons) > 1 else math.sqrt(2)
    return epsilon / width, epsilon * width


def _draw_panel(axes: Axes, panel: pd.DataFrame, epsilons: Sequence[float], limits: Sequence[float], scale: Colormap) -> None:
    shape = (len(limits) - 1, len(epsilons))
    ratio, winner, zero = np.full(shape, np.nan), np.full(shape, "", dtype=object), np.zeros(shape, dtype=bool)
    for row in panel[np.isfinite(panel["most_bits"])].to_dict("records"):
        field = limits.index(row["most_bits"]), epsilons.index(row["epsilon"])
        ratio[field], winner[field], zero[field] = row["ratio_to_central"], row["mechanism"], row["zero_wins"]
    sides = np.array([*(_ends_of(epsilon, epsilons)[0] for epsilon in epsilons), _ends_of(epsilons[-1], epsilons)[1]])
    ends = np.array([*limits[:-1], limits[-2] ** 2 / limits[-3]])
    axes.set_facecolor(UNSERVED)
    axes.pcolormesh(sides, ends, np.ma.masked_invalid(ratio), cmap=scale, norm=BoundaryNorm(RATIOS, scale.N))
    axes.set(xscale="log", yscale="log", xlim=(sides[0], sides[-1]), ylim=(ends[0], ends[-1]))
    for row, column in zip(*np.nonzero(zero), strict=True):
        corner, size = (sides[column], ends[row]), (sides[column + 1] - sides[column], ends[row + 1] - ends[row])
        axes.add_patch(Rectangle(corner, *size, **HATCH))
    _draw_borders(axes, winner, sides, ends)
    for name in dict.fromkeys(winner[winner != ""]):
        _draw_marks(axes, winner == name, str(name), epsilons, np.sqrt(ends[:-1] * ends[1:]))
    over_bound = panel[np.isinf(panel["most_bits"])].set_index("epsilon")["ratio_to_bound"]
    for epsilon in epsilons:
        text = _in_few_characters(over_bound.get(epsilon, math.nan))
        axes.text(epsilon, 1.03, text, transform=axes.get_xaxis_transform(), horizontalalignment="center", fontsize=SMALLEST_TYPE)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()


def _draw_borders(axes: Axes, winner: NDArray[Any], sides: NDArray[np.float64], ends: NDArray[np.float64]) -> None:
    """Draw lines between fields of different mechanisms."""
    lines = [(sides[[j, j + 1]], ends[[i + 1, i + 1]]) for i, j in zip(*np.nonzero(winner[1:] != winner[:-1]), strict=True)]
    lines += [(sides[[j + 1, j + 1]], ends[[i, i + 1]]) for i, j in zip(*np.nonzero(winner[:, 1:] != winner[:, :-1]), strict=True)]
    for line in lines:
        axes.plot(*line, color="#555555", linewidth=0.6)


def _draw_marks(axes: Axes, fields: NDArray[np.bool_], name: str, epsilons: Sequence[float], middles: NDArray[np.float64]) -> None:
    """Draw a mechanism's mark in the middle of each of its connected regions."""
    regions, count = label(fields)
    for region in range(1, count + 1):
        places = np.argwhere(regions == region)
        row, column = places[np.argmin(np.sum(((places - places.mean(axis=0)) / np.ptp(places, axis=0).clip(1)) ** 2, axis=1))]
        axes.plot(epsilons[column], middles[row], **_mark(name))


def _mark(name: str) -> dict[str, Any]:
    points = mechanism_mark(name).points
    # A star of the same size has a smaller body than other markers.
    size = MARK_SIZE * (1.5 if points["marker"] == "*" else 1.0)
    return points | {"markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.7}


def _in_few_characters(ratio: float) -> str:
    if math.isnan(ratio):
        return "-"
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 999.5 else f"{ratio / 1000:.2g}k"


def _key(best: pd.DataFrame) -> list[Line2D | Patch]:
    """Return the key of marks, by trust model, and of what else is drawn."""
    key: list[Line2D | Patch] = [Line2D([], [], label=name, **_mark(str(name))) for name in dict.fromkeys(best["mechanism"])]
    key.append(Line2D([], [], label=f"least error + {100 * (ENOUGH - 1):.0f} % from here", **ENOUGH_LOOK))
    key.append(Patch(label="answering without messages is better", **HATCH))
    key.append(Patch(label="no mechanism", facecolor=UNSERVED))
    return key


def _ratios(best: pd.DataFrame, model: str) -> "pd.Series[float]":
    """Return errors over a trusted server's without a limit of bits."""
    own = best[(best["trust_model"] == model) & np.isinf(best["most_bits"])]
    ratio: pd.Series[float] = own["ratio_to_central"]
    return ratio


FIGURE = FigureEntry(
    name="mechanism-map",
    paper="beyond the papers",
    experiment="best mechanism by bits and epsilon",
    tasks=map_points,
    table=best_designs,
    draw=draw_map,
    summary=without_limit,
    findings=(
        Finding("Least error over a trusted server's, local", lambda best: _ratios(best, "local")),
        Finding("shuffled", lambda best: _ratios(best, "shuffled")),
        Finding("secure-sum", lambda best: _ratios(best, "secure-sum")),
    ),
)
