"""Tests of shuffled letters.

Points under test: the blanket's bound against enumeration of the other clients, and against exact binomial sums.

Bounds on the expected positive part of a sum are above exact sums, and close to them.

The tests also cover the published closed form of amplification by shuffling.
"""

import itertools
import math
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

import quietbits
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.errors import InfeasibleError
from quietbits.solvers.divergences import shuffled_letters
from quietbits.solvers.divergences.shuffled_letters import (
    ShuffledLetters,
    _lower_hull,
    clones_epsilon,
    largest_clones_epsilon,
    positive_part_bound,
)

Law = dict[tuple[int, ...], float]


def histogram_law(rows: list[np.ndarray]) -> Law:
    """Return the law of the histogram of letters, one from each row."""
    law: Law = {tuple([0] * len(rows[0])): 1.0}
    for row in rows:
        grown: Law = {}
        for counts, probability in law.items():
            for letter, weight in enumerate(row):
                more = tuple(count + (place == letter) for place, count in enumerate(counts))
                grown[more] = grown.get(more, 0.0) + probability * weight
        law = grown
    return law


def exact_delta(table: np.ndarray, clients: int, epsilon: float) -> float:
    """Return the largest hockey-stick divergence over row pairs and other clients' rows."""
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(len(table)), clients - 1):
        laws = [histogram_law([table[own], *table[list(others)]]) for own in range(len(table))]
        for left, right in itertools.permutations(laws, 2):
            worst = max(worst, sum(max(0.0, left[counts] - math.exp(epsilon) * right[counts]) for counts in left))
    return worst


def binary_delta(local: float, clients: int, epsilon: float) -> float:
    """Return the blanket's divergence of binary randomised response, as a binomial sum."""
    ratio, factor = math.exp(local), math.exp(epsilon)
    total, tosses = 0.0, np.ones(1)
    for seen, chance in enumerate(binom.pmf(np.arange(clients + 1), clients, 2 / (ratio + 1)).tolist()):
        ones = np.arange(seen + 1)
        sums = ones * (ratio - factor) + (seen - ones) * (1 - factor * ratio)
        total += chance * float(tosses @ np.maximum(sums, 0.0))
        tosses = np.convolve(tosses, [0.5, 0.5])
    return total / clients


