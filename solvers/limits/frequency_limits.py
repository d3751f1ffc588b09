"""Lower bounds of compression on the error of frequencies, for messages of given bits.

Each of n clients holds one of d items; the server estimates the vector of shares of clients. The bounds hold for every encoder and decoder,
private or not, with shared randomness that does not depend on the items, and are lower bounds after rounding.
`docs/proofs/frequency-limits.md` has the proofs.

A `Packing` is an explicit set of histograms of which any two are far apart: Lemma 5.2 of Chen, Özgür, Cormode, Bharadwaj (2023), with all
constants. The clients form `parts` groups of floor(clients / parts) clients, each with the same item; all other clients hold item 0 in
every member.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...arguments import LARGEST_EXACT_INTEGER, MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ..numerics.rounding import UNIT
from .compression import BOUNDED_TRUST_MODELS, MOST_BITS
from .histogram_entropy import log_multisets
from .prior_risk import ROUNDING, group_sizes

LOSSES = ("linf", "l2", "l2-squared")
# DIFFERING lists the shares of places in which two Reed-Solomon words differ.
DIFFERING = np.array([0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])
# Probabilities of a block's likeliest item at which slopes bound the rate of a block.
LIKELIEST = 1 - np.geomspace(0.499, 1e-12, 240)


def frequency_compression_bound(categories: int, clients: int, bits: float, *, loss: str = "linf") -> float:
    """Return a lower bound on the worst-case error of frequencies from a sum or a message.

    Parameters
    ----------
    categories : int
        Number of items.
    clients : int
        Number of clients; every client holds one item.
    bits : float
        Logarithm to base 2 of the number of different messages, at least 0. For a secure sum, logarithm of the modulus, over all
        coordinates. If the server sees every client's message, the bits of all messages.
    loss : str
        ``"linf"``, the expected largest error of a frequency; ``"l2"``, the expected Euclidean norm of all errors; or ``"l2-squared"``, the
        expected square of that norm.

    Returns
    -------
    float
        Lower bound on the error; zero from log2 C(clients + categories - 1, clients) bits on.

    Examples
    --------
    >>> [round(frequency_compression_bound(10_000, 100, bits), 4) for bits in (0.0, 100.0, 800.0, 805.0)]
    [0.4999, 0.05, 0.0048, 0.0]
    """
    categories, clients = check_frequencies(categories, clients)
    nats = check_real("bits", bits, low=0.0, high=MOST_BITS) * math.log(2)
    check_choice("loss", loss, LOSSES)
    if categories == 1:
        return 0.0
    best = 0.0
    for family in _counted_families(categories, clients):
        missed = -np.expm1(np.minimum(nats - family.log_size, 0.0))
        best = max(best, float(np.max(family.scale(loss) * missed)))
    if loss != "linf":
        blocks = _blocks(categories, clients)
        best = max(best, float(np.max(blocks.scale(loss) * blocks.curves.distortion(nats / blocks.parts), initial=0.0)))
    return best * (1 - ROUNDING)


def necessary_frequency_bits(error: float, categories: int, clients: int, trust_model: str, *, loss: str = "linf") -> float:
    """Return the fewest bits per message for which compression alone permits an error.

    Parameters
    ----------
    error : float
        Worst-case error of the frequencies, at least 0; 0 asks for exact frequencies.
    categories, clients, loss
        The arguments of `frequency_compression_bound`.
    trust_model : str
        ``"secure-sum"``: the server sees only a sum of as many bits as a message; ``"local"`` or ``"central"``: the server sees every
        message.

    Returns
    -------
    float
        Lower bound on the bits, not rounded to a whole number: with fewer bits no mechanism has that error. For exact frequencies under a
        secure sum, it is the entropy of the histogram, log2 C(clients + categories - 1, clients), and otherwise each client's share of the
        entropy.

    Examples
    --------
    >>> [round(necessary_frequency_bits(error, 10_000, 100, "secure-sum"), 1) for error in (0.0, 0.01, 0.1)]
    [804.7, 314.3, 46.2]
    """
    error = check_real("error", error, low=0.0, high=1e300)
    categories, clients = check_frequencies(categories, clients)
    check_choice("trust_model", trust_model, BOUNDED_TRUST_MODELS)
    check_choice("loss", loss, LOSSES)
    if categories == 1:
        return 0.0
    best = 0.0
    for family in _counted_families(categories, clients):
        attained = np.maximum(1 - error * (1 + ROUNDING) / family.scale(loss), 0.0)
        with np.errstate(divide="ignore"):
            best = max(best, float(np.max(family.log_size + np.log(attained))))
    if loss != "linf":
        blocks = _blocks(categories, clients)
        rates = blocks.curves.rate(error * (1 + ROUNDING) / blocks.scale(loss))
        best = max(best, float(np.max(blocks.parts * rates, initial=0.0)))
    bits = best / math.log(2) * (1 - ROUNDING)
    return bits if trust_model == "secure-sum" else bits / clients


def check_frequencies(categories: int, clients: int) -> tuple[int, int]:
    """Return the checked sizes of a problem."""
    return (
        check_integer("categories", categories, low=1, high=LARGEST_EXACT_INTEGER),
        check_integer("clients", clients, low=1, high=MOST_CLIENTS),
    )


@dataclass(frozen=True, eq=False)
class OneHotCurves:
    """Rate-distortion curves, bounded by tangents, one row for each curve.

    A tangent bounds the rate by R(D) >= offset - slope D nats. The source is an item among equally likely items, and D the expected squared
    distance of its unit vector from any estimate.
    """

    offset: FloatArray
    slope: FloatArray

    def rate(self, distortion: FloatArray) -> FloatArray:
        """Return lower bounds on the rates, in nats, that reach a distortion."""
        return np.asarray(np.maximum(np.max(self.offset - self.slope * distortion[:, None], axis=1), 0.0))

    def distortion(self, nats: FloatArray) -> FloatArray:
        """Return lower bounds on the distortion at a rate."""
        return np.asarray(np.maximum(np.max((self.offset - nats[:, None]) / self.slope, axis=1), 0.0))


def one_hot_curves(sizes: FloatArray) -> OneHotCurves:
    """Return the curves for given numbers of items, at least 2 each."""
    likeliest = LIKELIEST[None, :]
    others = sizes[:, None] - 1
    rest = (1 - likeliest) / others
    logs = np.log(likeliest / rest)
    slope = 0.5 * logs / (likeliest - rest)
    # A stationary point is a maximum where the other items' probabilities are in the concave part.
    concave = 2 * slope * sizes[:, None] / others * likeliest * (1 - likeliest) <= 1
    peaked = -likeliest * np.log(likeliest) - (1 - likeliest) * np.log(rest) + slope * (likeliest**2 + (1 - likeliest) * rest)
    uniform = np.log(sizes)[:, None] + slope / sizes[:, None]
    offset = np.log(sizes)[:, None] + slope - np.maximum(uniform, peaked) * (1 + ROUNDING / 10)
    return OneHotCurves(np.where(concave, offset, 0.0), slope)


@dataclass(frozen=True, eq=False)
class _CountedFamily:
    """Packings that bound the error by counting.

    The error is at least the scale times the share of members without a message.
    """

    log_size: FloatArray
    linf_distance: FloatArray
    l2_distance: FloatArray

    def scale(self, loss: str) -> FloatArray:
        if loss == "l2-squared":
            return self.l2_distance**2 / 2
        return (self.linf_distance if loss == "linf" else self.l2_distance) / 2


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Priors in which each group holds an independent item of the group's own block."""

    parts: FloatArray
    share: FloatArray
    curves: OneHotCurves

    def scale(self, loss: str) -> FloatArray:
        return self.share**2 * self.parts if loss == "l2-squared" else self.share * np.sqrt(self.parts / 2)


