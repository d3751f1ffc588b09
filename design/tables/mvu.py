"""Minimum variance unbiased (MVU) tables: their design, rounding and certificate.

`exact_table` turns a solver's table of floats into a lookup table that keeps its declared epsilon, proven in whole numbers.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_choice, check_integer, check_interval
from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...progress import OnStep, silent
from ...solvers.bounds.letter_clauses import TableVariance
from ...solvers.bounds.privacy_constraint import RatioConstraint, metric_name, ratio_constraint
from ...solvers.bounds.ray_pricing import DualValues
from ...solvers.bounds.staircase import staircase_bound
from ...solvers.table_search.letter_search import Effort
from ...solvers.table_search.multistart import SearchedTable
from ...solvers.table_search.table_program import TableProgram
from ...solvers.table_search.table_strategy import NEARLY_PUBLIC, StaircaseDesign, choose_design, table_at_letters
from .certificate import certified_table, objective_value, with_letters_proof, with_lower_bound
from .exact_rounding import TOTAL_BITS, round_table
from .lookup_table import DualCertificate, LookupTable
from .provenance import Provenance, record_provenance
from .randomised_response import generalised_randomised_response
from .stored_proofs import stored_proof
from .table_facts import realised_epsilon

# Shares of epsilon for the rounding, which the design tries in turn. The first share suffices unless a table has few letters and tiny
# entries.
MARGINS = (1e-9, 1e-8, 1e-7, 2e-7, 4e-7, 1e-6, 1e-5, 1e-4)

SOLVERS = ("staircase", "trust-region", "alternating")


def design_mvu(
    epsilon: float,
    bits_in: int,
    bits_out: int,
    metric: str | float | None = None,
    objective: str | ArrayLike = "mean",
    solver: str = "staircase",
    *,
    symmetric: bool = False,
    interval: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    starts: int | None = None,
    workers: int = 1,
    on_step: OnStep = silent,
) -> LookupTable:
    """Design the unbiased private table of least variance, with its certificate.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, from 0.001 to 20, or `largest_epsilon` for metrics with p > 1.
    bits_in : int
        Number of bits of the input grid x_i = i / (2**bits_in - 1), 1 to 9.
    bits_out : int
        Number of bits of a message, 1 to 9.
    metric : str, float or None
        None for local differential privacy (replace-one); ``"l1"``, ``"l2"``, ``"l<p>"`` or a number p >= 1 for metric privacy, under which
        inputs x, x' may differ by ``exp(epsilon |x - x'|**p)``.
    objective : str or array_like of shape (2**bits_in,)
        Objective: ``"mean"`` for the average variance over the inputs (eq. 2 of the MVU paper over 2**bits_in), ``"worst"`` for the largest
        variance, an array for the average over a prior with these weights.
    solver : str
        Solver: ``"staircase"`` computes the global optimum with unlimited letters, which is the table itself if bits_out > bits_in
        (weighted objectives), and otherwise seeds a search for letters; ``"trust-region"`` and ``"alternating"`` are the paper's two
        methods.
    symmetric : bool
        Whether to allow only tables mirrored under x -> 1-x; only for the staircase solver.
    interval : tuple of float
        Public interval (low, high) of the values.
    seed : int
        Root seed of the random starts.
    starts : int or None
        Number of random starts; None for the solver's default.
    workers : int
        Number of threads that descend at the same time; the table does not depend on their number.
    on_step : callable
        ``on_step(done, total, text)``, called before each round of the staircase solver's search for letters, and for each iteration of the
        paper's solvers; the total is the largest number. Tables without a search report no steps.

    Returns
    -------
    LookupTable
        The table; its certificate holds a lower bound on the objective of every table with any number of letters, and the gap. With at
        least as many letters as inputs, and local privacy, the staircase solver is never worse than generalised randomised response; if it
        returns that table, the provenance says so.

    Raises
    ------
    InfeasibleError
        If no table exists.
    ConvergenceError
        If the solver, or the rounding, fails.

    References
    ----------
    K. Chaudhuri, C. Guo, M. Rabbat, "Privacy-Aware Compression for Federated Data Analysis", UAI 2022.

    Examples
    --------
    >>> table = design_mvu(epsilon=1.0, bits_in=2, bits_out=3)
    >>> round(table.certificate.mean_variance, 6), table.certificate.max_bias, table.certificate.optimality_gap < 1e-6
    (0.989928, 0.0, True)
    """
    began = time.perf_counter()
    bits_in = check_integer("bits_in", bits_in, low=1, high=9)
    bits_out = check_integer("bits_out", bits_out, low=1, high=9)
    metric = metric_name(metric)
    constraint = ratio_constraint(epsilon, bits_in, metric)
    interval = check_interval("interval", interval)
    seed = check_integer("seed", seed, low=0, high=2**63 - 1)
    workers = check_integer("workers", workers, low=1, high=1024)
    if starts is not None:
        starts = check_integer("starts", starts, low=1, high=100_000)
    check_choice("solver", solver, SOLVERS)
    if symmetric and solver != "staircase":
        raise ValueError(f"symmetric=True needs solver 'staircase', got solver {solver!r}")
    chosen = check_objective(objective, 2**bits_in)
    input_weights = _input_weights(chosen, 2**bits_in)
    rng = np.random.default_rng(seed)
    if solver == "staircase":
        made = choose_design(bits_in, bits_out, constraint, input_weights, symmetric, starts or 16, rng, workers, on_step=on_step)
    else:
        # The import is local because cvxpy and SciPy's optimisers take longer to load than most tables take to design.
        if solver == "trust-region":
            from ...solvers.table_search.trust_region import solve_trust_region as paper
        else:
            from ...solvers.table_search.alternating import solve_alternating as paper
        inputs = np.linspace(0.0, 1.0, 2**bits_in)
        solved = paper(inputs, 2**bits_out, constraint, input_weights, starts=starts or 5, rng=rng, on_step=on_step)
        made = StaircaseDesign(table_at_letters(solved, 2**bits_in, constraint, input_weights), None)
    search = MvuSearch(constraint, bits_in, bits_out, metric, chosen, made, symmetric, record_provenance(solver, seed, 0.0))
    table = search.table(epsilon, interval)
    proof = stored_proof(epsilon, bits_in, bits_out) if metric is None and chosen.name == "mean" else None
    if proof is not None:
        table = with_letters_proof(table, proof)
    return replace(table, provenance=replace(table.provenance, duration=time.perf_counter() - began))


def search_mvu(
    epsilon: float,
    bits_in: int,
    bits_out: int,
    metric: str | float | None,
    *,
    seed: int,
    effort: Effort = "full",
    start: "MvuSearch | None" = None,
) -> "MvuSearch":
    """Search as `design_mvu` does for the mean variance.

    Effort and start are those of `choose_design`.
    """
    constraint, chosen = ratio_constraint(epsilon, bits_in, metric), TableObjective("mean")
    weights, rng = _input_weights(chosen, 2**bits_in), np.random.default_rng(seed)
    start_letters = None if start is None else start.made.searched
    made = choose_design(bits_in, bits_out, constraint, weights, False, 16, rng, 1, bounded=False, effort=effort, start=start_letters)
    provenance = record_provenance("staircase", seed, 0.0)
    return MvuSearch(constraint, bits_in, bits_out, metric_name(metric), chosen, made, False, provenance)


@dataclass(frozen=True, eq=False)
class MvuSearch:
    """The result of a search at one epsilon, from which tables at other epsilons are made.

    Attributes
    ----------
    searched : RatioConstraint
        The constraint of the search.
    bits_in, bits_out, metric, symmetric
        Bits, metric and symmetry, as in `design_mvu`; the metric has its canonical name.
    objective : TableObjective
        The objective of the tables.
    made : StaircaseDesign
        The design that makes the tables.
    provenance : Provenance
        The tables' provenance, except for the duration.
    """

    searched: RatioConstraint
    bits_in: int
    bits_out: int
    metric: str | None
    objective: "TableObjective"
    made: StaircaseDesign
    symmetric: bool
    provenance: Provenance

    def table(self, epsilon: float, interval: tuple[float, float] = (0.0, 1.0), *, bounded: bool = True) -> LookupTable:
        """Return the table at an epsilon, as `design_mvu` does; `bounded` adds a lower bound."""
        bits_in, bits_out, symmetric, named = self.bits_in, self.bits_out, self.symmetric, self.provenance
        constraint = ratio_constraint(epsilon, bits_in, self.metric)
        dual = None
        if bounded:
            duals = self.made.duals
            if duals is None or self.searched != constraint:
                duals = staircase_bound(bits_in, constraint, _input_weights(self.objective, 2**bits_in)).duals
            dual = _dual_certificate(duals)

        def design_at(target: float) -> tuple[FloatArray, FloatArray]:
            table = self.made.design(replace(constraint, log_ratio=constraint.log_ratio * target / epsilon))
            probabilities, alphabet = table.probabilities, table.alphabet
            if symmetric:
                probabilities, alphabet = (probabilities + probabilities[::-1, ::-1]) / 2, (alphabet + 1 - alphabet[::-1]) / 2
            return _padded(probabilities, alphabet, 2**bits_out, symmetric)

        candidates = []
        if named.solver == "staircase" and bits_in <= bits_out and (self.metric is None or bits_in == 1):
            # Every metric equals local privacy for two inputs. The paper's solvers do not use this fact, as they serve comparison.
            ended = replace(named, solver="staircase, ended with generalised randomised response")
            candidates.append(_randomised_response(epsilon, bits_in, bits_out, self.metric, self.objective, dual, interval, ended))
        try:
            candidates.append(
                exact_table(
                    design_at,
                    mechanism="mvu",
                    epsilon=float(epsilon),
                    metric=self.metric,
                    objective=self.objective.name,
                    prior=self.objective.prior,
                    dual=dual,
                    interval=interval,
                    symmetric=symmetric,
                    provenance=named,
                )
            )
        except ConvergenceError:
            # A table at large epsilon can have entries too small to round; the objective of randomised response is then within the stated
            # gap.
            if not candidates or epsilon <= NEARLY_PUBLIC:
                raise
        return min(candidates, key=_objective)


def with_certified_bound(table: LookupTable) -> LookupTable:
    """Return a table with a lower bound on the objective of all equally private unbiased tables.

    The given table must be exactly unbiased; its certificate gets the bound, its proof, and the gap.
    """
    constraint = ratio_constraint(table.epsilon, table.bits_in, table.metric)
    weights = _input_weights(TableObjective(table.certificate.objective, table.prior), 2**table.bits_in)
    return with_lower_bound(table, _dual_certificate(staircase_bound(table.bits_in, constraint, weights).duals))


def table_with_letters(table: LookupTable, alphabet: FloatArray, variance: TableVariance) -> LookupTable:
    """Return the best exact table with other letters for a table's task, with the same bound for any number of letters.

    Parameters
    ----------
    table : LookupTable
        A table, whose grid, privacy, objective and interval the new table has.
    alphabet : ndarray of shape (letters,)
        Letters on the unit interval's scale, increasing, as many as the table has.
    variance : TableVariance
        The table's objective.

    Raises
    ------
    ConvergenceError
        If the programs fail, or the table cannot be rounded within its declared epsilon.
    """
    constraint, weights = variance.constraint, variance.input_weights
    program = TableProgram(variance.inputs, len(alphabet), constraint, weights)
    solution = program.solve(alphabet)
    searched = SearchedTable(solution.probabilities, alphabet, solution.value, 1, (), program)
    design = table_at_letters(searched, len(variance.inputs), constraint, weights)

    def design_at(target: float) -> tuple[FloatArray, FloatArray]:
        made = design(replace(constraint, log_ratio=constraint.log_ratio * target / table.epsilon))
        return _padded(made.probabilities, made.alphabet, len(table.alphabet), False)

    return exact_table(
        design_at,
        mechanism="mvu",
        epsilon=table.epsilon,
        metric=table.metric,
        objective=table.certificate.objective,
        prior=table.prior,
        dual=table.certificate.dual,
        interval=table.interval,
        provenance=record_provenance("search tree over letters", table.provenance.seed, 0.0),
    )


@dataclass(frozen=True)
class TableObjective:
    """The objective of a table, ``"mean"``, ``"worst"`` or ``"prior"``.

    The prior's weights, for ``"prior"`` alone, sum to 1.
    """

    name: str
    prior: tuple[float, ...] | None = None


def check_objective(objective: str | ArrayLike, inputs: int) -> TableObjective:
    """Return the objective from ``"mean"``, ``"worst"`` or weights of shape (inputs,)."""
    if isinstance(objective, str):
        if objective not in ("mean", "worst"):
            raise ValueError(f"objective must be 'mean', 'worst' or {inputs} weights, got {objective!r}")
        return TableObjective(objective)
    try:
        weights = np.asarray(objective, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"objective must be 'mean', 'worst' or {inputs} weights, got {objective!r}") from None
    if weights.shape != (inputs,) or not np.all(np.isfinite(weights)) or np.any(weights < 0) or not 0 < weights.sum() < np.inf:
        raise ValueError(f"objective must be 'mean', 'worst' or {inputs} finite non-negative weights, not all zero, got {objective!r}")
    return TableObjective("prior", tuple((weights / weights.sum()).tolist()))


def _input_weights(objective: TableObjective, inputs: int) -> FloatArray | None:
    if objective.name == "worst":
        return None
    return np.full(inputs, 1 / inputs) if objective.prior is None else np.array(objective.prior)


def _dual_certificate(duals: DualValues) -> DualCertificate:
    return DualCertificate(tuple(duals.normalisation.tolist()), tuple(duals.unbiasedness.tolist()), tuple(duals.input_weights.tolist()))


def _randomised_response(
    epsilon: float,
    bits_in: int,
    bits_out: int,
    metric: str | None,
    objective: TableObjective,
    dual: DualCertificate | None,
    interval: tuple[float, float],
    provenance: Provenance,
) -> LookupTable:
    """Return generalised randomised response for the same task."""
    response = generalised_randomised_response(epsilon, bits_in)
    # Letters of weight zero complete the alphabet, mirrored, in the outer halves of the first and the last gap.
    pairs = (2**bits_out - 2**bits_in) // 2
    first, second = response.alphabet[:2]
    below = tuple(first + (second - first) * Fraction(k, 2 * pairs + 2) for k in range(1, pairs + 1))
    above = tuple(1 - letter for letter in reversed(below))
    unused = np.zeros((2**bits_in, pairs), dtype=np.int64)
    alphabet = (first, *below, *response.alphabet[1:-1], *above, response.alphabet[-1])
    weights = np.concatenate([response.weights[:, :1], unused, response.weights[:, 1:-1], unused, response.weights[:, -1:]], axis=1)
    return certified_table(
        mechanism="mvu",
        epsilon=float(epsilon),
        metric=metric,
        alphabet=alphabet,
        total=response.total,
        weights=weights,
        provenance=provenance,
        objective=objective.name,
        prior=objective.prior,
        dual=dual,
        interval=interval,
    )


def _objective(table: LookupTable) -> float:
    return objective_value(table.moments, table.certificate.objective, table.prior)


def _padded(probabilities: FloatArray, alphabet: FloatArray, letters: int, symmetric: bool) -> tuple[FloatArray, FloatArray]:
    """Add letters of weight zero, in mirrored pairs for a mirrored table.

    A mirrored table's middle letter is split first if necessary.
    """
    missing = letters - len(alphabet)
    if symmetric and missing % 2:
        middle = len(alphabet) // 2
        probabilities = np.insert(probabilities, middle, probabilities[:, middle] / 2, axis=1)
        probabilities[:, middle + 1] /= 2
        alphabet = np.insert(alphabet, middle, alphabet[middle])
        missing -= 1
    below = np.arange(missing // 2, 0, -1)
    above = np.arange(1, missing - missing // 2 + 1)
    unused = np.zeros((len(probabilities), missing))
    return (
        np.concatenate([unused[:, : len(below)], probabilities, unused[:, len(below) :]], axis=1),
        np.concatenate([alphabet[0] - below, alphabet, alphabet[-1] + above]),
    )


def exact_table(
    design: Callable[[float], tuple[FloatArray, FloatArray]],
    *,
    mechanism: str,
    epsilon: float,
    provenance: Provenance,
    metric: str | None = None,
    objective: str = "mean",
    prior: tuple[float, ...] | None = None,
    dual: DualCertificate | None = None,
    interval: tuple[float, float] = (0.0, 1.0),
    symmetric: bool = False,
) -> LookupTable:
    """Return the exact, unbiased lookup table of a design that keeps its declared epsilon.

    Parameters
    ----------
    design : callable
        ``design(target_epsilon)`` returns probabilities, shape (2**bits_in, 2**bits_out), and letters, shape (2**bits_out,), of a table
        that is private at the target and unbiased, up to a solver's rounding. The target is a little below `epsilon`; the function calls
        `design` once for each margin that it tries, usually a single one.
    mechanism, epsilon, provenance, metric, prior, interval
        Name, declared privacy, provenance, prior and interval, as in `LookupTable`.
    objective, dual
        Objective and dual values, as in `certified_table`; the dual values are those at `epsilon` itself.
    symmetric : bool
        Whether the table must be mirrored exactly.

    Raises
    ------
    ConvergenceError
        If the rounded table exceeds epsilon even with the largest margin, because the floats are less private than the design states.
    """
    for margin in MARGINS:
        probabilities, alphabet = design(epsilon * (1 - margin))
        declared = ratio_constraint(epsilon, len(probabilities).bit_length() - 1, metric)
        constraint = replace(declared, log_ratio=declared.log_ratio * (1 - margin))
        rounded = round_table(probabilities, alphabet, constraint, symmetric=symmetric)
        realised = realised_epsilon(rounded.weights, metric)
        if realised <= epsilon:
            return certified_table(
                mechanism=mechanism,
                epsilon=epsilon,
                metric=metric,
                alphabet=rounded.alphabet,
                total=2**TOTAL_BITS,
                weights=rounded.weights,
                provenance=provenance,
                objective=objective,
                prior=prior,
                dual=dual,
                interval=interval,
            )
    excess = "infinite" if math.isinf(realised) else f"{realised - epsilon:.3g} above"
    raise ConvergenceError(f"the exact table's realised epsilon is {excess} at declared epsilon {epsilon:g}, even with margin {margin:g}")
