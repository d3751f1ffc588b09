"""Accounts of rounds in which some clients' vectors are left out, for every mechanism of a secure sum.

The sample must be secret from the server: all clients send a message, and those that were not chosen encode a vector of zeros. What is
amplified then is the guarantee of the sum, for the client whose vector may be there or not.
"""

import math
from dataclasses import replace

from ..solvers.sampled_renyi import fixed_size_sampled_curve, poisson_sampled_curve
from .privacy_account import AccountedMechanism
from .subsampling import FixedSizeSampling, Sampling, amplified_pure_epsilon

ADJACENCY = {True: "replace-one", False: "add-or-remove-one"}


def with_secret_sampling(mechanism: AccountedMechanism, sampling: Sampling | None) -> AccountedMechanism:
    """Return the account of a mechanism whose clients' vectors are sampled.

    Parameters
    ----------
    mechanism : AccountedMechanism
        A round with everyone's vector, for add-or-remove-one adjacency with Poisson sampling and replace-one adjacency with samples of a
        fixed size.
    sampling : PoissonSampling, FixedSizeSampling or None
        How vectors are chosen; None for all of them.

    Returns
    -------
    AccountedMechanism
        Over rounds by Rényi divergences (`quietbits.solvers.sampled_renyi`); one round also by privacy loss, where that is known:
        ``ln(1 + q (e^epsilon - 1))`` at ``q delta`` (Balle, Barthe, Gaboardi 2018, *Privacy amplification by subsampling*, theorems 8, 9).

    Raises
    ------
    ValueError
        If the adjacency is the other one, or messages are not hidden in a sum.

    Examples
    --------
    >>> from quietbits.analysis.discrete_gaussian_accounting import discrete_gaussian_accounting
    >>> from quietbits.analysis.subsampling import PoissonSampling
    >>> everyone = discrete_gaussian_accounting(1000, 64, 1.0, 0.1, 0.001)
    >>> account = with_secret_sampling(everyone, PoissonSampling(0.01)).account(rounds=10, delta=1e-6)
    >>> round(account.epsilon, 3), everyone.account(rounds=10, delta=1e-6).epsilon > 4, account.sampling
    (0.116, True, 'Poisson sampling with probability 0.01')
    """
    if sampling is None:
        return mechanism
    fixed = isinstance(sampling, FixedSizeSampling)
    if mechanism.adjacency != ADJACENCY[fixed]:
        raise ValueError(f"sampling must be for {mechanism.adjacency} adjacency, got {sampling}, which is for {ADJACENCY[fixed]}")
    if mechanism.trust_model == "local":
        raise ValueError(f"sampling must be left out where the server sees each message, got {sampling}")
    if isinstance(sampling, FixedSizeSampling):
        share = sampling.sample_size / sampling.population
        curve = fixed_size_sampled_curve(mechanism.curve, share)
    else:
        share = sampling.probability
        curve = poisson_sampled_curve(mechanism.curve, share)

    def epsilon_by_loss(rounds: int, delta: float) -> float | None:
        by_loss = mechanism.epsilon_by_loss
        if by_loss is None or (rounds > 1 and share < 1):
            return None
        # Rounding must not make delta larger.
        found = by_loss(rounds, min(delta / share * (1 - 1e-15), math.nextafter(1, 0)))
        return None if found is None else amplified_pure_epsilon(found, share)

    return replace(mechanism, curve=curve, epsilon_by_loss=epsilon_by_loss, sampling=str(sampling))
