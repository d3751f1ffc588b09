"""The study of a mean as a call.

Points under test: the compared mechanisms, the reference errors, and the guarantees.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quietbits.analysis.study.column_data import DataColumn
from quietbits.analysis.study.mean_study import MeanStudy, study_mean
from quietbits.analysis.study.results_file import write_results
from quietbits.design.tables.file import read_table
from quietbits.design.tables.verification import verify_table
from quietbits.errors import TableError

DATA = DataColumn("height", "a test", np.random.default_rng(2).normal(170, 10, 3000), (140.0, 200.0))


@pytest.fixture(scope="module")
def study() -> MeanStudy:
    return study_mean(DATA, 2.0, 3, 2, seed=1)


def test_the_mechanisms_that_are_compared(study: MeanStudy) -> None:
    bits = {row.mechanism: row.bits_per_client for row in study.comparison.estimates}
    assert bits == {
        "MVU, 2 bits": 2,
        "MVU, 1 bit": 1,
        "generalised randomised response, 2 bits": 2,
        "bitwise randomised response, 2 bits": 2,
        "Laplace noise, uncompressed": 64,
    }
    assert list(study.protocols) == list(bits)
    assert list(study.tables) == list(bits)[:4]
    assert study.table is study.tables["MVU, 2 bits"]
    assert study.estimate.mechanism == "MVU, 2 bits"
    assert (study.table.bits_in, study.table.bits_out) == (3, 2)
    for table in study.tables.values():
        assert table.interval == DATA.interval
        verify_table(table)


def test_every_mechanism_keeps_the_same_epsilon_and_none_beats_the_certified_bound(study: MeanStudy) -> None:
    assert study.comparison.bound is not None
    assert study.comparison.bound.value == pytest.approx((study.table.certificate.lower_bound or 0) * 60**2)
    for row in study.comparison.estimates:
        # Whole-number weights realise slightly less than the epsilon of their design.
        assert 0 <= study.table.guarantee.epsilon - row.guarantee.epsilon < 1e-6
        assert str(row.guarantee) == str(study.table.guarantee)
        assert row.ratio_to_bound is not None
        assert row.ratio_to_bound >= 1
        assert abs(row.estimate - study.comparison.clipped_mean) < 5 * row.standard_error


def test_mvu_is_the_best_of_those_with_its_bits(study: MeanStudy) -> None:
    mvu, _, generalised, bitwise, _ = (row.objective or 0 for row in study.comparison.estimates)
    assert mvu <= min(generalised, bitwise)
    assert mvu == pytest.approx(study.table.certificate.mean_variance * 60**2)


def test_the_same_seed_gives_the_same_results(study: MeanStudy) -> None:
    again = study_mean(DATA, 2.0, 3, 2, seed=1)
    assert again.comparison == study.comparison
    np.testing.assert_array_equal(again.table.weights, study.table.weights)


def test_steps_are_announced_to_the_end() -> None:
    steps: list[tuple[int, int, str]] = []
    study_mean(DATA, 2.0, 2, 1, on_step=lambda *step: steps.append(step))
    assert [done for done, _, _ in steps] == list(range(8))
    assert {total for _, total, _ in steps} == {7}
    assert steps[0][2] == "designing MVU, 1 bit"
    assert steps[-1][2] == "done"


def test_metric_privacy_bounds_only_what_promises_it() -> None:
    study = study_mean(DATA, 2.0, 3, 2, metric="l1", objective="worst")
    rows = {row.mechanism: row for row in study.comparison.estimates}
    for name in ("MVU, 2 bits", "MVU, 1 bit", "Laplace noise, uncompressed"):
        assert rows[name].guarantee.metric == "l1"
        assert (rows[name].ratio_to_bound or 0) >= 1
    for name in ("generalised randomised response, 2 bits", "bitwise randomised response, 2 bits"):
        assert rows[name].guarantee.metric is None
        assert rows[name].ratio_to_bound is None
    assert study_mean(DATA, 2.0, 2, 1, metric="l2").protocols["Laplace noise, uncompressed"].guarantee.metric is None


def test_results_for_machines(study: MeanStudy, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(study, path, command="quietbits estimate mean")
    document = json.loads(path.read_text())
    assert document["format"] == "quietbits-mean-study/2"
    assert document["data"] == {
        "name": "height",
        "source": "a test",
        "clients": 3000,
        "clipped": DATA.clipped_count,
        "interval": [140.0, 200.0],
        "interval_is_public": True,
    }
    assert document["true_mean"] == pytest.approx(DATA.values.mean(), rel=1e-12)
    assert document["clipped_mean"] == pytest.approx(DATA.clipped.mean(), rel=1e-12)
    assert document["clipping_bias"] == document["clipped_mean"] - document["true_mean"] != 0
    assert document["warnings"] == [study.comparison.clipping_warning]
    for row, estimate in zip(document["estimates"], study.comparison.estimates, strict=True):
        assert row["estimate"] == estimate.estimate
        assert 0 <= 2.0 - row["guarantee"].pop("epsilon") < 1e-6
        assert row["guarantee"] == {"delta": 0.0, "metric": None, "adjacency": "replace-one", "trust_model": "local"}
    assert document["provenance"]["seed"] == 1
    assert document["provenance"]["command"] == "quietbits estimate mean"
    # A table in the results has the format of a table's file.
    table_path = tmp_path / "table.json"
    table_path.write_text(json.dumps(document["tables"]["MVU, 2 bits"]))
    np.testing.assert_array_equal(read_table(table_path).weights, study.table.weights)


def test_what_is_not_private_or_not_the_mean_is_a_warning(study: MeanStudy) -> None:
    clipping = study.comparison.clipping_warning
    assert study.warnings == (clipping,)
    taken = replace(study, data=replace(study.data, interval_is_public=False))
    assert taken.warnings == ("the interval was taken from the data. This is not private: state a public interval.", clipping)
    inside = replace(study.comparison, clipped=0)
    assert replace(study, comparison=inside).warnings == ()


def test_results_with_a_table_that_does_not_verify_are_not_written(study: MeanStudy, tmp_path: Path) -> None:
    weights = study.table.weights.copy()
    weights[0, :2] += [1, -1]
    changed = replace(study, tables={"changed": replace(study.table, weights=weights)})
    with pytest.raises(TableError):
        write_results(changed, tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []
