"""Coordinates for dual values: fewer by mirror symmetry, and by knots on fine grids."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from .ray_pricing import DualValues

# With fewer, there is no smooth density between the ends.
LEAST_INPUTS_OF_A_DIPOLE = 16


@dataclass(frozen=True)
class DualSpace:
    """A linear space of dual values on a grid.

    Restricting the dual values keeps every lower bound rigorous: it only asks for the best among fewer proofs.

    Attributes
    ----------
    chosen : ndarray of shape (coordinates,)
        The inputs whose dual values fix all the others.
    weights : ndarray of shape (inputs, coordinates)
        From input weights at the chosen inputs to all input weights; non-negative.
    weight_units : ndarray of shape (coordinates,)
        The size of an input weight at each chosen input.
    even, odd : ndarray of shape (inputs, coordinates)
        From coordinates to prices: `even` for normalisation, `odd` for unbiasedness, which changes sign under the mirror x -> 1-x where
        symmetry is imposed. Transposed, they gather a table's constraints into the rows of the master program. The coordinates are the
        prices at the chosen inputs, except at the first two and the last two inputs of fine grids. There, one coordinate is an atom, a
        price on the outermost input, and the other a dipole, a price on the difference of the two.
    to_coordinates : ndarray of shape (coordinates, coordinates)
        From prices at the chosen inputs to coordinates.
    """

    chosen: NDArray[np.intp]
    weights: FloatArray
    weight_units: FloatArray
    even: FloatArray
    odd: FloatArray
    to_coordinates: FloatArray

    def coordinates(self, prices: FloatArray) -> FloatArray:
        """Return the coordinates of the prices of this space that agree with the given ones at the chosen inputs."""
        return self.to_coordinates @ prices[self.chosen]

    def project(self, duals: DualValues) -> DualValues:
        """Return the dual values of this space that agree with the given ones at the chosen inputs; input weights stay as they are."""
        return DualValues(
            self.even @ self.coordinates(duals.normalisation), self.odd @ self.coordinates(duals.unbiasedness), duals.input_weights
        )


def dual_space(inputs: int, symmetric: bool, knots: int | None) -> DualSpace:
    """Return the dual values on a grid that are symmetric, piecewise linear, both or neither.

    Parameters
    ----------
    inputs : int
        Number of inputs, even.
    symmetric : bool
        Whether the objective is the same under x -> 1-x; an optimal dual solution is then symmetric, so nothing is lost.
    knots : int or None
        Most knots of the piecewise linear functions; None for one per input. The two inputs next to each end are always
        knots: optimal duals have an atom and a dipole there, and are smooth between.
    """
    half = inputs // 2
    lower = np.arange(half)
    if knots is not None and knots < inputs:
        lower = np.unique(np.concatenate([[0, 1], np.linspace(2, half - 1, knots // 2 - 2).round().astype(int)]))
    chosen = np.concatenate([lower, inputs - 1 - lower[::-1]])
    hats = np.stack([np.interp(np.arange(inputs), chosen, unit) for unit in np.eye(len(chosen))], axis=1)
    odd = hats
    if symmetric:
        own, mirrored = hats[:, : len(lower)], hats[:, ::-1][:, : len(lower)]
        chosen, hats, odd = lower, own + mirrored, own - mirrored
    prices, weight_units = np.eye(len(chosen)), np.full(len(chosen), 1 / inputs)
    if inputs >= LEAST_INPUTS_OF_A_DIPOLE:
        # Beside a density of prices of order one, an atom is of the order of the number of inputs, and a dipole, a price on the slope, of
        # its square: with such units, dual values are about as far from those of the coarser grid in one coordinate as in another. The
        # weights of the largest variance have atoms, too.
        for outer, inner in ((0, 1),) if symmetric else ((0, 1), (-1, -2)):
            prices[outer, outer] = inputs
            prices[inner, inner] = inputs**2
            prices[outer, inner] = -(inputs**2)
            weight_units[outer] = 1.0
    return DualSpace(chosen, hats, weight_units, hats @ prices, odd @ prices, np.asarray(np.linalg.inv(prices), dtype=float))
