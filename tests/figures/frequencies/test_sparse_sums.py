"""Few different items: what is gained by knowing how many, on a size that takes no time."""

import pandas as pd
import pytest

from quietbits.figures.frequencies.sparse_sums import VARIANTS, SparseSumPoint, arrange_sparse_sums, sparse_sum_tasks

SETTING = {"seed": 2, "prior": "uniform", "distinct": 20, "categories": 5000, "clients": 20_000}


@pytest.fixture(scope="module")
def arranged() -> pd.DataFrame:
    points = [SparseSumPoint(variant=variant, repetition=repetition, **SETTING) for variant in VARIANTS for repetition in range(2)]
    return arrange_sparse_sums(pd.DataFrame([row for point in points for row in point.run()])).set_index("variant")


def test_knowing_the_number_gives_less_error_for_fewer_bits(arranged: pd.DataFrame) -> None:
    errors, bits = arranged["squared_error"], arranged["bits_per_client"]
    assert bits["known"] < bits["histogram"] / 10
    assert errors["known"] < errors["histogram"] / 50
    assert errors["known"] < errors["sketch"] / 10
    assert bits["sketch"] <= 1.01 * bits["known"]
    assert errors["two-rounds"] < errors["histogram"]
    assert (arranged["held"] == 20).all()
    assert arranged.loc["known", "found"] == 20


def test_all_keep_the_budget(arranged: pd.DataFrame) -> None:
    assert ((arranged["realised_epsilon"] > 0.9999) & (arranged["realised_epsilon"] <= 1)).all()


def test_tasks_and_bad_fields() -> None:
    tasks = sparse_sum_tasks(0)
    assert len({task.name for task in tasks}) == len(tasks) == 3 * 2 * 5 * 3
    with pytest.raises(ValueError, match="variant must be one of"):
        SparseSumPoint(variant="x", **SETTING).run()