@lru_cache(maxsize=16)
def _counted_families(categories: int, clients: int) -> tuple[_CountedFamily, ...]:
    parts, share = _groups(clients)
    multisets = _CountedFamily(log_multisets(categories, parts).lower, share, math.sqrt(2) * share)
    power = np.floor(np.log2(np.maximum(categories // parts, 1.0)))
    usable = (power >= 1) & (parts <= np.exp2(power))
    if not np.any(usable):
        return (multisets,)
    power, parts, share = power[usable, None], parts[usable, None], share[usable, None]
    differing = np.ceil(DIFFERING * parts)
    words = _CountedFamily(power * (parts - differing + 1) * math.log(2), share + 0 * differing, np.sqrt(2 * differing) * share)
    return multisets, words


@lru_cache(maxsize=16)
def _blocks(categories: int, clients: int) -> _Blocks:
    parts, share = _groups(clients)
    sizes = np.floor(categories / parts)
    parts, share, sizes = parts[sizes >= 2], share[sizes >= 2], sizes[sizes >= 2]
    return _Blocks(parts, share, one_hot_curves(sizes))


def _groups(clients: int) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of groups to try, and each number's share of the clients in a group."""
    sizes = group_sizes(clients)
    parts = np.unique(np.concatenate([sizes, np.floor(clients / sizes)]))
    return parts, np.floor(clients / parts) / clients


@dataclass(frozen=True)
class Packing:
    """A set of frequency vectors of which any two are far apart.

    Attributes
    ----------
    log2_size : float
        Lower bound on the logarithm to base 2 of the set's size.
    linf_distance : float
        Least distance of two vectors in the coordinate where they differ most.
    l2_distance : float
        Least Euclidean distance of two vectors.
    """

    log2_size: float
    linf_distance: float
    l2_distance: float


def multiset_packing(categories: int, clients: int, parts: int) -> Packing:
    """Return all C(categories + parts - 1, parts) histograms in which each group holds any item.

    Two histograms are at least g/n apart in a coordinate and sqrt(2) g/n in Euclidean distance, where g is the size of a group. With one
    client per group, the set has all histograms.

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
    """Return histograms in which groups hold items of their own blocks by a Reed-Solomon word.

    Blocks have q items, the largest power of two that `categories / parts` allows; words are the values of the polynomials of degree at
    most `parts - differing` over the field of q elements, at `parts` of its points. Any two words differ in `differing` places or more: q
    to the power of `parts - differing + 1` histograms, at least sqrt(2 differing) g/n apart. No code of that length and distance has more
    words.

    Raises
    ------
    ValueError
        If parts exceed q; parts must be at most about the square root of `categories`.

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
    categories, clients = check_frequencies(categories, clients)
    return categories, clients, check_integer("parts", parts, low=1, high=clients)