TABLES = {
    "response": generalised_randomised_response(2.0, 2).probabilities,
    "bitwise": bitwise_randomised_response(3.0, 2).probabilities,
    "mvu": design_mvu(2.0, 2, 1).probabilities,
    "mvu of eight letters": design_mvu(1.5, 1, 3).probabilities,
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("clients", [1, 2, 3, 4])
def test_no_population_of_a_few_clients_reveals_more(name: str, clients: int) -> None:
    if name.startswith("mvu of") and clients > 3:
        pytest.skip("too many histograms")
    letters = ShuffledLetters(TABLES[name], clients)
    for share in (0.0, 0.3, 0.7, 0.95):
        epsilon = share * letters.pure_epsilon
        exact = exact_delta(TABLES[name], clients, epsilon)
        assert exact * (1 - 1e-12) <= letters.delta(epsilon)
        if clients == 1:
            # A single client has no other clients to hide it.
            assert letters.delta(epsilon) == pytest.approx(exact, rel=1e-3)
        if share == 0.0:
            assert letters.delta(epsilon) < 1.5 * exact


@pytest.mark.parametrize("rows", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("clients", [1, 2, 3])
def test_a_single_pair_of_rows_can_be_the_worst(rows: tuple[int, ...], clients: int) -> None:
    # The first row against the second has by far the largest divergence of the six pairs.
    table = np.array([[1 / 10, 6 / 10, 3 / 10], [2 / 8, 1 / 8, 5 / 8], [4 / 16, 5 / 16, 7 / 16]])
    # Other orders of the letters put the worst pair at other places.
    exact = exact_delta(table, clients, 0.8)
    assert ShuffledLetters(table[:, list(rows)], clients).delta(0.8) >= exact * (1 - 1e-12)


def test_a_pure_epsilon_of_one_is_no_exception() -> None:
    # The pure epsilon of this ratio is rounded to 1.
    exactly, nearly = (ShuffledLetters([[ratio, 1], [1, ratio]], 100) for ratio in (2.7182818284590406, 2.718281828))
    assert exactly.pure_epsilon == 1.0
    assert exactly.epsilon(1e-6) == pytest.approx(nearly.epsilon(1e-6), rel=1e-5)


@pytest.mark.parametrize(("local", "clients"), [(1.0, 10), (2.0, 100), (4.0, 1000), (6.0, 300), (1.0, 2000)])
def test_binary_randomised_response_is_within_a_percent(local: float, clients: int) -> None:
    letters = ShuffledLetters([[math.exp(local), 1], [1, math.exp(local)]], clients)
    for share in (0.0, 0.05, 0.2, 0.5):
        exact = binary_delta(local, clients, share * local)
        if exact > 1e-200:
            assert 1 <= letters.delta(share * local) / exact < 1.01


def test_a_tail_of_tiny_probability_keeps_its_precision() -> None:
    exact = binary_delta(1.0, 1000, 0.35)
    assert exact < 1e-20
    assert 1 <= ShuffledLetters([[math.e, 1], [1, math.e]], 1000).delta(0.35) / exact < 1.01


@cache
def three_bits() -> LookupTable:
    return design_mvu(3.0, 3, 3, starts=1)


@pytest.mark.parametrize("delta", [1e-3, 1e-12])
@pytest.mark.parametrize("clients", [5, 500, 20_000])
def test_epsilon_is_the_least_with_that_delta(clients: int, delta: float) -> None:
    letters = ShuffledLetters(three_bits().weights, clients)
    epsilon = letters.epsilon(delta)
    assert letters.delta(epsilon) <= delta or epsilon == letters.pure_epsilon
    assert letters.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)
    assert 0 < epsilon <= letters.pure_epsilon


def test_the_worst_of_all_pairs_is_hardly_more_than_one_pair() -> None:
    table = three_bits().weights[[0, 2, 5, 7]]
    together = ShuffledLetters(table, 10_000).epsilon(1e-6)
    shares = table / table.sum(axis=1, keepdims=True)
    # Each pair uses the blanket of the whole table.
    blanket = shares.min(axis=0)

    def pair_delta(row: int, other: int, epsilon: float) -> float:
        values = (shares[row] - math.exp(epsilon) * shares[other]) / blanket
        return positive_part_bound(values, blanket, 1 - blanket.sum(), 10_000, 1e-3)

    pairs = list(itertools.permutations(range(4), 2))
    assert all(pair_delta(*pair, together * (1 + 1e-9)) <= 1e-6 for pair in pairs)
    assert any(pair_delta(*pair, together / 1.001) > 1e-6 for pair in pairs)


@pytest.mark.parametrize("name", ["response", "mvu of three bits"])
def test_a_population_realises_nearly_all_of_it(name: str) -> None:
    clients, delta = 1000, 1e-6
    table = TABLES[name] if name in TABLES else three_bits().probabilities
    shares = table[:, table.max(axis=0) > 0]
    bound = ShuffledLetters(shares, clients).epsilon(delta)

    def realised(row: int, other: int, held: int, epsilon: float) -> float:
        """Return the divergence for equal inputs of the other clients, to a relative 1e-3."""
        values = (shares[row] - math.exp(epsilon) * shares[other]) / shares[held]
        return positive_part_bound(values, shares[held], 0.0, clients, 1e-3)

    assert any(realised(*chosen, 0.998 * bound) > 1.001 * delta for chosen in itertools.permutations(range(len(shares)), 3))


DOCUMENTED = {
    "| randomised response, 2 letters | 3 |": generalised_randomised_response(3.0, 1),
    "| 4 letters | 1 |": generalised_randomised_response(1.0, 2),
    "| 4 letters | 3 |": generalised_randomised_response(3.0, 2),
    "| 4 letters | 5 |": generalised_randomised_response(5.0, 2),
    "| 16 letters | 3 |": generalised_randomised_response(3.0, 4),
}


@pytest.mark.parametrize("start", DOCUMENTED)
def test_the_documented_epsilons(start: str) -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "explanations" / "shuffled.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    cells = line.split("|")[3:-1]
    for clients, place in ((1000, 0), (10_000, 2), (100_000, 5)):
        epsilon = ShuffledLetters(DOCUMENTED[start].weights, clients).epsilon(1e-6)
        assert 0 <= float(cells[place]) - epsilon <= 1.5e-3


def test_copies_of_a_row_and_equal_letters_change_nothing() -> None:
    table = generalised_randomised_response(2.0, 3).weights
    merged = ShuffledLetters(table, 1000)
    assert merged.weights.shape == (2, 3)
    twice = ShuffledLetters(np.concatenate([table, table[:1]]), 1000)
    assert twice.epsilon(1e-6) == pytest.approx(merged.epsilon(1e-6), rel=1e-3)
    assert ShuffledLetters([[1, 1], [1, 1]], 10).epsilon(1e-6) == ShuffledLetters([[1, 1], [1, 1]], 10).pure_epsilon == 0.0


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_random_tables_of_three_clients(seed: int, rows: int, letters: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.full(letters, 2.0), rows) * 0.9 + 0.1 / letters
    shuffled = ShuffledLetters(table / table.sum(axis=1, keepdims=True), 3)
    for epsilon in (0.1, 0.5):
        assert exact_delta(table, 3, epsilon) <= shuffled.delta(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("times", [2, 5])
def test_the_loss_composes_upward(times: int) -> None:
    # Two clients' binary letters give three histograms, and products of them over rounds.
    ratio, delta = math.exp(1.0), 1e-2
    letters = ShuffledLetters([[ratio, 1], [1, ratio]], 2)
    composed = letters.loss(delta, times).self_compose(times)
    truth, lie = ratio / (ratio + 1), 1 / (ratio + 1)
    row, other = np.array([truth, lie]), np.array([lie, truth])
    for held in (row, other):
        left, right = (np.array(list(histogram_law([own, held]).values())) for own in (row, other))
        first, second = left, right
        for _ in range(times - 1):
            first, second = np.outer(first, left).ravel(), np.outer(second, right).ravel()
        for epsilon in (0.1, 0.5, 1.0, 1.5):
            assert np.maximum(first - math.exp(epsilon) * second, 0.0).sum() <= composed.get_delta_for_epsilon(epsilon) + 1e-12


def test_the_loss_of_one_use_is_close_to_the_divergence() -> None:
    letters = ShuffledLetters(three_bits().weights, 5000)
    loss = letters.loss(1e-6, 1)
    epsilon = letters.epsilon(1e-6)
    assert 1 - 1e-9 <= float(loss.get_epsilon_for_delta(1e-6)) / epsilon < 1.002
    for share in (0.1, 0.5):
        assert 1 - 1e-9 <= float(loss.get_delta_for_epsilon(share * epsilon)) / letters.delta(share * epsilon) < 1.05


@pytest.mark.parametrize(
    ("weights", "clients", "fault", "message"),
    [
        ([[1, 0], [0, 1]], 10, ValueError, "weights must be at most e\\^100 apart in each column, got entries from 0 to 1"),
        ([[1e44, 1], [1, 1e44]], 10, ValueError, "weights must be at most e\\^100 apart in each column, got entries from 1.0 to 1e\\+44"),
        ([[1, 1]], 10, ValueError, "weights must be a table of finite non-negative numbers with at least two rows"),
        ([[3, 1], [1, 3]], 0, ValueError, "clients must be a whole number from 1 to 1000000000000, got 0"),
        (
            np.random.default_rng(0).dirichlet(np.ones(600), 100),
            10,
            InfeasibleError,
            "weights must have at most 2097152 letters of pairs of rows, got 100 different rows of 600",
        ),
    ],
)
def test_faults_say_what_is_needed(weights: object, clients: int, fault: type[Exception], message: str) -> None:
    with pytest.raises(fault, match=message):
        ShuffledLetters(weights, clients)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 5), st.sampled_from([1e-4, 1e-2, 0.5]))
