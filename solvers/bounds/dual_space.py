"""Coordinates for dual values: fewer by mirror symmetry, and by knots on fine grids."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from .ray_pricing import DualValues


@dataclass(frozen=True)
class DualSpace:
    """A linear space of dual values on a grid.

    Restricting the dual values keeps every lower bound rigorous: it only asks for the best among fewer proofs.

    Attributes
    ----------
    chosen : ndarray of shape (coordinates,)
        The inputs whose dual values are the coordinates.
    even, odd : ndarray of shape (inputs, coordinates)
        From coordinates to dual values: `even`, non-negative, for normalisation prices and input weights; `odd` for unbiasedness prices,
        which change sign under the mirror x -> 1-x where symmetry is imposed. Transposed, they gather a table's constraints into the
        rows of the master program.
    """

    chosen: NDArray[np.intp]
    even: FloatArray
    odd: FloatArray

    def project(self, duals: DualValues) -> DualValues:
        """Return the dual values of this space that agree with the given ones at the chosen inputs; input weights stay as they are."""
        return DualValues(self.even @ duals.normalisation[self.chosen], self.odd @ duals.unbiasedness[self.chosen], duals.input_weights)


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
    return DualSpace(chosen, hats, odd)
