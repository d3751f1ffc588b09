"""The error of each mechanism by cause, for typical settings: bias, compression, rounding and noise.

No paper has this picture.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator

from ...analysis.planner.plan import plan_task
from ...analysis.planner.population import draw_sample
from ...analysis.planner.prediction import predict_parts
from ...arguments import check_choice
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.guarantee import TRUST_MODELS
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ...progress import silent
from ..drawing.marks import ANSWER_ZERO, GREEN, INDIGO, PURPLE, SKY, TRUST_MARKS, TRUSTED_SERVER
from ..drawing.style import SMALLEST_TYPE, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point


@dataclass(frozen=True)
class Setting:
    """A task, and the trust model that its plan is limited to.

    Attributes
    ----------
    task : Task
        The task.
    trust : str or None
        The trust model; None for all.
    """

    task: Task
    trust: str | None = None


_STEP = Task(NormBall(4096, 2.0), 500, 4.0, 1e-5, "add-or-remove-one")
SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "numbers": Setting(Task(Interval(), 100_000, 1.0, 0.0, "replace-one", bits=2)),
        "local vectors": Setting(Task(NormBall(256, 2.0), 10_000, 4.0, 0.0, "replace-one", bits=1), "local"),
        "summed vectors": Setting(_STEP, "secure-sum"),
        "summed vectors, fewer bits": Setting(replace(_STEP, bits=11), "secure-sum"),
        "long vectors": Setting(replace(_STEP, domain=NormBall(131_072, 2.0), bits=2, rounds=10)),
        "local items": Setting(Task(Categories(1000), 100_000, 1.0, 0.0, "replace-one"), "local"),
        "summed items": Setting(Task(Categories(1000), 10_000, 1.0, 1e-6, "replace-one", message_bits=6000), "secure-sum"),
    }
)
"""Typical settings by name, most of them those of the documentation."""
QUICK = ("numbers", "local vectors", "long vectors")
# Parts of an error with their names, and colours that no trust model has.
PARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "noise": (SKY.colour, "noise"),
        "rounding": (PURPLE.colour, "rounding"),
        "compression": (GREEN.colour, "compression"),
        "bias": (INDIGO.colour, "squared bias"),
        "unsplit": ("#D0D0D0", "not split"),
    }
)
ROW_HEIGHT, PANEL_HEIGHT = 0.155, 0.34
# Least squared bound on the bias, over the error, that is drawn.
LEAST_BOUND = 1e-3
BOUND_LOOK: Mapping[str, Any] = MappingProxyType({"marker": "|", "markersize": 7, "color": INDIGO.colour, "linestyle": ""})


@dataclass(frozen=True, kw_only=True)
class PartsPoint(Point):
    """The plan of a setting, with the parts of each mechanism's error.

    Attributes
    ----------
    case : str
        Name of a setting (`SETTINGS`).
    """

    case: str

    @property
    def planned(self) -> Setting:
        """The setting."""
        return SETTINGS[check_choice("case", self.case, SETTINGS)]

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each releasable mechanism that serves the task, with the design that the plan chooses.

        ``predicted_error`` is the expected squared L2 error of one round for the planner's usual population; ``bias``, ``compression``,
        ``rounding``, ``noise`` and ``unsplit`` are its parts (`ErrorParts`), which add up to it. ``bias_bound`` bounds the norm of the
        bias, which most mechanisms do not state. ``central_error`` and ``answer_zero_error`` are those of the best trusted server and of
        the answer without messages.
        """
        task = self.planned.task
        plan = plan_task(task, trust=self.planned.trust, seed=self.seed, timed=False, on_step=silent)
        sample = draw_sample(plan.population, task.domain, task.clients, self.seed, plan.nonzero)
        return [
            {
                "setting": self.case,
                "trust_model": planned.trust_model,
                "mechanism": planned.name,
                "options": json.dumps(dict(planned.options)),
                "bits_per_client": planned.bits_per_client,
                "predicted_error": planned.predicted_error,
                **asdict(predict_parts(planned.mechanism, sample)),
                "bias_bound": planned.bias_bound,
                **plan.reference_columns,
                "population": plan.population,
                "data": {Interval: "numbers", Categories: "items"}.get(type(task.domain), "vectors"),
                "size": task.domain.dimension,
                "clients": task.clients,
                "epsilon": task.epsilon,
                "delta": task.delta,
                "rounds": task.rounds,
                "most_bits": task.most_message_bits,
                "adjacency": task.adjacency,
            }
            for planned in plan.feasible
            if planned.mechanism is not None and not planned.on_real_numbers
        ]


def parts_points(seed: int, quick: bool) -> list[PartsPoint]:
    """Return a point for each setting."""
    return [PartsPoint(seed=seed, case=name) for name in (QUICK if quick else SETTINGS)]