@settings(max_examples=60, deadline=None)
def test_sums_of_a_few_variables(seed: int, values: int, count: int, accuracy: float) -> None:
    rng = np.random.default_rng(seed)
    numbers, probabilities = rng.normal(size=values) * 10 ** rng.uniform(-3, 3), rng.dirichlet(np.ones(values + 1))
    every, weights = np.append(numbers, 0.0), probabilities
    exact = sum(
        math.prod(weights[list(chosen)]) * max(0.0, every[list(chosen)].sum())
        for chosen in itertools.product(range(values + 1), repeat=count)
    )
    bound = positive_part_bound(numbers, probabilities[:-1], probabilities[-1], count, accuracy)
    assert exact / count * (1 - 1e-12) <= bound
    assert bound <= exact / count * (1 + 3 * accuracy) + 1e-12 * np.abs(numbers).max()


@pytest.mark.parametrize("count", [10, 1000, 10**5])
@pytest.mark.parametrize("up", [0.5, 0.45, 0.01])
def test_biased_tosses(count: int, up: float) -> None:
    # The shift makes the mean negative by up to five standard deviations of the sum.
    for deviations in (0.0, 2.0, 5.0):
        shift = up + deviations * math.sqrt(up * (1 - up) / count)
        heads = np.arange(count + 1)
        exact = float(binom.pmf(heads, count, up) @ np.maximum(heads - count * shift, 0.0)) / count
        bound = positive_part_bound(np.array([1 - shift, -shift]), np.array([up, 1 - up]), 0.0, count, 1e-2)
        assert (bound == 0) if exact == 0 else (1 - 1e-10 <= bound / exact < 1.02)


