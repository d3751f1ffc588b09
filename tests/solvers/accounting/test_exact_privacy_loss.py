"""Rényi divergences of two distributions value by value, against many digits: at any order, and whatever the losses."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

from quietbits.solvers.accounting.exact_privacy_loss import ExactPrivacyLoss

ORDERS = np.array([1 + 1e-9, 1.001, 1.05, 1.5, 2.0, 10.0, 64.0, 1000.0, 1e6, 1e100, 1e300])


def exact_divergence(loss: ExactPrivacyLoss, order: float) -> mpmath.mpf:
    above = mpmath.mpf(order) - 1
    terms = zip(loss.log_masses.tolist(), loss.losses.tolist(), strict=True)
    return mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(log_mass) + above * mpmath.mpf(value)) for log_mass, value in terms)) / above


# Sums of more than 1024 values are computed in other ways.
@pytest.mark.parametrize(
    ("values", "scale"), [*itertools.product([1, 2, 3, 50, 1025], [0.0, 1e-160, 1e-6, 0.1, 30.0]), (1024, 0.1), (1024, 30.0)]
)
def test_they_have_all_digits_at_every_order(values: int, scale: float) -> None:
    rng = np.random.default_rng(values)
    other, losses = rng.dirichlet(np.ones(values)), rng.normal(size=values) * scale
    # Both distributions leave something out.
    log_masses = np.log(other) + losses
    log_masses -= max(float(logsumexp(log_masses)), 0.0) + math.log(1.001)
    with mpmath.workdps(50):
        kept = [mpmath.exp(mpmath.mpf(log_mass)) for log_mass in log_masses.tolist()]
        kept_other = [mass * mpmath.exp(-mpmath.mpf(value)) for mass, value in zip(kept, losses.tolist(), strict=True)]
        loss = ExactPrivacyLoss(log_masses, losses, float(1 - mpmath.fsum(kept)), float(1 - mpmath.fsum(kept_other)))
        orders = ORDERS if values < 1000 else ORDERS[[1, 4, 6, 9]]
        for order, found in zip(orders.tolist(), loss.renyi_divergences(orders).tolist(), strict=True):
            expected = exact_divergence(loss, order)
            # What is left out is a number of 53 bits, which counts for much at orders next to one.
            allowed = abs(expected) * 1e-11 + 4e-16 * (1 / (order - 1) + 1) * (abs(mpmath.log(1 - loss.certain)) + 1)
            assert abs(found - expected) <= allowed
