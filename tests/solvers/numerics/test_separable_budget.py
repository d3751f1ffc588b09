"""The dual bound on a sum over an L_p ball.

Requirements: the bound is never too small, and equals the concave envelope's value.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.solvers.numerics.concave_envelope import concave_envelope
from quietbits.solvers.numerics.separable_budget import largest_piecewise_sum

CELLS = 4


@st.composite
def parabolas(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return two continuous functions on four cells."""
    heights = draw(st.lists(st.floats(1, 6), min_size=2 * CELLS + 2, max_size=2 * CELLS + 2).map(lambda drawn: np.reshape(drawn, (2, -1))))
    curvatures = draw(st.lists(st.floats(0, 3), min_size=2 * CELLS, max_size=2 * CELLS).map(np.array))
    return np.tile(np.arange(CELLS, dtype=float), 2), heights[:, :-1].ravel(), np.diff(heights).ravel() + curvatures, curvatures


def at_fine_points(pieces: tuple[np.ndarray, ...], radius: float) -> tuple[np.ndarray, np.ndarray]:
    lefts, constants, slopes, curvatures = pieces
    f = np.linspace(0, 1, 401)[:, None]
    x, h = (lefts + f).ravel(), (constants + slopes * f - curvatures * f**2).ravel()
    return x[x <= radius], h[x <= radius]


@settings(max_examples=30)
@given(parabolas(), st.integers(1, 50), st.sampled_from([1.0, 1.5, 2.0, 5.0]), st.sampled_from([0.5, 1.0, 2.75, 4.0]))
def test_the_bound_is_the_envelope_of_the_function(pieces: tuple[np.ndarray, ...], dimension: int, norm: float, radius: float) -> None:
    bound = largest_piecewise_sum(*pieces, dimension=dimension, norm=norm, radius=radius)
    x, h = at_fine_points(pieces, radius)
    sampled = dimension * float(concave_envelope(x**norm, h).value(radius**norm / dimension))
    assert bound >= sampled * (1 - 1e-12)
    # The functions have slopes of up to 8, so they are less than 8/400 above their values at points 1/400 apart.
    assert bound <= sampled + dimension * 0.02


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.5])
def test_no_vector_of_the_ball_has_a_larger_sum(norm: float) -> None:
    rng = np.random.default_rng(4)
    lefts = np.arange(3.0)
    constants, slopes, curvatures = rng.random(3), rng.random(3), rng.random(3)
    bound = largest_piecewise_sum(lefts, constants, slopes, curvatures, dimension=2, norm=norm, radius=2.5)
    x = np.stack(np.meshgrid(*[np.linspace(0, 2.5, 501)] * 2)).reshape(2, -1)
    x = x[:, (x**norm).sum(axis=0) <= 2.5**norm]
    cell = np.minimum(x.astype(int), 2)
    sums = (constants[cell] + slopes[cell] * (x - cell) - curvatures[cell] * (x - cell) ** 2).sum(axis=0)
    assert sums.max() <= bound


def test_a_function_that_is_largest_at_zero_costs_nothing() -> None:
    unit = np.ones(1)
    assert largest_piecewise_sum(0 * unit, unit, -unit, 0 * unit, dimension=7, norm=2.0, radius=1.0) == pytest.approx(7.0, rel=1e-10)