def test_many_variables_are_normal() -> None:
    count, mean = 10**6, -0.004
    deviation = 1e3
    exact = deviation * norm.pdf(mean * 1e3) + count * mean * norm.cdf(mean * 1e3)
    bound = positive_part_bound(np.array([1.0, -1.0]), np.array([0.5 + mean / 2, 0.5 - mean / 2]), 0.0, count, 1e-2)
    assert bound * count / exact == pytest.approx(1, abs=0.02)


def test_nothing_positive_is_zero() -> None:
    assert positive_part_bound(np.array([-1.0, -2.0]), np.array([0.5, 0.5]), 0.0, 10, 1e-2) == 0.0


def test_a_larger_measure_has_a_larger_bound() -> None:
    values, probabilities = np.array([1.0, -1.5]), np.array([0.3, 0.3])
    whole = positive_part_bound(values, probabilities, 0.4, 50, 1e-3)
    assert positive_part_bound(values, probabilities * 1.001, 0.4, 50, 1e-3) > whole


def test_large_rare_values_do_not_overflow() -> None:
    # For two clients with randomised response among 62 letters at epsilon 16.2, the lattice alone gives 1e304.
    value, up = 1.09093509e7, 9.16639613e-8
    bound = positive_part_bound(np.array([-value, value]), np.array([up, up]), 1 - 2 * up, 2, 1e-2)
    exact = (2 * value * up**2 + value * 2 * up * (1 - 2 * up)) / 2
    assert exact <= bound <= value * up * (1 + 1e-9)
    assert exact >= value * up * (1 - 1e-6)


@pytest.mark.parametrize(("local", "clients", "delta"), [(0.5, 1000, 1e-6), (1.0, 10_000, 1e-6), (3.0, 10_000, 1e-6), (5.0, 10**5, 1e-8)])
def test_the_computed_bound_is_below_the_closed_form(local: float, clients: int, delta: float) -> None:
    computed = ShuffledLetters([[math.exp(local), 1], [1, math.exp(local)]], clients).epsilon(delta)
    assert 2 < clones_epsilon(local, clients, delta) / computed < 5


def test_it_is_stated_for_small_local_epsilons_only() -> None:
    edge = largest_clones_epsilon(10_000, 1e-6)
    assert edge == pytest.approx(math.log(10_000 / (8 * math.log(2e6)) - 1))
    assert math.isfinite(clones_epsilon(edge, 10_000, 1e-6))
    assert math.isinf(clones_epsilon(edge + 1e-9, 10_000, 1e-6))
    assert largest_clones_epsilon(100, 1e-6) == -math.inf


def test_it_falls_like_the_root_of_the_clients() -> None:
    assert clones_epsilon(1.0, 10**8, 1e-6) / clones_epsilon(1.0, 10**10, 1e-6) == pytest.approx(10, rel=1e-2)


def test_the_largest_log_ratio_is_never_rounded_down() -> None:
    mpmath.mp.dps = 50
    rng = np.random.default_rng(0)
    for reach in (1e-3, 1.0, 10.0, 98.0):
        for least, logarithm in rng.uniform([1, 0], [2, reach], size=(50, 2)).tolist():
            most = least * math.exp(logarithm)
            exact = mpmath.log(mpmath.mpf(most) / mpmath.mpf(least))
            assert exact <= ShuffledLetters([[least, most], [most, least]], 2).pure_epsilon <= exact + 2e-15 * (1 + exact)


