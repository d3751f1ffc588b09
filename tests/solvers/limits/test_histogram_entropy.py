"""Entropy of histograms, against enumeration and exact integers."""

import itertools
import math

import numpy as np
import pytest

from quietbits.solvers.limits.histogram_entropy import multinomial_histogram_entropy, uniform_histogram_entropy


def enumerated(probabilities: list[float], clients: int) -> float:
    total = 0.0
    for histogram in itertools.product(range(clients + 1), repeat=len(probabilities)):
        if sum(histogram) == clients:
            mass = math.factorial(clients) * math.prod(p**k / math.factorial(k) for p, k in zip(probabilities, histogram, strict=True))
            total -= mass * math.log2(mass)
    return total


@pytest.mark.parametrize(
    ("categories", "clients"), [(1, 5), (2, 1), (2, 30), (5, 3), (17, 15), (16, 17), (300, 40), (10**4, 100), (10**5, 1000)]
)
def test_the_number_of_histograms(categories: int, clients: int) -> None:
    entropy = uniform_histogram_entropy(categories, clients)
    count = math.comb(clients + categories - 1, clients)
    shift = max(count.bit_length() - 500, 0)
    exact = math.log2(count >> shift) + shift
    assert entropy.lower <= exact * (1 + 1e-15)
    assert exact * (1 - 1e-15) <= entropy.upper
    assert entropy.upper - entropy.lower <= 1e-10 + 1e-12 * exact


def test_the_figures_of_the_literature() -> None:
    assert round(uniform_histogram_entropy(10**4, 100).lower, 1) == 804.7
    assert round(uniform_histogram_entropy(10**5, 1000).lower) == 8087


@pytest.mark.parametrize(("categories", "clients"), [(2**53, 2**53), (2**53, 1), (2, 2**53), (2**40, 50_000)])
def test_huge_sizes_stay_precise(categories: int, clients: int) -> None:
    entropy = uniform_histogram_entropy(categories, clients)
    assert entropy.lower <= entropy.upper <= entropy.lower * (1 + 1e-13) + 1e-10


@pytest.mark.parametrize(
    ("probabilities", "clients"),
    [([0.5, 0.5], 9), ([0.2, 0.3, 0.5], 6), ([0.9, 0.05, 0.05], 5), ([1 - 1e-6, 1e-6], 4), ([0.4, 0.2, 0.2, 0.2], 5)],
)
def test_the_entropy_of_a_multinomial_histogram(probabilities: list[float], clients: int) -> None:
    entropy = multinomial_histogram_entropy(probabilities, clients)
    exact = enumerated(probabilities, clients)
    assert entropy.lower <= exact <= entropy.upper
    assert entropy.upper - entropy.lower < 1e-11


def test_equal_categories_may_be_grouped() -> None:
    rng = np.random.default_rng(0)
    values, counts = rng.dirichlet(np.ones(4)), np.array([1, 3, 10, 200])
    values /= (values * counts).sum()
    grouped = multinomial_histogram_entropy(values, 500, counts)
    single = multinomial_histogram_entropy(np.repeat(values, counts), 500)
    assert (grouped.lower, grouped.upper) == pytest.approx((single.lower, single.upper), abs=1e-9)


def test_uniform_items_are_nearly_as_uncertain_as_uniform_histograms_where_few_collide() -> None:
    drawn = multinomial_histogram_entropy([1e-6], 1000, [10**6])
    assert drawn.upper < uniform_histogram_entropy(10**6, 1000).lower
    # Without collisions, the entropy would be log2 of d^n / n!.
    assert drawn.lower == pytest.approx(1000 * math.log2(1e6) - math.lgamma(1001) / math.log(2), abs=1)


def test_many_clients_make_a_count_gaussian() -> None:
    entropy = multinomial_histogram_entropy([0.3, 0.7], 10**6)
    gaussian = 0.5 * math.log2(2 * math.pi * math.e * 1e6 * 0.21)
    assert entropy.lower <= gaussian + 1e-5
    assert gaussian - 1e-5 <= entropy.upper
    assert entropy.upper - entropy.lower < 0.01


def test_certain_items_have_no_entropy() -> None:
    assert multinomial_histogram_entropy([1.0, 0.0], 7).upper == 0
    assert uniform_histogram_entropy(1, 7).upper == 0


@pytest.mark.parametrize(
    ("probabilities", "multiplicities", "message"),
    [
        ([0.5, 0.4], None, "must add up to 1"),
        ([0.5, -0.5], None, "from 0 to 1"),
        ([0.5, 0.5], [1], "multiplicities must be"),
        ([0.25, 0.5], [1.5, 1], "multiplicities must be"),
    ],
)
def test_bad_arguments_are_named(probabilities: list[float], multiplicities: list[float] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        multinomial_histogram_entropy(probabilities, 3, multiplicities)
