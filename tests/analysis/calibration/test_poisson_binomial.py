"""Trials and theta of the Poisson-binomial mechanism for a number of bits: on the safe side, and the best of all numbers of trials."""

import pytest

from quietbits.analysis.accounting.poisson_binomial import calibrate_poisson_binomial, poisson_binomial_accounting
from quietbits.analysis.calibration.poisson_binomial import calibrate_poisson_binomial_mechanism
from quietbits.errors import InfeasibleError


@pytest.mark.parametrize(
    ("clients", "dimension", "bits", "epsilon", "rounds", "trials"),
    [(1000, 64, 13, 1.0, 1, 8), (1000, 64, 10, 0.5, 10, 1), (100, 20, 10, 4.0, 1, 10), (2, 1, 5, 0.5, 1, 1)],
)
def test_calibration_ends_on_the_safe_side(clients: int, dimension: int, bits: int, epsilon: float, rounds: int, trials: int) -> None:
    found = calibrate_poisson_binomial_mechanism(clients, dimension, 2.0, bits, epsilon, 1e-5, rounds, frame_seed=3)
    mechanism = found.mechanism
    assert found.target_epsilon == epsilon
    assert mechanism.trials == trials
    assert mechanism.modulus <= 2**bits
    account = poisson_binomial_accounting(clients, mechanism.trials, mechanism.theta, mechanism.padded_dimension).account(rounds, 1e-5)
    assert found.account == account
    assert account.epsilon is not None
    assert 0 <= epsilon - account.epsilon <= 1e-6
    if rounds == 1:
        assert mechanism.guarantee.epsilon == account.epsilon
    assert (mechanism.ball.clip_norm, mechanism.frame_seed, mechanism.clients) == (2.0, 3, clients)


@pytest.mark.parametrize(("clients", "epsilon", "best"), [(2, 0.5, 1), (2, 20.0, 4), (200, 2.0, 10)])
def test_no_other_number_of_trials_has_less_variance(clients: int, epsilon: float, best: int) -> None:
    mechanism = calibrate_poisson_binomial_mechanism(clients, 1, 1.0, (8 * clients).bit_length(), epsilon, 1e-5).mechanism
    assert mechanism.trials == best
    for trials in (1, 2, 4, 8):
        try:
            theta = dict(calibrate_poisson_binomial(clients, trials, epsilon, 1e-5, mechanism.padded_dimension).parameters)["theta"]
        except InfeasibleError:
            # So much epsilon that no theta uses it up.
            theta = 0.45
        assert mechanism.trials * mechanism.theta**2 >= trials * min(theta, 0.45) ** 2 * (1 - 1e-5)


def test_with_more_than_enough_epsilon_theta_is_the_largest_that_was_searched() -> None:
    found = calibrate_poisson_binomial_mechanism(100_000, 2, 1.0, 17, 5.0, 1e-5)
    assert (found.mechanism.trials, found.mechanism.theta) == (1, 0.45)
    assert found.account.epsilon is not None
    assert found.account.epsilon < 4.0


@pytest.mark.parametrize("clients", [1, 3, 4, 1000])
def test_bits_that_do_not_hold_one_trial_of_each_say_how_many_would(clients: int) -> None:
    fewest = clients.bit_length()
    if fewest > 1:
        with pytest.raises(InfeasibleError, match=rf"bits must be at least {fewest} to hold one trial of each of {clients} clients, got "):
            calibrate_poisson_binomial_mechanism(clients, 2, 1.0, fewest - 1, 3.0, 1e-5)
    mechanism = calibrate_poisson_binomial_mechanism(clients, 2, 1.0, fewest, 3.0, 1e-5).mechanism
    assert (mechanism.trials, mechanism.modulus) == (1, clients + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 1.0, 8, 1.0, 1e-5), "clients must be a whole number from 1 to 10000000, got 0"),
        ((2, 0, 1.0, 8, 1.0, 1e-5), "dimension must be a whole number from 1"),
        ((2, 2, 0.0, 8, 1.0, 1e-5), "clip_norm must be a number from"),
        ((2, 2, 1.0, 63, 1.0, 1e-5), "bits must be a whole number from 1 to 62, got 63"),
        ((2, 2, 1.0, 8, 0.0, 1e-5), "epsilon must be a number from 1e-05"),
        ((2, 2, 1.0, 8, 1.0, 0.0), "delta must be a number above 0 and below 1, got 0.0"),
        ((2, 2, 1.0, 8, 1.0, 1e-5, 0), "rounds must be a whole number from 1"),
        ((2, 1000, 1.0, 8, 1e-5, 1e-12), "theta would have to be below 1e-06"),
    ],
)
def test_bad_requests_are_refused(arguments: tuple[int, int, float, int, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate_poisson_binomial_mechanism(*arguments)
