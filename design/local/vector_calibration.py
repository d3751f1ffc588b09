"""Calibration of MVU tables to an (epsilon, delta) of a whole vector's message."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ...errors import ConvergenceError, InfeasibleError
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, check_delta
from ...solvers.accounting.renyi_divergence import divergence_by_distance
from ...solvers.bounds.privacy_constraint import EPSILON_LOW, largest_epsilon, metric_power, ratio_constraint
from ...solvers.divergences.vector_composition import compose_distances
from ...solvers.numerics.safe_root import safe_root
from ..contracts.norm_ball import NormBall, check_ball
from ..tables.mvu import MvuSearch, search_mvu
from ..tables.provenance import Provenance, record_provenance
from ..tables.renyi_table import RenyiTable
from .vector_table import VectorGrid, VectorTableMechanism, dithered_distance

OBJECTIVES = ("metric", "renyi")
# Largest gap of the guarantee below the target, unless the guarantee jumps over it.
TOLERANCE = 1e-6
# Width of the bracket of the table's epsilon (relative to the target) at which the thorough search for letters starts.
FIRST_TOLERANCE = 1e-3
# Largest difference of the logarithms of two epsilons that a quick search's letters serve.
NEARBY = 0.5
# Factors by which a table may be stretched to end just below the target.
LEAST_STRETCH, MOST_STRETCH = 0.5, 2.0
# Width of the bracket of the factor: a guarantee is about as steep as the factor's square.
CLOSEST = 1e-9
# Number of steps from the middle of the grid at which letters start that meet in the middle.
SMALLEST_REACH = 0.01
# Largest bits of inputs and letters together for which a search for a table by Rényi divergence takes seconds.
MOST_PROGRAM_BITS = 8


def calibrate_vector_table(
    epsilon: float,
    delta: float,
    ball: NormBall,
    bits_in: int,
    bits_out: int,
    metric: str | float | None = None,
    *,
    objective: str = "metric",
    dithering: str = "systematic",
    rounds: int = 1,
    seed: int = 0,
    method: str | None = None,
) -> VectorTableMechanism:
    """Design the MVU table that makes vectors of a ball (epsilon, delta)-private over T rounds.

    The vector's epsilon rises with the table's own epsilon. The search for the table's epsilon ends when the vector's epsilon, computed
    from the finished table, lies between the target less 1e-6 and the target. (Chaudhuri, Guo, Rabbat 2022 choose it by hand: "an epsilon/2
    L1-metric table gives about epsilon".) The search uses letters of a quick search at first, and letters of `design_mvu` close to the end.
    From then on it keeps the letters, so that the table hardly jumps as its epsilon changes, and polishes them once. If the guarantee jumps
    over that band, the search returns the last table before the jump. For a pure budget with a closed form of the table's epsilon, the
    search starts from that form. Without a metric and with a finite norm the search also follows the quick letters to the end: the best
    letters at a table's epsilon say little about the needs of vectors of such a norm.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of the whole vector, for replace-one adjacency in the local trust model, after all rounds.
    delta : float
        Failure probability, from 0 (pure privacy) to below 1.
    ball : NormBall
        Ball that vectors are clipped to.
    bits_in, bits_out : int
        Number of bits of the table's input grid and of a coordinate's message, 1 to 9; at least two bits in for a finite norm.
    metric : str, float or None
        The table's metric, as in `design_mvu`. With None every coordinate has the same privacy at every distance, which suits only the
        L-infinity norm, or a single coordinate.
    objective : str
        ``"metric"``: the table of least variance for its metric; ``"renyi"``: the table for the vector's Rényi divergence, which its
        account uses, if that table is better (`improve_vector_table`).
    dithering : str
        ``"systematic"`` or ``"rejection"``, as in `VectorTableMechanism`.
    rounds : int
        Number T of rounds in which the same client reports.
    seed : int
        Root seed of the solver.
    method : str or None
        Name of the account that must keep the target; None for the least of the proven accounts.

    Returns
    -------
    VectorTableMechanism
        The mechanism, whose guarantee is that of one round.

    Raises
    ------
    InfeasibleError
        If the table would need an epsilon below 0.001 or above `largest_epsilon`.
    ConvergenceError
        If a design fails.

    Examples
    --------
    >>> ball = NormBall(dimension=16, norm=2.0)
    >>> mechanism = calibrate_vector_table(4.0, 1e-5, ball, bits_in=3, bits_out=2, metric="l1")
    >>> 4.0 - 1e-6 <= mechanism.guarantee.epsilon <= 4.0
    True
    """
    check_ball(ball, "a table")
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=1e6)
    delta = 0.0 if delta == 0 else check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    if check_choice("objective", objective, OBJECTIVES) == "renyi":
        check_renyi(delta, ball.norm, bits_in, bits_out)
        if method not in (None, "rdp"):
            raise ValueError(f"method must be left out, or 'rdp', for the objective 'renyi', got {method!r}")
        given = calibrate_vector_table(epsilon, delta, ball, bits_in, bits_out, metric, dithering=dithering, rounds=rounds, seed=seed)
        return improve_vector_table(given, epsilon, rounds)

    high = largest_epsilon(bits_in, metric)
    find = partial(search_mvu, bits_in=bits_in, bits_out=bits_out, metric=metric, seed=seed)

    @cache
    def mechanism(search: MvuSearch, table_epsilon: float, *, bounded: bool = False) -> VectorTableMechanism:
        return VectorTableMechanism(search.table(table_epsilon, bounded=bounded), ball, delta=delta, dithering=dithering)

    def root(search_at: Callable[[float], MvuSearch], start: float, tolerance: float) -> float:
        def realised(table_epsilon: float) -> float:
            return mechanism(search_at(table_epsilon), table_epsilon).privacy().epsilon(delta, rounds=rounds, account=method)

        return safe_root(realised, epsilon, start=start, low=EPSILON_LOW, high=high, tolerance=tolerance, name="the table's epsilon")

    hasty = _NearestSearch(partial(find, effort="quick"))
    # Neighbouring rows of a table without a metric differ by less than the table's epsilon, and the difference depends on the letters.
    loose = metric_power(metric) is None and math.isfinite(ball.norm) and ball.dimension > 1
    if delta == 0 and not loose:
        near = min(max(_pure_table_epsilon(epsilon / rounds, ball, bits_in, metric, dithering), EPSILON_LOW), high)
    else:
        near = root(hasty, epsilon / rounds, FIRST_TOLERANCE * epsilon)

    def ended(search: MvuSearch, start: float) -> tuple[MvuSearch, float]:
        return search, root(lambda _: search, start, TOLERANCE)

    def mean_variance(end: tuple[MvuSearch, float]) -> float:
        return mechanism(*end).table.certificate.mean_variance

    searches = [find(near, effort="wide"), *([hasty(near)] if loose else [])]
    best = min((ended(search, near) for search in searches), key=mean_variance)
    if best[0].made.searched is not None:
        best = min(ended(find(best[1], start=best[0]), best[1]), best, key=mean_variance)
    return mechanism(*best, bounded=True)


def _pure_table_epsilon(epsilon: float, ball: NormBall, bits_in: int, metric: str | float | None, dithering: str) -> float:
    """Return the table's epsilon that gives vectors a pure epsilon, for rows that differ most."""
    constraint, grid = ratio_constraint(1.0, bits_in, metric), VectorGrid(ball, bits_in)
    steps = np.arange(2**bits_in, dtype=float)
    ratios = constraint.log_ratio * (steps if constraint.neighbours_only else np.sign(steps))
    distance = dithered_distance(grid, rejecting=dithering == "rejection" and grid.centred)
    return epsilon / float(compose_distances(ratios[None], ball.dimension, ball.norm, distance)[0])


@dataclass
class _NearestSearch:
    """Cache of searches by epsilon, each of which serves every epsilon near its own."""

    find: Callable[[float], MvuSearch]
    made: dict[float, MvuSearch] = field(default_factory=dict)

    def __call__(self, epsilon: float) -> MvuSearch:
        nearest = min(self.made, key=lambda other: abs(math.log(other / epsilon)), default=None)
        if nearest is None or abs(math.log(nearest / epsilon)) > NEARBY:
            nearest = epsilon
            self.made[epsilon] = self.find(epsilon)
        return self.made[nearest]


def improve_vector_table(mechanism: VectorTableMechanism, epsilon: float, rounds: int = 1) -> VectorTableMechanism:
    """Return the mechanism with the best table that keeps the budget by Rényi divergence.

    The best table has the least variance for the worst vector. The search is that of `search_renyi_table` and starts from the letters of
    the mechanism's own table. A small stretch then moves the guarantee, computed from the table's whole numbers, between the target less
    1e-6 and the target. A table of two letters cannot be improved.

    Parameters
    ----------
    mechanism : VectorTableMechanism
        A mechanism that keeps the budget, such as `calibrate_vector_table` returns; its delta is above 0.
    epsilon : float
        Privacy parameter of all rounds.
    rounds : int
        Number T of rounds in which the same client reports.

    Returns
    -------
    VectorTableMechanism
        Mechanism whose worst-case variance is never above that of the given mechanism. It has the given table, and its provenance says so,
        if the search has no better table, or if the guarantee rests on an order above 256, where tables for a pure guarantee are better.

    Raises
    ------
    InfeasibleError
        If delta is 0, the ball's norm is infinite, or bits_in and bits_out are more than 8 together.
    """
    from ...solvers.table_search.renyi_budget import LARGEST_ORDER
    from ...solvers.table_search.renyi_search import RenyiStart, search_renyi_table

    began = time.perf_counter()
    given, ball, grid = mechanism.table, mechanism.ball, VectorGrid(mechanism.ball, mechanism.table.bits_in)
    check_renyi(mechanism.delta, ball.norm, given.bits_in, given.bits_out)
    if given.bits_out == 1:
        return _ended_with(mechanism, began, "renyi, which is the metric table for one bit")
    half = np.arange(2 ** (given.bits_in - 1))
    prices, spending = (np.abs(half - grid.zero) / grid.radius) ** ball.norm, mechanism.shrinkage**ball.norm / ball.dimension
    budget = mechanism.renyi_budget(epsilon, rounds)
    order = mechanism.privacy().report(mechanism.delta, rounds=rounds).account("rdp").bound.order
    if order is None or order > LARGEST_ORDER:
        return _ended_with(mechanism, began, "renyi, ended with the metric table, whose guarantee is nearly pure")
    letters = np.array([float(letter) for letter in given.alphabet])
    start = RenyiStart(
        order,
        budget.share(divergence_by_distance(given.weights, [order])[0]),
        np.maximum((letters[::-1] - letters)[: len(letters) // 2] / 2 * grid.steps, SMALLEST_REACH),
    )
    try:
        design = search_renyi_table(budget, len(letters), prices, spending, start)
        made = record_provenance(f"renyi, order {design.order:g}", given.provenance.seed, 0.0)
        improved = _stretched_to(epsilon, rounds, RenyiTable.of(design), mechanism, made)
    except (ConvergenceError, InfeasibleError) as failure:
        return _ended_with(mechanism, began, f"renyi, ended with the metric table: {failure}")
    if improved.variance_bound >= mechanism.variance_bound:
        return _ended_with(mechanism, began, "renyi, ended with the metric table, which is better")
    return _ended_with(improved, began, made.solver)


def _stretched_to(epsilon: float, rounds: int, floats: RenyiTable, like: VectorTableMechanism, made: Provenance) -> VectorTableMechanism:
    """Return the mechanism with a table stretched to a guarantee just below the target."""

    @cache
    def stretched(factor: float) -> VectorTableMechanism:
        return replace(like, table=floats.stretched(factor).exact(like.table.metric, made))

    def realised(factor: float) -> float:
        try:
            return stretched(factor).privacy().epsilon(like.delta, rounds=rounds)
        except ConvergenceError:
            return math.inf

    low, high = LEAST_STRETCH, MOST_STRETCH
    factor = safe_root(realised, epsilon, start=1.0, low=low, high=high, tolerance=TOLERANCE, jump=CLOSEST, name="the table's stretch")
    return stretched(factor)


def _ended_with(mechanism: VectorTableMechanism, began: float, solver: str) -> VectorTableMechanism:
    duration = (mechanism.table.provenance.duration or 0.0) + time.perf_counter() - began
    provenance = replace(mechanism.table.provenance, solver=solver, duration=duration)
    return replace(mechanism, table=replace(mechanism.table, provenance=provenance))


def check_renyi(delta: float, norm: float, bits_in: int, bits_out: int) -> None:
    """Raise InfeasibleError if no table can be designed by Rényi divergence.

    The check covers the budget, the ball and the sizes.
    """
    if bits_out > 1 and bits_in + bits_out > MOST_PROGRAM_BITS:
        raise InfeasibleError(
            f"bits_in and bits_out must be {MOST_PROGRAM_BITS} together at most for the objective 'renyi', got {bits_in} and {bits_out}: "
            "the search would take minutes"
        )
    if delta == 0:
        raise InfeasibleError(
            f"delta must be above 0 for the objective 'renyi', got {delta!r}: a pure guarantee is not by Rényi divergences"
        )
    if math.isinf(norm):
        raise InfeasibleError(f"norm must be finite for the objective 'renyi', got {norm!r}: each coordinate then has a bound of its own")
