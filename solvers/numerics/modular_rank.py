"""The rank of a matrix of whole numbers modulo a prime: at most its rank over the rationals, and exact."""

import numpy as np

from ...arrays import IntegerArray

PRIME = 2**31 - 1


def modular_rank(matrix: IntegerArray) -> int:
    """Return the rank modulo 2**31 - 1 of a matrix of whole numbers of 64 bits: at most the rational rank.

    Full rank is thereby proven. Less may be by chance, with a probability of about 5e-10 for numbers that are unrelated to the prime.

    Examples
    --------
    >>> modular_rank(np.array([[1, 1, 0], [0, 1, 1], [1, 2, 1]]))
    2
    """
    rows = np.asarray(matrix, dtype=np.int64) % PRIME
    rank = 0
    for column in range(rows.shape[1]):
        below = np.flatnonzero(rows[rank:, column])
        if not len(below):
            continue
        rows[[rank, rank + below[0]]] = rows[[rank + below[0], rank]]
        # Products of two residues stay below 2**62.
        pivot = rows[rank] * pow(int(rows[rank, column]), -1, PRIME) % PRIME
        rows[rank + 1 :] = (rows[rank + 1 :] - rows[rank + 1 :, column, None] * pivot) % PRIME
        rank += 1
        if rank == len(rows):
            break
    return rank
