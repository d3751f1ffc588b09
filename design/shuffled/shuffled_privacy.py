"""Privacy of shuffled letters by the blanket, by the published closed form, and per letter."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InfeasibleError
from ...solvers.accounting.composed_losses import LossPair
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.shuffled_letters import ShuffledLetters, clones_epsilon, largest_clones_epsilon
from ..contracts.accounts import amplified_rounds, composed_loss, composed_rounds, needing_delta, pure_account, repeated_losses
from ..contracts.privacy import Account, EpsilonBound, Privacy

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

ADJACENCY = "replace-one"
BLANKET, CLONES = "blanket", "clones"
# Number of tables whose computed epsilons, and losses, are kept.
SHARED = 128
SHUFFLED_ACCOUNTS = ("pure", BLANKET, CLONES)


@dataclass(frozen=True)
class _LettersKey:
    """The letters of a table, as a key by which mechanisms share what was computed."""

    weights: bytes
    kind: str
    letters: int
    clients: int

    def build(self) -> ShuffledLetters:
        """Return the shuffled letters."""
        return ShuffledLetters(np.frombuffer(self.weights, self.kind).reshape(-1, self.letters), self.clients)


@lru_cache(maxsize=SHARED)
def _epsilon(key: _LettersKey, delta: float) -> float:
    return key.build().epsilon(delta)


@lru_cache(maxsize=SHARED)
def _loss(key: _LettersKey, delta: float, times: int) -> "PrivacyLossDistribution":
    return key.build().loss(delta, times)


def shuffled_privacy(weights: ArrayLike, pure_epsilon: float, clients: int) -> Privacy:
    """Return the privacy of n clients' shuffled letters, for any other clients' inputs.

    The account ``"pure"`` is the privacy of a letter by itself, which shuffling never weakens. ``"blanket"`` is computed from the table
    (`ShuffledLetters`); rounds compose by a privacy loss distribution that dominates all pairs of inputs, or, if that is too expensive, as
    (epsilon, delta). ``"clones"`` is the published closed form, which uses only the local epsilon; its proof was not checked.

    Parameters
    ----------
    weights : array_like of shape (rows, letters)
        Weights of the letters.
    pure_epsilon : float
        Upper bound on the epsilon of a letter by itself.
    clients : int
        Number n of clients that follow the protocol, since a client that does not draw by the table hides no other client.
    """
    table = np.ascontiguousarray(weights)
    key = _LettersKey(table.tobytes(), table.dtype.str, table.shape[-1], clients)

    def once(delta: float) -> EpsilonBound:
        return EpsilonBound(min(_epsilon(key, delta), pure_epsilon))

    def blanket(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if sampling is not None:
            return amplified_rounds(once, delta, rounds, sampling, ADJACENCY)
        if rounds == 1:
            return once(delta)
        composed = composed_loss(_loss(key, delta, rounds), rounds, delta)
        if composed is None:
            composed = composed_rounds(once(delta / (2 * rounds)).epsilon, rounds, delta / 2)
        return EpsilonBound(composed)

    def losses(delta: float, rounds: int, sampling: Sampling | None) -> LossPair | None:
        return repeated_losses(_loss(key, delta, rounds), rounds, delta) if sampling is None else None

    def published(delta: float) -> EpsilonBound:
        if pure_epsilon > largest_clones_epsilon(clients, delta):
            raise InfeasibleError(
                f"epsilon of a letter must be at most ln(clients / (8 ln(2 / delta)) - 1) for the closed form, got {pure_epsilon:g} for "
                f"{clients} clients and delta = {delta:g}"
            )
        return EpsilonBound(clones_epsilon(pure_epsilon, clients, delta))

    def clones(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if sampling is not None:
            return amplified_rounds(published, delta, rounds, sampling, ADJACENCY)
        if rounds == 1:
            return published(delta)
        return EpsilonBound(composed_rounds(published(delta / (2 * rounds)).epsilon, rounds, delta / 2))

    pure = pure_account(pure_epsilon, ADJACENCY)
    if math.isinf(pure_epsilon):
        return Privacy("shuffled", (pure,))
    accounts = (
        pure,
        Account(BLANKET, ADJACENCY, needing_delta(blanket), losses=losses),
        Account(CLONES, ADJACENCY, needing_delta(clones), proven=False),
    )
    return Privacy("shuffled", accounts)
