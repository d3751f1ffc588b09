"""Program (4) of Chaudhuri, Guo, Rabbat 2022 as printed, a reference for the envelope."""

import math

import numpy as np
from numpy.typing import ArrayLike

from quietbits.arguments import check_integer, check_real
from quietbits.solvers.numerics.highs_program import new_highs, run_highs

LARGEST_PROGRAM = 10**6


def composition_program_value(divergences: ArrayLike, dimension: int, norm: float, distance: float) -> float:
    """Return the largest sum of divergences over coordinates that each mix pairs of inputs.

    The program has dimension * inputs**2 variables, which are the shares of each pair in each coordinate.

    Parameters
    ----------
    divergences : array_like of shape (inputs, inputs)
        Divergence of each row of a table from each other row, finite.
    dimension : int
        Number of coordinates.
    norm : float
        Order p of the L_p norm, from 1 to 64.
    distance : float
        Largest L_p distance of two vectors, on the table's unit scale; above 0.

    Returns
    -------
    float
        The optimal value in nats, to the solver's tolerance.

    Raises
    ------
    ValueError
        If an argument is out of range, or the program would have more than a million variables.
    ConvergenceError
        If the solver fails.

    Examples
    --------
    >>> round(composition_program_value([[0.0, 0.5], [0.5, 0.0]], dimension=3, norm=1.0, distance=2.5), 9)
    1.25
    """
    pairs = np.asarray(divergences, dtype=float)
    if pairs.ndim != 2 or len(pairs) < 2 or pairs.shape[0] != pairs.shape[1] or not np.all(np.isfinite(pairs)):
        raise ValueError(f"divergences must be a square array of finite numbers, got {divergences!r}")
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_PROGRAM // pairs.size)
    norm = check_real("norm", norm, low=1.0, high=64.0)
    distance = check_real("distance", distance, low=1e-9, high=1e6)
    inputs = len(pairs)
    # Prices are in units of the whole grid, and so lie between 0 and 1.
    prices = (np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs))) / (inputs - 1.0)) ** norm
    highs = new_highs()
    variables = dimension * pairs.size
    highs.addVars(variables, np.zeros(variables), np.full(variables, math.inf))
    highs.changeColsCost(variables, np.arange(variables, dtype=np.int32), np.tile(-pairs.ravel(), dimension))
    for coordinate in range(dimension):
        of_coordinate = np.arange(coordinate * pairs.size, (coordinate + 1) * pairs.size, dtype=np.int32)
        highs.addRow(1.0, 1.0, pairs.size, of_coordinate, np.ones(pairs.size))
    highs.addRow(-math.inf, distance**norm, variables, np.arange(variables, dtype=np.int32), np.tile(prices.ravel(), dimension))
    return -run_highs(highs, "the relaxation of the vector bound").value
