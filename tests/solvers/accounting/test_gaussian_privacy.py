"""The privacy of Gaussian noise against fifty digits and dp-accounting's losses.

Every root is on the safe side.
"""

import math

import mpmath
import numpy as np
import pytest
from privacy_losses import gaussian_privacy_loss

from quietbits.solvers.accounting import gaussian_privacy
from quietbits.solvers.accounting.gaussian_privacy import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_epsilon_exceeds,
    gaussian_epsilons_exceed,
    gaussian_noise_multiplier,
)

EPSILONS = [0.0, 1e-3, 0.1, 1.0, 5.0, 100.0]
DELTAS = [1e-300, 1e-15, 1e-5, 0.5]


def precise_delta(noise_multiplier: float, epsilon: float) -> mpmath.mpf:
    """Return theorem 8 of Balle and Wang as printed, in enough digits for all cancellations."""
    # The two terms differ by a relative 1 / noise_multiplier or more.
    with mpmath.workdps(80 + max(0, round(math.log10(noise_multiplier)))):
        z, e = mpmath.mpf(noise_multiplier), mpmath.mpf(epsilon)
        return mpmath.ncdf(1 / (2 * z) - e * z) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * z) - e * z)


@pytest.mark.parametrize("noise_multiplier", [0.01, 0.2, 0.999, 1.0, 1.001, 7.0, 1e3, 1e9])
@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 1e-3, 0.5, 3.0, 30.0, 100.0])
def test_delta_has_ten_digits(noise_multiplier: float, epsilon: float) -> None:
    exact = float(precise_delta(noise_multiplier, epsilon))
    assert gaussian_delta(noise_multiplier, epsilon) == pytest.approx(exact, rel=1e-10, abs=1e-305)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [*DELTAS, 0.999])
def test_the_noise_is_enough_and_a_billionth_less_is_not(epsilon: float, delta: float) -> None:
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    assert precise_delta(multiplier, epsilon) <= delta
    assert precise_delta(multiplier * (1 - 1e-9), epsilon) > delta


@pytest.mark.parametrize("noise_multiplier", [0.2, 0.8, 3.0, 90.0, 4350.0])
@pytest.mark.parametrize("share", [1e-15, 1e-13, 1e-10, 1e-6])
def test_epsilon_is_enough_where_it_is_next_to_nothing(noise_multiplier: float, share: float) -> None:
    delta = gaussian_delta(noise_multiplier, 0.0) * (1 - share)
    epsilon = gaussian_epsilon(noise_multiplier, delta)
    assert precise_delta(noise_multiplier, epsilon) <= delta
    assert precise_delta(noise_multiplier, epsilon - 1e-9) > delta or epsilon < 1e-9


@pytest.mark.parametrize("noise_multiplier", [0.01, 0.5, 1.0, 4.0, 300.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_enough_and_a_billionth_less_is_not(noise_multiplier: float, delta: float) -> None:
    epsilon = gaussian_epsilon(noise_multiplier, delta)
    if epsilon == 0:
        assert precise_delta(noise_multiplier, 0.0) <= delta
    else:
        assert precise_delta(noise_multiplier, epsilon) <= delta
        assert precise_delta(noise_multiplier, epsilon * (1 - 1e-9)) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (5.0, 1e-3)])
def test_loss_distributions_agree(epsilon: float, delta: float) -> None:
    multiplier = gaussian_noise_multiplier(epsilon, delta)
    # The loss is rounded upward to a grid of 1e-4, so the bound is never below, and hardly above.
    loss = gaussian_privacy_loss(multiplier)
    assert epsilon * (1 - 1e-9) <= loss.get_epsilon_for_delta(delta) <= epsilon + 1e-4
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(gaussian_delta(multiplier, epsilon), rel=1e-3)


def test_calibration_and_accounting_are_inverse() -> None:
    for epsilon in np.geomspace(1e-3, 1e3, 25):
        assert gaussian_epsilon(gaussian_noise_multiplier(epsilon, 1e-6), 1e-6) == pytest.approx(epsilon, rel=2e-9)


