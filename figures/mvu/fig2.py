"""Figure 2 of Chaudhuri, Guo, Rabbat 2022: scalar mean estimation, for values on [-1, 1]."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ...analysis.catalogue.registry import entry_named
from ...analysis.provenance_columns import guarantee_columns
from ...analysis.random_streams import named_stream
from ...analysis.study.mean_estimation import Z95
from ...analysis.study.variance_bound import VarianceBound, certified_bound
from ...arguments import MOST_CLIENTS, check_integer
from ...design.contracts.mechanism import ScalarMechanism
from ...design.local.cldp import CLDPMechanism
from ...design.local.laplace import LaplaceMechanism
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from ...design.tables.table_mean import TableMeanMechanism
from ..drawing.marks import LOWER_BOUND, mechanism_mark, variant
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from ..point import Point

INTERVAL = (-1.0, 1.0)
BITS = 3
CLIENTS, BATCHES, RUNS = 100_000, 500, 10
# Exact variances are parabolas between grid inputs, so 20 points lie on each of the 7 pieces, and every 7th point is also simulated.
EXACT_VALUES = np.linspace(*INTERVAL, 20 * (2**BITS - 1) + 1)
SIMULATED_STEP = 7

# Mechanisms by label, with the bits of a message in brackets. Each mechanism is built from epsilon, the MVU table of 3 bits at that
# epsilon, and the solver's seed. Tables have 3 bits in; MVU minimises the mean variance over them under local privacy.
MECHANISMS: Mapping[str, Callable[[float, LookupTable, int], ScalarMechanism]] = MappingProxyType(
    {
        "bRR(3)": lambda epsilon, _, __: TableMeanMechanism(bitwise_randomised_response(epsilon, BITS, interval=INTERVAL)),
        "gRR(3)": lambda epsilon, _, __: TableMeanMechanism(generalised_randomised_response(epsilon, BITS, interval=INTERVAL)),
        "CLDP": lambda epsilon, _, __: CLDPMechanism(epsilon, INTERVAL),
        "MVU(1)": lambda epsilon, _, seed: TableMeanMechanism(design_mvu(epsilon, BITS, 1, interval=INTERVAL, seed=seed)),
        "MVU(3)": lambda _, mvu, __: TableMeanMechanism(mvu),
        "Laplace": lambda epsilon, _, __: LaplaceMechanism(epsilon, INTERVAL),
    }
)
EPSILONS = (1.0, 3.0, 5.0)
MVU = mechanism_mark("mvu")
QUICK: Mapping[str, int] = MappingProxyType({"clients": 10_000, "batches": 100, "runs": 5})
LOOKS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "bRR(3)": mechanism_mark("bitwise-randomised-response").look,
        "gRR(3)": mechanism_mark("generalised-randomised-response").look,
        "Laplace": mechanism_mark("laplace").look,
        # The mechanism coincides with MVU(1), whose line is drawn on this wide one.
        "CLDP": mechanism_mark("cldp").look | {"linestyle": "-", "linewidth": 4.0},
        "MVU(1)": variant(MVU, 1).look,
        "MVU(3)": MVU.look,
    }
)


@dataclass(frozen=True)
class SimulatedVariance:
    """A simulated variance of a client's decoded message, with its standard error.

    Attributes
    ----------
    variance : float
        Mean over all batches of the batch size times the squared error of the batch's estimate. Clients are independent, so that its
        expectation is the variance of one client for an unbiased mechanism, and more for a biased mechanism.
    standard_error : float
        Standard error of `variance`, from the spread of the batches.
    squared_error : float
        Mean over the runs of the squared error of the estimate from all clients of a run.
    """

    variance: float
    standard_error: float
    squared_error: float


def simulate_variance(
    mechanism: ScalarMechanism, value: float, rng: np.random.Generator, *, clients: int = CLIENTS, batches: int = BATCHES, runs: int = RUNS
) -> SimulatedVariance:
    """Simulate clients that hold the same value, and measure the error of their mean.

    Parameters
    ----------
    mechanism : ScalarMechanism
        The mechanism.
    value : float
        Value of every client, inside the mechanism's interval.
    rng : numpy.random.Generator
        Source of randomness.
    clients : int
        Number of clients of one run.
    batches : int
        Number of equal parts of a run that are also decoded by themselves, a divisor of `clients`.
    runs : int
        Number of independent runs; runs times batches must be at least two.

    Examples
    --------
    >>> mechanism = CLDPMechanism(3.0, (-1.0, 1.0))
    >>> simulated = simulate_variance(mechanism, 0.5, np.random.default_rng(1))
    >>> abs(simulated.variance - float(mechanism.variance(0.5))) < 4 * simulated.standard_error
    True
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    runs = check_integer("runs", runs, low=1, high=MOST_CLIENTS)
    batches = check_integer("batches", batches, low=1 if runs > 1 else 2, high=clients)
    if clients % batches:
        raise ValueError(f"batches must divide the number of clients, {clients}, got {batches!r}")
    values = np.full(clients, value)
    batch_errors, run_errors = [], []
    for _ in range(runs):
        messages = mechanism.encode(values, rng)
        aggregates = [mechanism.aggregate(batch) for batch in np.split(messages, batches)]
        batch_errors += [mechanism.decode(aggregate, clients // batches) - value for aggregate in aggregates]
        run_errors.append(mechanism.decode(np.sum(aggregates, axis=0), clients) - value)
    scaled = clients // batches * np.square(batch_errors)
    standard_error = scaled.std(ddof=1) / np.sqrt(len(scaled))
    return SimulatedVariance(float(scaled.mean()), float(standard_error), float(np.square(run_errors).mean()))


@dataclass(frozen=True)
class ScalarDesign:
    """Design problem of the mechanisms: an epsilon, and the solver's seed."""

    epsilon: float
    seed: int


@dataclass(frozen=True, eq=False)
class PreparedScalar:
    """The MVU table of 3 bits, with its certified bound, if any, on unbiased mechanisms.

    The bound is for every unbiased mechanism with the table's guarantee.
    """

    mvu: LookupTable
    bound: VarianceBound | None


@dataclass(frozen=True, kw_only=True)
class ScalarPoint(Point):
    """A mechanism at an epsilon, for all values.

    Attributes
    ----------
    mechanism : str
        Name in `MECHANISMS`.
    epsilon : float
        Privacy parameter, 0.001 to 20.
    clients, batches, runs : int
        Numbers of clients, batches and runs, as in `simulate_variance`.
    """

    mechanism: str
    epsilon: float
    clients: int = CLIENTS
    batches: int = BATCHES
    runs: int = RUNS

    @property
    def design(self) -> ScalarDesign:
        """Design problem of the table of 3 bits, which all mechanisms are compared with."""
        return ScalarDesign(self.epsilon, self.seed)

    def prepare(self, _: Path | None) -> PreparedScalar:
        """Design the table."""
        mvu = design_mvu(self.epsilon, BITS, BITS, interval=INTERVAL, seed=self.seed)
        return PreparedScalar(mvu, certified_bound(mvu))

    def run(self, prepared: PreparedScalar) -> list[dict[str, Any]]:
        """Return a row for each value; every seventh has simulated variances and mean errors.

        ``lower_bound`` bounds the average of any mechanism's variances over the 8 grid inputs from below.
        """
        mechanism = MECHANISMS[self.mechanism](self.epsilon, prepared.mvu, self.seed)
        # A table's own guarantee is the epsilon of its design; the realised epsilon is within rounding of that.
        guarantee = mechanism.table.guarantee if isinstance(mechanism, TableMeanMechanism) else mechanism.guarantee
        bound = prepared.bound
        common = {"mechanism": self.mechanism, "bits_per_client": mechanism.bits_per_client, **guarantee_columns(guarantee)}
        lower_bound = math.nan if bound is None or not bound.holds_for(guarantee) else bound.value
        rows = []
        for number, (value, variance) in enumerate(zip(EXACT_VALUES.tolist(), mechanism.variance(EXACT_VALUES).tolist(), strict=True)):
            exact = {"value": value, "exact_variance": variance, "lower_bound": lower_bound}
            simulated = SimulatedVariance(math.nan, math.nan, math.nan) if number % SIMULATED_STEP else self._simulated(mechanism, value)
            rows.append(
                common
                | exact
                | {
                    "simulated_variance": simulated.variance,
                    "simulated_standard_error": simulated.standard_error,
                    "mean_squared_error": simulated.squared_error,
                    "clients": self.clients,
                    "batches": self.batches,
                    "runs": self.runs,
                }
            )
        return rows

    def _simulated(self, mechanism: ScalarMechanism, value: float) -> SimulatedVariance:
        rng = named_stream(self.seed, f"scalar mean, {self.mechanism}, epsilon {self.epsilon!r}, value {value!r}")
        return simulate_variance(mechanism, value, rng, clients=self.clients, batches=self.batches, runs=self.runs)


def grid_averages(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each mechanism's exact variance averaged over the 8 grid inputs.

    The certified bound applies to this average.
    """
    pieces = rows.groupby(["epsilon", "mechanism"], sort=False).cumcount() * (2**BITS - 1) % (len(EXACT_VALUES) - 1)
    grid = rows[pieces == 0].groupby(["epsilon", "mechanism"], sort=False, as_index=False)
    kept = {name: (name, "first") for name in ("bits_per_client", "adjacency", "trust_model", "lower_bound")}
    averages: pd.DataFrame = grid.agg(grid_inputs=("value", "size"), mean_variance=("exact_variance", "mean"), **kept)
    return averages


def draw_variances(variances: pd.DataFrame) -> Figure:
    """Draw exact variances as lines and simulated variances as points, a panel per epsilon."""
    panels = [panel for _, panel in variances.groupby("epsilon")]
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    grid[0].set_ylabel("variance of one client's message (units of x²)")
    handles = [Line2D([], [], label=mechanism, **look) for mechanism, look in LOOKS.items()]
    handles.append(Line2D([], [], label="certified lower bound on the average", **LOWER_BOUND.rule))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=4.0)
    first = variances.iloc[0]
    add_caption(
        figure,
        "Every client holds the same value x. Lines: exact variance of one decoded message; points: simulated, with 95 % intervals. "
        "In brackets: bits of a message. CLDP (wide line) and MVU(1) coincide. The bound is on averages over inputs: values may lie below. "
        f"Guarantee of all: ε as above each panel, {first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    for mechanism, look in LOOKS.items():
        series = panel[panel["mechanism"] == mechanism]
        axes.plot(series["value"], series["exact_variance"], **look | {"marker": ""})
        error = Z95 * series["simulated_standard_error"]
        axes.errorbar(series["value"], series["simulated_variance"], yerr=error, elinewidth=0.8, **look | {"linestyle": ""})
    axes.axhline(panel["lower_bound"].max(), **LOWER_BOUND.rule)
    axes.set_title(f"ε = {panel['epsilon'].iloc[0]:g}")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MultipleLocator(0.5))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("value x of every client")
    axes.grid(visible=True)


def scalar_tasks(seed: int, quick: bool) -> list[ScalarPoint]:
    """Return a task for each mechanism and epsilon."""
    size = QUICK if quick else {}
    return [ScalarPoint(seed=seed, mechanism=name, epsilon=epsilon, **size) for epsilon in EPSILONS for name in MECHANISMS]


def variances_over_laplace(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return exact variances of MVU(3) over those of Laplace noise, at equal value and epsilon."""
    table, laplace = (frame[frame["mechanism"] == name] for name in ("MVU(3)", "Laplace"))
    return ratios(table, laplace, ("epsilon", "value"), "exact_variance")


FIGURE = FigureEntry(
    name="mvu-fig2",
    paper=f"{entry_named('mvu').paper}, figure 2",
    experiment="scalar mean",
    tasks=scalar_tasks,
    draw=draw_variances,
    summary=grid_averages,
    findings=(Finding("Variance of MVU(3) over that of Laplace noise", variances_over_laplace),),
)
