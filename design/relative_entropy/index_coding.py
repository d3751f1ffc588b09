"""Many indices in fewer bits, where some occur more often than others: adaptive entropy coding, with nothing lost.

A sequence of n indices from K becomes one whole number, by asymmetric numeral systems (Duda 2013, arXiv:1311.2540) with exact arithmetic.
Before the i-th index, index k has the probability (1 + times it has occurred) / (K + i), Laplace's rule of succession. The length is

    log2 C(n + K - 1, n) + log2( n! / prod_k n_k! )    bits, and at most 2 log2(n + 1) + 1 more:

what it takes to say which counts there are, all as likely, and which order. No table of frequencies is sent. Indices of relative entropy
coding are uniform over fresh seeds, and are then some bits longer than without it; there is a gain where clients share a seed, and resemble
each other.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from ...arguments import check_integer
from .group_layout import MOST_GROUP_BITS

# Whole numbers of as many digits are multiplied for each index: time grows with the square, and is a second at the most.
MOST_INDICES = 2**14


def encode_indices(indices: ArrayLike, bits: int) -> bytes:
    """Return indices in as few bytes as their frequencies allow.

    Parameters
    ----------
    indices : array_like of int, shape (count,)
        Indices from 0 to 2**bits - 1; at most 2**14 of them.
    bits : int
        log2 of the number of different indices, 1 to 20.

    Returns
    -------
    bytes
        The code, which ends where it ends: its length, and the number of indices, must be known otherwise.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    Five hundred indices of seven bits, most of them the same, in place of 438 bytes.

    >>> indices = [5] * 450 + [6] * 50
    >>> code = encode_indices(indices, bits=7)
    >>> len(code), decode_indices(code, count=500, bits=7).tolist() == indices
    (86, True)
    """
    array = _check_indices(indices, bits)
    counts = np.ones(1 << bits, dtype=np.int64)
    # Laplace's frequencies as they are before each index, the first one first.
    steps = []
    for place, index in enumerate(array.tolist()):
        steps.append((int(counts[index]), int(counts[:index].sum()), (1 << bits) + place))
        counts[index] += 1
    # The last index goes in first: what goes in last comes out first. 1 at the top keeps zeros at the start.
    state = 1
    for frequency, below, total in reversed(steps):
        whole, rest = divmod(state, frequency)
        state = whole * total + below + rest
    return state.to_bytes((state.bit_length() + 7) // 8, "big")


def decode_indices(code: bytes, count: int, bits: int) -> NDArray[np.int64]:
    """Return the indices of a code.

    Parameters
    ----------
    code : bytes
        What `encode_indices` has returned.
    count : int
        Number of indices, 0 to 2**14.
    bits : int
        log2 of the number of different indices, 1 to 20.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices.

    Raises
    ------
    ValueError
        If an argument is out of range, or the code is none for so many indices. Not every wrong count, and hardly any damage, can be seen.
    """
    count = check_integer("count", count, low=0, high=MOST_INDICES)
    counts = np.ones(1 << check_integer("bits", bits, low=1, high=MOST_GROUP_BITS), dtype=np.int64)
    state = int.from_bytes(code, "big")
    indices = np.empty(count, dtype=np.int64)
    for place in range(count):
        state, rest = divmod(state, (1 << bits) + place)
        ends = np.cumsum(counts)
        index = int(np.searchsorted(ends, rest, side="right"))
        state = state * int(counts[index]) + rest - int(ends[index] - counts[index])
        counts[index] += 1
        indices[place] = index
    if state != 1:
        raise ValueError(f"code must be that of {count} indices of {bits} bits; {len(code)} bytes of it leave a rest")
    return indices


def adaptive_code_length(counts: ArrayLike) -> float:
    """Return the bits that `encode_indices` takes for indices of given frequencies, in any order.

    Parameters
    ----------
    counts : array_like of int, shape (K,)
        How often each index occurs; zeros count.

    Returns
    -------
    float
        log2 C(n + K - 1, n) + log2(n! / prod_k n_k!); the code may have 2 log2(n + 1) + 1 more, and what fills its last byte.

    Raises
    ------
    ValueError
        If there is no count, or one is negative.

    Examples
    --------
    >>> round(adaptive_code_length([1, 1]), 3), round(adaptive_code_length([2, 0]), 3)
    (2.585, 1.585)
    """
    array = np.asarray(counts, dtype=float)
    if array.ndim != 1 or not array.size or not (array >= 0).all():
        raise ValueError(f"counts must be a list of whole numbers from 0, got {counts!r}")
    total, kinds = array.sum(), len(array)
    return float((gammaln(total + kinds) - gammaln(kinds) - gammaln(array + 1).sum()) / np.log(2))


def _check_indices(indices: ArrayLike, bits: int) -> NDArray[np.int64]:
    array = np.asarray(indices)
    kinds = 1 << check_integer("bits", bits, low=1, high=MOST_GROUP_BITS)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"indices must be a list of whole numbers, got shape {array.shape} and type {array.dtype}")
    check_integer("number of indices", len(array), low=0, high=MOST_INDICES)
    if array.size and not (array.min() >= 0 and array.max() < kinds):
        raise ValueError(f"indices must be whole numbers from 0 to {kinds - 1}, got {array.min()} to {array.max()}")
    return array.astype(np.int64)
