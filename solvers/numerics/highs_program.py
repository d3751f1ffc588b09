"""Runs of HiGHS with tight tolerances, one thread, and a second try from scratch.

Only the status "optimal" counts as success.
"""

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from ...errors import ConvergenceError, InfeasibleError


@dataclass(frozen=True, eq=False)
class LinearOptimum:
    """An optimum of a linear program.

    Attributes
    ----------
    variables : ndarray of shape (columns,)
        Optimal values of the variables.
    row_duals : ndarray of shape (rows,)
        Derivatives of the optimal value in the rows' right-hand sides.
    value : float
        The optimal value.
    """

    variables: NDArray[np.float64]
    row_duals: NDArray[np.float64]
    value: float


class _SilentHighs(highspy.Highs):
    # HiGHS has no types, so these two lines give types to the methods that the package calls.
    def __init__(self) -> None:
        highspy.Highs.__init__(self)

    def enableCallbacks(self) -> None:  # noqa: N802 - HiGHS's name
        # The constructor calls this method, and since HiGHS 1.16 it prints a banner, into a command's output, before an option could be
        # set.
        self.setOptionValue("output_flag", False)
        highspy.Highs.enableCallbacks(self)


def new_highs() -> highspy.Highs:
    """Return a silent, single-threaded HiGHS without a model, with tight tolerances.

    The instance keeps small matrix entries.
    """
    highs = _SilentHighs()
    for option, value in (
        ("threads", 1),
        ("primal_feasibility_tolerance", 1e-10),
        ("dual_feasibility_tolerance", 1e-10),
        ("small_matrix_value", 1e-12),
    ):
        highs.setOptionValue(option, value)
    return highs


def run_highs(highs: highspy.Highs, program: str) -> LinearOptimum:
    """Solve the model that `highs` holds, from its basis, and from scratch if that fails.

    If the primal simplex method fails, the dual method follows from the same basis. A solve from scratch uses the simplex method, then
    interior points.

    `program` names the model in messages.

    Raises
    ------
    InfeasibleError
        If the model has no solution.
    ConvergenceError
        If HiGHS ends with neither an optimum nor a proof that there is none.
    """
    basis = highs.getBasis()
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        _run_again(highs, basis)
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        raise InfeasibleError(f"{program} has no solution")
    if status != highspy.HighsModelStatus.kOptimal:
        raise ConvergenceError(f"{program}: the solver ended with status {highs.modelStatusToString(status)!r}")
    solution = highs.getSolution()
    return LinearOptimum(np.array(solution.col_value), np.array(solution.row_dual), float(highs.getObjectiveValue()))


def _run_again(highs: highspy.Highs, basis: highspy.HighsBasis) -> None:
    strategy = highs.getOptionValue("simplex_strategy")[1]
    if basis.valid and strategy == highspy.simplex_constants.SimplexStrategy.kSimplexStrategyPrimal:
        # The primal simplex method gives up at an almost singular basis on its way. The dual method takes another path, and from the
        # previous solve's basis it needs a third of the time of a solve from scratch.
        highs.setBasis(basis)
        highs.setOptionValue("simplex_strategy", highspy.simplex_constants.SimplexStrategy.kSimplexStrategyDual)
        highs.run()
        highs.setOptionValue("simplex_strategy", strategy)
    # Presolve sometimes calls a model infeasible, or ends in numerical trouble, though the simplex method finds an optimum.
    highs.setOptionValue("presolve", "off")
    for solver in ("simplex", "ipm"):
        if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            break
        if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible and solver == "ipm":
            break
        highs.clearSolver()
        highs.setOptionValue("solver", solver)
        highs.run()
    highs.setOptionValue("presolve", "choose")
    highs.setOptionValue("solver", "choose")
