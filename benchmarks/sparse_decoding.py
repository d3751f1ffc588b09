"""The matrix-free Lasso and its refit, against an operator's product and scikit-learn."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from shared.growth import exponent
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import beside_limit
from shared.processor_time import seconds, timed

from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.figures.linear_compression.sparse import measuring_operator
from quietbits.solvers.decoders.lasso import noise_penalty, refit_support, solve_lasso

DIMENSION, MEASUREMENTS, SPARSITY = 2**18, 2**14, 100
# These are standard deviations of a measurement's noise; without noise a measurement's mean square is 1.
NOISE_DEVIATIONS = (0.01, 0.1, 1.0, 1.4, 1.6, 2.0, 4.0)
TOLERANCES = (1e-4, 1e-6, 1e-9)
# The Lasso begins to miss entries at about these deviations.
BORDER_DEVIATIONS, DRAWS = (1.0, 1.3, 1.4, 1.5, 1.6, 2.0, 4.0), 20
# One entry in 2621 is nonzero, with 16 such entries for each measurement.
DIMENSIONS = (2**14, 2**16, 2**18)
# This dimension is small enough for a matrix.
MATRIX_DIMENSION, MATRIX_MEASUREMENTS = 2**14, 2**10


def decoding(dimension: int) -> Callable[[], object]:
    """Return a run of the decoder for a dimension, with noise and sparsity in proportion."""
    rng, measurements = np.random.default_rng(0), dimension * MEASUREMENTS // DIMENSION
    operator = measuring_operator(HadamardSketch(dimension, measurements, seed=1))
    vector, sparsity = np.zeros(dimension), dimension * SPARSITY // DIMENSION
    vector[rng.choice(dimension, sparsity, replace=False)] = 1 / math.sqrt(sparsity)
    observations = operator.matvec(vector) + 0.1 * rng.standard_normal(measurements)
    penalty = noise_penalty(dimension, 0.1, math.sqrt(measurements), measurements)
    return partial(solve_lasso, operator, observations, penalty, tolerance=TOLERANCES[1])


def decode_large() -> None:
    """Print times by tolerance, and errors by noise, for the large operator."""
    rng = np.random.default_rng(0)
    operator = measuring_operator(HadamardSketch(DIMENSION, MEASUREMENTS, seed=1))
    product = seconds(lambda: operator.rmatvec(operator.matvec(np.ones(DIMENSION))))
    print(
        f"d = {DIMENSION}, m = {MEASUREMENTS}, {SPARSITY} equal entries, norm 1; physical limit, a pair of products, {1e3 * product:.1f} ms"
    )
    for noise in NOISE_DEVIATIONS:
        vector = np.zeros(DIMENSION)
        support = rng.choice(DIMENSION, SPARSITY, replace=False)
        vector[support] = 1 / math.sqrt(SPARSITY)
        observations = operator.matvec(vector) + noise * rng.standard_normal(MEASUREMENTS)
        penalty = noise_penalty(DIMENSION, noise, math.sqrt(MEASUREMENTS), MEASUREMENTS)
        for tolerance in TOLERANCES:
            run = partial(solve_lasso, operator, observations, penalty, tolerance=tolerance)
            lasso, duration = timed(run)
            print(
                f"noise {noise:<4g} tolerance {tolerance:g}: {duration:5.2f} s, {beside_limit(duration, product)}; gap "
                f"{lasso.relative_gap:.1e} of the objective at zero, {lasso.duality_gap / lasso.objective:.1e} of its own"
            )
        refit = refit_support(operator, observations, lasso.support).solution
        oracle = refit_support(operator, observations, support).solution
        errors = [float(np.sum((estimate - vector) ** 2)) for estimate in (lasso.solution, refit, oracle)]
        print(
            f"noise {noise:<4g} squared error: Lasso {errors[0]:.3g}, refit {errors[1]:.3g}, oracle {errors[2]:.3g}, zero 1; refit "
            f"{errors[1] / errors[2]:.2f} x oracle; {len(np.intersect1d(lasso.support, support))} of {SPARSITY} entries found, "
            f"{len(np.setdiff1d(lasso.support, support))} false"
        )
    print(f"noise 0.1 tolerance {TOLERANCES[1]:g}: time grows with the {exponent(decoding, DIMENSIONS, 2):.2f}th power of the dimension")
    print(f"largest memory of the process: {peak_mebibytes():.0f} MiB")


def compare_with_oracle() -> None:
    """Print the refit's squared error over an oracle's, by noise, over several draws."""
    for noise in BORDER_DEVIATIONS:
        errors, missed, false = [], 0, 0
        for draw in range(DRAWS):
            rng = np.random.default_rng([draw, 2])
            operator = measuring_operator(HadamardSketch(DIMENSION, MEASUREMENTS, seed=draw))
            vector = np.zeros(DIMENSION)
            support = rng.choice(DIMENSION, SPARSITY, replace=False)
            vector[support] = 1 / math.sqrt(SPARSITY)
            observations = operator.matvec(vector) + noise * rng.standard_normal(MEASUREMENTS)
            penalty = noise_penalty(DIMENSION, noise, math.sqrt(MEASUREMENTS), MEASUREMENTS)
            lasso = solve_lasso(operator, observations, penalty, tolerance=TOLERANCES[1])
            refit, oracle = (refit_support(operator, observations, places).solution for places in (lasso.support, support))
            errors.append([float(np.sum((estimate - vector) ** 2)) for estimate in (oracle, refit, lasso.solution)])
            missed += len(np.setdiff1d(support, lasso.support))
            false += len(np.setdiff1d(lasso.support, support))
        ratios = [refit / oracle for oracle, refit, _ in errors]
        oracle, refit, lasso = np.mean(errors, axis=0)
        print(
            f"noise {noise:<4g} {DRAWS} draws: oracle {oracle:.3g}, refit {refit:.3g}, Lasso {lasso:.3g}; refit over oracle "
            f"{np.mean(ratios):.2f}, at most {max(ratios):.2f}; {missed / DRAWS:.3g} entries missed, {false / DRAWS:.3g} false"
        )


def decode_small() -> None:
    """Print the operator's time over scikit-learn's with the same matrix."""
    rng = np.random.default_rng(1)
    operator = measuring_operator(HadamardSketch(MATRIX_DIMENSION, MATRIX_MEASUREMENTS, seed=1))
    matrix = operator.rmatmat(np.eye(MATRIX_MEASUREMENTS)).T.copy()
    vector = np.zeros(MATRIX_DIMENSION)
    vector[rng.choice(MATRIX_DIMENSION, 10, replace=False)] = 1 / math.sqrt(10)
    observations = operator.matvec(vector) + rng.standard_normal(MATRIX_MEASUREMENTS)
    penalty = noise_penalty(MATRIX_DIMENSION, 1.0, math.sqrt(MATRIX_MEASUREMENTS), MATRIX_MEASUREMENTS)
    solve_lasso(matrix[:2, :2], observations[:2], penalty / 1000, solver="coordinate-descent")
    dense = seconds(partial(solve_lasso, matrix, observations, penalty, solver="coordinate-descent"))
    for name, given in (("operator", operator), ("the matrix", matrix)):
        ours = seconds(partial(solve_lasso, given, observations, penalty, solver="fista"))
        print(
            f"d = {MATRIX_DIMENSION}, m = {MATRIX_MEASUREMENTS}, with certificate: FISTA on {name} {1e3 * ours:.0f} ms, scikit-learn on "
            f"the matrix {1e3 * dense:.0f} ms: {ours / dense:.2f} x its time"
        )


def main() -> None:
    """Print times, ratios, errors and memory; the matrix comes last, because it takes 128 MiB."""
    decode_large()
    compare_with_oracle()
    decode_small()


if __name__ == "__main__":
    main()
