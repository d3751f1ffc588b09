"""Trials and theta of the Poisson-binomial mechanism for a number of bits.

Calibration ends on the safe side, with the best number of trials.
"""

import math
from typing import Any

import pytest

from quietbits.analysis.catalogue.accounts import account, calibrate
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget
from quietbits.design.secure_sum.poisson_binomial_mechanism import calibrate_poisson_binomial, calibrate_theta, poisson_binomial_privacy
from quietbits.errors import InfeasibleError


@pytest.mark.parametrize(
    ("clients", "dimension", "bits", "epsilon", "rounds", "trials"),
    # The account computes all configurations of 100 clients with one trial each, and bounds those of ten trials each, which are better.
    [(1000, 64, 13, 1.0, 1, 8), (1000, 64, 10, 0.5, 10, 1), (100, 20, 10, 4.0, 1, 10), (2, 1, 5, 0.5, 1, 1)],
)
def test_calibration_ends_on_the_safe_side(clients: int, dimension: int, bits: int, epsilon: float, rounds: int, trials: int) -> None:
    budget = Budget(epsilon, 1e-5, "replace-one", rounds)
    mechanism = calibrate_poisson_binomial(NormBall(dimension, 2.0, 2.0), clients, bits, budget, frame_seed=3)
    assert mechanism.trials == trials
    assert mechanism.modulus <= 2**bits
    privacy = poisson_binomial_privacy(clients, mechanism.trials, mechanism.theta, mechanism.padded_dimension)
    assert 0 <= epsilon - privacy.epsilon(1e-5, rounds=rounds) <= 1e-6
    assert mechanism.privacy().epsilon(1e-5, rounds=rounds) == privacy.epsilon(1e-5, rounds=rounds)
    assert (mechanism.ball.clip_norm, mechanism.frame_seed, mechanism.clients) == (2.0, 3, clients)


@pytest.mark.parametrize(("clients", "epsilon", "best"), [(2, 0.5, 1), (2, 20.0, 4), (200, 2.0, 10)])
def test_no_other_number_of_trials_has_less_variance(clients: int, epsilon: float, best: int) -> None:
    budget = Budget(epsilon, 1e-5, "replace-one")
    mechanism = calibrate_poisson_binomial(NormBall(1, 2.0), clients, (8 * clients).bit_length(), budget)
    assert mechanism.trials == best
    for trials in (1, 2, 4, 8):
        try:
            theta = calibrate_theta(clients, trials, mechanism.padded_dimension, budget)
        except InfeasibleError:
            # The epsilon is so large that no theta uses it up.
            theta = 0.45
        assert mechanism.trials * mechanism.theta**2 >= trials * min(theta, 0.45) ** 2 * (1 - 1e-5)


def test_with_more_than_enough_epsilon_theta_is_the_largest_that_was_searched() -> None:
    mechanism = calibrate_poisson_binomial(NormBall(2, 2.0), 100_000, 17, Budget(5.0, 1e-5, "replace-one"))
    assert (mechanism.trials, mechanism.theta) == (1, 0.45)
    assert mechanism.guarantee.epsilon < 4.0


def test_the_assumption_that_nobody_proved_buys_less_noise_and_no_guarantee() -> None:
    # The proven bound by cells costs less than two percent of the variance.
    ball = NormBall(64, 2.0)
    proven, assumed = (
        calibrate_poisson_binomial(ball, 1000, 13, Budget(1.0, 1e-5, "replace-one", method=method)) for method in (None, "rdp-extremes")
    )
    assert 1.0 < proven.variance_bound / assumed.variance_bound < 1.02
    assert 1.0 < assumed.guarantee.epsilon < 1.02
    assert 0 <= 1.0 - assumed.privacy().report(1e-5).epsilon_by("rdp-extremes") <= 1e-6


@pytest.mark.parametrize("clients", [1, 3, 4, 1000])
def test_bits_that_do_not_hold_one_trial_of_each_say_how_many_do(clients: int) -> None:
    fewest, budget = clients.bit_length(), Budget(3.0, 1e-5, "replace-one")
    if fewest > 1:
        with pytest.raises(InfeasibleError, match=rf"bits must be at least {fewest} to hold one trial of each of {clients} clients, got "):
            calibrate_poisson_binomial(NormBall(2, 2.0), clients, fewest - 1, budget)
    mechanism = calibrate_poisson_binomial(NormBall(2, 2.0), clients, fewest, budget)
    assert (mechanism.trials, mechanism.modulus) == (1, clients + 1)


