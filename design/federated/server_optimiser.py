"""Steps of a server's optimiser with the same bits on every machine.

All steps use only sums, products, quotients and square roots of single numbers, in a fixed order; IEEE 754 fixes each result. They use no
powers and no sums over coordinates, whose last bits differ between libraries.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray
from ..transforms.dithering import finite_values
from .model_state import ModelState, StateArray

LARGEST_RATE = 1e6


class ServerOptimiser(Protocol):
    """A rule that makes a new model from the old model and the mean of a round's updates."""

    def start(self, parameters: ArrayLike) -> ModelState:
        """Return the state before the first round, from a first model, shape (dimension,)."""
        ...

    def step(self, state: ModelState, mean_update: FloatArray) -> ModelState:
        """Return the state after another round, without changing anything in place.

        The update, shape (dimension,), is the mean of the clients' updates, and points in the direction of the model's move. The method
        raises ``ValueError`` if the state belongs to another optimiser, the update has another length, or a number of the result is not
        finite.
        """
        ...


@dataclass(frozen=True)
class ServerSGD:
    """Gradient steps with or without momentum: x = x + learning_rate m, m = momentum m + update.

    Without momentum this is the server of federated averaging (FedAvg), with momentum the server of FedAvgM.

    Attributes
    ----------
    learning_rate : float
        Learning rate, above 0, up to 1e6; 1 gives the mean of the clients' models.
    momentum : float
        Momentum from 0, for none, to 1.

    Examples
    --------
    >>> optimiser = ServerSGD(learning_rate=0.5, momentum=0.5)
    >>> state = optimiser.start(np.zeros(2, dtype=np.float32))
    >>> for _ in range(2):
    ...     state = optimiser.step(state, np.array([1.0, -1.0]))
    >>> state.rounds, state.parameters.tolist()
    (2, [1.25, -1.25])
    """

    learning_rate: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges of the rates."""
        check_real("learning_rate", self.learning_rate, low=1 / LARGEST_RATE, high=LARGEST_RATE)
        check_real("momentum", self.momentum, low=0.0, high=1.0)

    def start(self, parameters: ArrayLike) -> ModelState:
        """Return the first state, with one moment of zeros if there is momentum."""
        model = np.asarray(parameters)
        return ModelState(0, model, (np.zeros_like(model),) if self.momentum else ())

    def step(self, state: ModelState, mean_update: FloatArray) -> ModelState:
        """Return the state after another gradient step."""
        update = check_update(state, mean_update, moments=1 if self.momentum else 0)
        # Overflow raises an error when the state is made.
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.momentum:
                return ModelState(state.rounds + 1, state.parameters + self.learning_rate * update)
            moment = self.momentum * state.moments[0] + update
            return ModelState(state.rounds + 1, state.parameters + self.learning_rate * moment, (moment,))


@dataclass(frozen=True)
class FedAdam:
    """Adaptive steps without correction of early moments.

    The steps are algorithm 2 of Reddi et al. 2021 (*Adaptive Federated Optimization*): m = first_decay m + (1 - first_decay) update, v =
    second_decay v + (1 - second_decay) update^2, x = x + learning_rate m / (sqrt(v) + adaptivity), where v begins as adaptivity^2.

    Attributes
    ----------
    learning_rate : float
        Learning rate, above 0, up to 1e6.
    first_decay, second_decay : float
        Decay rates beta_1 and beta_2 of the moments, from 0 to 1; the paper uses 0.9 and 0.99.
    adaptivity : float
        Constant tau of the denominator, above 0; a smaller value makes the steps of all coordinates more alike.

    Examples
    --------
    >>> optimiser = FedAdam(learning_rate=0.1)
    >>> state = optimiser.start(np.zeros(2, dtype=np.float32))
    >>> optimiser.step(state, np.array([1.0, -0.1])).parameters.astype(float).round(4).tolist()
    [0.099, -0.0905]
    """

    learning_rate: float
    first_decay: float = 0.9
    second_decay: float = 0.99
    adaptivity: float = 1e-3

    def __post_init__(self) -> None:
        """Check the ranges of the rates."""
        check_real("learning_rate", self.learning_rate, low=1 / LARGEST_RATE, high=LARGEST_RATE)
        check_real("first_decay", self.first_decay, low=0.0, high=1.0)
        check_real("second_decay", self.second_decay, low=0.0, high=1.0)
        check_real("adaptivity", self.adaptivity, low=1e-12, high=LARGEST_RATE)

    def start(self, parameters: ArrayLike) -> ModelState:
        """Return the first state: a moment of zeros, and a moment of the squared adaptivity."""
        model = np.asarray(parameters)
        return ModelState(0, model, (np.zeros_like(model), np.full_like(model, self.adaptivity * self.adaptivity)))

    def step(self, state: ModelState, mean_update: FloatArray) -> ModelState:
        """Return the state after another adaptive step."""
        update = check_update(state, mean_update, moments=2)
        with np.errstate(over="ignore", invalid="ignore"):
            first = self.first_decay * state.moments[0] + (1.0 - self.first_decay) * update
            second = self.second_decay * state.moments[1] + (1.0 - self.second_decay) * (update * update)
            parameters = state.parameters + self.learning_rate * first / (np.sqrt(second) + self.adaptivity)
        return ModelState(state.rounds + 1, parameters, (first, second))


def check_update(state: ModelState, mean_update: FloatArray, moments: int) -> StateArray:
    """Return the update in the state's own type, in which all steps are computed."""
    if len(state.moments) != moments:
        raise ValueError(f"state must have {moments} moments for this optimiser, got {len(state.moments)}")
    update = finite_values("mean_update", mean_update)
    if update.shape != (state.dimension,):
        raise ValueError(f"mean_update must have the shape ({state.dimension},), got {update.shape}")
    if update.dtype == state.parameters.dtype:
        return update
    with np.errstate(over="ignore"):
        numbers: StateArray = update.astype(state.parameters.dtype)
    if not np.isfinite(numbers).all():
        finite_values(f"mean_update as {numbers.dtype}", numbers)
    return numbers
