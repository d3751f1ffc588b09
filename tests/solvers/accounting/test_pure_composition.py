"""Pure privacy over rounds.

The tests run against fifty digits, and against dp-accounting on a grid without rounding.
"""

import math

import mpmath
import pytest
from dp_accounting.pld.pld_pmf import SparsePLDPmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from quietbits.solvers.accounting.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon

SETTINGS = [(0.1, 100, 1e-5), (1.0, 1, 1e-3), (1.0, 1, 0.4), (2.0, 7, 1e-8), (0.01, 1000, 1e-6), (3.0, 50, 1e-6), (1e-6, 10, 1e-9)]


def exact_delta(epsilon: float, rounds: int, total: float) -> mpmath.mpf:
    """Return the failure probability of T rounds of binary randomised response, in fifty digits."""
    with mpmath.workdps(50):
        keep = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        losses = [(2 * k - rounds) * mpmath.mpf(epsilon) for k in range(rounds + 1)]
        chances = [mpmath.binomial(rounds, k) * keep**k * (1 - keep) ** (rounds - k) for k in range(rounds + 1)]
        terms = [chance * (1 - mpmath.exp(total - loss)) for loss, chance in zip(losses, chances, strict=True) if loss > total]
        return mpmath.fsum(terms)


@pytest.mark.parametrize(("epsilon", "rounds", "delta"), [*SETTINGS, (0.3, 40, 1e-60), (5.0, 3, 1e-200)])
def test_delta_at_the_epsilon_returned_is_just_below(epsilon: float, rounds: int, delta: float) -> None:
    result = composed_pure_epsilon(epsilon, rounds, delta)
    assert exact_delta(epsilon, rounds, result) <= delta
    if result > 0:
        assert exact_delta(epsilon, rounds, result * (1 - 1e-7)) > delta


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 15.0])
@pytest.mark.parametrize("share", [1e-15, 1e-14, 1e-9])
def test_the_epsilon_of_one_round_that_is_next_to_nothing(epsilon: float, share: float) -> None:
    # At delta = tanh(epsilon / 2) epsilon becomes 0, as all digits of the loss and the subtracted logarithm cancel.
    delta = math.tanh(epsilon / 2) * (1 - share)
    result = composed_pure_epsilon(epsilon, 1, delta)
    assert exact_delta(epsilon, 1, result) <= delta
    assert result <= 1e-2


@pytest.mark.parametrize(("epsilon", "rounds", "delta"), SETTINGS)
def test_agrees_with_dp_accounting_where_nothing_is_rounded(epsilon: float, rounds: int, delta: float) -> None:
    keep = 1 / (1 + math.exp(-epsilon))
    # Losses are whole multiples of epsilon, which is the grid's interval.
    loss = PrivacyLossDistribution(SparsePLDPmf({1: keep, -1: 1 - keep}, epsilon, 0.0, pessimistic_estimate=True)).self_compose(rounds)
    assert composed_pure_epsilon(epsilon, rounds, delta) == pytest.approx(loss.get_epsilon_for_delta(delta), rel=1e-6, abs=1e-9)


def test_is_never_more_than_simple_composition_and_falls_with_delta() -> None:
    result = [composed_pure_epsilon(0.2, 60, 10.0**-power) for power in range(1, 300, 7)]
    assert result == sorted(result)
    assert result[-1] <= 60 * 0.2
    assert result[-1] == pytest.approx(12.0)
    # Floating point cannot hold these probabilities, so they prove no smaller epsilon.
    assert composed_pure_epsilon(0.2, 60, 1e-310) == 0.2 * 60


def test_no_privacy_is_lost_by_a_mechanism_that_says_nothing_or_at_a_delta_that_covers_it_all() -> None:
    assert composed_pure_epsilon(0.0, 10, 1e-9) == 0.0
    # One use at epsilon = 1 has a total variation of tanh(1/2) = 0.462.
    assert composed_pure_epsilon(1.0, 1, 0.47) == 0.0


def test_a_million_rounds() -> None:
    # The composition is close to Gaussian noise with mu = epsilon sqrt(T) = 1, for which epsilon at 1e-6 is 4.886 (Dong, Roth, Su 2022,
    # theorem 3.5).
    assert composed_pure_epsilon(1e-3, MOST_COMPOSED_ROUNDS, 1e-6) == pytest.approx(4.886, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1, 0.1), "epsilon must be a number from 0"),
        ((1.0, 0, 0.1), "rounds must be a whole number from 1"),
        ((1.0, 10**7, 0.1), "rounds must be a whole number from 1"),
        ((1.0, 1, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
        ((1.0, 1, 1.0), "delta must be a number above 0 and below 1, got 1.0"),
    ],
)
def test_bad_arguments(arguments: tuple[float, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        composed_pure_epsilon(*arguments)


def test_deltas_below_the_least_leave_the_sum_of_epsilons() -> None:
    # Probabilities of the rarest answers are below the least float, so that their sum would count as zero.
    assert composed_pure_epsilon(0.1, 10_000, 1e-305) == 1000.0
    assert composed_pure_epsilon(0.1, 10_000, 1e-299) < 500
