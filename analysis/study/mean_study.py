"""The study of a mean: the best table for a budget, and estimates by it and baselines."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ...design.contracts.mechanism import ScalarMechanism
from ...design.local.laplace import LaplaceMechanism
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.provenance import Provenance, record_provenance
from ...design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from ...design.tables.table_mean import TableMeanMechanism
from ...progress import OnStep, notebook_progress
from ...solvers.bounds.privacy_constraint import metric_name
from .column_data import DataColumn
from .experiment import experiment_notice
from .mean_estimation import MeanComparison, MeanEstimate, estimate_mean
from .variance_bound import certified_bound


@dataclass(frozen=True, eq=False)
class MeanStudy:
    """A study's parameters, its mechanisms, and their accuracy.

    Attributes
    ----------
    data : DataColumn
        The population.
    epsilon : float
        Privacy parameter of every mechanism.
    bits_in, bits_out : int
        Number of bits of the grid index and of the message.
    metric : str or None
        The metric of the MVU tables; the other mechanisms have local privacy, Laplace noise also the metric ``"l1"``.
    objective : str
        Objective that the MVU tables minimise.
    tables : mapping of str to LookupTable
        The designed tables by name; the first is the MVU table with `bits_out` bits.
    protocols : mapping of str to ScalarMechanism
        All mechanisms by name, in the order of the tables; uncompressed Laplace noise comes last.
    comparison : MeanComparison
        An estimate for each protocol, in the same order.
    provenance : Provenance
        Provenance of the study.
    """

    data: DataColumn
    epsilon: float
    bits_in: int
    bits_out: int
    metric: str | None
    objective: str
    tables: Mapping[str, LookupTable]
    protocols: Mapping[str, ScalarMechanism]
    comparison: MeanComparison
    provenance: Provenance

    @property
    def table(self) -> LookupTable:
        """The MVU table with `bits_out` bits."""
        return next(iter(self.tables.values()))

    @property
    def estimate(self) -> MeanEstimate:
        """The estimate of the MVU table with `bits_out` bits."""
        return self.comparison.estimates[0]

    @property
    def notice(self) -> str:
        """Reason why the study is no private release."""
        return experiment_notice("the true mean and errors", len(self.comparison.estimates))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why the estimate is not private, or does not estimate the values' mean."""
        private = "the interval was taken from the data. This is not private: state a public interval."
        clipping = self.comparison.clipping_warning
        return (*([] if self.data.interval_is_public else [private]), *([] if clipping is None else [clipping]))


def study_mean(
    data: DataColumn,
    epsilon: float,
    bits_in: int = 5,
    bits_out: int = 3,
    *,
    metric: str | None = None,
    objective: str = "mean",
    seed: int = 0,
    on_step: OnStep = notebook_progress,
) -> MeanStudy:
    """Design the MVU table for a budget, and compare it with baselines at the same epsilon.

    The baselines are MVU with one bit, bitwise and generalised randomised response with the same bits, and uncompressed Laplace noise.

    Parameters
    ----------
    data : DataColumn
        One value per client.
    epsilon : float
        Privacy parameter, 0.001 to 20.
    bits_in, bits_out : int
        Number of bits of the grid index and of the message, 1 to 9.
    metric : str or None
        ``"l1"``, ``"l2"``, ``"l<p>"`` for MVU with metric privacy, None for local privacy.
    objective : str
        ``"mean"`` or ``"worst"``: the variance that the MVU tables minimise.
    seed : int
        Root seed of the solver and of every mechanism's random stream.
    on_step : callable
        Called before each step, and at the end, with the number of steps done, the number of all steps, and the next step's name.
    """
    started = time.perf_counter()
    metric = metric_name(metric)
    designs = _designs(data.interval, epsilon, bits_in, bits_out, metric, objective, seed)
    steps = 2 * len(designs) + 1
    tables: dict[str, LookupTable] = {}
    for name, design in designs.items():
        on_step(len(tables), steps, f"designing {name}")
        tables[name] = design()
    protocols: dict[str, ScalarMechanism] = {name: TableMeanMechanism(table) for name, table in tables.items()}
    protocols["Laplace noise, uncompressed"] = LaplaceMechanism(epsilon, data.interval, "l1" if metric == "l1" else None)
    turns = iter(range(len(tables), steps))
    comparison = estimate_mean(
        data.values,
        data.interval,
        protocols,
        seed=seed,
        bound=certified_bound(next(iter(tables.values()))),
        on_start=lambda name: on_step(next(turns), steps, f"encoding with {name}"),
    )
    on_step(steps, steps, "done")
    provenance = record_provenance("staircase", seed, time.perf_counter() - started)
    return MeanStudy(data, epsilon, bits_in, bits_out, metric, objective, tables, protocols, comparison, provenance)


def _designs(
    interval: tuple[float, float], epsilon: float, bits_in: int, bits_out: int, metric: str | None, objective: str, seed: int
) -> dict[str, Callable[[], LookupTable]]:
    """Return builders of all tables, by name; the studied table comes first."""
    mvu = partial(design_mvu, epsilon, bits_in, metric=metric, objective=objective, interval=interval, seed=seed)
    designs: dict[str, Callable[[], LookupTable]] = {_named("MVU", bits_out): partial(mvu, bits_out)}
    if bits_out > 1:
        designs[_named("MVU", 1)] = partial(mvu, 1)
    for name, design in (
        ("generalised randomised response", generalised_randomised_response),
        ("bitwise randomised response", bitwise_randomised_response),
    ):
        designs[_named(name, bits_out)] = partial(design, epsilon, bits_out, interval=interval)
    return designs


def _named(mechanism: str, bits: int) -> str:
    return f"{mechanism}, {bits} bit{'s' if bits > 1 else ''}"
