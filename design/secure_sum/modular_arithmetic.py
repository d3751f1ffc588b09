"""Arithmetic of whole numbers modulo M, up to 2**62, as unsigned words without overflow."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, WordArray
from ..transforms.vector_dithering import row_blocks

LARGEST_MODULUS = 2**62
LARGEST_WORD = 2**64 - 1
# Number of coordinates of messages made per batch, a megabyte of whole numbers.
MADE_TOGETHER = 2**17


def check_modulus(modulus: int) -> int:
    """Return a modulus, from 2 to 2**62, as an int."""
    return check_integer("modulus", modulus, low=2, high=LARGEST_MODULUS)


def check_residues(name: str, values: ArrayLike, modulus: int) -> WordArray:
    """Return whole numbers from 0 to M - 1 as unsigned words; errors show the argument's `name`."""
    array = _whole_numbers(name, values)
    outside = (array < 0) | (array >= modulus)
    if outside.any():
        raise ValueError(
            f"{name} must be from 0 to {modulus - 1}, got {int(array[outside][0])} ({np.count_nonzero(outside)} such values); "
            "residues() reduces whole numbers to that range"
        )
    return array.astype(np.uint64, copy=False)


def residues(values: ArrayLike, modulus: int) -> WordArray:
    """Reduce whole numbers of 64 bits, signed or not, modulo M, from 2 to 2**62.

    Examples
    --------
    >>> residues([-1, 0, 7], 5).tolist()
    [4, 0, 2]
    """
    modulus = check_modulus(modulus)
    array = _whole_numbers("values", values)
    if modulus & (modulus - 1) == 0:
        return _low_bits(array, modulus, np.dtype(np.uint64))
    word = np.uint64 if array.dtype.kind == "u" else np.int64
    return np.mod(array.astype(word, copy=False), word(modulus)).astype(np.uint64)


def messages_modulo(values: ArrayLike, modulus: int) -> NDArray[Any]:
    """Reduce whole numbers modulo M, into the narrowest unsigned words that hold the residues.

    Examples
    --------
    >>> messages_modulo([-1, 0, 7], 300)
    array([299,   0,   7], dtype=uint16)
    """
    modulus, narrow = check_modulus(modulus), np.min_scalar_type(modulus - 1)
    if modulus & (modulus - 1) == 0:
        return _low_bits(_whole_numbers("values", values), modulus, narrow)
    return residues(values, modulus).astype(narrow, copy=False)


def messages_in_parts(
    inputs: FloatArray, coordinates: int, modulus: int, write: Callable[[FloatArray, NDArray[Any]], None], *, below: bool = False
) -> NDArray[Any]:
    """Return the messages of inputs modulo M, for a few clients at a time; the shape is (clients, coordinates).

    The function `write` takes inputs and an array of the narrowest words that hold the residues, and writes whole numbers into the array,
    modulo 2**w for words of w bits. The modulus is a power of two, unless the numbers lie `below` it.
    """
    messages = np.empty((len(inputs), coordinates), dtype=np.min_scalar_type(check_modulus(modulus) - 1))
    for rows in row_blocks(len(inputs), coordinates, MADE_TOGETHER):
        part = messages[rows]
        write(inputs[rows], part)
        if not below:
            part &= messages.dtype.type(modulus - 1)
    return messages


def centred_representatives(values: ArrayLike, modulus: int) -> NDArray[np.int64]:
    """Return the whole number nearest to zero of each residue.

    The function undoes `residues` for whole numbers from ``-(M // 2)`` to ``(M - 1) // 2``. The result of a sum beyond that range is off by
    a multiple of M, which the residue does not show.

    Examples
    --------
    >>> centred_representatives([0, 1, 2, 3, 4], 5).tolist(), centred_representatives([1, 2, 3], 4).tolist()
    ([0, 1, 2, -2, -1], [1, -2, -1])
    """
    modulus = check_modulus(modulus)
    signed = check_residues("values", values, modulus).astype(np.int64)
    return np.where(signed > (modulus - 1) // 2, signed - modulus, signed)


def modular_add(left: WordArray, right: WordArray, modulus: int) -> WordArray:
    """Add residues modulo M, from 2 to 2**62, without a check that they are below M."""
    return _reduced_once(left + right, modulus)


def modular_subtract(left: WordArray, right: WordArray, modulus: int) -> WordArray:
    """Subtract residues modulo M, from 2 to 2**62, without a check that they are below M."""
    return _reduced_once(left + (np.uint64(modulus) - right), modulus)


def modular_sum(values: ArrayLike, modulus: int) -> WordArray:
    """Add up residues over the first axis, modulo M: a secure sum's result, without its masks.

    Sums of chunks of clients add up by `modular_add`, or by this function; the sum of no clients is zero.

    Examples
    --------
    >>> modular_sum([[1, 2], [3, 4], [4, 4]], 5).tolist()
    [3, 0]
    """
    modulus = check_modulus(modulus)
    array = check_residues("values", values, modulus)
    if array.ndim == 0:
        raise ValueError("values must have a first axis to add up over, got a single number")
    # A word of 64 bits holds the sum of this many residues, at least three, and one total.
    at_once = LARGEST_WORD // (modulus - 1) - 1
    total = np.zeros(array.shape[1:], dtype=np.uint64)
    for start in range(0, len(array), at_once):
        total = (total + array[start : start + at_once].sum(axis=0, dtype=np.uint64)) % np.uint64(modulus)
    return total


def summed_messages(messages: ArrayLike, coordinates: int, modulus: int) -> WordArray:
    """Return `modular_sum` of messages, whose shape must be (clients, coordinates).

    Examples
    --------
    >>> summed_messages([[1, 2], [3, 4], [4, 4]], 2, 5).tolist()
    [3, 0]
    """
    array = np.asarray(messages)
    if array.ndim != 2 or array.shape[1] != coordinates:
        raise ValueError(f"messages must have the shape (clients, {coordinates}), got {array.shape}")
    return modular_sum(array, modulus)


def aggregate_residues(aggregate: ArrayLike, coordinates: int, modulus: int) -> WordArray:
    """Return `residues` of a sum of messages, whose shape must be (coordinates,).

    Examples
    --------
    >>> aggregate_residues([8, 10], 2, 5).tolist()
    [3, 0]
    """
    array = np.asarray(aggregate)
    if array.shape != (coordinates,):
        raise ValueError(f"aggregate must have the shape ({coordinates},), got {array.shape}")
    return residues(array, modulus)


def _reduced_once(sums: WordArray, modulus: int) -> WordArray:
    """Reduce sums below 2 M.

    For sums below M the difference wraps around and is the larger number.
    """
    reduced: WordArray = np.minimum(sums, sums - np.uint64(modulus))
    return reduced


def _low_bits(array: NDArray[np.integer], modulus: int, word: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers modulo a power of two by conversion to words, which drops only higher bits."""
    low = array.astype(word)
    low &= word.type(modulus - 1)
    return low


def _whole_numbers(name: str, values: ArrayLike) -> NDArray[np.integer]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers of at most 64 bits, got an array of {array.dtype}")
    return array
