"""The accelerated proximal gradient method for the Lasso (FISTA: Beck, Teboulle 2009), with adaptive restart (O'Donoghue, Candes 2015).

A step from a place b with curvature L is soft-thresholding: x_i = sign(u_i) max(|u_i| - penalty / L, 0), u = b + S^T (y - S b) / (m L). It
lowers the objective below that of b if |S (x - b)|^2 <= m L |x - b|^2, which is checked. Steps are taken from beyond the last place, in the
direction of the last step. Wherever that points uphill, or raises the objective by more than rounding, the method restarts from the last
place itself: it cannot diverge.

Images and correlations are affine in the vector, so that those of a place between or beyond others need no product: an iteration takes one
product with S and one with its transpose, and its duality gap is known.
"""

import math

import numpy as np

from ...arrays import FloatArray
from ..numerics.rounding import SLACK
from .lasso_problem import Approximation, CertifiedPlace, LassoProblem, Place

# The first step's curvature over its estimate, which errs downward.
CAUTION = 1.02


def accelerated_proximal(
    problem: LassoProblem, penalty: float, start: CertifiedPlace, tolerance: float, max_iterations: int
) -> Approximation:
    """Return a vector whose duality gap is at most `tolerance` times the objective at zero.

    Raises
    ------
    ConvergenceError
        If the gap is larger after `max_iterations`.
    """
    target = tolerance * problem.objective_at_zero
    curvature = max(CAUTION * problem.spectral_norm**2 / problem.measurements, math.ulp(0.0))
    last, base, momentum = start, Place(start.vector, start.image, start.correlations), 1.0
    for iteration in range(max_iterations + 1):
        if last.gap <= target:
            return Approximation(last.vector, iteration)
        vector = _proximal_step(base, penalty, curvature)
        if (base.vector - vector) @ (vector - last.vector) > 0:
            base, momentum = last, 1.0
            vector = _proximal_step(base, penalty, curvature)
        image = problem.forward(vector)
        length = float(np.linalg.norm(vector - base.vector))
        rounding = 4 * problem.product_error * float(np.linalg.norm(vector))
        if float(np.linalg.norm(image - base.image)) > math.sqrt(problem.measurements * curvature) * length + rounding:
            curvature *= 2
            base, momentum = last, 1.0
            continue
        place = problem.certify(vector, penalty, image)
        if place.objective > last.objective * (1 + SLACK) and base is not last:
            base, momentum = last, 1.0
            continue
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        base, last, momentum = _beyond(last, place, (momentum - 1) / grown), place, grown
    raise problem.not_converged(last.gap, tolerance, max_iterations)


def _proximal_step(base: Place, penalty: float, curvature: float) -> FloatArray:
    moved = base.vector + base.correlations / curvature
    # What is clipped to itself becomes exactly zero.
    stepped: FloatArray = moved - np.clip(moved, -penalty / curvature, penalty / curvature)
    return stepped


def _beyond(before: Place, place: Place, weight: float) -> Place:
    """Return the place that is beyond `place`, seen from the one before, by a share of their distance."""
    if weight == 0:
        return place
    return Place(
        place.vector + weight * (place.vector - before.vector),
        place.image + weight * (place.image - before.image),
        place.correlations + weight * (place.correlations - before.correlations),
    )
