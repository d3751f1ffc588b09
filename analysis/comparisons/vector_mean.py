"""Vector mean estimation as in figure 3 of Chaudhuri, Guo, Rabbat 2022: which mechanisms meet which data, at which budgets."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ...design.contracts.gaussian import central_gaussian_error
from ...design.local.vector_grid import VectorGrid
from ...design.local.vector_table import VectorTableMechanism
from ...progress import OnStep, silent
from ..calibration.table_cache import TableCache
from ..catalogue.vector_mechanisms import MechanismSpec, build_mechanism
from ..provenance_columns import with_provenance
from ..random_streams import named_stream
from ..simulation.vector_populations import population_chunks
from ..sweeps.run import run_sweep
from ..sweeps.spec import SweepSpec
from ..sweeps.summary import summarise_sweep
from ..sweeps.task import MechanismDesign, SweepTask

DIMENSION, CLIENTS, REPETITIONS = 128, 10_000, 10
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
# The failure probability of those mechanisms that need one; pure ones have none.
DELTA = 1e-5
# Bits are varied at this epsilon.
BITS_EPSILON = 2.0
BITS_OUT = (1, 2, 3, 4, 5)
SKELLAM_BITS = (8, 10, 12, 16)
SQKR_BITS = (1, 2, 3)
# Vectors whose coordinates' distance from the grid is averaged for the bound.
BOUND_CLIENTS = 2000


@dataclass(frozen=True)
class Series:
    """A mechanism as it enters the comparison.

    Attributes
    ----------
    label : str
        Its name in the figure.
    mechanism : MechanismSpec
        The mechanism and its parameters.
    norm : float
        p of the ball that it clips to; every vector of the L1 ball lies in the L2 ball too.
    delta : float
        Failure probability of its guarantee.
    """

    label: str
    mechanism: MechanismSpec
    norm: float
    delta: float


@dataclass(frozen=True)
class Comparison:
    """One half of the comparison.

    Attributes
    ----------
    name : str
        ``"L1"`` or ``"L2"``: the ball that the vectors lie in.
    population : str
        Name of the population, as in `population_chunks`.
    by_epsilon : tuple of Series
        Compared at every epsilon.
    by_bits : tuple of Series
        Compared at one epsilon, with several numbers of bits.
    """

    name: str
    population: str
    by_epsilon: tuple[Series, ...]
    by_bits: tuple[Series, ...]


def _table(label: str, bits_in: int, bits_out: int, metric: str, norm: float, delta: float) -> Series:
    return Series(label, MechanismSpec("mvu", bits_in=bits_in, bits_out=bits_out, metric=metric), norm, delta)


COMPARISONS = (
    Comparison(
        "L1",
        "uniform-l1",
        by_epsilon=(
            _table("MVU, L1 metric", 9, 3, "l1", 1.0, 0.0),
            Series("CLDP", MechanismSpec("cldp"), 1.0, 0.0),
            Series("Laplace, or Gaussian", MechanismSpec("laplace"), 1.0, 0.0),
            Series("Skellam", MechanismSpec("skellam", bits=16), 2.0, DELTA),
        ),
        by_bits=(
            *(_table("MVU, L1 metric", 9, bits, "l1", 1.0, 0.0) for bits in BITS_OUT),
            Series("CLDP", MechanismSpec("cldp"), 1.0, 0.0),
            Series("Laplace, or Gaussian", MechanismSpec("laplace"), 1.0, 0.0),
            *(Series("Skellam", MechanismSpec("skellam", bits=bits), 2.0, DELTA) for bits in SKELLAM_BITS),
        ),
    ),
    Comparison(
        "L2",
        "positive-sphere",
        by_epsilon=(
            _table("MVU, L1 metric", 5, 3, "l1", 2.0, DELTA),
            _table("MVU, L2 metric", 5, 3, "l2", 2.0, 0.0),
            Series("CLDP", MechanismSpec("cldp"), 2.0, 0.0),
            Series("Laplace, or Gaussian", MechanismSpec("gaussian"), 2.0, DELTA),
            Series("Skellam", MechanismSpec("skellam", bits=16), 2.0, DELTA),
            Series("PrivUnitG", MechanismSpec("privunit"), 2.0, 0.0),
            Series("SQKR", MechanismSpec("sqkr"), 2.0, 0.0),
        ),
        by_bits=(
            *(_table("MVU, L1 metric", 5, bits, "l1", 2.0, DELTA) for bits in BITS_OUT),
            *(_table("MVU, L2 metric", 5, bits, "l2", 2.0, 0.0) for bits in BITS_OUT),
            Series("CLDP", MechanismSpec("cldp"), 2.0, 0.0),
            Series("Laplace, or Gaussian", MechanismSpec("gaussian"), 2.0, DELTA),
            *(Series("Skellam", MechanismSpec("skellam", bits=bits), 2.0, DELTA) for bits in SKELLAM_BITS),
            Series("PrivUnitG", MechanismSpec("privunit"), 2.0, 0.0),
            *(Series("SQKR", MechanismSpec("sqkr", bits=bits), 2.0, 0.0) for bits in SQKR_BITS),
        ),
    ),
)


def compare_vector_means(
    output: Path,
    *,
    epsilons: tuple[float, ...] = EPSILONS,
    clients: int = CLIENTS,
    dimension: int = DIMENSION,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    workers: int = 1,
    cache: TableCache | None = None,
    on_step: OnStep = silent,
) -> pd.DataFrame:
    """Run both halves of the comparison, as one sweep, and sum it up.

    Parameters
    ----------
    output : Path
        Folder of the sweep's results; finished tasks that are there already are not run again.
    epsilons : tuple of float
        Privacy parameters.
    clients, dimension, repetitions : int
        Size of each run, and number of runs.
    seed : int
        Root seed.
    workers : int
        Processes.
    cache : TableCache or None
        Where designed tables are kept; None for the user's own cache folder.
    on_step : callable
        Called with steps done, steps in all, and what was done.

    Returns
    -------
    DataFrame
        One row per comparison (``"L1"``, ``"L2"``), panel (``"epsilon"``, ``"bits"``), series and setting: the columns of
        `summarise_sweep` but for its label, `series`, `central_error` at (epsilon, delta = 1e-5) in every row, and `certified_error`, for
        tables alone: the error of the best table for the same constraint on its neighbouring rows, whatever its bits, averaged over the
        inputs of the grid, with the data's own dithering (errs downward); and provenance.

    Raises
    ------
    ValueError
        If an argument is out of range.
    IncompleteSweepError
        If a mechanism could not be built.
    """
    cache = TableCache() if cache is None else cache
    rows: list[tuple[tuple[str, str, str], list[SweepTask]]] = []
    for comparison in COMPARISONS:
        for panel, panel_series, panel_epsilons in (
            ("epsilon", comparison.by_epsilon, epsilons),
            ("bits", comparison.by_bits, (BITS_EPSILON,)),
        ):
            for series in panel_series:
                for epsilon in panel_epsilons:
                    spec = SweepSpec(
                        mechanism=(series.mechanism,),
                        population=(comparison.population,),
                        clients=(clients,),
                        dimension=(dimension,),
                        norm=(series.norm,),
                        epsilon=(epsilon,),
                        delta=(series.delta,),
                        repetitions=repetitions,
                        seed=seed,
                    )
                    rows.append(((comparison.name, panel, series.label), spec.tasks()))
    tasks = list(dict.fromkeys(task for _, own in rows for task in own))
    results = run_sweep(tasks, output, workers=workers, cache=cache, on_step=on_step)
    summary = summarise_sweep(results).drop(columns=["label", "central_error", "ratio_to_central"])
    settings = list(dict.fromkeys((task.design, task.population) for task in tasks))
    place = {setting: position for position, setting in enumerate(settings)}
    frame = summary.iloc[[place[own[0].design, own[0].population] for _, own in rows]].reset_index(drop=True)
    for position, name in enumerate(("comparison", "panel", "series")):
        frame.insert(position, name, [names[position] for names, _ in rows])
    bounds = {setting: _certified_error(*setting, clients, seed, cache) for setting in settings}
    frame["certified_error"] = [bounds[own[0].design, own[0].population] for _, own in rows]
    balls = [own[0].design.ball for _, own in rows]
    frame["central_error"] = [
        central_gaussian_error(ball, clients, epsilon, DELTA, "replace-one") for ball, epsilon in zip(balls, frame["epsilon"], strict=True)
    ]
    return with_provenance(frame, "vector mean", seed)


def _certified_error(design: MechanismDesign, population: str, clients: int, seed: int, cache: TableCache) -> float:
    """Return the mean squared error of the best table under a table's own constraint; NaN for other mechanisms."""
    mechanism = build_mechanism(design.mechanism, design.ball, design.epsilon, design.delta, cache)
    if not isinstance(mechanism, VectorTableMechanism) or mechanism.table.certificate.lower_bound is None:
        return float("nan")
    grid = VectorGrid(design.ball, mechanism.table.bits_in)
    vectors = np.concatenate(
        list(population_chunks(population, BOUND_CLIENTS, design.ball.dimension, named_stream(seed, f"bound: {population}")))
    )
    fractions = grid.positions(vectors) % 1.0
    dithering = float((fractions * (1 - fractions)).mean()) * grid.step**2
    variance = mechanism.table.certificate.lower_bound * (grid.steps * grid.step) ** 2 + dithering
    return design.ball.dimension * variance / clients
