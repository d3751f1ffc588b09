from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from quietbits.design.tables.certificate import table_variance, with_letters_proof
from quietbits.design.tables.letter_certification import certify_letters
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.stored_proofs import FOLDER, store_proof, stored_proof
from quietbits.progress import silent
from quietbits.solvers.table_search.table_program import TableProgram

STORED = [file.name for file in (files("quietbits.design.tables") / FOLDER).iterdir()]


def test_a_design_of_a_stored_task_has_its_proof() -> None:
    assert STORED == ["epsilon_3.0_bits_5_3.json.gz"]
    table = design_mvu(3.0, 5, 3, interval=(10.0, 60.0))
    facts = table.certificate
    assert facts.letters_proof == stored_proof(3, 5, 3)
    assert facts.letters_gap is not None
    assert facts.optimality_gap is not None
    assert 0 < facts.letters_gap <= 0.02 < facts.optimality_gap


def test_other_tasks_have_none() -> None:
    assert stored_proof(3.0000001, 5, 3) is None
    assert design_mvu(3.0, 2, 2).certificate.letters_proof is None
    assert design_mvu(3.0, 5, 3, metric="l1", starts=1).certificate.letters_proof is None


def test_no_letters_near_the_table_contradict_the_stored_proof() -> None:
    """The least variance at 60 sets of letters around the design's is above the stored target: an independent linear program."""
    proof = stored_proof(3.0, 5, 3)
    assert proof is not None
    variance = table_variance(32, epsilon=3.0, metric=None, objective="mean", prior=None)
    program = TableProgram(variance.inputs, 8, variance.constraint, variance.input_weights)
    letters = design_mvu(3.0, 5, 3).letters
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            moved = np.sort(letters + scale * rng.normal(size=8) * np.array([0, 1, 1, 1, 1, 1, 1, 0]))
            assert program.solve(moved).value > proof.target


def test_a_stored_proof_is_rounded_and_still_a_proof(tmp_path: Path) -> None:
    table = certify_letters(design_mvu(5.0, 3, 3), on_step=silent).table
    path = store_proof(table, tmp_path)
    assert path.name == "epsilon_5.0_bits_3_3.json.gz"
    before = path.read_bytes()
    assert store_proof(table, tmp_path).read_bytes() == before
    proof = table.certificate.letters_proof
    assert proof is not None
    assert with_letters_proof(table, proof).certificate == table.certificate


def test_only_a_proof_of_the_mean_variance_is_stored(tmp_path: Path) -> None:
    for table in (design_mvu(5.0, 2, 2), design_mvu(5.0, 2, 1, objective="worst")):
        with pytest.raises(ValueError, match="table must be one of local privacy and the mean variance with a letters_proof"):
            store_proof(table, tmp_path)
    assert list(tmp_path.iterdir()) == []
