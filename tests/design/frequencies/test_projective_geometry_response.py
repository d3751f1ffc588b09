import itertools

import numpy as np
import pytest

from quietbits.design.frequencies.projective_geometry_response import ProjectiveSpace

SPACES = [(2, 1), (2, 2), (2, 5), (3, 2), (3, 4), (5, 3), (7, 2), (7, 3), (11, 3)]


@pytest.mark.parametrize(("prime", "length"), SPACES)
def test_points_are_all_lines_through_the_origin(prime: int, length: int) -> None:
    space = ProjectiveSpace(prime, length)
    every = np.arange(space.points)
    np.testing.assert_array_equal(space.numbers(space.vectors(every)), every)
    # Each nonzero vector lies on exactly one line, with all its multiples.
    vectors = np.array([digits for digits in itertools.product(range(prime), repeat=length) if any(digits)])
    numbers = space.numbers(vectors)
    np.testing.assert_array_equal(np.bincount(numbers, minlength=space.points), prime - 1)
    for scale in range(1, prime):
        np.testing.assert_array_equal(space.numbers(vectors * scale % prime), numbers)


@pytest.mark.parametrize(("prime", "length"), [pair for pair in SPACES if pair[1] > 1])
def test_hyperplanes_are_what_inner_products_say(prime: int, length: int) -> None:
    space = ProjectiveSpace(prime, length)
    every = np.arange(space.points)
    vectors = space.vectors(every)
    incident = vectors @ vectors.T % prime == 0
    np.testing.assert_array_equal(space.are_incident(every[:, None], every), incident)
    assert (incident.sum(axis=0) == space.hyperplane_points).all()
    common = incident.astype(int) @ incident.astype(int)
    assert (common[~np.eye(space.points, dtype=bool)] == space.common_points).all()
    for point in every:
        ranks = np.arange(space.hyperplane_points)
        assert sorted(space.on_hyperplanes(np.full(len(ranks), point), ranks)) == np.flatnonzero(incident[point]).tolist()
    counts = np.random.default_rng(0).integers(0, 10**9, (3, space.points))
    for normals in (1, space.points):
        np.testing.assert_array_equal(space.hyperplane_sums(counts, normals), (counts @ incident)[:, :normals])


def test_a_large_space_is_summed_exactly() -> None:
    space = ProjectiveSpace(3, 11)
    counts = np.random.default_rng(1).integers(0, 2**20, space.points)
    some = np.array([0, 1, 12_345, 39_999])
    sums = space.hyperplane_sums(counts, 40_000)
    for point in some:
        assert sums[point] == counts[space.are_incident(np.arange(space.points), np.array(point))].sum()


@pytest.mark.parametrize(("prime", "length"), [(1, 2), (2, 0), (2, 42), (3, 30)])
def test_sizes_out_of_range_are_refused(prime: int, length: int) -> None:
    with pytest.raises(ValueError, match=f"prime and length must be .* got {prime} and {length}"):
        ProjectiveSpace(prime, length)
