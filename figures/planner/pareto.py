"""Figure of a plan's designs: error against bits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter

from ...analysis.planner.plan import plan_task
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ...progress import silent
from ..drawing.marks import TRUST_MARKS, Mark
from ..drawing.style import GREY, WIDTH, add_caption, solve_layout
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point

# Largest factor of a drawn design's error over the best of its trust model; the caption counts omitted designs.
MOST_EXCESS = 100.0
# Least distance of named points of a front in powers of ten, in bits and in error.
NEAR = (0.3, 0.5)
# Rotation and alignment of the names above and below their points.
UP: Mapping[str, Any] = MappingProxyType({"rotation": 20, "verticalalignment": "bottom"})
DOWN: Mapping[str, Any] = MappingProxyType({"rotation": -40, "verticalalignment": "top"})
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
    left_out, up, central = 0, True, "central" in set(frame["trust_model"])
    for model, series in frame.groupby("trust_model", sort=False):
        shown = series[series["predicted_error"] <= MOST_EXCESS * series["predicted_error"].min()]
        left_out += len(series) - len(shown)
        # Names alternate above and below their points, to keep them apart; those of a trusted server stand close to those of a secure sum.
        _draw_model(axes, str(model), shown, TRUST_MARKS[str(model)], up=up or (central and model == "secure-sum"))
        up = not up
    first = frame.iloc[0]
    if pd.notna(first["central_error"]):
        axes.axhline(first["central_error"], color=GREY, linestyle=(0, (5, 3)), linewidth=1.0, label="trusted server")
    axes.axhline(first["answer_zero_error"], color=GREY, linestyle=(0, (1, 1)), linewidth=1.2, label="no messages")
    axes.set(xscale="log", yscale="log", xlabel="bits of a message over the number of coordinates")
    axes.set_ylabel("predicted squared L2 error of the mean")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # The axis has room for names to the right of the last point.
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.18)
    axes.grid(visible=True)
    figure.legend(loc="outside upper center", ncols=4, handlelength=2.5, columnspacing=1.2)
    add_caption(figure, _caption(frame, left_out))
    _turn_up(figure, axes)
    return figure


def _turn_up(figure: Figure, axes: Axes) -> None:
    """Turn up the names that reach below the axis."""
    solve_layout(figure)
    for name in axes.texts:
        if isinstance(name, Annotation) and name.get_window_extent().y0 < axes.get_window_extent().y0:
            name.set(**UP)
            name.xyann = (4, 4)


def _draw_model(axes: Axes, model: str, series: pd.DataFrame, mark: Mark, *, up: bool) -> None:
    releasable = series[~series["on_real_numbers"].astype(bool)]
    ordered = (releasable if len(releasable) else series).sort_values(["bits_per_coordinate", "predicted_error"])
    least = ordered["predicted_error"].cummin()
    front = ordered[(ordered["predicted_error"] <= least) & ~least.duplicated()]
    axes.scatter(series["bits_per_coordinate"], series["predicted_error"], s=9, color=mark.colour, alpha=0.35, linewidth=0)
    right = max(ordered["bits_per_coordinate"].iloc[-1], front["bits_per_coordinate"].iloc[-1])
    bits = [*front["bits_per_coordinate"], right]
    errors = [*front["predicted_error"], front["predicted_error"].iloc[-1]]
    axes.plot(bits, errors, color=mark.colour, linestyle=mark.line, drawstyle="steps-post", label=model)
    axes.plot(front["bits_per_coordinate"], front["predicted_error"], color=mark.colour, marker=mark.marker, linestyle="")
    recommended = series[series["recommended"].astype(bool)]
    axes.plot(
        recommended["bits_per_coordinate"],
        recommended["predicted_error"],
        color=mark.colour,
        marker="o",
        markersize=11,
        markerfacecolor="none",
        linestyle="",
    )
    # The recommended mechanism is named first, at its own point.
    named = pd.concat([recommended, front[~front["mechanism"].isin(recommended["mechanism"])]])
    for row in _apart(named.drop_duplicates("mechanism").to_dict("records")):
        axes.annotate(
            row["mechanism"],
            (row["bits_per_coordinate"], row["predicted_error"]),
            xytext=(4, 4 if up else -4),
            textcoords="offset points",
            color=mark.colour,
            rotation_mode="anchor",
            **(UP if up else DOWN),
        )
    # The bound is that of the best design, since a larger bound for more restricted messages need not hold for other designs.
    bound = series["lower_bound"].iloc[int(series["predicted_error"].argmin())]
    if pd.notna(bound):
        axes.axhline(bound, color=mark.colour, linewidth=2.5, alpha=0.35, label=f"proven bound, {model}")


def _apart(rows: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """Return the points whose names do not cover earlier points' names."""
    kept = list[dict[Any, Any]]()
    for row in rows:
        bits = [abs(math.log10(row["bits_per_coordinate"] / other["bits_per_coordinate"])) for other in kept]
        errors = [abs(math.log10(row["predicted_error"] / other["predicted_error"])) for other in kept]
        if all(right > NEAR[0] or up > NEAR[1] for right, up in zip(bits, errors, strict=True)):
            kept.append(row)
    return kept


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
    hidden = "" if not left_out else f" Left out: {left_out} designs beyond {MOST_EXCESS:g} times the least error."
    return (
        f"{first['clients']:,.0f} clients with {held}; ε = {first['task_epsilon']:g}, δ = {first['task_delta']:g}{rounds}, "
        f"{first['adjacency']} adjacency. Points: designs, with predicted errors for the population {first['population']}; lines: the "
        "least of releasable designs within a number of bits; rings: recommended designs; bounds: of the best design of each trust model."
        f"{hidden}"
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
