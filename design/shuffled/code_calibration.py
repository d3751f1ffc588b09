"""Codes of unit vectors whose shuffled messages keep a budget with the least error."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from ...errors import InfeasibleError
from ..contracts.norm_ball import NormBall
from ..contracts.task import Budget
from ..relative_entropy.shared_randomness import MOST_SEED_BITS
from .calibration import LARGEST_LOCAL_EPSILON, local_epsilon
from .shuffled_codes import ShuffledCodeMechanism, shuffled_code_privacy

Code = TypeVar("Code", bound=ShuffledCodeMechanism)
# Largest share of the error that is due to common codebooks, over that of the messages, if the number of bits is free.
SHARED_SHARE = 1 / 64


def calibrate_shuffled_code(
    kind: type[Code],
    ball: NormBall,
    clients: int,
    budget: Budget,
    *,
    usual_letter_bits: int,
    letter_bits: int | None = None,
    message_bits: int | None = None,
    most_bits: float | None = None,
) -> Code:
    """Return the code with about the least error whose shuffled messages keep a budget.

    The account decides on the local epsilon. The numbers of letters, of closest letters and of codebooks only decide on the error: they are
    chosen for a local epsilon that is interpolated, and then the local epsilon is computed.

    Parameters
    ----------
    kind : type
        Class of the code.
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients.
    budget : Budget
        The target for epsilon.
    usual_letter_bits : int
        Largest number of bits of a letter if `letter_bits` is None.
    letter_bits, message_bits : int or None
        Number of bits of a letter, and of the whole message. By default the best ones, with codebooks enough for their share of the error
        to be at most 1/64.
    most_bits : float or None
        Largest number of bits of the whole message.

    Raises
    ------
    InfeasibleError
        If no code has as many bits, or the budget is too small.
    """
    most = kind.most_letter_bits(ball.dimension)
    numbers = list(range(1, min(most, usual_letter_bits) + 1)) if letter_bits is None else [letter_bits]
    if message_bits is None and most_bits is not None:
        # A message that is too long is for the caller to refuse.
        numbers = [bits for bits in numbers if bits <= most_bits] or [min(numbers)]
    hiding = budget.survivors(clients)
    start = _local_epsilon(2, 1, hiding, budget)

    def codes() -> Iterator[Code]:
        for bits in numbers:
            room = MOST_SEED_BITS if message_bits is None else message_bits - bits
            if not 0 <= room <= MOST_SEED_BITS:
                continue
            for closest in _numbers_tried(1 << bits):
                epsilon = _interpolated(start, closest / 2**bits, budget)
                one_codebook = kind(ball, clients, epsilon, bits, 0, closest)
                needed = one_codebook.worst_shared_variance * clients / (SHARED_SHARE * one_codebook.variance_bound)
                usual = math.ceil(math.log2(max(needed, 1.0)))
                within = room if most_bits is None else max(0, min(room, math.floor(most_bits) - bits))
                yield kind(ball, clients, epsilon, bits, min(usual, within) if message_bits is None else room, closest)

    best = min(codes(), key=lambda code: code.error().of_mean(clients), default=None)
    if best is None:
        largest = max(numbers) + MOST_SEED_BITS
        raise InfeasibleError(f"message_bits must be at least {min(numbers)} and at most {largest} for these letters, got {message_bits}")
    epsilon = _local_epsilon(best.letters, best.closest, hiding, budget)
    return replace(best, local_epsilon=epsilon, delta=budget.delta, survivors=budget.stated_survivors(clients))


def _numbers_tried(letters: int) -> list[int]:
    """Return numbers of closest letters, about the square root of 2 apart; the error is flat at its minimum."""
    return sorted({round(2 ** (power / 2)) for power in range(2 * (letters.bit_length() - 2) + 1)})


def _interpolated(start: float, share: float, budget: Budget) -> float:
    """Return a local epsilon for a share of closest letters, about that of the same privacy as two letters with `start`.

    The variance of the privacy loss is nearly ``2 share (E - 1)**2 / (share E + 1 - share)`` over the number of clients, for E = e^epsilon.
    Calibration replaces this epsilon by a proven one.
    """
    if budget.delta == 0:
        return start
    loss = 2 * math.expm1(start) ** 2 / (math.exp(start) + 1)
    return min(math.log1p((loss + math.sqrt(loss**2 + 8 * loss / share)) / 4), LARGEST_LOCAL_EPSILON)


@lru_cache(maxsize=256)
def _local_epsilon(letters: int, closest: int, clients: int, budget: Budget) -> float:
    common = math.gcd(letters, closest)
    if common > 1:
        return _local_epsilon(letters // common, closest // common, clients, budget)
    start = None if letters == 2 else _interpolated(_local_epsilon(2, 1, clients, budget), closest / letters, budget)
    return local_epsilon(lambda epsilon: shuffled_code_privacy(epsilon, letters, closest, clients), budget, start=start)
