"""A rigorous lower bound on every table's objective, from any dual values, by exact pricing."""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...errors import ConvergenceError
from .privacy_constraint import RatioConstraint
from .ray_pricing import DualValues, PricedRays, price_rays

# Largest price. Beyond it, pricing could overflow, and letters that are not numbers would drop out of the maximum, so that no bound would
# be proven.
LARGEST_PRICE, LEAST_WEIGHT = 1e60, 1e-100


@dataclass(frozen=True, eq=False)
class FeasibleDuals:
    """Dual values shifted to feasibility, and the bound that they prove.

    Attributes
    ----------
    bound : float
        Lower bound, below the exact bound by an allowance for rounding.
    duals : DualValues
        The given values after the normalisation prices are lowered.
    priced : PricedRays
        Rays that violate the given values, and the other rays of the list.
    """

    bound: float
    duals: DualValues
    priced: PricedRays


def dual_lower_bound(duals: DualValues, inputs: FloatArray, constraint: RatioConstraint) -> float:
    """Return a lower bound on the objective of every unbiased private table on a grid.

    The bound holds for any number of letters. Feasible tables have sum_k theta_k |v_k|_1 = B, so that lowering every normalisation price by
    m costs m B; m is the least that makes the dual values feasible, max over rays and letters of v . w(a) / |v|_1, found by Dinkelbach's
    iteration on exact pricing.

    Any dual values give a bound, and better values a higher bound. It is for the objective sum_i input_weights_i Var_i, and so also for the
    largest variance, for all weights, on the unit interval's scale, after an allowance for floating-point rounding is subtracted. A dual
    value above 1e60, where pricing might overflow, raises ValueError.

    Examples
    --------
    >>> from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
    >>> import numpy as np
    >>> price = 2 * np.e / (np.e - 1) ** 2
    >>> duals = DualValues(np.zeros(2), np.array([-price, price]), np.full(2, 0.5))
    >>> round(dual_lower_bound(duals, np.array([0.0, 1.0]), RatioConstraint(1.0, False)), 6)
    0.920674
    """
    largest = float(np.abs([duals.normalisation, duals.unbiasedness]).max())
    if not largest <= LARGEST_PRICE:
        raise ValueError(f"dual values must be from {-LARGEST_PRICE:g} to {LARGEST_PRICE:g}, got {largest:g}")
    # A lower bound for a smaller objective is a lower bound for the objective itself.
    weights = np.where(duals.input_weights < LEAST_WEIGHT, 0.0, duals.input_weights)
    return feasible_duals(DualValues(duals.normalisation, duals.unbiasedness, weights), inputs, constraint).bound


def feasible_duals(duals: DualValues, inputs: FloatArray, constraint: RatioConstraint, max_iterations: int = 100) -> FeasibleDuals:
    """Return the lower bound, the shifted dual values, and the rays of the given values.

    Raises
    ------
    ConvergenceError
        If Dinkelbach's method, which converges superlinearly, does not end; finite dual values always let it end.
    """
    first: PricedRays | None = None
    shifted = duals
    for _ in range(max_iterations):
        priced = price_rays(shifted, inputs, constraint)
        # Each violation is a sum of `inputs` terms, so its rounding error is below about inputs * 2**-53 * magnitude. The allowance is four
        # times this error.
        rounding = priced.magnitudes * 4 * (len(inputs) + 8) * 2.0**-53
        if first is not None and np.all(priced.violations + rounding <= 0):
            return FeasibleDuals(float(shifted.normalisation.sum()), shifted, first)
        first = first or priced
        shift = float(np.max((priced.violations + 1.5 * rounding) / priced.rays.sum(axis=1)))
        shifted = DualValues(shifted.normalisation - shift, shifted.unbiasedness, shifted.input_weights)
    raise ConvergenceError(f"the dual bound's iteration did not end within {max_iterations} steps")
