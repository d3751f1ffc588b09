"""Figure 3 of Chaudhuri, Guo, Rabbat 2022: errors of vector means against epsilon and bits.

The comparison against bits goes beyond the paper.
"""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...analysis.simulation.populations import population_chunks
from ...analysis.sweeps.summary import summarise_sweep
from ...analysis.sweeps.task import MeanDesign, MeanTask, MechanismChoice, PreparedMean
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Scalar
from ...design.contracts.task import Task
from ...design.local.vector_table import VectorGrid, VectorTableMechanism
from ...design.tables.table_privacy import table_privacy
from ...solvers.limits.coordinate_variance import least_coordinate_variance
from ..drawing.marks import DASHED, LOWER_BOUND, TRUSTED_SERVER, Mark, mechanism_mark, variant
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios

ADJACENCY = "replace-one"
DIMENSION, CLIENTS, REPETITIONS = 128, 10_000, 10
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
# Failure probability of mechanisms that need one; pure mechanisms have none.
DELTA = 1e-5
# Epsilon of the comparison against bits.
BITS_EPSILON = 2.0
BITS_OUT = (1, 2, 3, 4, 5)
# Options of tables that are designed for the Rényi divergence.
RENYI_BITS_OUT = (1, 2, 3)
SKELLAM_BITS = (8, 10, 12, 16)
# Number of draws of a CLDP message on the L2 ball; the paper has a draw for each coordinate, which is more.
CLDP_DRAWS = (1, 4, 16)
# Divisor of the draws in comparisons for few coordinates.
FEWER_DRAWS = 4
SQKR_BITS = (1, 2, 3)
SIMPLEX_BITS = (1, 2, 4, 6)
CODING_BITS = (4, 8)
# Number of projections of 128 coordinates.
PROJECTED = 32
# Options with which codes are quick, and serve vectors of three coordinates.
SMALLEST = {"projected": 2, "message_bits": 2}
# Number of vectors over which the bound averages the distance of coordinates from the grid.
BOUND_CLIENTS = 2000
MVU, CLDP = mechanism_mark("mvu"), mechanism_mark("cldp")
# Marks of the designs of one mechanism, in the mechanism's colour; other series have the mark of their mechanism.
VARIANTS: Mapping[str, Mark] = MappingProxyType(
    {
        "MVU, L1 metric": MVU,
        "MVU, L2 metric": variant(MVU, 1),
        "MVU, Rényi": variant(MVU, 2),
        "CLDP, d draws": variant(CLDP, 1),
    }
)
# Names of the mechanisms of a series that has several.
LABELS: Mapping[str, str] = MappingProxyType({"laplace": "Laplace", "gaussian": "Gaussian"})
PAPER_LOOK: Mapping[str, Any] = MappingProxyType({"linestyle": (0, (0.5, 1.5)), "linewidth": 0.9, "marker": ""})
# Line styles of the bounds, by kind of table.
BOUND_LOOKS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"MVU, L1 metric": LOWER_BOUND.rule | {"linewidth": 0.8}, "MVU, Rényi": LOWER_BOUND.rule | {"linestyle": DASHED, "linewidth": 0.8}}
)
TITLES = {"L1": "L1 ball", "L2": "L2 ball"}


@dataclass(frozen=True)
class Series:
    """A mechanism with its place in the comparison.

    Attributes
    ----------
    label : str
        Name in the figure.
    mechanism : MechanismChoice
        The mechanism, with its options.
    norm : float
        Order p of the L_p ball for clipping; every vector of the L1 ball also lies in the L2 ball.
    delta : float
        Failure probability of its guarantee.
    """

    label: str
    mechanism: MechanismChoice
    norm: float
    delta: float


@dataclass(frozen=True)
class Comparison:
    """A half of the comparison.

    Attributes
    ----------
    name : str
        ``"L1"`` or ``"L2"``: the ball that the vectors lie in.
    population : str
        Name of the population, as in `population_chunks`.
    by_epsilon : tuple of Series
        Series that are compared at every epsilon.
    by_bits : tuple of Series
        Series that are compared at one epsilon, with several numbers of bits.
    """

    name: str
    population: str
    by_epsilon: tuple[Series, ...]
    by_bits: tuple[Series, ...]