def test_the_terms_of_a_sum_are_rounded_upward() -> None:
    mpmath.mp.dps = 50
    rng = np.random.default_rng(1)
    for _ in range(20):
        table = rng.integers(1, 1000, size=(3, 6))
        table[:, -1] += 6000 - table.sum(axis=1)
        shuffled = ShuffledLetters(table, 2)
        # Some terms nearly cancel, as the factor is one of the ratios.
        factor = float(table[:, 0].max() / table[:, 0].min())
        values = shuffled._values(factor, slice(None))
        for pair, (own, other) in enumerate(itertools.permutations(range(3), 2)):
            for letter in range(6):
                least = int(shuffled.weights[:, letter].min())
                first, second = (mpmath.mpf(int(shuffled.weights[row, letter])) / least for row in (own, other))
                exact = first - mpmath.mpf(factor) * second
                assert exact <= values[pair, letter] <= exact + 4e-15 * (first + factor * second)


def test_the_rest_of_a_measure_is_exact_for_whole_numbers() -> None:
    # Rows of 2**60 differ by 3, and a float cannot hold their sum less the smallest entries.
    shuffled = ShuffledLetters([[2**59 + 3, 2**59], [2**59, 2**59 + 3]], 2)
    assert shuffled._rest == pytest.approx(3 / (2**60 + 3), rel=1e-12, abs=0)
    assert ShuffledLetters([[0.75, 0.25], [0.25, 0.75]], 2)._rest == 0.5


def test_the_lower_hull_is_the_least_of_all_chords() -> None:
    rng = np.random.default_rng(2)
    for count in (2, 3, 10, 40):
        points = np.cumsum(rng.exponential(size=count))
        values = (points - points.mean()) ** 2 * rng.uniform(0, 2) + rng.exponential(size=count)
        hull = _lower_hull(points, values)
        for place, point in enumerate(points):
            chords = [values[place]]
            for left, right in itertools.product(range(place), range(place + 1, count)):
                share = (point - points[left]) / (points[right] - points[left])
                chords.append((1 - share) * values[left] + share * values[right])
            assert hull[place] == pytest.approx(min(chords), rel=1e-12)


def test_the_loss_is_close_to_the_divergence_in_both_directions() -> None:
    # Two clients with binary letters have three histograms. The other client holds the input that reveals most.
    ratio, clients = math.exp(1.0), 2
    letters = ShuffledLetters([[ratio, 1], [1, ratio]], clients)
    loss = letters.loss(1e-3, 1)
    reach = letters.epsilon(1e-6)
    truth = np.array([ratio, 1]) / (ratio + 1)
    for share in np.linspace(-0.95, 0.95, 20).tolist():
        epsilon = share * reach
        # At a negative epsilon the divergence is 1 - e^epsilon, plus e^epsilon times the divergence of the swapped pair at -epsilon.
        forth = binary_delta(1.0, clients, abs(epsilon))
        exact = forth if epsilon >= 0 else 1 - math.exp(epsilon) + math.exp(epsilon) * forth
        assert exact * (1 - 1e-9) <= loss.get_delta_for_epsilon(epsilon) <= 1.06 * exact + 1e-4
    assert exact_delta(np.array([truth, truth[::-1]]), clients, 0.5) <= binary_delta(1.0, clients, 0.5) * (1 + 1e-9)


@pytest.mark.parametrize("count", [1, 2, 5, 50])
def test_a_measure_above_one_counts_as_often_as_there_are_variables(count: int) -> None:
    # All values are positive, so the expectation is their mean, times the measure of each of the other variables.
    bound = positive_part_bound(np.array([1.0, 3.0]), np.array([0.5, 0.4]), 0.9, count, 1e-2)
    assert 1 <= bound / ((0.5 + 3 * 0.4) * 1.8 ** (count - 1)) <= 1 + 1e-9


def test_the_hull_is_taken_over_the_exponentials_of_the_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def recorded(points: np.ndarray, values: np.ndarray) -> np.ndarray:
        asked.append(points)
        return _lower_hull(points, values)

    monkeypatch.setattr(shuffled_letters, "_lower_hull", recorded)
    letters = ShuffledLetters([[3, 1], [1, 3]], 100)
    letters.loss(1e-6, 4)
    # The grid has losses up to the epsilon at a thousandth of a use's share of delta.
    reach = letters.epsilon(1e-6 / 1000 / 4)
    assert np.log(asked[0]) == pytest.approx(np.linspace(-reach, reach, 161), rel=1e-9, abs=1e-12)