def sorted_parts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order of settings, and of a plan within a setting."""
    rows = rows.astype({"central_error": float, "most_bits": float})
    return rows.sort_values("setting", key=lambda names: names.map(list(SETTINGS).index), kind="stable").reset_index(drop=True)


def draw_parts(table: pd.DataFrame) -> Figure:
    """Draw the shares of the parts as a bar for each mechanism, and beside it the whole error."""
    panels = {str(name): panel for name, panel in table.groupby("setting", sort=False)}
    heights = [PANEL_HEIGHT + ROW_HEIGHT * len(panel) for panel in panels.values()]
    figure = Figure(figsize=(WIDTH, 1.15 + sum(heights)), layout="constrained")
    grid = figure.subplots(len(panels), 2, squeeze=False, height_ratios=heights, width_ratios=(1.2, 1.0))
    for (shares, errors), panel in zip(grid, panels.values(), strict=True):
        _draw_shares(shares, panel)
        _draw_errors(errors, panel)
    grid[-1][0].set_xlabel("part of the squared error (%)")
    grid[-1][1].set_xlabel("squared error of the mean")
    key: list[Line2D | Patch] = [Patch(facecolor=colour, label=name) for part, (colour, name) in PARTS.items() if (table[part] > 0).any()]
    if _shown_bounds(table).any():
        key.append(Line2D([], [], label="bound on the squared bias", **BOUND_LOOK))
    key += [Line2D([], [], label=model, **TRUST_MARKS[model].points) for model in TRUST_MODELS if model in set(table["trust_model"])]
    key.append(Line2D([], [], label="trusted server", **TRUSTED_SERVER.rule))
    key.append(Line2D([], [], label="answer zero", **ANSWER_ZERO.rule))
    figure.legend(handles=key, loc="outside upper center", ncols=4, columnspacing=1.4)
    add_caption(
        figure,
        "The design that a plan chooses for each releasable mechanism, with the bits of a client's message; errors are predicted for one "
        "round of the planner's usual populations. Marks show the trust model; the guarantees stand above the panels.",
    )
    return figure


def _shown_bounds(panel: pd.DataFrame) -> "pd.Series[bool]":
    return (panel["bias"] == 0) & (panel["bias_bound"] ** 2 > LEAST_BOUND * panel["predicted_error"])


def _draw_shares(axes: Axes, panel: pd.DataFrame) -> None:
    places, left = np.arange(len(panel)), np.zeros(len(panel))
    for part, (colour, _) in PARTS.items():
        share = (100 * panel[part] / panel["predicted_error"]).to_numpy()
        axes.barh(places, share, left=left, height=0.72, color=colour)
        left += share
    labels = [f"{name}, {_bits(bits)}" for name, bits in zip(panel["mechanism"], panel["bits_per_client"], strict=True)]
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 100), ylim=(len(panel) - 0.4, -0.6))
    # The title keeps room for the words, which begin at the figure's edge.
    axes.set_title(" ", fontsize=SMALLEST_TYPE)
    words = axes.annotate(
        _in_words(panel.iloc[0]), (0.01, 1.0), xytext=(0, 5), xycoords=("figure fraction", "axes fraction"), textcoords="offset points"
    )
    words.set_in_layout(False)


def _draw_errors(axes: Axes, panel: pd.DataFrame) -> None:
    first, bounds = panel.iloc[0], panel["bias_bound"] ** 2
    for place, (_, row) in enumerate(panel.iterrows()):
        axes.plot(row["predicted_error"], place, **TRUST_MARKS[row["trust_model"]].points)
    shown = _shown_bounds(panel).to_numpy()
    axes.plot(bounds[shown], np.flatnonzero(shown), **BOUND_LOOK)
    for column, mark in (("central_error", TRUSTED_SERVER), ("answer_zero_error", ANSWER_ZERO)):
        if pd.notna(first[column]):
            axes.axvline(first[column], **mark.rule)
    axes.set(xscale="log", ylim=(len(panel) - 0.4, -0.6))
    low, high = axes.get_xlim()
    if high < 1e4 * low:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axes.xaxis.set_major_formatter(lambda error, _: f"{error:g}" if 1e-3 <= error < 1e4 else f"$10^{{{math.log10(error):.0f}}}$")
    axes.minorticks_off()
    axes.set_yticks([])
    axes.grid(visible=True, axis="x")


def _bits(bits: float) -> str:
    number = f"{bits:,.0f}" if bits >= 10 or abs(bits - round(bits)) < 0.05 else f"{bits:.1f}"
    return f"{number} bit{'' if number == '1' else 's'}"


def _in_words(first: "pd.Series[Any]") -> str:
    size = first["size"]
    held = {"numbers": "numbers", "items": f"items of {size:,}"}.get(first["data"], f"vectors, d = {size:,}")
    rounds = "" if first["rounds"] == 1 else f" for {first['rounds']} rounds"
    limit = "" if pd.isna(first["most_bits"]) else f"; at most {_bits(first['most_bits'])}"
    return f"{first['clients']:,} {held}; ε = {first['epsilon']:g}, δ = {first['delta']:g}{rounds}, {first['adjacency']} adjacency{limit}"


def _share(table: pd.DataFrame, part: str) -> "pd.Series[float]":
    """Return a part of the errors that are split, in per cent."""
    split = table[table["unsplit"] == 0]
    ratio: pd.Series[float] = 100 * split[part] / split["predicted_error"]
    # The quotient of a whole error may exceed 1 by its rounding error.
    return ratio.clip(upper=100.0)


FIGURE = FigureEntry(
    name="error-parts",
    paper="beyond the papers",
    experiment="error by cause",
    tasks=parts_points,
    table=sorted_parts,
    draw=draw_parts,
    findings=(
        Finding("Part of the error in %, noise", lambda table: _share(table, "noise")),
        Finding("rounding", lambda table: _share(table, "rounding")),
        Finding("compression", lambda table: _share(table, "compression")),
    ),
)
