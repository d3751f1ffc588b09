"""An adversary's score of a secure sum, to tell two populations apart by the sum modulo M."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.secure_sum.modular_arithmetic import centred_representatives, messages_modulo, residues
from .privacy_audit import Score

# Number of whole numbers drawn per batch, over all clients, coordinates and repetitions.
BLOCK = 2**20


def secure_sum_score(
    mechanism: SecureSumMechanism, first: ArrayLike, second: ArrayLike, on_runs: Callable[[int], None] = lambda _: None
) -> Score:
    """Return the score of an adversary who projects the sum on `SecureSumMechanism.sum_weights`.

    The adversary subtracts the expected sum for the first population from the residues, and then picks representatives around zero. The
    score is a function of the sum modulo M, and wraps less often than the estimate.

    Parameters
    ----------
    mechanism : SecureSumMechanism
        The mechanism.
    first, second : array_like of shape (clients, dimension), or (clients,) for numbers and items
        The two populations. A population of items may lack one client, who sends noise alone (`SecureSumMechanism.noise_steps`).
    on_runs : callable
        Called with the number of rounds of each batch.

    Returns
    -------
    callable
        Score for `audit_score`, which runs whole rounds, several at a time.
    """
    length, modulus = mechanism.padded_dimension, mechanism.modulus
    weights = mechanism.sum_weights(first, second)
    # Any reference makes a valid audit; a separate round, with its own generator, is near the middle.
    reference = _sums(mechanism, np.asarray(first), 1, np.random.default_rng(0))[0]

    def score(inputs: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        population = np.asarray(inputs)
        at_once = max(1, BLOCK // (mechanism.clients * length))
        parts = []
        for start in range(0, count, at_once):
            rounds = min(at_once, count - start)
            sums = _sums(mechanism, population, rounds, rng)
            parts.append(centred_representatives(residues(sums - reference, modulus), modulus) @ weights)
            on_runs(rounds)
        return np.concatenate(parts)

    return score


def _sums(mechanism: SecureSumMechanism, inputs: NDArray[np.generic], rounds: int, rng: np.random.Generator) -> IntegerArray:
    """Return the message sums of several rounds modulo M, shape (rounds, padded_dimension)."""
    # A vector of zeros or the middle of an interval stands for a client without an input; no item does.
    fewest = mechanism.clients - isinstance(mechanism.domain, Categories)
    present = check_integer("clients of the population", len(inputs), low=fewest, high=mechanism.clients)
    steps = mechanism.noisy_steps(np.tile(inputs, (rounds, *[1] * (inputs.ndim - 1))), rng)
    sums = steps.reshape(rounds, present, mechanism.padded_dimension).sum(axis=1)
    if present < mechanism.clients:
        sums += mechanism.noise_steps(rounds, rng)
    return messages_modulo(sums, mechanism.modulus).astype(np.int64)
