"""Explicit sets of histograms of which any two are far apart: Lemma 5.2 of Chen, Özgür, Cormode, Bharadwaj (2023), with all constants.

`parts` groups of floor(clients / parts) clients hold the same item each; clients left over hold item 0 in every member.
`docs/frequency-limits.md` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import LARGEST_EXACT_INTEGER, MOST_CLIENTS, check_integer
from ..numerics.rounding import UNIT
from .histogram_entropy import log_multisets


@dataclass(frozen=True)
class Packing:
    """A set of frequency vectors.

    Attributes
    ----------
    log2_size : float
        Logarithm to base 2 of how many there are; errs downward.
    linf_distance : float
        Least distance of two of them in a coordinate where they differ most.
    l2_distance : float
        Least Euclidean distance of two of them.
    """

    log2_size: float
    linf_distance: float
    l2_distance: float


def multiset_packing(categories: int, clients: int, parts: int) -> Packing:
    """Return all histograms in which each group holds any item: C(categories + parts - 1, parts) of them.

    They are at least g/n apart in a coordinate and sqrt(2) g/n in all, where g is the size of a group. With one client a group they are all
    histograms.

    Examples
    --------
    >>> packing = multiset_packing(10, 4, 2)
    >>> round(2**packing.log2_size), packing.linf_distance
    (55, 0.5)
    """
    categories, clients, parts = _checked(categories, clients, parts)
    share = clients // parts / clients
    bits = float(log_multisets(categories, np.array([parts])).lower[0]) / math.log(2) if categories > 1 else 0.0
    return Packing(bits, share, math.sqrt(2) * share * (1 - 4 * UNIT))


def reed_solomon_packing(categories: int, clients: int, parts: int, differing: int) -> Packing:
    """Return histograms in which group j holds an item of block j, as a word of a Reed-Solomon code says.

    Blocks have q items, the largest power of two that `categories / parts` allows; words are the values of the polynomials of degree at
    most `parts - differing` over the field of q elements, at `parts` of its points. Any two differ in `differing` places or more: q to
    the power of `parts - differing + 1` histograms, at least sqrt(2 differing) g/n apart. No code of that length and distance has more
    words.

    Raises
    ------
    ValueError
        Where parts exceed q, too, which needs about the square root of `categories` or less.

    Examples
    --------
    >>> packing = reed_solomon_packing(1024, 16, 16, 8)
    >>> packing.log2_size, round(packing.l2_distance, 6)
    (54.0, 0.25)
    """
    categories, clients, parts = _checked(categories, clients, parts)
    differing = check_integer("differing", differing, low=1, high=parts)
    power = (categories // parts).bit_length() - 1
    if power < 1 or parts > 2**power:
        raise ValueError(f"parts must be at most {math.isqrt(categories)} or so for {categories} categories, got {parts}")
    share = clients // parts / clients
    return Packing(float(power * (parts - differing + 1)), share, math.sqrt(2 * differing) * share * (1 - 4 * UNIT))


def _checked(categories: int, clients: int, parts: int) -> tuple[int, int, int]:
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    return (
        check_integer("categories", categories, low=1, high=LARGEST_EXACT_INTEGER),
        clients,
        check_integer("parts", parts, low=1, high=clients),
    )
