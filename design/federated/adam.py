"""Adam as a server's optimiser, with the same bits on every machine."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray
from .model_state import ModelState
from .server_optimiser import LARGEST_RATE, check_update


@dataclass(frozen=True)
class ServerAdam:
    """Adam steps on the mean of clients' updates.

    The steps are algorithm 1 of Kingma, Ba 2015 (*Adam: a method for stochastic optimization*).

    `FedAdam` does not correct early moments, and starts the second moment above 0.

    Attributes
    ----------
    learning_rate : float
        Learning rate, above 0, up to 1e6.
    first_decay, second_decay : float
        Decay rates beta_1 and beta_2 of the moments, from 0 to below 1.
    adaptivity : float
        Constant epsilon of the denominator, above 0.

    Examples
    --------
    The first step moves every coordinate by the learning rate.

    >>> optimiser = ServerAdam(learning_rate=0.1)
    >>> optimiser.step(optimiser.start(np.zeros(2)), np.array([1.0, -0.1])).parameters.round(6).tolist()
    [0.1, -0.1]
    """

    learning_rate: float
    first_decay: float = 0.9
    second_decay: float = 0.999
    adaptivity: float = 1e-8

    def __post_init__(self) -> None:
        """Check the ranges of the rates."""
        check_real("learning_rate", self.learning_rate, low=1 / LARGEST_RATE, high=LARGEST_RATE)
        check_real("first_decay", self.first_decay, low=0.0, high=1 - 1e-9)
        check_real("second_decay", self.second_decay, low=0.0, high=1 - 1e-9)
        check_real("adaptivity", self.adaptivity, low=1e-12, high=LARGEST_RATE)

    def start(self, parameters: ArrayLike) -> ModelState:
        """Return a state with two moments of zeros."""
        model = np.asarray(parameters)
        return ModelState(0, model, (np.zeros_like(model), np.zeros_like(model)))

    def step(self, state: ModelState, mean_update: FloatArray) -> ModelState:
        """Return the state after one more adaptive step."""
        update = check_update(state, mean_update, moments=2)
        rounds = state.rounds + 1
        with np.errstate(over="ignore", invalid="ignore"):
            first = self.first_decay * state.moments[0] + (1.0 - self.first_decay) * update
            second = self.second_decay * state.moments[1] + (1.0 - self.second_decay) * (update * update)
            corrected = first / (1.0 - _power(self.first_decay, rounds))
            scale = np.sqrt(second / (1.0 - _power(self.second_decay, rounds))) + self.adaptivity
            parameters = state.parameters + self.learning_rate * corrected / scale
        return ModelState(rounds, parameters, (first, second))


def _power(base: float, exponent: int) -> float:
    """Return a power by products in a fixed order, with the same bits on every machine."""
    power = 1.0
    while exponent:
        if exponent & 1:
            power *= base
        base *= base
        exponent >>= 1
    return power
