"""What an adversary makes of a secure sum: whether the sum of messages modulo M tells if one client's vector is there."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.frequencies.exact_histogram import ExactHistogramMechanism
from ...design.frequencies.noisy_sketch import NoisySketchSum
from ...design.secure_sum.modular_arithmetic import centred_representatives, messages_modulo, residues
from .privacy_audit import Score

# Whole numbers that are drawn at a time, of all clients, coordinates and repetitions together.
BLOCK = 2**20


def secure_sum_score(mechanism: SecureSumMechanism, first: ArrayLike, second: ArrayLike) -> Score:
    """Return the score of an adversary who projects the decoded sum on the difference of two populations' means.

    The adversary subtracts the expected sum for the first population from the residues before it picks representatives around zero: that is
    a function of the sum modulo M, and wraps less often than the estimate does.

    Parameters
    ----------
    mechanism : SecureSumMechanism
        The mechanism. Its `decode` is taken to be linear, except for a constant, in the sum's whole numbers.
    first, second : array_like of shape (clients, dimension), or (clients,) for numbers and items
        The two populations. One of items may lack a client, who sends noise alone.

    Returns
    -------
    callable
        As `audit_score` takes it: runs whole rounds, several at a time.
    """
    domain = mechanism.domain
    difference = domain.total(domain.clip(first)) - domain.total(domain.clip(second))
    length = mechanism.padded_dimension
    unit = np.zeros(length, dtype=np.uint64)
    constant = np.dot(mechanism.decode(unit, mechanism.clients), difference)
    weights = np.empty(length)
    for place in range(length):
        unit[place] = 1
        weights[place] = np.dot(mechanism.decode(unit, mechanism.clients), difference) - constant
        unit[place] = 0
    return _projection(mechanism, weights, first)


def exact_sum_score(mechanism: ExactHistogramMechanism, first: ArrayLike, second: ArrayLike) -> Score:
    """Return the score of an adversary who projects the sum on what two populations' sums differ by; arguments as in `secure_sum_score`."""
    rng = np.random.default_rng(0)
    difference = mechanism.summed_steps(first, rng) - mechanism.summed_steps(second, rng)
    return _projection(mechanism, difference.astype(float), first)


def _projection(mechanism: SecureSumMechanism, weights: FloatArray, first: ArrayLike) -> Score:
    """Return the score that weighs the places of the sum, less what it is for the first population."""
    length, modulus = mechanism.padded_dimension, mechanism.modulus
    # Any reference makes a valid audit; a round of its own, with a generator of its own, is near the middle.
    reference = _sums(mechanism, np.asarray(first), 1, np.random.default_rng(0))[0]

    def score(inputs: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        population = np.asarray(inputs)
        at_once = max(1, BLOCK // (mechanism.clients * length))
        parts = []
        for start in range(0, count, at_once):
            sums = _sums(mechanism, population, min(at_once, count - start), rng)
            parts.append(centred_representatives(residues(sums - reference, modulus), modulus) @ weights)
        return np.concatenate(parts)

    return score


def _sums(mechanism: SecureSumMechanism, inputs: NDArray[Any], rounds: int, rng: np.random.Generator) -> IntegerArray:
    """Return the sum of the messages of each of several rounds modulo M, shape (rounds, padded_dimension)."""
    without = isinstance(mechanism, NoisySketchSum)
    present = check_integer("clients of the population", len(inputs), low=mechanism.clients - without, high=mechanism.clients)
    steps = mechanism.noisy_steps(np.tile(inputs, (rounds, *[1] * (inputs.ndim - 1))), rng)
    sums = steps.reshape(rounds, present, mechanism.padded_dimension).sum(axis=1)
    if isinstance(mechanism, NoisySketchSum) and present < mechanism.clients:
        sums += mechanism.noise_steps(rounds, rng)
    return messages_modulo(sums, mechanism.modulus).astype(np.int64)