def test_calibrate_says_which_theta_it_found_and_account_what_rests_on_it() -> None:
    calibrated = calibrate("poisson-binomial", epsilon=1.0, delta=1e-5, clients=1000, trials=4, dimension=16)
    # The frame sends 32 coefficients.
    assert calibrated["theta"] == calibrate_theta(1000, 4, 32, Budget(1.0, 1e-5, "replace-one"))
    assert (calibrated["dimension"], calibrated["padded_dimension"]) == (16, 32)
    assert calibrated.report.subject.bits_per_client == 32 * math.log2(4001)
    assert 0 <= 1.0 - calibrated.epsilon <= 1e-6
    values: dict[str, Any] = {"clients": 1000, "trials": 4, "theta": calibrated["theta"], "dimension": 16}
    details = account("poisson-binomial", **values, delta=1e-5, order=2.0).subject.details
    # With 64 cells for half of the configurations, the bound gives away 1/128 of the noise.
    assert 1.0 < details["rdp_proven"] / details["rdp"] < 1.01
    assert (details["worst_case"], details["rdp_order"]) == ("all others at one extreme", 2.0)
    few = account("poisson-binomial", **(values | {"clients": 20}), delta=1e-5).subject.details
    assert few["worst_case"] == "all configurations"


def test_vectors_have_one_coordinate_and_the_frame_the_first_seed_unless_others_are_given() -> None:
    report = account("poisson-binomial", clients=1000, trials=4, theta=0.2, delta=1e-5)
    # A frame for a single number has two columns.
    assert (report.subject.details["dimension"], report.subject.details["padded_dimension"]) == (1, 2)
    mechanism = calibrate_poisson_binomial(NormBall(1, 2.0), 2, 5, Budget(1.0, 1e-5, "replace-one"))
    assert mechanism.frame_seed == 0


def test_more_clients_than_trials_of_the_search_toss_once_each() -> None:
    # Sums of 24 bits hold 15 trials, but the search takes no more than a million of all clients together.
    mechanism = calibrate_poisson_binomial(NormBall(1, 2.0), 2**20 + 1, 24, Budget(1.0, 1e-5, "replace-one"))
    assert (mechanism.trials, mechanism.theta) == (1, 0.45)
    assert mechanism.guarantee.epsilon < 1.0


@pytest.mark.parametrize(
    ("changes", "budget", "message"),
    [
        ({"clients": 0}, {}, "clients must be a whole number from 1 to 10000000, got 0"),
        ({"bits": 63}, {}, "bits must be a whole number from 1 to 62, got 63"),
        ({"frame_seed": -1}, {}, "seed must be a whole number from 0"),
        ({}, {"epsilon": 0.0}, "epsilon must be a number from 1e-05"),
        ({}, {"delta": 0.0}, "delta must be a number above 0 and below 1, got 0.0"),
        ({}, {"rounds": 0}, "rounds must be a whole number from 1"),
        ({}, {"adjacency": "add-or-remove-one"}, "adjacency must be one of replace-one, got 'add-or-remove-one'"),
        ({"ball": NormBall(1000, 2.0)}, {"epsilon": 1e-5, "delta": 1e-12}, "theta would have to be below 1e-06"),
        ({"ball": NormBall(2, 1.0)}, {}, "ball must be of norm 2"),
    ],
)
def test_bad_requests_are_refused(changes: dict[str, Any], budget: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"ball": NormBall(2, 2.0), "clients": 2, "bits": 8} | changes
    with pytest.raises(ValueError, match=message):
        calibrate_poisson_binomial(**arguments, budget=Budget(**({"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"} | budget)))


def test_trials_that_the_bits_do_not_hold_are_refused() -> None:
    ball, budget = NormBall(4, 2.0), Budget(1.0, 1e-5, "replace-one")
    # Ten clients with six trials each have sums from 0 to 60.
    assert calibrate_poisson_binomial(ball, 10, 6, budget, trials=6).modulus <= 64
    with pytest.raises(InfeasibleError, match="bits must be at least 7 to hold 7 trials of each of 10 clients, got 6"):
        calibrate_poisson_binomial(ball, 10, 6, budget, trials=7)
