"""Populations for every domain.

Points under test: vectors are scaled by the ball and numbers by the interval, in every chunk.
"""

import numpy as np
import pytest

from quietbits.analysis.simulation.populations import CHUNK_COORDINATES, NUMBERS, check_inputs, input_chunks, population_chunks
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall


def numbers(kind: str, interval: Interval, clients: int, seed: int = 1, **options: float) -> np.ndarray:
    return np.concatenate(list(input_chunks(kind, interval, clients, np.random.default_rng(seed), **options)))


def test_vectors_are_scaled_by_the_ball() -> None:
    (chunk,) = input_chunks("sparse", NormBall(8, 2.0, 5.0), 10, np.random.default_rng(1), scale=2.0, nonzero=3)
    (same,) = population_chunks("sparse", 10, 8, np.random.default_rng(1), nonzero=3)
    np.testing.assert_array_equal(chunk, 10 * same)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_lie_in_the_interval_and_its_ends_are_exact(kind: str) -> None:
    # Neither the ends nor the length of the interval are multiples of a power of two.
    interval = Interval(0.1, 0.7)
    result = numbers(kind, interval, 10_000)
    assert interval.clipped_count(result) == 0
    if kind == "ends":
        assert set(result.tolist()) == {0.1, 0.7}
    # Means of 10 000 numbers, of a standard deviation of at most half the length: 5 standard errors.
    means = {"uniform": 0.4, "rising": 0.5, "ends": 0.4}
    deviations = {"uniform": 0.3 / np.sqrt(3), "rising": 0.6 / np.sqrt(18), "ends": 0.3}
    assert abs(result.mean() - means[kind]) < 5 * 0.3 / 100
    assert result.std() == pytest.approx(deviations[kind], rel=0.02)


def test_a_larger_scale_leaves_the_interval_around_its_middle() -> None:
    wide = numbers("uniform", Interval(2.0, 4.0), 10_000, scale=3.0)
    np.testing.assert_allclose(wide - 3, 3 * (numbers("uniform", Interval(2.0, 4.0), 10_000) - 3), atol=1e-14)
    assert (0 < wide.min() < 0.01, 5.99 < wide.max() < 6) == (True, True)


def test_all_intervals_see_the_same_draws() -> None:
    first, second = (numbers("uniform", interval, 100) for interval in (Interval(0.0, 1.0), Interval(-10.0, 30.0)))
    np.testing.assert_allclose(40 * first - 10, second, atol=1e-13)


def test_chunks_are_small_hold_every_client_and_do_not_depend_on_how_many_follow() -> None:
    chunks = [list(input_chunks("uniform", Interval(), clients, np.random.default_rng(1))) for clients in (CHUNK_COORDINATES, 600_000)]
    assert [[len(chunk) for chunk in own] for own in chunks] == [[2**18], [2**18, 2**18, 600_000 - 2**19]]
    np.testing.assert_array_equal(chunks[0][0], chunks[1][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sphere", Interval(), None), "population must be one of uniform, rising, ends, got 'sphere'"),
        (("uniform", NormBall(2, 2.0), None), "population must be one of uniform-l1, .*, got 'uniform'"),
        (("uniform", Interval(), 3), "nonzero must be left out for numbers and items, got 3"),
        (("sphere", NormBall(2, 2.0), 1), "nonzero must be left out for the population sphere"),
        (("ends", Categories(5), None), "population must be one of uniform, zipf, geometric, got 'ends'"),
    ],
)
def test_what_a_domain_does_not_have_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_inputs(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"clients": 0}, "clients must be a whole number from 1"), ({"scale": 0.0}, "scale must be a number from")],
)
def test_bad_sizes_are_refused_before_anything_is_drawn(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        input_chunks(**{"kind": "ends", "domain": Interval(), "clients": 3, "rng": np.random.default_rng(1)} | options)
