"""Errors of estimates, the law of decoded messages, and the parts of their variance by cause."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import FloatArray


@dataclass(frozen=True)
class Error:
    """The error of an estimate of the mean, in squared L2 distances and squared input units.

    Attributes
    ----------
    variance : float
        Expected squared distance of one client's decoded message from its clipped input. The mean of n clients has this variance over n.
    bias : float
        Upper bound on the norm of the bias of the estimate; 0.0 for an unbiased mechanism.
    wrap_probability : float
        Upper bound on the probability that a modular sum wraps around; `variance` leaves wrap-around out.
    shared : float
        Expected squared error that all clients of a round share, such as the error of a common sketch. The expectation is over public
        randomness that is new in each round: more rounds lower this error, more clients do not.
    """

    variance: float
    bias: float = 0.0
    wrap_probability: float = 0.0
    shared: float = 0.0

    def of_mean(self, clients: int, rounds: int = 1) -> float:
        """Return the expected squared error of the mean of clients over rounds, without wrap-around.

        Averaging over rounds lowers the variance and keeps the bias.
        """
        return (self.variance / clients + self.shared) / rounds + self.bias**2


@dataclass(frozen=True)
class MessageLaw:
    """Bias and variance of decoded messages, in units and squared units of the inputs.

    Attributes
    ----------
    bias : ndarray of float64, shape (clients, dimension), or a single 0.0
        Expectation of each decoded message less its clipped input.
    variance : ndarray of float64, shape (clients,)
        Expected squared L2 distance of each decoded message from its expectation.
    """

    bias: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class VarianceParts:
    """Variance of each decoded message by cause, in squared units of the inputs, each part of shape (clients,).

    A client makes a message in random steps: compression chooses which part of an input the message tells, such as a sample of coordinates
    or a public frame; rounding moves the input to a grid, or a vector to the sphere; noise hides the result. A step's part is the expected
    variance that it adds to the message's expectation, given the client's earlier steps. By the law of total variance the parts add up to
    the whole.

    Attributes
    ----------
    compression, rounding, noise : ndarray of float64
        The parts.
    unsplit : ndarray of float64
        Variance whose parts no formula separates.
    """

    compression: FloatArray
    rounding: FloatArray
    noise: FloatArray
    unsplit: FloatArray

    @classmethod
    def split(cls, variance: ArrayLike, *, compression: ArrayLike = 0.0, rounding: ArrayLike = 0.0, unsplit: ArrayLike = 0.0) -> Self:
        """Return the parts of a variance, whose remainder is noise.

        Examples
        --------
        >>> VarianceParts.split([3.0, 4.0], rounding=1.0).noise.tolist()
        [2.0, 3.0]
        """
        whole = np.asarray(variance, dtype=float)
        named = [np.broadcast_to(np.asarray(part, dtype=float), whole.shape) for part in (compression, rounding, unsplit)]
        # Rounding errors of the subtraction leave no negative noise.
        noise = np.maximum(whole - np.sum(named, axis=0), 0.0)
        return cls(compression=named[0], rounding=named[1], noise=noise, unsplit=named[2])

    def scaled(self, factor: ArrayLike) -> Self:
        """Return all parts times a factor, such as the gain of decoding a sketch."""
        return type(self)(**{field.name: np.asarray(getattr(self, field.name) * factor) for field in fields(self)})

    @property
    def total(self) -> FloatArray:
        """Sum of the parts."""
        return np.asarray(self.compression + self.rounding + self.noise + self.unsplit)
