"""MVU tables for vectors: which table makes the whole vector's message (epsilon, delta)-private."""

from collections.abc import Callable
from functools import cache, partial

from ...arguments import check_integer, check_real
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, check_delta
from ...solvers.bounds.privacy_constraint import EPSILON_LOW, largest_epsilon
from ...solvers.numerics.safe_root import safe_root
from ..contracts.norm_ball import NormBall
from ..tables.mvu import design_mvu
from .vector_table import VectorTableMechanism

# How far below the target the guarantee may end.
TOLERANCE = 1e-6


def calibrate_vector_table(
    epsilon: float,
    delta: float,
    ball: NormBall,
    bits_in: int,
    bits_out: int,
    metric: str | float | None = None,
    *,
    dithering: str = "systematic",
    rounds: int = 1,
    seed: int = 0,
    method: str | None = None,
) -> VectorTableMechanism:
    """Design the MVU table with which vectors of a ball are (epsilon, delta)-private after T rounds.

    The table's own epsilon is a rising parameter of the vector's: it is searched for, with a table designed at each step, until the
    vector's epsilon, computed from the finished table, lies between the target less 1e-6 and the target. (Chaudhuri, Guo, Rabbat 2022
    choose it by hand: "an epsilon/2 L1-metric table gives about epsilon".) Where a search for letters would make the design jump over
    that band, the letters are kept and the rest of the table is solved for; should even that jump, the last table before it is returned.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of the whole vector, for replace-one adjacency in the local trust model, after all rounds.
    delta : float
        Failure probability, from 0 (pure privacy) to below 1.
    ball : NormBall
        The ball that vectors are clipped to.
    bits_in, bits_out : int
        Bits of the table's input grid and of a coordinate's message, 1 to 9; two or more bits in where the norm is finite.
    metric : str, float or None
        The table's metric, as in `design_mvu`. None asks every coordinate for the same privacy at every distance, which suits only the
        largest norm, or one coordinate.
    dithering : str
        ``"systematic"`` or ``"rejection"``, as in `VectorTableMechanism`.
    rounds : int
        T, the number of rounds in which the same client reports.
    seed : int
        Root seed of the solver.
    method : str or None
        Name of the account that is to keep the target; None for the least of the proven ones.

    Returns
    -------
    VectorTableMechanism
        The mechanism; its guarantee is that of one round.

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
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=1e6)
    delta = 0.0 if delta == 0 else check_delta(delta)
    rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)

    def mechanism(table_epsilon: float, letters_from: float | None = None) -> VectorTableMechanism:
        table = design_mvu(table_epsilon, bits_in, bits_out, metric, seed=seed, letters_from=letters_from)
        return VectorTableMechanism(table, ball, delta=delta, dithering=dithering)

    def search(design: Callable[[float], VectorTableMechanism], start: float, high: float) -> tuple[float, dict[float, float]]:
        values: dict[float, float] = {}

        def realised(table_epsilon: float) -> float:
            values[table_epsilon] = design(table_epsilon).privacy().report(delta, rounds=rounds).epsilon_by(method)
            return values[table_epsilon]

        low = EPSILON_LOW
        return safe_root(realised, epsilon, start=start, low=low, high=high, tolerance=TOLERANCE, name="the table's epsilon"), values

    searched = cache(mechanism)
    argument, values = search(searched, epsilon / rounds, largest_epsilon(bits_in, metric))
    if epsilon - values[argument] <= TOLERANCE:
        return searched(argument)
    # The search finds other letters just above: with those, the guarantee falls without a jump to the target.
    above = min(tried for tried, value in values.items() if value > epsilon)
    kept = cache(partial(mechanism, letters_from=above))
    closer, closer_values = search(kept, above, above)
    return kept(closer) if closer_values[closer] > values[argument] else searched(argument)