def _table(label: str, bits_in: int, bits_out: int, metric: str, norm: float, delta: float, objective: str | None = None) -> Series:
    choice = MechanismChoice.of("mvu", bits_in=bits_in, bits_out=bits_out, metric=metric, objective=objective)
    return Series(label, choice, norm, delta)


COMPARISONS = (
    Comparison(
        "L1",
        "uniform-l1",
        by_epsilon=(
            _table("MVU, L1 metric", 9, 3, "l1", 1.0, 0.0),
            Series("CLDP", MechanismChoice.of("cldp"), 1.0, 0.0),
            Series("Laplace, or Gaussian", MechanismChoice.of("laplace"), 1.0, 0.0),
            Series("Skellam", MechanismChoice.of("skellam", bits=16), 2.0, DELTA),
        ),
        by_bits=(
            *(_table("MVU, L1 metric", 9, bits, "l1", 1.0, 0.0) for bits in BITS_OUT),
            Series("CLDP", MechanismChoice.of("cldp"), 1.0, 0.0),
            Series("Laplace, or Gaussian", MechanismChoice.of("laplace"), 1.0, 0.0),
            *(Series("Skellam", MechanismChoice.of("skellam", bits=bits), 2.0, DELTA) for bits in SKELLAM_BITS),
        ),
    ),
    Comparison(
        "L2",
        "positive-sphere",
        by_epsilon=(
            _table("MVU, L1 metric", 5, 3, "l1", 2.0, DELTA),
            _table("MVU, L2 metric", 5, 3, "l2", 2.0, 0.0),
            _table("MVU, Rényi", 5, 3, "l1", 2.0, DELTA, "renyi"),
            Series("CLDP", MechanismChoice.of("cldp"), 2.0, 0.0),
            Series("CLDP, d draws", MechanismChoice.of("cldp", draws=DIMENSION), 2.0, 0.0),
            Series("Laplace, or Gaussian", MechanismChoice.of("gaussian"), 2.0, DELTA),
            Series("Skellam", MechanismChoice.of("skellam", bits=16), 2.0, DELTA),
            Series("PrivUnitG", MechanismChoice.of("privunit-g"), 2.0, 0.0),
            Series("SQKR", MechanismChoice.of("sqkr"), 2.0, 0.0),
            Series("PrivUnit", MechanismChoice.of("privunit"), 2.0, 0.0),
            Series("FastProjUnit", MechanismChoice.of("fast-projunit", projected=PROJECTED), 2.0, 0.0),
            Series("rotating simplex", MechanismChoice.of("rotating-simplex", message_bits=4), 2.0, 0.0),
        ),
        by_bits=(
            *(_table("MVU, L1 metric", 5, bits, "l1", 2.0, DELTA) for bits in BITS_OUT),
            *(_table("MVU, L2 metric", 5, bits, "l2", 2.0, 0.0) for bits in BITS_OUT),
            *(_table("MVU, Rényi", 5, bits, "l1", 2.0, DELTA, "renyi") for bits in RENYI_BITS_OUT),
            *(Series("CLDP", MechanismChoice.of("cldp", draws=draws), 2.0, 0.0) for draws in CLDP_DRAWS),
            Series("CLDP, d draws", MechanismChoice.of("cldp", draws=DIMENSION), 2.0, 0.0),
            Series("Laplace, or Gaussian", MechanismChoice.of("gaussian"), 2.0, DELTA),
            *(Series("Skellam", MechanismChoice.of("skellam", bits=bits), 2.0, DELTA) for bits in SKELLAM_BITS),
            Series("PrivUnitG", MechanismChoice.of("privunit-g"), 2.0, 0.0),
            *(Series("SQKR", MechanismChoice.of("sqkr", message_bits=bits), 2.0, 0.0) for bits in SQKR_BITS),
            Series("PrivUnit", MechanismChoice.of("privunit"), 2.0, 0.0),
            Series("FastProjUnit", MechanismChoice.of("fast-projunit", projected=PROJECTED), 2.0, 0.0),
            *(Series("rotating simplex", MechanismChoice.of("rotating-simplex", message_bits=bits), 2.0, 0.0) for bits in SIMPLEX_BITS),
            Series("ProjUnit", MechanismChoice.of("projunit", projected=PROJECTED), 2.0, 0.0),
            *(Series("random coding", MechanismChoice.of("minimal-random-coding", message_bits=bits), 2.0, 0.0) for bits in CODING_BITS),
            Series("plain random coding", MechanismChoice.of("minimal-random-coding-plain", message_bits=8), 2.0, 0.0),
            Series("Poisson representation", MechanismChoice.of("poisson-private-representation"), 2.0, 0.0),
        ),
    ),
)


