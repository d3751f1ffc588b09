"""Figure of a plan's designs: error against bits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...analysis.planner.plan import plan_task
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ...progress import silent
from ..drawing.labels import DirectLabel, place_labels
from ..drawing.marks import ANSWER_ZERO, TRUST_MARKS, TRUSTED_SERVER, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

# Largest factor of a drawn design's error over the best of its trust model; the caption counts omitted designs.
MOST_EXCESS = 100.0
RING: Mapping[str, Any] = MappingProxyType({"marker": "o", "markersize": 11, "markerfacecolor": "none", "linestyle": ""})
QUICK: Mapping[str, Any] = MappingProxyType({"clients": 1000, "dimension": 32})


@dataclass(frozen=True, kw_only=True)
class PlanPoint(Point):
    """The plan for vectors of the L2 unit ball; fields are those of `Task`."""

    clients: int = 10_000
    dimension: int = 1000
    epsilon: float = 2.0
    delta: float = 1e-5
    adjacency: str = "replace-one"

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each design that meets the task."""
        task = Task(NormBall(self.dimension, 2.0), self.clients, self.epsilon, self.delta, self.adjacency)
        frame = plan_task(task, seed=self.seed, timed=False, on_step=silent).designs_frame()
        return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def design_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a plan in its own order: by trust model, mechanism and bits."""
    return rows.reset_index(drop=True)


def draw_plan(frame: pd.DataFrame) -> Figure:
    """Draw the designs of a plan, each front as steps, with the names of its mechanisms.

    A front is the least error within a number of bits.
    """
    figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
    axes = figure.add_subplot()
    left_out, fronts = 0, list[pd.DataFrame]()
    for model, series in frame.groupby("trust_model", sort=False):
        shown = series[series["predicted_error"] <= MOST_EXCESS * series["predicted_error"].min()]
        left_out += len(series) - len(shown)
        fronts.append(_draw_model(axes, str(model), shown, TRUST_MARKS[str(model)]))
    first = frame.iloc[0]
    if pd.notna(first["central_error"]):
        axes.axhline(first["central_error"], label="trusted server", **TRUSTED_SERVER.rule)
    axes.axhline(first["answer_zero_error"], label="no messages", **ANSWER_ZERO.rule)
    axes.set(xscale="log", yscale="log", xlabel="bits of a message over the number of coordinates")
    axes.set_ylabel("predicted squared L2 error of the mean")
    # The axis has room for names to the right of the last point.
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.08)
    axes.grid(visible=True)
    figure.legend(handles=_legend(axes), loc="outside upper center", ncols=3, handlelength=2.5, columnspacing=1.2)
    add_caption(figure, _caption(frame, left_out))
    place_labels(figure, axes, _names(fronts))
    return figure


def _legend(axes: Axes) -> list[Line2D]:
    """Return a handle for each front with its marker, for the references, and for the marks of designs."""
    named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    fronts = [str(line.get_label()) for line in named if line.get_drawstyle() == "steps-post"]
    references = [line for line in named if str(line.get_label()) not in fronts]
    handles = [Line2D([], [], label=name, **TRUST_MARKS[name].look) for name in fronts]
    points = Line2D([], [], color=GREY, marker="o", markersize=3, alpha=0.6, linestyle="", label="other designs")
    return [*handles, *references, points, Line2D([], [], color=GREY, label="recommended", **RING)]


def _draw_model(axes: Axes, model: str, series: pd.DataFrame, mark: Mark) -> pd.DataFrame:
    """Draw the designs, the front and the bound of a trust model; return the designs to name, the most important first."""
    releasable = series[~series["on_real_numbers"].astype(bool)]
    ordered = (releasable if len(releasable) else series).sort_values(["bits_per_coordinate", "predicted_error"])
    least = ordered["predicted_error"].cummin()
    front = ordered[(ordered["predicted_error"] <= least) & ~least.duplicated()]
    others = series[~series.index.isin(front.index)]
    axes.scatter(others["bits_per_coordinate"], others["predicted_error"], s=9, color=mark.colour, alpha=0.35, linewidth=0)
    right = max(ordered["bits_per_coordinate"].iloc[-1], front["bits_per_coordinate"].iloc[-1])
    bits = [*front["bits_per_coordinate"], right]
    errors = [*front["predicted_error"], front["predicted_error"].iloc[-1]]
    axes.plot(bits, errors, drawstyle="steps-post", label=model, **mark.rule)
    axes.plot(front["bits_per_coordinate"], front["predicted_error"], **mark.points)
    recommended = series[series["recommended"].astype(bool)]
    axes.plot(recommended["bits_per_coordinate"], recommended["predicted_error"], color=mark.colour, **RING)
    # The bound is that of the best design, since a larger bound for more restricted messages need not hold for other designs.
    bound = series["lower_bound"].iloc[int(series["predicted_error"].argmin())]
    if pd.notna(bound):
        axes.axhline(bound, color=mark.colour, linewidth=2.5, alpha=0.35, label=f"proven bound, {model}")
    # The recommended mechanism is named first, at its own point.
    return pd.concat([recommended, front[~front["mechanism"].isin(recommended["mechanism"])]]).drop_duplicates("mechanism")


def _names(fronts: Sequence[pd.DataFrame]) -> list[DirectLabel]:
    """Return the labels of the named designs, those of the recommended designs first."""
    named = pd.concat(fronts).sort_values("recommended", ascending=False, kind="stable").to_dict("records")
    return [DirectLabel(row["mechanism"], row["bits_per_coordinate"], row["predicted_error"]) for row in named]


def _caption(frame: pd.DataFrame, left_out: int) -> str:
    first = frame.iloc[0]
    if pd.notna(first["dimension"]):
        norm = first["norm"]
        held = f"vectors of {first['dimension']:,.0f} coordinates, L{norm if isinstance(norm, str) else format(norm, 'g')} norm at most "
        held += f"{first['clip_norm']:g}"
    elif pd.notna(first["categories"]):
        held = f"items of a list of {first['categories']:,.0f}"
    else:
        held = f"numbers from {first['low']:g} to {first['high']:g}"
    rounds = "" if first["rounds"] == 1 else f" over {first['rounds']:.0f} rounds"
    hidden = "" if not left_out else f" Left out: {left_out} designs above {MOST_EXCESS:g} times their trust model's least."
    return (
        f"{first['clients']:,.0f} clients with {held}; ε = {first['task_epsilon']:g}, δ = {first['task_delta']:g}{rounds}, "
        f"{first['adjacency']} adjacency. Errors are predicted for the population {first['population']}. Lines: the least of releasable "
        f"designs. Bounds: for the best designs.{hidden}"
    )


def plan_points(seed: int, quick: bool) -> list[PlanPoint]:
    """Return the plan of the figure, or of a smaller task."""
    return [PlanPoint(seed=seed, **QUICK) if quick else PlanPoint(seed=seed)]


def _least(frame: pd.DataFrame, model: str) -> list[float]:
    """Return the least error of a trust model's releasable designs over the central error.

    The central error is that of a trusted server with Gaussian noise.
    """
    releasable = (frame["trust_model"] == model) & ~frame["on_real_numbers"].astype(bool)
    return [(frame["predicted_error"] / frame["central_error"])[releasable].min()]


FIGURE = FigureEntry(
    name="plan-pareto",
    paper="beyond the papers",
    experiment="plan",
    tasks=plan_points,
    table=design_rows,
    draw=draw_plan,
    findings=(
        Finding("Least error over a trusted server's, secure-sum", lambda frame: _least(frame, "secure-sum")),
        Finding("local", lambda frame: _least(frame, "local")),
    ),
)
