"""Coordinate descent for dense Lasso problems, by scikit-learn."""

import warnings

import numpy as np

from .lasso_problem import Approximation, CertifiedPlace, LassoProblem

# Share of the tolerance that scikit-learn is asked for: what is left is for rounding.
SHARE = 0.5


def coordinate_descent(
    problem: LassoProblem, penalty: float, start: CertifiedPlace, tolerance: float, max_iterations: int
) -> Approximation:
    """Return a vector whose duality gap is at most `tolerance` times the objective at zero; an iteration goes over all coordinates once.

    Raises
    ------
    ConvergenceError
        If the gap is larger after `max_iterations`.
    """
    # Loading scikit-learn takes about a second.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso

    # scikit-learn's gap is m times ours, and its tolerance is relative to |y|^2, 2 m times the objective at zero.
    model = Lasso(alpha=penalty, fit_intercept=False, tol=SHARE * tolerance / 2, max_iter=max_iterations, warm_start=True)
    model.coef_ = np.array(start.vector)
    with warnings.catch_warnings():
        # Whether it has converged is decided below, by our own gap.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(problem.matrix, problem.observations)
    vector = np.array(model.coef_, dtype=float)
    gap = problem.certify(vector, penalty).gap
    if gap > tolerance * problem.objective_at_zero:
        raise problem.not_converged(gap, tolerance, max_iterations)
    return Approximation(vector, int(model.n_iter_))
