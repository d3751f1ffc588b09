"""Frequencies of items by shuffled randomised response."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_probability, check_real
from ...arrays import FloatArray
from ...solvers.divergences.shuffled_letters import MOST_CLIENTS
from ..contracts.joint_messages import SURVIVORS
from ..contracts.mechanism import EPSILON_LOW
from ..contracts.options import check_parameters, parameter
from ..contracts.privacy import Privacy
from ..frequencies.randomised_response import FrequencyRandomisedResponse
from .shuffled_mechanism import CountedMechanism
from .shuffled_privacy import shuffled_privacy

LARGEST_EPSILON = 20.0


def shuffled_response_privacy(epsilon: float, categories: int, clients: int) -> Privacy:
    """Return the privacy of shuffled randomised response.

    The account merges equally likely items into one letter.
    """
    return shuffled_privacy(response_rows(epsilon, categories), epsilon, clients)


def response_rows(epsilon: float, categories: int) -> list[list[float]]:
    """Return weights of randomised response for two inputs, with the other letters merged into one."""
    truth, lie = math.exp(epsilon), 1.0
    return [[truth, lie], [lie, truth]] if categories == 2 else [[truth, lie, categories - 2], [lie, truth, categories - 2]]


@dataclass(frozen=True)
class ShuffledRandomisedResponse(CountedMechanism, FrequencyRandomisedResponse):
    """Shuffled randomised response: the server sees only the number of messages of each item.

    Attributes
    ----------
    epsilon : float
        Privacy parameter of a message by itself, 1e-3 to 20.
    categories : int
        Number of items, at least 2.
    clients : int
        Number of clients, from 1 to 10**12.
    delta : float
        Failure probability of `guarantee`, from 0, for the messages' own privacy, to below 1.
    survivors : int or None
        Number of clients whose letters suffice for the guarantee, if others drop out; None for all clients.

    Examples
    --------
    >>> mechanism = ShuffledRandomisedResponse(4.0, categories=100, clients=10_000, delta=1e-6)
    >>> round(mechanism.guarantee.epsilon, 3), mechanism.guarantee.trust_model
    (0.234, 'shuffled')
    """

    clients: int = parameter(
        "Number of clients whose letters are shuffled.", 1, MOST_CLIENTS, default=1, unit="clients", at_most="population"
    )
    delta: float = 1e-5
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=LARGEST_EPSILON))
        check_parameters(self)
        object.__setattr__(self, "delta", 0.0 if self.delta == 0 else check_probability("delta", self.delta))

    @property
    def letters(self) -> int:
        """Number of letters, one for each item."""
        return self.categories

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of the histogram of a number of clients' messages, for any other clients' items."""
        return shuffled_response_privacy(self.epsilon, self.categories, clients)

    def letter_law(self, value: ArrayLike) -> FloatArray:
        """Return the probability of each item."""
        law = np.full(self.categories, self._lie)
        law[int(self.domain.clip(np.atleast_1d(value))[0])] = self._truth
        return law
