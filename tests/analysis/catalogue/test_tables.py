"""The registry's vector tables by Rényi divergence.

Points under test: the contents of the cache, and refusals of arguments.
"""

from pathlib import Path

import numpy as np
import pytest

from quietbits.analysis.catalogue import tables
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.errors import InfeasibleError

TASK = Task(NormBall(32, 2.0), clients=10, epsilon=6.0, delta=1e-5, adjacency="replace-one", rounds=2)
OPTIONS = {"bits_in": 2, "bits_out": 2, "metric": "l1", "objective": "renyi"}


def test_tables_by_divergence_and_by_metric_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_mechanism("mvu", TASK, {**OPTIONS, "cache": tmp_path})
    # The cache also keeps the table from which the search started.
    assert len(list(tmp_path.iterdir())) == 2
    for name in ("calibrate_vector_table", "improve_vector_table"):
        monkeypatch.setattr(tables, name, lambda *_, **__: pytest.fail("designed again"))
    again = build_mechanism("mvu", TASK, {**OPTIONS, "cache": tmp_path})
    by_metric = build_mechanism("mvu", TASK, {**OPTIONS, "objective": None, "cache": tmp_path})
    np.testing.assert_array_equal(again.table.weights, first.table.weights)
    assert first.table.provenance.solver.startswith("renyi, order ")
    assert first.variance_bound < by_metric.variance_bound
    for mechanism in (first, by_metric):
        assert 6.0 - 1e-6 <= mechanism.privacy().epsilon(1e-5, rounds=2) <= 6.0


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (Task(Interval(), 10, 1.0, 1e-5, "replace-one"), {}, "objective must be left out for a number, got 'renyi'"),
        (Task(NormBall(4, 2.0), 10, 1.0, 0.0, "replace-one"), {}, r"delta must be above 0 for the objective 'renyi', got 0\.0"),
        (TASK, {"bits_in": 9}, "bits_in and bits_out must be 8 together at most"),
    ],
)
def test_what_is_not_offered_says_what_is_needed(task: Task, options: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError, match=message):
        build_mechanism("mvu", task, {**OPTIONS, **options, "cache": tmp_path})
    assert list(tmp_path.iterdir()) == []
