"""Tables for vectors whose privacy is solved for: which table makes the whole vector's message (epsilon, delta)-private."""

import math
from functools import cache

import numpy as np

from ..arguments import check_integer, check_real
from ..solvers.privacy_constraint import EPSILON_LOW, largest_epsilon
from ..solvers.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, RenyiCurve, check_delta
from ..solvers.safe_root import safe_root
from .mvu import design_mvu
from .norm_ball import NormBall
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
) -> VectorTableMechanism:
    """Design the MVU table with which vectors of a ball are (epsilon, delta)-private after so many rounds.

    The table's own epsilon is a rising parameter of the vector's: it is searched for, with a table designed at each step, until the
    vector's epsilon, computed from the finished table, lies between the target less 1e-6 and the target. (Chaudhuri, Guo, Rabbat 2022
    choose it by hand: "an epsilon/2 L1-metric table gives about epsilon".) Where the design changes by a jump, the last table on the
    safe side of it is returned.

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
        How often the same client reports, at least 1.
    seed : int
        Root seed of the solver.

    Returns
    -------
    VectorTableMechanism
        The mechanism; its guarantee is that of one round.

    Raises
    ------
    ValueError
        If an argument is out of range.
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

    @cache
    def mechanism_at(table_epsilon: float) -> VectorTableMechanism:
        table = design_mvu(table_epsilon, bits_in, bits_out, metric, seed=seed)
        return VectorTableMechanism(table, ball, delta=delta, dithering=dithering)

    def realised(table_epsilon: float) -> float:
        mechanism = mechanism_at(table_epsilon)
        if delta == 0:
            return rounds * float(mechanism.renyi_divergences(math.inf)[0])
        curve = RenyiCurve(np.array(DEFAULT_ORDERS), mechanism.renyi_divergences(DEFAULT_ORDERS))
        return curve.composed(rounds).epsilon(delta).epsilon

    argument = safe_root(
        realised,
        epsilon,
        start=epsilon / rounds,
        low=EPSILON_LOW,
        high=largest_epsilon(bits_in, metric),
        tolerance=TOLERANCE,
        name="the table's epsilon",
    )
    return mechanism_at(argument)