def test_divergences_below_every_delta_leave_the_pure_epsilon() -> None:
    # At the pure epsilon rounding leaves a divergence of some 1e-16.
    letters = ShuffledLetters([[3, 1], [1, 3]], 1)
    assert letters.epsilon(1e-200) == letters.pure_epsilon


def test_pairs_of_all_chunks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(3).integers(1, 50, size=(5, 4))
    table[:, -1] += 200 - table.sum(axis=1)
    together = [ShuffledLetters(table, 100).delta(epsilon) for epsilon in (0.0, 0.3)]
    for chunk in (1, 2000):
        monkeypatch.setattr(shuffled_letters, "CHUNK", chunk)
        assert [ShuffledLetters(table, 100).delta(epsilon) for epsilon in (0.0, 0.3)] == pytest.approx(together, rel=1e-9)


def test_a_small_rest_is_allowed_its_rounding() -> None:
    count, rest = 1000, 1e-9
    up = (1 - rest) / 2
    bound = positive_part_bound(np.array([0.5, -0.5]), np.array([up, up]), rest, count, 1e-6)
    # Without `rest`, the result is half the mean absolute deviation of tosses, per toss; `rest` changes it by a millionth at most.
    exact = math.comb(count, count // 2) / 2 ** (count + 2)
    assert 1 - 2e-6 <= bound / exact <= 1 + 3e-3


def test_sums_of_positive_values_are_never_rounded_down() -> None:
    mpmath.mp.dps = 50
    rng = np.random.default_rng(4)
    for count in (1, 100):
        for _ in range(25):
            values, probabilities = rng.exponential(size=100), rng.dirichlet(np.ones(101))
            total = mpmath.fsum(map(mpmath.mpf, probabilities.tolist()))
            mean = mpmath.fsum(
                mpmath.mpf(value) * mpmath.mpf(share) for value, share in zip(values.tolist(), probabilities.tolist()[:-1], strict=True)
            )
            bound = positive_part_bound(values, probabilities[:-1], probabilities[-1], count, 1e-2)
            assert mean * total ** (count - 1) <= bound <= mean * (1 + 1e-10)


def test_equal_rows_lose_nothing_in_any_number_of_uses() -> None:
    letters = ShuffledLetters([[1, 1], [1, 1]], 10)
    loss = letters.loss(1e-6, 3).self_compose(3)
    assert letters.delta(0.0) == letters.delta(0.5) == 0.0
    assert (loss.get_epsilon_for_delta(1e-6), loss.get_delta_for_epsilon(0.0)) == (0.0, 0.0)
    assert loss.get_delta_for_epsilon(-1.0) == pytest.approx(1 - math.exp(-1))
    assert ShuffledLetters([[3, 1], [1, 3]], 100).epsilon(0.9) == 0.0


def test_the_first_two_of_three_rows_do_not_speak_for_the_third() -> None:
    # The first row is as far from the second as from the third, which are farther from each other.
    assert ShuffledLetters([[7, 4, 4], [8, 6, 1], [8, 1, 6]], 1).delta(0.0) >= 5 / 15 * (1 - 1e-12)


@pytest.mark.parametrize(("local", "clients", "delta"), [(1.0, 100, 1e-3), (4.0, 1000, 1e-5), (6.0, 10**5, 1e-9)])
def test_the_estimate_is_close_to_the_bound(local: float, clients: int, delta: float) -> None:
    letters = ShuffledLetters([[math.exp(local), 1, 2], [1, math.exp(local), 2]], clients)
    assert letters.estimated_epsilon(delta) == pytest.approx(letters.epsilon(delta), rel=0.03)


@pytest.mark.parametrize("estimate", [0.0, 1e-3, 0.5, 4.0])
def test_epsilon_does_not_depend_on_the_estimate(estimate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = ShuffledLetters([[math.exp(4.0), 1, 2], [1, math.exp(4.0), 2]], 10_000)
    usual = letters.epsilon(1e-6)
    monkeypatch.setattr(ShuffledLetters, "estimated_epsilon", lambda *_: estimate)
    assert letters.epsilon(1e-6) == pytest.approx(usual, rel=1e-6)
