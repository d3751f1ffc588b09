"""Tests of thinning.

Points under test: fewer dual vectors prove the same target; most of them are needed; a list that proves nothing stays without a proof.
"""

import numpy as np
import pytest
from table_variances import random_vectors, spread_letters, variance_of

from quietbits.solvers.bounds import hitting_set, letter_search_tree, proof_thinning
from quietbits.solvers.bounds.hitting_set import NO_SPLITS, replay
from quietbits.solvers.bounds.letter_clauses import TableVariance, joined
from quietbits.solvers.bounds.letter_search_tree import LetterBound, bound_letters
from quietbits.solvers.bounds.proof_thinning import Proof, thinned


def searched(variance: TableVariance, letters: int, tolerance: float) -> LetterBound:
    return bound_letters(variance, spread_letters(variance, letters), tolerance=tolerance, seconds=200)


@pytest.mark.parametrize("kind", ["average", "zero weights", "largest", "metric"])
def test_fewer_dual_vectors_prove_the_same_target(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variance = variance_of(kind, 8, 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(letter_search_tree, "thinned", lambda proof, *_: proof)
        full = searched(variance, 4, 4e-3)
    proof = thinned(Proof(full.vectors, full.splits), variance, 4, full.lower_bound)
    assert proof is not None
    assert len(proof.vectors) < 0.7 * len(full.vectors)
    assert len(proof.splits) <= 1.2 * len(full.splits)
    kept = {tuple(row) for row in proof.vectors.normalisation}
    assert kept < {tuple(row) for row in full.vectors.normalisation}
    assert replay(proof.vectors, proof.splits, variance, 4, full.lower_bound).proven
    # A proof without random dual vectors is as short.
    random = random_vectors(variance, 100, full.value / 8, np.random.default_rng(0))
    padded = thinned(Proof(joined([random, full.vectors]), full.splits), variance, 4, full.lower_bound)
    assert padded is not None
    assert len(padded.vectors) <= 1.2 * len(proof.vectors)


def test_few_dual_vectors_of_a_search_can_be_left_out() -> None:
    variance = variance_of("average", 4, 1.0)
    bound = searched(variance, 3, 5e-4)
    rows = np.arange(len(bound.vectors))
    others = [bound.vectors.take(np.delete(rows, row)) for row in rows]
    spare = [replay(vectors, bound.splits, variance, 3, bound.lower_bound, most_nodes=2000).proven for vectors in others]
    assert sum(spare) <= 0.3 * len(rows)


def test_a_list_without_a_proof_stays_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    variance = variance_of("average", 4, 1.0)
    bound = searched(variance, 3, 5e-4)
    monkeypatch.setattr(hitting_set, "MOST_NODES", 500)
    monkeypatch.setattr(proof_thinning, "MOST_NODES", 500)
    few = Proof(bound.vectors.take(np.arange(2)), NO_SPLITS)
    assert thinned(few, variance, 3, bound.lower_bound) is None
    assert thinned(Proof(bound.vectors, bound.splits), variance, 3, bound.value * 1.001) is None


def test_a_proof_beyond_the_limits_of_a_replay_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search then returns the last target whose proof a replay accepts."""
    variance = variance_of("average", 4, 1.0)
    bound = searched(variance, 3, 5e-4)
    monkeypatch.setattr(hitting_set, "MOST_CLAUSES", len(bound.vectors) // 2)
    assert thinned(Proof(bound.vectors, bound.splits), variance, 3, bound.lower_bound) is None
    limited = searched(variance, 3, 5e-4)
    assert 0 < limited.lower_bound < bound.lower_bound
    assert len(limited.vectors) <= len(bound.vectors) // 2
    assert replay(limited.vectors, limited.splits, variance, 3, limited.lower_bound).proven
