"""Relative entropy coding: clients send a Gaussian sample as the number of a shared sample.

Triastcyn, Reisser, Louizos 2021, *DP-REC: Private & Communication-Efficient Federated Learning*, algorithms 1 and 2; the scheme is that of
Havasi, Peharz, Hernandez-Lobato 2019, *Minimal Random Code Learning*.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ..noise.random_words import WordsLike, word_source
from ..transforms.dithering import finite_values
from .group_layout import MOST_GROUP_BITS, GroupLayout
from .shared_randomness import NUMBERS_PER_BLOCK, NUMBERS_PER_CHUNK, SampleArray, SharedNormals

LARGEST_SIGMA = 1e100
# Largest shift. Beyond it a single weight dominates, and errors of float32 inner products are no longer negligible.
LARGEST_SHIFT = 1e4


def log_importance_weights(mean: ArrayLike, bits: int, seed: int, sigma: float = 1.0, group: int = 0) -> FloatArray:
    """Return the log importance weights of all 2**bits shared samples.

    The weight is the log density ratio of the target N(mean, sigma^2 I) to the prior N(0, sigma^2 I). At the sample sigma z the weight is
    ``<z, mean> / sigma - ||mean||^2 / (2 sigma^2)``, which needs only inner products. The function makes and drops samples in pieces of
    2**16 numbers, so that memory does not grow with 2**bits times the dimension. Inner products are in float32: errors are of the order of
    1e-6 times ``||mean|| / sigma``.

    Parameters
    ----------
    mean : array_like of shape (dimension,)
        Mean of the target, at most 10 000 sigma long; the prior has mean zero. For a public prior mean, code the difference.
    bits : int
        Binary logarithm of the number of samples, 1 to 20.
    seed : int
        Seed of the shared samples, 0 to 2**64 - 1.
    sigma : float
        Standard deviation of target and prior, in the mean's units; above 0.
    group : int
        Number of the seed's independent list of samples, from 0.

    Examples
    --------
    >>> log_importance_weights([0.0, 0.0], bits=2, seed=1).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    vector = finite_values("mean", mean)
    if vector.ndim != 1:
        raise ValueError(f"mean must have the shape (dimension,), got {vector.shape}")
    bits = check_integer("bits", bits, low=1, high=MOST_GROUP_BITS)
    sigma = _check_sigma(sigma)
    normals = SharedNormals(seed, len(vector), group)
    scale = float(np.abs(vector).max())
    if scale == 0:
        return np.zeros(1 << bits)
    # A direction of length 1 makes float32 equally precise for means of every size.
    direction = vector / scale
    length = float(np.linalg.norm(direction))
    shift = scale / sigma * length
    if not shift <= LARGEST_SHIFT:
        raise ValueError(f"mean must have a norm of at most {LARGEST_SHIFT:g} sigma, got {shift:g} sigma")
    return shift * (_projections(normals, (direction / length).astype(np.float32), 1 << bits) - shift / 2)


