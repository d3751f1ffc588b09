"""The parts of the error of a secure sum of sketches: from which step of the way how much of it comes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import FloatArray
from ...design.noise.random_words import WordsLike, word_source
from ...design.secure_sum.modular_arithmetic import centred_representatives, messages_modulo
from ...design.secure_sum.sketched_sum import SketchedSum


@dataclass(frozen=True)
class SketchErrorParts:
    """Squared L2 distances between successive estimates of the mean, each after one more step; all are decoded alike.

    They add up to the whole error on average only as far as steps are independent: clipping and compression are not.

    Attributes
    ----------
    clients : int
        Number of clients.
    squared_error : float
        Of the estimate, from the mean of the vectors as they were.
    clipping : float
        Clipping of vectors to the ball.
    compression : float
        Sketching, and decoding of the sum of sketches.
    sketch_clipping : float
        Clipping of sketches.
    rounding, privatisation, wrap_around : float
        Rounding to whole numbers, their noise, and sums modulo M.
    zero : float
        Of answering zero.
    clipped_vectors, clipped_sketches : float
        Shares of the clients whose vector or sketch was clipped.
    wrapped_coordinates : int
        How many coordinates of the sum wrapped.
    """

    clients: int
    squared_error: float
    clipping: float
    compression: float
    sketch_clipping: float
    rounding: float
    privatisation: float
    wrap_around: float
    zero: float
    clipped_vectors: float
    clipped_sketches: float
    wrapped_coordinates: int


def split_sketch_error(mechanism: SketchedSum, chunks: Iterable[ArrayLike], words: WordsLike) -> SketchErrorParts:
    """Let clients report their vectors, chunk after chunk, and measure what each step costs.

    Parameters
    ----------
    mechanism : SketchedSum
        The mechanism.
    chunks : iterable of array_like, each of shape (clients of the chunk, dimension)
        The vectors of all of its clients; one chunk is held at a time.
    words : WordSource or numpy.random.Generator
        Source of the mechanism's randomness.

    Raises
    ------
    ValueError
        If there are not as many vectors as the mechanism has clients.
    """
    words, inner, clients = word_source(words), mechanism.inner, mechanism.clients
    seen = clipped_vectors = clipped_sketches = 0
    whole, clipped = (np.zeros(mechanism.ball.dimension) for _ in range(2))
    sketched, kept = (np.zeros(mechanism.sketch_dimension) for _ in range(2))
    rounded, noise = (np.zeros(mechanism.padded_dimension, dtype=np.int64) for _ in range(2))
    for chunk in chunks:
        vectors = mechanism.ball.check(chunk)
        inside = mechanism.ball.clip(vectors)
        sketches = mechanism.sketch.encode(inside)
        steps = inner.rounded_steps(sketches, words)
        seen += len(vectors)
        clipped_vectors += mechanism.ball.clipped_count(vectors)
        clipped_sketches += inner.ball.clipped_count(sketches)
        whole += vectors.sum(axis=0)
        clipped += inside.sum(axis=0)
        sketched += sketches.sum(axis=0)
        kept += inner.ball.clip(sketches).sum(axis=0)
        rounded += steps.sum(axis=0)
        noise += inner.noise_steps(len(vectors), words).sum(axis=0)
    if seen != clients:
        raise ValueError(f"chunks must hold the vectors of the mechanism's {clients} clients, got {seen}")

    def squared_distance(before: FloatArray, after: FloatArray) -> float:
        return float(np.sum((after - before) ** 2))

    total = rounded + noise
    wrapped = centred_representatives(messages_modulo(total, inner.modulus), inner.modulus)
    stages = [
        whole / clients,
        clipped / clients,
        *(mechanism.sketch.decode(sums / clients) for sums in (sketched, kept)),
        *(mechanism.sketch.decode(inner.mean_of_steps(steps)) for steps in (rounded, total, wrapped)),
    ]
    steps_of_the_way = ("clipping", "compression", "sketch_clipping", "rounding", "privatisation", "wrap_around")
    parts = {name: squared_distance(*pair) for name, pair in zip(steps_of_the_way, pairwise(stages), strict=True)}
    return SketchErrorParts(
        clients=clients,
        squared_error=squared_distance(stages[0], stages[-1]),
        **parts,
        zero=float(np.sum(stages[0] ** 2)),
        clipped_vectors=clipped_vectors / clients,
        clipped_sketches=clipped_sketches / clients,
        wrapped_coordinates=int(np.count_nonzero(wrapped != total)),
    )
