"""Packings, enumerated."""

import itertools
import math

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.solvers.bounds.frequency_packings import multiset_packing, reed_solomon_packing

# Primitive polynomials of the fields of 2, 4 and 8 elements.
FIELDS = {1: 0b11, 2: 0b111, 3: 0b1011}


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
