"""Tests of scalar means.

Points under test: simulated variances agree with exact variances, and no mechanism's average is below the certified bound.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.design.local.cldp import CLDPMechanism
from quietbits.design.tables.mvu import design_mvu
from quietbits.figures.mvu import fig2 as scalar_mean
from quietbits.figures.mvu.fig2 import MECHANISMS, PreparedScalar, ScalarPoint, grid_averages, simulate_variance

Rows = Callable[[Sequence[Any]], pd.DataFrame]
SMALL = {"clients": 1250, "batches": 250, "runs": 2}


@pytest.fixture(scope="module", autouse=True)
def tables_designed_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scalar_mean, "design_mvu", cache(partial(design_mvu, starts=1)))
        yield


@pytest.fixture(scope="module")
def variances(rows_of: Rows) -> pd.DataFrame:
    return rows_of([ScalarPoint(seed=0, mechanism=name, epsilon=epsilon, **SMALL) for epsilon in (1.0, 5.0) for name in MECHANISMS])


def test_one_bit_mvu_is_cldp_exactly(variances: pd.DataFrame) -> None:
    for epsilon in (1.0, 3.0, 5.0):
        table = scalar_mean.design_mvu(epsilon, 3, 1, interval=(-1.0, 1.0), seed=0)
        low, high = table.alphabet
        contrast = Fraction(int(table.weights[-1, 1] - table.weights[0, 1]), table.total)
        # CLDP's contrast C, on the unit interval and in rational arithmetic, gives letters 1/C apart and variance 1 / (2 C)**2 - (x -
        # middle)**2; the middle is 1/2 up to the letters' grid.
        assert high - low == 1 / contrast
        middle = (low + high) / 2
        assert abs(middle - Fraction(1, 2)) < 1e-15
        assert table.moments.variances == tuple((2 * contrast) ** -2 - (Fraction(i, 7) - middle) ** 2 for i in range(8))
        # The two contrasts differ only by the margin of epsilon for rounding.
        assert math.tanh(epsilon / 2) * (1 - 1e-8) <= contrast <= math.tanh(epsilon / 2)
    exact = variances.pivot_table(index=["epsilon", "value"], columns="mechanism", values="exact_variance")
    assert exact["MVU(1)"].to_numpy() == pytest.approx(exact["CLDP"].to_numpy(), rel=1e-7)


def test_simulated_variances_sit_on_the_exact_ones(variances: pd.DataFrame) -> None:
    points = variances.dropna(subset="simulated_variance")
    assert len(points) == 2 * 6 * 21
    # One of 252 nearly normal deviates is beyond 5 standard errors with a chance of about 1e-4; the seed is fixed.
    deviates = (points["simulated_variance"] - points["exact_variance"]) / points["simulated_standard_error"]
    assert deviates.abs().max() < 5
    assert abs(deviates.mean()) < 5 / math.sqrt(len(points))
    ratio = points["simulated_variance"] / points["exact_variance"]
    # The mean of 500 squares of nearly normal errors has a relative deviation of sqrt(2 / 500), and the bounds are 4.4 deviations below and
    # 5.6 above.
    assert ratio.between(0.72, 1.35).all()


def test_a_biased_protocol_is_seen() -> None:
    class Biased(CLDPMechanism):
        def decode(self, aggregate: np.ndarray, clients: int) -> float:
            return super().decode(aggregate, clients) + 1.0

    protocol = Biased(5.0, (-1.0, 1.0))
    simulated = simulate_variance(protocol, 0.5, np.random.default_rng(0), **SMALL)
    assert simulated.variance - protocol.variance(0.5) > 10 * simulated.standard_error
    assert simulated.squared_error == pytest.approx(1.0, rel=0.1)


def test_no_mechanism_averages_below_the_certified_bound(variances: pd.DataFrame) -> None:
    grid = variances[np.isclose((variances["value"] + 1) * 3.5 % 1, 0) | np.isclose((variances["value"] + 1) * 3.5 % 1, 1)]
    averages = grid.groupby(["epsilon", "mechanism"]).agg(
        variance=("exact_variance", "mean"), bound=("lower_bound", "first"), inputs=("value", "size")
    )
    assert (averages["inputs"] == 8).all()
    assert (averages["variance"] >= averages["bound"]).all()
    mvu = averages.xs("MVU(3)", level="mechanism")
    assert (mvu["variance"] <= 1.02 * mvu["bound"]).all()


@pytest.fixture(scope="module")
def prepared() -> PreparedScalar:
    return ScalarPoint(seed=0, mechanism="CLDP", epsilon=5.0).prepare(None)


def test_a_simulation_does_not_depend_on_the_others(variances: pd.DataFrame, prepared: PreparedScalar) -> None:
    # CLDP's variances do not depend on the seed, while random values do.
    alone, other_seed = (pd.DataFrame(ScalarPoint(seed=item, mechanism="CLDP", epsilon=5.0, **SMALL).run(prepared)) for item in (0, 1))
    together = variances[(variances["epsilon"] == 5.0) & (variances["mechanism"] == "CLDP")].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, together, check_exact=True, check_dtype=False)
    assert not other_seed["simulated_variance"].equals(alone["simulated_variance"])


def test_averages_over_the_grid_are_of_its_eight_inputs(variances: pd.DataFrame, prepared: PreparedScalar) -> None:
    averages = grid_averages(variances).set_index(["epsilon", "mechanism"])
    assert set(averages["grid_inputs"]) == {8}
    table = prepared.mvu
    # On the interval from -1 to 1, variances are four times those of the unit scale.
    assert averages.loc[(5.0, "MVU(3)"), "mean_variance"] == pytest.approx(4 * table.certificate.mean_variance, rel=1e-9)
    assert (averages["lower_bound"] <= averages["mean_variance"]).all()


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"clients": 0}, "clients must be a whole number from 1"),
        ({"clients": 10, "batches": 3}, "batches must divide the number of clients, 10, got 3"),
        ({"clients": 10, "batches": 20}, "batches must be a whole number from 1 to 10, got 20"),
        ({"batches": 1, "runs": 1}, "batches must be a whole number from 2"),
        ({"runs": 0}, "runs must be a whole number from 1"),
    ],
)
def test_a_simulation_that_cannot_be_is_refused(size: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate_variance(CLDPMechanism(1.0, (-1.0, 1.0)), 0.5, np.random.default_rng(0), **size)
