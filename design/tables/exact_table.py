"""From a solver's table of floats to a lookup table that keeps its declared epsilon, proven in whole numbers."""

import math
from collections.abc import Callable
from dataclasses import replace

from ...arrays import FloatArray
from ...errors import ConvergenceError
from ...solvers.bounds.privacy_constraint import ratio_constraint
from .certificate import certified_table
from .exact_rounding import TOTAL_BITS, round_table
from .lookup_table import DualCertificate, LookupTable
from .provenance import Provenance
from .table_facts import realised_epsilon

# Shares of epsilon kept back for the rounding, tried in turn. The first is enough unless a table has few letters and tiny entries.
MARGINS = (1e-9, 1e-8, 1e-7, 2e-7, 4e-7, 1e-6, 1e-5, 1e-4)


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
    """Return the exact lookup table of a design: realised epsilon at most the declared one, rows exactly unbiased.

    Parameters
    ----------
    design : callable
        ``design(target_epsilon)`` returns probabilities, shape (2**bits_in, 2**bits_out), and letters, shape (2**bits_out,), of a table
        that is private at the target and unbiased, up to a solver's rounding. The target is a little below `epsilon`; `design` is called
        once for each margin that is tried, usually one.
    mechanism, epsilon, provenance, metric, prior, interval
        As in `LookupTable`.
    objective, dual
        As in `certified_table`; the dual values are those at `epsilon` itself.
    symmetric : bool
        Whether the table is to be mirrored exactly.

    Raises
    ------
    ConvergenceError
        If the rounded table exceeds epsilon even with the largest margin: the floats were not what they were said to be.
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
