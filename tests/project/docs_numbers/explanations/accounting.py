"""Numbers of docs/explanations/accounting.md."""

from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import quietbits

REPLACE_ONE = NeighboringRelation.REPLACE_ONE


def gaussian(multiplier: float, delta: float) -> float:
    """Return epsilon of one round of Gaussian noise."""
    return quietbits.account("gaussian", noise_multiplier=multiplier, delta=delta).epsilon


def replace_one(accountant: type[PLDAccountant] | type[RdpAccountant]) -> float:
    """Return dp-accounting's replace-one epsilon of Gaussian noise.

    The noise multiplier is 2, and delta 1e-5.
    """
    return accountant(neighboring_relation=REPLACE_ONE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)