def index_distribution(mean: ArrayLike, bits: int, seed: int, sigma: float = 1.0, group: int = 0) -> FloatArray:
    """Return the probabilities of the coder's indices: the weights w of algorithm 1.

    Arguments are those of `log_importance_weights`.

    Examples
    --------
    >>> index_distribution([0.0], bits=2, seed=1).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    weights = log_importance_weights(mean, bits, seed, sigma, group)
    ratios = np.exp(weights - weights.max())
    return np.asarray(ratios / ratios.sum())


def encode_relative_entropy(mean: ArrayLike, bits: int, seed: int, random_words: WordsLike, sigma: float = 1.0, group: int = 0) -> int:
    """Draw the index of a shared sample whose law is nearly N(mean, sigma^2 I).

    The shared samples are from N(0, sigma^2 I). The function adds Gumbel noise to the log weights; the index of the largest sum has the
    probabilities of `index_distribution`.

    Parameters
    ----------
    mean, bits, seed, sigma, group
        Mean, bits, seed, deviation and group, as in `log_importance_weights`. For privacy the client must draw the seed at random, anew for
        each message.
    random_words : WordSource or numpy.random.Generator
        The client's own randomness, unknown to others: ``secure_words`` for releases, a generator for experiments.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> mean = [1.0, -0.5, 0.2]
    >>> index = encode_relative_entropy(mean, bits=7, seed=1, random_words=seeded_words(np.random.default_rng(2)))
    >>> decode_relative_entropy(index, dimension=3, seed=1).shape
    (3,)
    """
    random_words = word_source(random_words)
    weights = log_importance_weights(mean, bits, seed, sigma, group)
    # The numbers lie in the open interval (0, 1).
    uniforms = ((random_words(len(weights)) >> np.uint64(12)) + 0.5) * 2.0**-52
    return int(np.argmax(weights - np.log(-np.log(uniforms))))


def decode_relative_entropy(index: int, dimension: int, seed: int, sigma: float = 1.0, group: int = 0) -> FloatArray:
    """Return the shared sample of an index, with the same bits on every machine.

    The sample is an estimate of the mean. The function generates no other sample.

    Examples
    --------
    >>> decode_relative_entropy(5, dimension=3, seed=1, sigma=2.0).shape
    (3,)
    """
    index = check_integer("index", index, low=0, high=(1 << MOST_GROUP_BITS) - 1)
    return _check_sigma(sigma) * SharedNormals(seed, dimension, group).vector(index).astype(float)


def encode_groups(mean: ArrayLike, layout: GroupLayout, seed: int, random_words: WordsLike, sigma: float = 1.0) -> tuple[int, ...]:
    """Code the groups of a vector independently, and return an index for each group.

    The mean has shape (layout.dimension,); the other arguments are those of `encode_relative_entropy`.

    Examples
    --------
    >>> from quietbits.design.noise.random_words import seeded_words
    >>> layout = GroupLayout(sizes=(2, 1), group_bits=(3, 2))
    >>> indices = encode_groups([0.3, 0.2, -0.1], layout, seed=1, random_words=seeded_words(np.random.default_rng(2)))
    >>> decode_groups(indices, layout, seed=1).shape
    (3,)
    """
    vector = finite_values("mean", mean)
    if vector.shape != (layout.dimension,):
        raise ValueError(f"mean must have the shape ({layout.dimension},), got {vector.shape}")
    parts = enumerate(zip(layout.slices(), layout.group_bits, strict=True))
    return tuple(encode_relative_entropy(vector[part], bits, seed, random_words, sigma, group) for group, (part, bits) in parts)


def decode_groups(indices: tuple[int, ...], layout: GroupLayout, seed: int, sigma: float = 1.0) -> FloatArray:
    """Return the vector of the groups' indices, shape (layout.dimension,)."""
    check_indices(indices, layout)
    parts = enumerate(zip(indices, layout.sizes, strict=True))
    return np.concatenate([decode_relative_entropy(index, size, seed, sigma, group) for group, (index, size) in parts])


def check_indices(indices: tuple[int, ...], layout: GroupLayout) -> None:
    """Refuse indices unless each group of a layout has an index within the group's bits."""
    if len(indices) != layout.groups:
        raise ValueError(f"indices must have one for each of the {layout.groups} groups, got {len(indices)}")
    for index, bits in zip(indices, layout.group_bits, strict=True):
        check_integer("indices", index, low=0, high=(1 << bits) - 1)


def _check_sigma(sigma: float) -> float:
    return check_real("sigma", sigma, low=1 / LARGEST_SIGMA, high=LARGEST_SIGMA)


def _projections(normals: SharedNormals, direction: SampleArray, count: int) -> FloatArray:
    """Return <z_k, direction> for k below `count`, in float32 for parts of 2**16 products."""
    if normals.dimension > NUMBERS_PER_CHUNK:
        return np.array([_long_projection(normals, direction, index) for index in range(count)])
    rows = NUMBERS_PER_CHUNK // (normals.blocks * NUMBERS_PER_BLOCK)
    starts = range(0, count, rows)
    return np.concatenate([(normals.vectors(start, min(rows, count - start)) @ direction).astype(float) for start in starts])


def _long_projection(normals: SharedNormals, direction: SampleArray, index: int) -> float:
    starts = range(0, normals.dimension, NUMBERS_PER_CHUNK)
    pieces = zip(normals.parts(index), starts, strict=True)
    return math.fsum(float(numbers @ direction[start : start + NUMBERS_PER_CHUNK]) for numbers, start in pieces)