def with_small_tables(comparison: Comparison, bits_in: int, most_bits_out: int) -> Comparison:
    """Return a comparison with tables of fewer bits, and with codes for few coordinates.

    Such tables are designed quickly.
    """

    def smaller(series: Series) -> Series:
        options: dict[str, Any] = dict(series.mechanism.options)
        if series.mechanism.name in (
            "rotating-simplex",
            "fast-projunit",
            "projunit",
            "minimal-random-coding",
            "minimal-random-coding-plain",
        ):
            fewest = {name: min(value, SMALLEST[name]) if name in SMALLEST else value for name, value in options.items()}
            return replace(series, mechanism=MechanismChoice.of(series.mechanism.name, **fewest))
        if "draws" in options:
            return replace(series, mechanism=MechanismChoice.of("cldp", draws=max(1, options["draws"] // FEWER_DRAWS)))
        if series.mechanism.name != "mvu":
            return series
        fewer = {"bits_in": bits_in, "bits_out": min(options["bits_out"], most_bits_out)}
        return replace(series, mechanism=MechanismChoice.of("mvu", **(options | fewer)))

    def small(series: tuple[Series, ...]) -> tuple[Series, ...]:
        return tuple(dict.fromkeys(smaller(item) for item in series))

    return replace(comparison, by_epsilon=small(comparison.by_epsilon), by_bits=small(comparison.by_bits))


@dataclass(frozen=True)
class SeriesTask:
    """A task of a sweep of means, with its place in the comparison.

    Attributes
    ----------
    of : MeanTask
        The task.
    comparison, series : str
        Half of the comparison, and the series' label.
    panels : tuple of str
        Panels of the series: ``"epsilon"``, ``"bits"`` or both.
    """

    of: MeanTask
    comparison: str
    series: str
    panels: tuple[str, ...]

    @property
    def seed(self) -> int:
        """Seed of the task."""
        return self.of.seed

    @property
    def name(self) -> str:
        """Name of the task, with its place in the comparison."""
        return json.dumps([self.comparison, self.series, self.panels, self.of.name])

    @property
    def setting(self) -> str:
        """The task in words."""
        return self.of.setting

    @property
    def design(self) -> MeanDesign:
        """Design problem of the mechanism."""
        return self.of.design

    def prepare(self, cache: Path | None) -> PreparedMean:
        """Build the mechanism."""
        return self.of.prepare(cache)

    def run(self, prepared: PreparedMean) -> list[dict[str, Scalar]]:
        """Return the task's rows.

        The first repetition has two more rows, for the metrics ``"certified_error"`` and ``"paper_epsilon"``.
        """
        place: dict[str, Scalar] = {"comparison": self.comparison, "series": self.series, "panels": " ".join(self.panels)}
        rows = [place | row for row in self.of.run(prepared)]
        if self.of.repetition == 0:
            rows.append(rows[0] | {"metric": "certified_error", "value": self._certified_error(prepared)})
            rows.append(rows[0] | {"metric": "paper_epsilon", "value": self._paper_epsilon(prepared)})
        return rows

    def _paper_epsilon(self, prepared: PreparedMean) -> float:
        """Return the epsilon of the same noise or table in the paper's figure.

        Mechanisms that need a delta have 1/(clients + 1). Tables and Laplace noise, whose privacy is metric, have the epsilon for two
        vectors at half of the largest distance, and other mechanisms the epsilon for any two vectors.
        """
        mechanism, of = prepared.mechanism, self.of
        delta = 1 / (of.task.clients + 1) if of.task.delta > 0 else 0.0
        if isinstance(mechanism, VectorTableMechanism):
            ball, radius = mechanism.ball, mechanism.input_distance / 2
            return table_privacy(mechanism.table, dimension=ball.dimension, norm=ball.norm, radius=radius).epsilon(delta, ADJACENCY)
        if delta > 0:
            return mechanism.privacy().epsilon(delta, ADJACENCY)
        return of.task.epsilon / 2 if of.mechanism.name == "laplace" else of.task.epsilon

    def _certified_error(self, prepared: PreparedMean) -> float:
        """Return the error of the best table of any bits for the same constraint, or NaN.

        The constraint is the table's constraint on neighbouring rows, with errors averaged over the inputs of the grid. Tables that are
        designed for the account of the whole vector keep that account instead, by `least_coordinate_variance`. The error includes the
        data's own dithering, and is a lower bound.
        """
        mechanism, of = prepared.mechanism, self.of
        if not isinstance(mechanism, VectorTableMechanism):
            return math.nan
        ball, grid, bound = mechanism.ball, VectorGrid(mechanism.ball, mechanism.table.bits_in), mechanism.table.certificate.lower_bound
        if dict(of.mechanism.options)["objective"] == "renyi":
            bound = least_coordinate_variance(mechanism.renyi_budget(of.task.epsilon, of.task.rounds)) / grid.steps**2
        if bound is None:
            return math.nan
        rng = named_stream(self.seed, f"bound: {of.population}")
        vectors = np.concatenate(list(population_chunks(of.population, BOUND_CLIENTS, ball.dimension, rng)))
        fractions = grid.positions(vectors) % 1.0
        dithering = float((fractions * (1 - fractions)).mean()) * grid.step**2
        variance = bound * (grid.steps * grid.step) ** 2 + dithering
        return ball.dimension * variance / of.task.clients


def vector_mean_tasks(
    seed: int,
    *,
    comparisons: Sequence[Comparison] = COMPARISONS,
    epsilons: tuple[float, ...] = EPSILONS,
    clients: int = CLIENTS,
    dimension: int = DIMENSION,
    repetitions: int = REPETITIONS,
) -> list[SeriesTask]:
    """Return the tasks of both halves, with at most one CLDP draw for each coordinate."""
    tasks: dict[MeanTask, SeriesTask] = {}
    for comparison in comparisons:
        for panel, panel_series, panel_epsilons in (
            ("epsilon", comparison.by_epsilon, epsilons),
            ("bits", comparison.by_bits, (BITS_EPSILON,)),
        ):
            for series, epsilon, repetition in itertools.product(panel_series, panel_epsilons, range(repetitions)):
                task = Task(NormBall(dimension, series.norm), clients, epsilon, series.delta, ADJACENCY)
                mechanism = _within_dimension(series.mechanism, dimension)
                mean_task = MeanTask(mechanism, task, comparison.population, repetition=repetition, seed=seed)
                panels = (*tasks[mean_task].panels, panel) if mean_task in tasks else (panel,)
                tasks[mean_task] = SeriesTask(mean_task, comparison.name, series.label, panels)
    return list(tasks.values())


def _within_dimension(mechanism: MechanismChoice, dimension: int) -> MechanismChoice:
    options: dict[str, Any] = dict(mechanism.options)
    if "draws" not in options:
        return mechanism
    return MechanismChoice.of(mechanism.name, **(options | {"draws": min(options["draws"], dimension)}))


def arrange_vector_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per comparison, panel, series and setting.

    The comparisons are ``"L1"`` and ``"L2"``, the panels ``"epsilon"`` and ``"bits"``. Columns are the averages of `summarise_sweep`;
    `certified_error`, a lower bound for tables alone; `paper_epsilon`, at which the paper's figure would show the same mechanism; and
    `central_error`, the error of a trusted server's Gaussian noise at (epsilon, delta = 1e-5) in every row.
    """
    once = {metric: rows["metric"] == metric for metric in ("certified_error", "paper_epsilon")}
    # All groups have the settings in the same order.
    summary = summarise_sweep(rows[~rows["metric"].isin(once)]).assign(
        **{metric: rows.loc[chosen, "value"].to_numpy() for metric, chosen in once.items()}
    )
    summary["central_error"] = [
        central_gaussian_error(NormBall(row["dimension"], row["norm"], row["clip_norm"]), row["clients"], row["epsilon"], DELTA, ADJACENCY)
        for row in summary.to_dict("records")
    ]
    # Numbers of bits of a series are ascending.
    order = summary.groupby(["comparison", "series"], sort=False).ngroup()
    by_bits = summary.assign(order=order).sort_values(["order", "bits_per_client"], kind="stable")
    parts = [
        frame[(frame["comparison"] == comparison) & frame["panels"].str.contains(panel)].assign(panel=panel)
        for comparison in summary["comparison"].unique()
        for panel, frame in (("epsilon", summary), ("bits", by_bits))
    ]
    arranged: pd.DataFrame = pd.concat(parts, ignore_index=True)[list(COLUMNS)]
    return arranged


COLUMNS = (
    *(
        "comparison",
        "panel",
        "series",
        "mechanism",
        "bits_in",
        "bits_out",
        "table_metric",
        "table_objective",
        "dithering",
        "bits",
        "message_bits",
        "epsilon",
        "delta",
    ),
    *("population", "nonzero", "scale", "clients", "dimension", "norm", "clip_norm", "realised_epsilon", "realised_delta", "adjacency"),
    *("trust_model", "bits_per_client", "bits_per_coordinate", "repetitions", "mean_squared_error", "standard_error"),
    *("predicted_squared_error", "worst_squared_error", "clipped_share", "certified_error", "central_error"),
    "paper_epsilon",
)


def draw_comparison(frame: pd.DataFrame) -> Figure:
    """Draw mean squared errors against epsilon (above) and against bits (below).

    The L1 ball is on the left, and the L2 ball on the right.
    """
    figure = Figure(figsize=(WIDTH, 9.6), layout="constrained")
    grid = figure.subplots(2, 2, sharey="col")
    for column, comparison in enumerate(TITLES):
        own = frame[frame["comparison"] == comparison]
        _draw_epsilons(grid[0, column], own[own["panel"] == "epsilon"])
        _draw_bits(grid[1, column], own[own["panel"] == "bits"])
        grid[0, column].set_title(TITLES[comparison])
    for axes in grid.ravel():
        axes.set_yscale("log")
        axes.grid(visible=True)
    for row in grid:
        row[0].set_ylabel("squared L2 error of the mean")
    drawn = frame.drop_duplicates(["series", "mechanism"]).to_dict("records")
    handles = [Line2D([], [], label=LABELS.get(row["mechanism"], row["series"]), **_mark(row).look) for row in drawn]
    handles.append(Line2D([], [], label="certified optimum", **BOUND_LOOKS["MVU, L1 metric"]))
    handles.append(Line2D([], [], label="Cramér-Rao limit", **BOUND_LOOKS["MVU, Rényi"]))
    handles.append(Line2D([], [], label="trusted server", **TRUSTED_SERVER.rule))
    handles.append(Line2D([], [], label="at the paper's ε", color=GREY, **PAPER_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.5)
    add_caption(figure, _caption(frame))
    return figure


def _mark(row: Any) -> Mark:
    """Return the mark of a row's series."""
    return VARIANTS.get(row["series"], mechanism_mark(row["mechanism"]))


def _draw_epsilons(axes: Axes, frame: pd.DataFrame) -> None:
    for _, series in frame.groupby("series", sort=False):
        mark = _mark(series.iloc[0])
        axes.plot(series["epsilon"], series["predicted_squared_error"], **mark.rule)
        axes.errorbar(
            series["epsilon"],
            series["mean_squared_error"],
            yerr=series["standard_error"],
            capsize=2,
            **mark.points,
        )
        if not np.allclose(series["paper_epsilon"], series["epsilon"], rtol=1e-6):
            axes.plot(series["paper_epsilon"], series["predicted_squared_error"], color=mark.colour, **PAPER_LOOK)
    for name, look in BOUND_LOOKS.items():
        tables = frame[frame["series"] == name]
        axes.plot(tables["epsilon"], tables["certified_error"], **look)
    central = frame.drop_duplicates("epsilon")
    axes.plot(central["epsilon"], central["central_error"], **TRUSTED_SERVER.rule)
    axes.set_xlabel("ε of the whole vector, replace-one adjacency")


def _draw_bits(axes: Axes, frame: pd.DataFrame) -> None:
    for _, series in frame.groupby("series", sort=False):
        mark = _mark(series.iloc[0])
        ordered = series.sort_values("bits_per_client")
        axes.errorbar(
            ordered["bits_per_client"],
            ordered["mean_squared_error"],
            yerr=ordered["standard_error"],
            capsize=2,
            **mark.look,
        )
    for name, look in BOUND_LOOKS.items():
        tables = frame[frame["series"] == name].sort_values("bits_per_client")
        axes.plot(tables["bits_per_client"], tables["certified_error"], **look)
    axes.axhline(frame["central_error"].iloc[0], **TRUSTED_SERVER.rule)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=16))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_xlabel(f"bits per client, at ε = {BITS_EPSILON:g}")


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return (
        f"Mean of n = {first['clients']:,} vectors, d = {first['dimension']}; standard errors of {first['repetitions']} repetitions; lines "
        "above: predicted. ε is that of the whole vector, replace-one adjacency, local trust model; δ = 0 or "
        f"{DELTA:g}. Dotted: at the ε the paper would state, for metric privacy at half the distance, and δ = 1/(n + 1)."
    )


QUICK: Mapping[str, Any] = MappingProxyType(
    {
        "comparisons": tuple(with_small_tables(comparison, bits_in=3, most_bits_out=2) for comparison in COMPARISONS),
        "epsilons": (0.5, BITS_EPSILON),
        "clients": 1000,
        "dimension": 32,
        "repetitions": 2,
    }
)


def vector_tasks(seed: int, quick: bool) -> list[SeriesTask]:
    """Return the runs."""
    return vector_mean_tasks(seed, **QUICK) if quick else vector_mean_tasks(seed)


def tables_over_laplace(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return tables' predicted errors over those of Laplace noise, on the L1 ball by epsilon."""
    own = frame[(frame["comparison"] == "L1") & (frame["panel"] == "epsilon")]
    table, laplace = (own[own["series"] == name] for name in ("MVU, L1 metric", "Laplace, or Gaussian"))
    return ratios(table, laplace, ("epsilon",), "predicted_squared_error")


def tables_over_others(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the tables' least predicted error over other mechanisms', on the L2 ball.

    Errors are compared at each epsilon.
    """
    own = frame[(frame["comparison"] == "L2") & (frame["panel"] == "epsilon")]
    tables = own["series"].str.startswith("MVU")
    least, other = (part.groupby("epsilon")["predicted_squared_error"].min() for part in (own[tables], own[~tables]))
    return least / other


FIGURE = FigureEntry(
    name="mvu-fig3",
    paper=f"{entry_named('mvu').paper}, figure 3; bits are beyond the paper",
    experiment="vector mean",
    tasks=vector_tasks,
    table=arrange_vector_means,
    draw=draw_comparison,
    findings=(
        Finding("Error over Laplace noise's, MVU, L1 metric", tables_over_laplace),
        Finding("best tables over the best others, L2 ball", tables_over_others),
    ),
)
