"""Distance of mixed shares from uniform shares of the same sum.

Points under test: the exact distance of small cases, for all numbers of the clients; the exact divergence of larger cases; the published
number of shares.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import pytest

from quietbits.errors import InfeasibleError
from quietbits.solvers.divergences.shuffled_shares import messages_for_distance, shuffled_shares_distance

Histogram = tuple[int, ...]
Law = dict[Histogram, Fraction]
SMALL = [(q, n, m) for q in (2, 3, 4) for n in (1, 2, 3, 4) for m in (1, 2, 3, 4)]


def histograms(total: int, values: int) -> Iterator[Histogram]:
    if values == 1:
        yield (total,)
        return
    for count in range(total + 1):
        yield from ((count, *rest) for rest in histograms(total - count, values - 1))


@cache
def uniform_shares(shares: int, modulus: int, total: int) -> Law:
    """Return the exact law of the numbers of shares of each value, for uniform shares of a sum."""
    return {
        numbers: Fraction(math.factorial(shares) // math.prod(map(math.factorial, numbers)), modulus ** (shares - 1))
        for numbers in histograms(shares, modulus)
        if sum(value * count for value, count in enumerate(numbers)) % modulus == total % modulus
    }


@cache
def mixed_shares(numbers: tuple[int, ...], messages: int, modulus: int) -> Law:
    """Return the exact law of the mixed shares of several clients' numbers."""
    law: dict[Histogram, Fraction] = {(0,) * modulus: Fraction(1)}
    for number in numbers:
        added: Counter[Histogram] = Counter()
        for mine, chance in uniform_shares(messages, modulus, number).items():
            for others, probability in law.items():
                added[tuple(map(sum, zip(mine, others, strict=True)))] += chance * probability  # type: ignore[assignment]
        law = dict(added)  # type: ignore[arg-type]
    return law


def distance(first: Law, second: Law) -> Fraction:
    return sum((abs(first.get(key, Fraction(0)) - second.get(key, Fraction(0))) for key in {*first, *second}), Fraction(0)) / 2


@cache
def expected_colourings(modulus: int, clients: int, messages: int) -> Fraction:
    """Return E[q^(C - 1)] exactly, as the coefficient of a power of a polynomial."""
    weights = [Fraction(math.factorial(s * messages), math.factorial(s) ** 2) for s in range(clients + 1)]
    # The recursion of the coefficients of a power (Miller).
    power = [Fraction(1)]
    for n in range(1, clients + 1):
        power.append(sum(((modulus + 1) * k - n) * weights[k] * power[n - k] for k in range(1, n + 1)) / n)
    return power[clients] / weights[clients] / modulus


@pytest.mark.parametrize(("modulus", "clients", "messages"), SMALL)
def test_no_numbers_are_further_from_their_sum_than_the_bound(modulus: int, clients: int, messages: int) -> None:
    bound = shuffled_shares_distance(clients, messages, modulus)
    divergences = []
    for numbers in itertools.combinations_with_replacement(range(modulus), clients):
        mixed, ideal = mixed_shares(numbers, messages, modulus), uniform_shares(clients * messages, modulus, sum(numbers))
        assert distance(mixed, ideal) <= bound
        divergences.append(sum(mixed.get(key, Fraction(0)) ** 2 / chance for key, chance in ideal.items()) - 1)
    # The proof is exact for numbers that are all equal, and an upper bound for others.
    assert max(divergences) == divergences[0] == expected_colourings(modulus, clients, messages) - 1
    assert bound >= min(1.0, math.sqrt(divergences[0]) / 2)
    if clients < 4 and messages > 1:
        assert bound == pytest.approx(min(1.0, math.sqrt(divergences[0]) / 2), rel=1e-6)


@pytest.mark.parametrize("modulus", [2, 3, 4])
@pytest.mark.parametrize("clients", [3, 4])
def test_the_published_number_of_shares_suffices_for_two_inputs_of_the_same_sum(modulus: int, clients: int) -> None:
    # The theorem is for 19 clients and more; below 3 clients its logarithm is negative.
    for messages in (2, 3, 4):
        published = math.sqrt(modulus * (math.e / clients) ** (messages - 2))
        laws = [
            mixed_shares(numbers, messages, modulus)
            for numbers in itertools.combinations_with_replacement(range(modulus), clients)
            if sum(numbers) % modulus == 0
        ]
        assert max(distance(*pair) for pair in itertools.combinations(laws, 2)) <= published


@pytest.mark.parametrize("security", [20, 40, 80])
@pytest.mark.parametrize("clients", [19, 20, 100, 10_000, 10**6, 10**9])
@pytest.mark.parametrize("bits", [1, 8, 16, 32, 62])
def test_the_published_number_of_shares_follows_from_the_bound(clients: int, security: int, bits: int) -> None:
    # Two inputs are at most twice the distance from their sum apart.
    published = math.ceil((2 * security + bits) / (math.log2(clients) - math.log2(math.e)) + 2)
    assert 2 * shuffled_shares_distance(clients, min(published, 256), 2**bits) <= 2.0**-security
    assert messages_for_distance(clients, 2**bits, 2.0 ** (-security - 1)) <= published


@pytest.mark.parametrize(
    ("clients", "messages", "modulus"), [(4, 5, 50), (12, 6, 1000), (40, 6, 2**20), (60, 4, 3), (30, 12, 2**40), (200, 5, 2**20)]
)
def test_the_bound_is_above_the_exact_divergence_and_close(clients: int, messages: int, modulus: int) -> None:
    exact = math.sqrt(expected_colourings(modulus, clients, messages) - 1) / 2
    assert exact <= shuffled_shares_distance(clients, messages, modulus) <= exact * 1.02


def test_more_shares_and_smaller_moduli_are_closer() -> None:
    for clients in (2, 3, 7, 1000, 10**9):
        for modulus in (2, 3, 2**20, 2**62):
            distances = [shuffled_shares_distance(clients, messages, modulus) for messages in range(1, 60)]
            assert distances == sorted(distances, reverse=True)
    assert shuffled_shares_distance(100, 8, 2**20) < shuffled_shares_distance(100, 8, 2**21)


def test_a_single_share_hides_nothing_except_for_one_client() -> None:
    assert (shuffled_shares_distance(5, 1, 7), shuffled_shares_distance(1, 1, 7)) == (1.0, 0.0)


def test_the_number_of_shares_is_the_least() -> None:
    for clients, modulus, allowed in ((10, 2**10, 1e-6), (10_000, 2**22, 1e-9), (2, 2, 0.2)):
        messages = messages_for_distance(clients, modulus, allowed)
        assert shuffled_shares_distance(clients, messages, modulus) <= allowed < shuffled_shares_distance(clients, messages - 1, modulus)
    with pytest.raises(InfeasibleError, match="clients must be more than 2 to mix 256 shares modulo 1024 within a distance of 1e-100"):
        messages_for_distance(2, 2**10, 1e-100)


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"messages": 257}, {"modulus": 1}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole number"):
        shuffled_shares_distance(**{"clients": 10, "messages": 4, "modulus": 8, **wrong})
