"""Bits that frequencies need, against encoders with known errors.

The tests enumerate packings.
"""

import itertools
import math

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.solvers.limits.frequency_limits import (
    LOSSES,
    frequency_compression_bound,
    multiset_packing,
    necessary_frequency_bits,
    one_hot_curves,
    reed_solomon_packing,
)
from quietbits.solvers.limits.histogram_entropy import uniform_histogram_entropy
from quietbits.solvers.limits.rate_distortion import rate_distortion

# Primitive polynomials of the fields of 2, 4 and 8 elements.
FIELDS = {1: 0b11, 2: 0b111, 3: 0b1011}

SIZES = [(2, 1), (2, 9), (3, 4), (50, 7), (10_000, 100), (7, 10_000), (2**40, 1000)]


def losses(errors: FloatArray) -> dict[str, FloatArray]:
    squares = (errors**2).sum(axis=-1)
    return {"linf": np.abs(errors).max(axis=-1), "l2": np.sqrt(squares), "l2-squared": squares}


@pytest.mark.parametrize(("categories", "clients"), SIZES)
def test_exact_frequencies_take_the_entropy_of_the_histogram(categories: int, clients: int) -> None:
    entropy = uniform_histogram_entropy(categories, clients).lower
    for loss in LOSSES:
        bits = necessary_frequency_bits(0.0, categories, clients, "secure-sum", loss=loss)
        assert bits <= entropy
        assert bits == pytest.approx(entropy, rel=1e-8)
        assert frequency_compression_bound(categories, clients, entropy * (1 + 1e-9) + 1e-9, loss=loss) == 0
        assert necessary_frequency_bits(0.0, categories, clients, "central", loss=loss) == pytest.approx(entropy / clients, rel=1e-8)


@pytest.mark.parametrize(("categories", "clients"), [(2, 3), (3, 2), (3, 4), (4, 2)])
@pytest.mark.parametrize("messages", [1, 2, 6])
def test_no_quantiser_of_all_histograms_beats_the_bound(categories: int, clients: int, messages: int) -> None:
    counts = [c for c in itertools.product(range(clients + 1), repeat=categories) if sum(c) == clients]
    points = np.array(counts) / clients
    rng = np.random.default_rng(0)
    best = dict.fromkeys(LOSSES, math.inf)
    for _ in range(200):
        # The cells surround random members; each is represented by the middle of its box, its mean, or a member.
        centres = points[rng.choice(len(points), min(messages, len(points)), replace=False)]
        cell = np.argmin(losses(points[:, None] - centres)["linf"] + 1e-9 * rng.random((len(points), len(centres))), axis=1)
        used, cell = np.unique(cell, return_inverse=True)
        cells = [points[cell == index] for index in range(len(used))]
        for middle in (lambda of: (of.max(axis=0) + of.min(axis=0)) / 2, lambda of: of.mean(axis=0), lambda of: of[0]):
            result = losses(points - np.array([middle(of) for of in cells])[cell])
            best = {loss: min(best[loss], float(result[loss].max())) for loss in LOSSES}
    for loss in LOSSES:
        assert frequency_compression_bound(categories, clients, math.log2(messages), loss=loss) <= best[loss] + 1e-12


@pytest.mark.parametrize(("categories", "clients"), SIZES)
def test_without_bits_the_best_constant_is_hardly_better(categories: int, clients: int) -> None:
    # Estimating a half for every item has an error of a half; the uniform distribution has a squared error of 1 - 1/d.
    assert 0.5 * (1 - 1 / categories) * (1 - 1e-8) <= frequency_compression_bound(categories, clients, 0.0) <= 0.5
    squared = frequency_compression_bound(categories, clients, 0.0, loss="l2-squared")
    assert (1 - 1 / categories) * (1 - 1e-6) <= squared <= 1 - 1 / categories


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("categories", "clients"), SIZES)
def test_the_two_directions_agree_and_are_monotone(categories: int, clients: int, loss: str) -> None:
    entropy = uniform_histogram_entropy(categories, clients).upper
    errors = [frequency_compression_bound(categories, clients, share * entropy, loss=loss) for share in np.linspace(0, 1.01, 40)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(errors))
    needed = [necessary_frequency_bits(error, categories, clients, "secure-sum", loss=loss) for error in np.geomspace(1e-9, 1, 40)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(needed))
    for error, bits in zip(np.geomspace(1e-9, 1, 40), needed, strict=True):
        assert frequency_compression_bound(categories, clients, bits, loss=loss) <= error * (1 + 1e-5) + 1e-7
        if bits > 1e-3:
            assert frequency_compression_bound(categories, clients, 0.999 * bits, loss=loss) >= error


