import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quietbits.solvers.numerics.integer_rows import dot, nearest_integer, reduced_basis, row_lattice

bases = st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(st.integers(-1000, 1000), min_size=n, max_size=n), min_size=n, max_size=n))


@settings(max_examples=50)
@given(bases)
def test_a_reduced_basis_spans_the_same_lattice(basis: list[list[int]]) -> None:
    determinant = round(np.linalg.det(np.array(basis, dtype=float)))
    assume(abs(determinant) > 0)
    reduced = reduced_basis(basis)
    assert abs(round(np.linalg.det(np.array(reduced, dtype=float)))) == abs(determinant)
    coordinates = np.linalg.solve(np.array(basis, dtype=float).T, np.array(reduced, dtype=float).T)
    assert coordinates == pytest.approx(np.rint(coordinates), abs=1e-6)
    # LLL guarantees for delta = 3/4 that the first vector has a length of at most 2**((n-1)/4) det**(1/n).
    size = len(basis)
    assert math.sqrt(dot(reduced[0], reduced[0])) <= 2 ** ((size - 1) / 4) * abs(determinant) ** (1 / size) * (1 + 1e-9)


@given(st.integers(-100, 100), st.integers(1, 20))
def test_the_nearest_integer(numerator: int, denominator: int) -> None:
    assert abs(nearest_integer(numerator, denominator) * denominator - numerator) * 2 <= denominator


@settings(max_examples=50)
@given(st.data(), st.integers(2, 8), st.integers(3, 50))
def test_rows_meet_both_equations_exactly_and_stay_near(data: st.DataObject, letters: int, bits: int) -> None:
    positions = [0, *data.draw(st.lists(st.integers(1, 2**bits), min_size=letters - 1, max_size=letters - 1, unique=True))]
    divisor = math.gcd(*positions)
    positions = [position // divisor for position in positions]
    scales = data.draw(st.lists(st.integers(1, 2**12), min_size=letters, max_size=letters))
    lattice = row_lattice(positions, scales)
    for vector in lattice.kernel:
        assert (sum(vector), dot(vector, positions)) == (0, 0)
    target = data.draw(st.lists(st.integers(0, 2**60), min_size=letters, max_size=letters))
    total, moment = sum(target), dot(target, positions)
    assert lattice.nearest(target, total, moment) == target
    shift, change = data.draw(st.integers(-5, 5)), data.draw(st.integers(-(2**bits), 2**bits))
    row = lattice.nearest(target, total + shift, moment + change)
    assert (sum(row), dot(row, positions)) == (total + shift, moment + change)


def test_eight_generic_letters_leave_only_small_changes() -> None:
    rng = np.random.default_rng(0)
    positions = [0, *sorted(int(position) for position in rng.integers(1, 2**48, 7))]
    lattice = row_lattice(positions, [1] * 8)
    target = [int(weight) for weight in rng.integers(0, 2**60, 8)]
    row = lattice.nearest(target, sum(target) + 1, dot(target, positions) + int(rng.integers(2**48)))
    # Six free directions for 48 bits leave about 2**8 units.
    assert max(abs(own - wish) for own, wish in zip(row, target, strict=True)) < 2**11
    assert 0 < lattice.coarseness([1.0] * 8) < 2**11


def test_positions_with_a_common_divisor_are_refused() -> None:
    with pytest.raises(ValueError, match=r"positions must have differences with no common divisor, got \[1, 3, 7\] with divisor 2"):
        row_lattice([1, 3, 7], [1, 1, 1])
