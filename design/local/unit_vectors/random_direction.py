"""Replacement of vectors of a ball by unit vectors, for mechanisms that send a direction."""

import numpy as np
from numpy.typing import ArrayLike

from ....arrays import FloatArray
from ...contracts.norm_ball import NormBall
from ...noise.random_words import WordsLike, word_source
from .shared_frames import client_chunks

# Smallest norm, in units of the clip norm. Shorter vectors count as zero, as the squares of their coordinates would underflow.
SHORTEST = 1e-100
# Size of a batch of coordinates, whose squares fit into caches.
BATCH = 2**16
# Largest error of the length of a unit vector.
UNIT_LENGTH = 1e-9


def random_directions(ball: NormBall, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
    """Return each vector's direction or the opposite direction, at random and without bias.

    The expectation is the vector over the clip norm: a vector of norm r clip norms, after clipping, keeps its direction with probability (1
    + r) / 2.

    Examples
    --------
    >>> random_directions(NormBall(dimension=2, norm=2.0), [[6.0, 8.0]], np.random.default_rng(0)).round(12).tolist()
    [[0.6, 0.8]]
    """
    random_words = word_source(random_words)
    scaled = ball.clip(vectors)
    scaled /= ball.clip_norm
    clients, dimension = scaled.shape
    norms = np.empty(clients)
    for part in client_chunks(clients, dimension, BATCH):
        norms[part] = np.linalg.norm(scaled[part], axis=1)
    # The zero vector has no direction. Any direction serves, as both signs are equally likely.
    short = norms < SHORTEST
    scaled[short] = np.eye(1, dimension)
    signs = np.where(random_words.uniforms(clients) < (1 + norms) / 2, 1.0, -1.0)
    scaled *= (signs / np.where(short, 1.0, norms))[:, None]
    return scaled


def direction_variance(ball: NormBall, vectors: ArrayLike) -> FloatArray:
    """Return the variance of `random_directions` times the clip norm, ``clip_norm**2 - ||x||**2`` for each vector.

    The value is 0.0 for vectors of the sphere, up to rounding errors.

    Examples
    --------
    >>> direction_variance(NormBall(dimension=2, norm=2.0), [[0.6, 0.8], [0.0, 0.5]]).tolist()
    [0.0, 0.75]
    """
    variance = ball.clip_norm**2 - np.square(ball.clip(vectors)).sum(axis=1)
    return np.where(variance > UNIT_LENGTH * ball.clip_norm**2, variance, 0.0)


def checked_direction(ball: NormBall, direction: ArrayLike) -> FloatArray:
    """Return a unit vector of the ball's dimension as a row, shape (1, dimension).

    The function refuses other vectors.
    """
    row = ball.check(np.asarray(direction)[None])
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(row))
    if abs(length - 1) > UNIT_LENGTH:
        raise ValueError(f"direction must be a unit vector, got one of length {length:.12g}")
    return row