@pytest.mark.parametrize("noise_multiplier", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_which_epsilons_are_exceeded(noise_multiplier: float, delta: float) -> None:
    epsilon = gaussian_epsilon(noise_multiplier, delta)
    assert gaussian_epsilon_exceeds(epsilon * (1 - 1e-8), noise_multiplier, delta) or epsilon == 0
    assert not gaussian_epsilon_exceeds(epsilon, noise_multiplier, delta)
    assert gaussian_epsilon_exceeds(-1e-9, noise_multiplier, delta)
    assert not gaussian_epsilon_exceeds(math.inf, noise_multiplier, delta)


def test_arrays_are_compared_as_their_entries_are() -> None:
    cases = [
        (epsilon, multiplier, delta)
        for multiplier in (0.01, 0.9, 1.1, 40.0, 1e4)
        for delta in (1e-200, 1e-9, 0.1)
        for epsilon in (
            -1.0,
            0.0,
            *(gaussian_epsilon(multiplier, delta) * factor for factor in (0.5, 1 - 1e-8, 1.0, 1 + 1e-8, 3.0)),
            math.inf,
        )
    ]
    exceeds = gaussian_epsilons_exceed(*np.array(cases).T)
    assert exceeds.tolist() == [gaussian_epsilon_exceeds(*case) for case in cases]


def test_a_multiplier_of_one_is_found() -> None:
    # The logarithm is 0, which has no relative precision.
    assert gaussian_noise_multiplier(1.0, gaussian_delta(1.0, 1.0)) == pytest.approx(1.0, rel=1e-9)


def test_the_privacy_of_no_epsilon_is_total_variation() -> None:
    assert gaussian_delta(2.0, 0.0) == pytest.approx(math.erf(0.25 / math.sqrt(2)), rel=1e-14)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf, 2e4])
def test_a_bad_epsilon_is_refused(epsilon: float) -> None:
    for function in (lambda: gaussian_noise_multiplier(epsilon, 1e-5), lambda: gaussian_delta(1.0, epsilon)):
        with pytest.raises(ValueError, match="epsilon must be a number from 0 to 10000"):
            function()


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_a_bad_delta_is_refused(delta: float) -> None:
    for function in (lambda: gaussian_noise_multiplier(1.0, delta), lambda: gaussian_epsilon(1.0, delta)):
        with pytest.raises(ValueError, match=r"delta must be a number from 1e-300 to 0\.999"):
            function()


@pytest.mark.parametrize("noise_multiplier", [0.0, -1.0, math.nan])
def test_a_bad_noise_multiplier_is_refused(noise_multiplier: float) -> None:
    for function in (lambda: gaussian_epsilon(noise_multiplier, 1e-5), lambda: gaussian_delta(noise_multiplier, 1.0)):
        with pytest.raises(ValueError, match=r"noise_multiplier must be a number from 0\.001 to 1e\+300"):
            function()


@pytest.mark.parametrize("multiplier", [1e-3, 0.1, 1.0, 30.0, 1e6, 1e200])
def test_tangents_and_halvings_end_at_the_same_epsilon(multiplier: float, monkeypatch: pytest.MonkeyPatch) -> None:
    deltas = (1e-300, 1e-250, 1e-15, 1e-5, 0.1, 0.9)
    by_tangents = [gaussian_epsilon(multiplier, delta) for delta in deltas]
    monkeypatch.setattr(gaussian_privacy, "_by_tangents", lambda *_: None)
    assert by_tangents == pytest.approx([gaussian_epsilon(multiplier, delta) for delta in deltas], rel=1e-12, abs=0)


@pytest.mark.parametrize("noise_multiplier", [1e-3, 0.01, 0.2, 0.99, 1.3])
def test_the_bound_on_delta_is_never_rounded_down(noise_multiplier: float) -> None:
    # Epsilons from far below to far above the mean loss, at which exponents are largest.
    for deviations in (-3.0, -0.5, 0.0, 0.7, 2.0, 6.0, 20.0):
        epsilon = 0.5 / noise_multiplier**2 + deviations / noise_multiplier
        if epsilon >= 0:
            exact = mpmath.log(precise_delta(noise_multiplier, epsilon))
            assert exact <= gaussian_privacy._log_delta_bound(noise_multiplier, epsilon) <= exact + 1e-7