@pytest.mark.parametrize("clients", [100, 1000])
def test_sending_the_heavy_items_is_near_the_bound(clients: int) -> None:
    """The encoder lists items of frequency above 2 error, and estimates the others."""
    for error in (0.02, 0.05, 0.1):
        heavy = math.floor(1 / (2 * error))
        used = uniform_histogram_entropy(10**5, heavy).upper + heavy * math.log2(clients + 1)
        needed = necessary_frequency_bits(error, 10**5, clients, "secure-sum")
        assert 0.3 * used < needed < used


@pytest.mark.parametrize(("size", "steps"), [(2, 200), (3, 24)])
def test_the_curve_of_one_item_is_that_of_blahut_and_arimoto(size: int, steps: int) -> None:
    grid = np.array([part for part in itertools.product(range(steps + 1), repeat=size) if sum(part) == steps]) / steps
    distortion = ((np.eye(size)[:, None] - grid) ** 2).sum(axis=2)
    curve = one_hot_curves(np.array([float(size)]))
    for target in (0.05, 0.2, 0.4):
        result = rate_distortion(np.full(size, 1 / size), distortion, target)
        nats = float(curve.rate(np.array([target]))[0])
        # The grid of estimates overestimates the rate.
        assert nats <= result.rate * math.log(2) <= nats + 0.02
        assert float(curve.distortion(np.array([nats]))[0]) == pytest.approx(target, rel=1e-3)


def test_a_single_category_needs_nothing() -> None:
    assert frequency_compression_bound(1, 10, 0.0) == 0
    assert necessary_frequency_bits(0.0, 1, 10, "local") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 10, 10, "local"), "error must be"),
        ((0.1, 0, 10, "local"), "categories must be"),
        ((0.1, 10, 0, "local"), "clients must be"),
        ((0.1, 10, 10, "shuffled"), "trust_model must be one of local, secure-sum, central"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[float, int, int, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        necessary_frequency_bits(*arguments)
    with pytest.raises(ValueError, match="loss must be one of linf, l2, l2-squared"):
        frequency_compression_bound(3, 3, 1.0, loss="l1")


def product(first: int, second: int, power: int) -> int:
    total = 0
    for bit in range(power):
        total ^= (first << bit) * (second >> bit & 1)
    for bit in reversed(range(power, 2 * power)):
        total ^= (FIELDS[power] << (bit - power)) * (total >> bit & 1)
    return total


def evaluated(coefficients: tuple[int, ...], point: int, power: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = product(value, point, power) ^ coefficient
    return value


def least_distances(members: FloatArray) -> tuple[float, float]:
    apart = members[:, None] - members
    different = ~np.eye(len(members), dtype=bool)
    return float(np.abs(apart).max(axis=2)[different].min()), float(np.sqrt((apart**2).sum(axis=2))[different].min())


@pytest.mark.parametrize(("categories", "clients", "parts"), [(3, 2, 2), (4, 7, 3), (5, 4, 2), (2, 9, 4), (3, 5, 1)])
def test_multisets(categories: int, clients: int, parts: int) -> None:
    group = clients // parts
    members = []
    for items in itertools.combinations_with_replacement(range(categories), parts):
        counts = group * np.bincount(items, minlength=categories)
        counts[0] += clients - group * parts
        assert counts.sum() == clients
        members.append(counts / clients)
    packing = multiset_packing(categories, clients, parts)
    assert packing.log2_size == pytest.approx(math.log2(len(members)), abs=1e-9)
    assert packing.log2_size <= math.log2(len(members))
    assert (packing.linf_distance, packing.l2_distance) == pytest.approx(least_distances(np.array(members)))


@pytest.mark.parametrize(("power", "parts", "differing"), [(1, 2, 1), (1, 2, 2), (2, 3, 2), (2, 4, 3), (3, 5, 4)])
def test_reed_solomon_words(power: int, parts: int, differing: int) -> None:
    size, clients = 2**power, 2 * parts + 1
    members = []
    for coefficients in itertools.product(range(size), repeat=parts - differing + 1):
        counts = np.zeros(parts * size)
        counts[0] = clients - 2 * parts
        for place in range(parts):
            counts[place * size + evaluated(coefficients, place, power)] += 2
        members.append(counts / clients)
    packing = reed_solomon_packing(parts * size, clients, parts, differing)
    assert packing.log2_size == math.log2(len(members))
    assert (packing.linf_distance, packing.l2_distance) == pytest.approx(least_distances(np.array(members)))


def test_too_many_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="parts must be at most 10 or so for 100 categories, got 11"):
        reed_solomon_packing(100, 50, 11, 2)
    with pytest.raises(ValueError, match="parts must be a whole number from 1 to 5"):
        multiset_packing(100, 5, 6)
