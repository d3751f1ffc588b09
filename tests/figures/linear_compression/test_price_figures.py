"""Figures of linear compression: each fits a page, draws what its table holds, and says what the guarantee is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.comparisons.linear_compression.layers import ARRANGEMENTS, layer_points
from quietbits.analysis.comparisons.linear_compression.needed_bits import price_points
from quietbits.analysis.comparisons.linear_compression.rounds import RoundsPoint
from quietbits.analysis.comparisons.linear_compression.sketched_sums import SketchPoint
from quietbits.analysis.comparisons.linear_compression.sparse_recovery import recovery_tasks
from quietbits.figures.drawing.style import print_style
from quietbits.figures.entry import FigureEntry
from quietbits.figures.linear_compression import bits, cohort, dimension, layers, needed_bits, rate, rounds, rows, sparse

GUARANTEE = "add-or-remove-one adjacency, secure-sum trust model"
BASE = SketchPoint(seed=0, dimension=650, clients=30, noise_multiplier=0.5)
TASKS: dict[str, tuple[FigureEntry, Sequence[Any], tuple[str, ...]]] = {
    "rate": (
        rate.FIGURE,
        [replace(BASE, rate=r, noise_multiplier=z, repetition=k) for r in (1.0, 4.0) for z in (0.3, 0.5) for k in (0, 1)],
        (GUARANTEE,),
    ),
    "bits": (bits.FIGURE, [replace(BASE, rate=r, bits=b, repetition=k) for r in (1.0, 4.0) for b in (6, 12) for k in (0, 1)], (GUARANTEE,)),
    "cohort": (
        cohort.FIGURE,
        [
            replace(BASE, noise_multiplier=None, epsilon=1.0, clients=n, rate=r, population=population)
            for population, counts in (("aligned", (20, 40)), ("digits-gradients", (40,)))
            for n in counts
            for r in (1.0, 4.0)
        ],
        (GUARANTEE, "central trust model", "errors over that without a sketch"),
    ),
    "dimension": (
        dimension.FIGURE,
        [replace(BASE, noise_multiplier=None, epsilon=1.0, dimension=d, rate=r) for d in (256, 512) for r in (1.0, 4.0)],
        (GUARANTEE,),
    ),
    "rows": (rows.FIGURE, [replace(BASE, rows=t, rate=r) for t in (1, 5, 15) for r in (4.0, 10.0)], (GUARANTEE,)),
    "rounds": (
        rounds.FIGURE,
        [RoundsPoint(seed=0, dimension=64, clients=5, rounds=10, rate=r, epsilon=1.0, repetition=k) for r in (1.0, 2.0) for k in (0, 1)],
        (GUARANTEE,),
    ),
    "layers": (layers.FIGURE, layer_points(0, hidden=(), clients=20, rates=(2.0, 8.0), kept=(1.0, 0.1), repetitions=2), ()),
    "needed_bits": (
        needed_bits.FIGURE,
        [task for task in price_points(0, (30, 300), (30,), 32, 1.0) if task.mechanism in ("bounds", "sqkr", "distributed-skellam")],
        ("replace-one adjacency",),
    ),
    "sparse": (
        sparse.FIGURE,
        recovery_tasks(0, sparsities=(1, 8), noise_deviations=(0.1, 10.0), dimension=256, measurements=64, repetitions=2),
        (),
    ),
}


@pytest.fixture(scope="module", params=TASKS)
def drawn(request: pytest.FixtureRequest, rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> tuple[str, pd.DataFrame, Figure]:
    entry, tasks, _ = TASKS[request.param]
    table = entry.table(rows_of(tasks))
    with print_style():
        return request.param, table, entry.draw(table)


def test_it_fits_a_page_and_can_be_read(drawn: tuple[str, pd.DataFrame, Figure], check_page: Callable[..., None]) -> None:
    name, _, figure = drawn
    check_page(figure, *TASKS[name][2])


def test_the_errors_of_the_table_are_drawn(drawn: tuple[str, pd.DataFrame, Figure]) -> None:
    name, table, figure = drawn
    if name not in ("layers", "rate", "cohort", "rounds", "rows"):
        return
    points = np.concatenate([np.ravel(np.asarray(line.get_ydata(), dtype=float)) for axes in figure.axes for line in axes.lines])
    for value in table["squared_error"]:
        assert np.isclose(points, value, rtol=1e-12).any()


def test_measured_errors_are_those_that_are_predicted(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    # Ten rounds: the average is within five standard errors.
    found = rows_of([replace(BASE, rate=5.0, repetition=k) for k in range(10)])
    spread = found["squared_error"].std() / np.sqrt(len(found))
    assert abs(found["squared_error"].mean() - found["predicted_squared_error"].mean()) < 5 * spread
    assert found["predicted_compression"].mean() == pytest.approx(found["compression"].mean(), rel=0.5)


def test_too_few_bits_leave_a_reason_and_no_point(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    found = rows_of([replace(BASE, bits=4, clients=3000), BASE])
    assert "bits must be at least" in found["reason"].iloc[0]
    assert len(rate.FIGURE.table(found)) == 1


def test_arrangements_of_layers_have_one_size(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    found = rows_of(layer_points(0, hidden=(20,), clients=20, rates=(4.0,), kept=(1.0, 0.1), repetitions=3))
    sizes = found.groupby("arrangement")["sketch_dimension"].max()
    assert set(sizes.index) == set(ARRANGEMENTS)
    # Up to a row of buckets for each layer.
    assert sizes.max() - sizes.min() <= 5 * 2 + 5
    kept_all = found[found["kept"] == 1]
    assert (kept_all["thresholding_squared_error"] == 0).all()
    dropped = found[found["kept"] < 1]
    assert (dropped["thresholding_squared_error"] > 0).all()
    assert (dropped["thresholding_squared_error"] <= dropped["thresholding_bound"]).all()


@pytest.mark.parametrize("changes", [{"epsilon": 1.0}, {"noise_multiplier": None}])
def test_noise_is_given_in_one_way(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="epsilon must be given where noise_multiplier is not"):
        replace(BASE, **changes).run()


def test_pairs_whose_noise_hides_too_little_are_not_compared(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> None:
    frame = bits.arrange_bits(rows_of([replace(BASE, bits=b, rate=r) for b in (6, 14, 16) for r in (1.0, 4.0)]))
    coarse = frame["bits"] == 6
    assert (frame[coarse]["realised_epsilon"] > bits.MOST_EPSILON * frame["realised_epsilon"].min()).all()
    assert frame[coarse]["ratio"].isna().all()
    assert frame[~coarse]["ratio"].min() == 1
    assert not frame[coarse]["cheapest"].any()
