"""Every account of shifted binomial noise agrees with whole numbers and many digits."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from quietbits.solvers.divergences import binomial_divergence
from quietbits.solvers.divergences.binomial_divergence import (
    VectorSteps,
    binomial_window,
    shifted_binomial_delta,
    shifted_binomial_epsilon,
    shifted_binomial_losses,
    shifted_binomial_renyi,
    vector_binomial_renyi,
)

CASES = [(10, Fraction(1, 2), 1), (60, Fraction(1, 4), 2), (200, Fraction(7, 8), 5)]


def law(trials: int, probability: Fraction) -> list[Fraction]:
    return [math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(trials + 1)]


def directions(trials: int, probability: Fraction, shift: int) -> list[list[tuple[Fraction, Fraction]]]:
    """Return the outcome probabilities of the noise and the shifted noise, in both directions."""
    masses, nothing = law(trials, probability), [Fraction(0)] * shift
    pairs = list(zip(masses + nothing, nothing + masses, strict=True))
    return [pairs, [(other, own) for own, other in pairs]]


@pytest.mark.parametrize(("trials", "probability", "shift"), CASES)
def test_delta_and_epsilon_in_whole_fractions(trials: int, probability: Fraction, shift: int) -> None:
    both = directions(trials, probability, shift)
    for epsilon in (0.0, 0.3, 1.0):
        factor = Fraction(math.exp(epsilon))
        exact = max(sum(max(own - factor * other, Fraction(0)) for own, other in pairs) for pairs in both)
        assert shifted_binomial_delta(trials, float(probability), shift, epsilon) == pytest.approx(float(exact), rel=1e-11)
    for delta in (0.3, 0.05):
        epsilon = shifted_binomial_epsilon(trials, float(probability), shift, delta)
        if math.isinf(epsilon):
            assert max(sum(own for own, other in pairs if other == 0) for pairs in both) > delta * (1 - 1e-9)
            continue
        factor = Fraction(math.exp(epsilon))
        exact = max(sum(max(own - factor * other, Fraction(0)) for own, other in pairs) for pairs in both)
        assert exact <= delta
        assert epsilon == 0 or exact > delta * (1 - 1e-6)


@pytest.mark.parametrize(("trials", "probability", "shift"), CASES)
@pytest.mark.parametrize("neglected", [0.0, 1e-3])
def test_renyi_divergences_are_those_of_the_normalised_rest(trials: int, probability: Fraction, shift: int, neglected: float) -> None:
    orders = [1.001, 1.5, 2.0, 8.0, 64.0, math.inf]
    computed = shifted_binomial_renyi(trials, float(probability), shift, orders, neglected)
    expected, failures = np.zeros(len(orders)), []
    for pairs in directions(trials, probability, shift):
        kept = sorted((own, other) for own, other in pairs if own > 0 and other > 0)
        left_out = sum((own for own, other in pairs if other == 0), Fraction(0))
        # The rarest values are dropped, up to the neglected mass.
        rare = Fraction(0)
        while rare + kept[0][0] <= neglected:
            rare += kept.pop(0)[0]
        left_out += rare
        failures.append(float(left_out))
        with mpmath.workdps(60):
            rest = 1 - mpmath.mpf(left_out.numerator) / left_out.denominator
            numbers = [tuple(mpmath.mpf(part.numerator) / part.denominator for part in pair) for pair in kept]
            for index, order in enumerate(orders):
                if math.isinf(order):
                    value = mpmath.log(max(own / rest / other for own, other in numbers))
                else:
                    a = mpmath.mpf(order)
                    value = mpmath.log(mpmath.fsum((own / rest) ** a * other ** (1 - a) for own, other in numbers)) / (a - 1)
                expected[index] = max(expected[index], float(value))
    assert computed.divergences == pytest.approx(expected, rel=1e-9)
    assert computed.failure == pytest.approx(max(failures), rel=1e-9)


@pytest.mark.parametrize(
    ("trials", "probability", "smallest"), [(40, 0.5, -20.0), (3000, 0.01, -30.0), (20_000, 0.7, -690.0), (100_000, 0.001, -690.0)]
)
def test_a_window_has_the_values_that_are_not_rare(trials: int, probability: float, smallest: float) -> None:
    window = binomial_window(trials, probability, smallest)
    with mpmath.workdps(30):
        rate = mpmath.mpf(probability)

        def logarithm(value: int) -> mpmath.mpf:
            ways = mpmath.loggamma(trials + 1) - mpmath.loggamma(value + 1) - mpmath.loggamma(trials - value + 1)
            return ways + value * mpmath.log(rate) + (trials - value) * mpmath.log(1 - rate)

        last = window.first + len(window.logarithms) - 1
        for place in {0, 1, len(window.logarithms) // 3, len(window.logarithms) - 1}:
            assert abs(float(window.logarithms[place]) - logarithm(window.first + place)) < 1e-9
        outside = [value for value in (window.first - 1, last + 1) if 0 <= value <= trials]
        assert all(logarithm(value) < smallest for value in outside)
        beyond = [*range(max(0, window.first - 300), window.first), *range(last + 1, min(trials, last + 300) + 1)]
        total = mpmath.fsum(mpmath.exp(logarithm(k)) for k in beyond)
        assert total == 0 or mpmath.log(total) <= window.log_remainder


def test_values_next_to_a_rare_probability_are_left_out() -> None:
    trials, shift = 10**6, 3
    whole, near = (shifted_binomial_losses(trials, 0.5, shift, rare) for rare in (0.0, 1e-9))
    assert len(near.forth.losses) < len(whole.forth.losses) / 1.5
    assert 0 < near.forth.certain <= 1e-13 * 1e-9
    for delta in (1e-6, 1e-9):
        assert near.forth.epsilon(delta) == pytest.approx(whole.forth.epsilon(delta), rel=1e-9)
    # A shift by more than all values is always detected.
    assert shifted_binomial_losses(5, 0.5, 7).back.certain == 1.0


@pytest.mark.parametrize(("trials", "probability"), [(40, 0.3), (5000, 0.5), (10**6, 0.001)])
def test_windows_are_the_same_in_blocks_of_any_length(monkeypatch: pytest.MonkeyPatch, trials: int, probability: float) -> None:
    binomial_divergence.binomial_window.cache_clear()
    whole = binomial_divergence.binomial_window(trials, probability)
    binomial_divergence.binomial_window.cache_clear()
    monkeypatch.setattr(binomial_divergence, "BLOCK", 7)
    blocks = binomial_divergence.binomial_window(trials, probability)
    binomial_divergence.binomial_window.cache_clear()
    for name, value in vars(whole).items():
        np.testing.assert_allclose(np.asarray(getattr(blocks, name), dtype=float), np.asarray(value, dtype=float), rtol=1e-14)


def test_a_shift_beyond_the_support_is_certain_in_both_directions() -> None:
    losses = shifted_binomial_losses(4, 0.3, 5)
    for loss in (losses.forth, losses.back):
        assert (loss.certain, loss.unseen, len(loss.losses), len(loss.log_masses)) == (1.0, 1.0, 0, 0)
    renyi = shifted_binomial_renyi(4, 0.3, 5, [2.0, 8.0], 0.0)
    assert renyi.failure == 1.0
    assert np.all(np.isinf(renyi.divergences))


@pytest.mark.parametrize(
    ("probability", "dimension", "steps"), [(0.3, 3, VectorSteps(6, 4, 2)), (0.1, 2, VectorSteps(18, 6, 4)), (0.5, 4, VectorSteps(5, 5, 2))]
)
def test_every_vector_within_its_steps_is_below_the_bound(probability: float, dimension: int, steps: VectorSteps) -> None:
    # The test enumerates all vectors, in all directions of their coordinates.
    orders = [1.3, 2.0, 6.0]
    bound = vector_binomial_renyi(300, probability, dimension, steps, orders, 0.0)
    assert bound is not None
    worst = np.zeros(len(orders))
    for vector in product(range(steps.largest + 1), repeat=dimension):
        if sum(vector) <= steps.total and sum(step**2 for step in vector) <= steps.squares:
            each = [shifted_binomial_renyi(300, probability, step, orders, 0.0).divergences for step in vector if step]
            worst = np.maximum(worst, np.sum(each, axis=0) if each else 0.0)
    assert (worst <= bound.divergences * (1 + 1e-12)).all()
    assert (bound.divergences <= 1.5 * worst).all()


def test_fewer_shifts_bound_all_shifts(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, steps = [1.5, 3.0, 20.0], VectorSteps(5000, 4000, 60)
    every = vector_binomial_renyi(10**5, 0.2, 50, steps, orders, 1e-12)
    monkeypatch.setattr(binomial_divergence, "MOST_VALUES", 20 * 18 * 130)
    few = vector_binomial_renyi(10**5, 0.2, 50, steps, orders, 1e-12)
    assert every is not None
    assert few is not None
    assert (every.divergences <= few.divergences).all()
    assert (few.divergences <= 1.5 * every.divergences).all()
    assert few.failure == every.failure
    monkeypatch.setattr(binomial_divergence, "MOST_VALUES", 18 * 130)
    assert vector_binomial_renyi(10**5, 0.2, 50, steps, orders, 1e-12) is None
    assert binomial_divergence.most_shifts(10**11, 0.5) == 0


@pytest.mark.parametrize(("largest", "most"), [(5, 16), (16, 16), (17, 16), (500, 16), (10**6, 40)])
def test_chosen_shifts_rise_from_one_to_the_largest(largest: int, most: int) -> None:
    shifts = binomial_divergence._chosen_shifts(largest, most)
    assert (shifts[0], shifts[-1]) == (1, largest)
    assert shifts == sorted(set(shifts))
    assert len(shifts) <= most + 1
