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
    """Return epsilon of a Gaussian event of noise multiplier 2 at delta 1e-5, as dp-accounting replaces a client."""
    return accountant(neighboring_relation=REPLACE_ONE).compose(GaussianDpEvent(2.0)).get_epsilon(1e-5)
