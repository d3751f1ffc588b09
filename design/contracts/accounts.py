"""Privacy accounts that mechanisms share: pure privacy, Rényi divergences, privacy losses.

Each account composes over rounds, and covers secret sampling.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Protocol

import numpy as np

from ...solvers.accounting.composed_losses import LossPair, losses_of_distribution, pure_losses
from ...solvers.accounting.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon
from ...solvers.accounting.pure_privacy import LARGEST_EPSILON, pure_renyi_divergences
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, LazyRenyiCurve, RenyiCurve
from ...solvers.accounting.sampling import (
    FixedSizeSampling,
    Sampling,
    amplified_epsilon,
    delta_of_everyone,
    fixed_size_sampled_curve,
    poisson_sampled_curve,
    sampled_share,
)
from .privacy import Account, Bound, EpsilonBound, Losses, Privacy

NEEDS_DELTA = "delta must be above 0 for this account"
# Largest number of uses of a privacy loss distribution that a grid composes.
MOST_COMPOSITIONS = 20_000
# Bound per use on the delta that the Fourier transform of a composition omits. dp-accounting does not count this error; measured
# differences from exact composition are 1e-17 and 2e-17, in both directions.
FOURIER_ERROR = 2e-15

SampledCurve = Callable[[RenyiCurve, Sampling], RenyiCurve]
EpsilonByLoss = Callable[[int, float], float | None]
"""Upper bound on epsilon as a function of rounds and delta; None where it is too expensive, or delta too small for it."""


class LossAtDelta(Protocol):
    """A privacy loss distribution that states an epsilon, by the name of dp-accounting's method."""

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the least epsilon with at most this hockey-stick divergence."""


class ComposableLoss(LossAtDelta, Protocol):
    """A privacy loss distribution, its methods named as dp-accounting's."""

    def self_compose(self, num_times: int, /) -> LossAtDelta:
        """Return the distribution of the sum of independent losses."""


def pure_account(epsilon: float, adjacency: str = "replace-one") -> Account:
    """Return the account of pure privacy: epsilon adds up over rounds, and delta is not needed."""

    def of_one_round(sampling: Sampling | None) -> float:
        return epsilon if sampling is None else amplified_epsilon(epsilon, sampled_share(sampling, adjacency))

    def bound(_: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if math.isinf(epsilon):
            return EpsilonBound.nothing("there is no pure guarantee: an output that one input can give is impossible for another")
        return EpsilonBound(rounds * of_one_round(sampling))

    def losses(_: float, rounds: int, sampling: Sampling | None) -> LossPair | None:
        composable = rounds <= MOST_COMPOSED_ROUNDS and epsilon <= LARGEST_EPSILON
        return LossPair(pure_losses(of_one_round(sampling), rounds)) if composable else None

    return Account("pure", adjacency, bound, at_delta_zero=True, losses=losses)


def renyi_account(
    curve: Callable[[], RenyiCurve | LazyRenyiCurve],
    adjacency: str,
    *,
    name: str = "rdp",
    sampled: SampledCurve | None = None,
    assumes: str | None = None,
    conversion: str = "optimal",
) -> Account:
    """Return the account by Rényi divergences.

    Parameters
    ----------
    curve : callable
        Function that returns the Rényi curve of one round; it is called on demand, at most once, and returns a lazy curve if each order
        takes long.
    adjacency : str
        Adjacency of the account.
    name, assumes
        Fields of `Account`.
    sampled : callable or None
        Divergences of a round with sampled clients; the default holds for every mechanism whose sample is secret.
    conversion : str
        Conversion, as in `RenyiCurve.epsilon`.
    """
    curve = cache(curve)

    @cache
    def of_one_round(sampling: Sampling | None) -> RenyiCurve | LazyRenyiCurve:
        divergences = curve()
        if sampling is None:
            return divergences
        whole = divergences.whole() if isinstance(divergences, LazyRenyiCurve) else divergences
        return (secretly_sampled_curve(adjacency) if sampled is None else sampled)(whole, sampling)

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if delta == 0:
            return EpsilonBound.nothing(NEEDS_DELTA)
        least = of_one_round(sampling).composed(rounds).epsilon(delta, conversion)
        reason = None if math.isfinite(least.epsilon) else "no Rényi divergence is finite"
        return EpsilonBound(least.epsilon, reason, least.order, least.at_edge)

    return Account(name, adjacency, bound, assumes=assumes, curve=of_one_round)


def loss_account(
    name: str,
    epsilon_by_loss: EpsilonByLoss,
    adjacency: str,
    *,
    sampled: Callable[[int, float, Sampling], float | None] | None = None,
    assumes: str | None = None,
    losses: Losses | None = None,
) -> Account:
    """Return the account by the distribution of the privacy loss.

    Parameters
    ----------
    name, adjacency, assumes
        Fields of `Account`.
    epsilon_by_loss : callable
        Epsilon as a function of rounds and delta; None if epsilon is too expensive to compute or unknown.
    sampled : callable or None
        Epsilon of rounds with sampled clients. By default one round is amplified as an (epsilon, delta) guarantee, and several rounds have
        an account only if every client takes part.
    losses : callable or None
        Field of `Account`.
    """

    def secretly_sampled(rounds: int, delta: float, sampling: Sampling) -> float | None:
        share = sampled_share(sampling, adjacency)
        if share < 1 and rounds > 1:
            return None
        epsilon = epsilon_by_loss(rounds, delta_of_everyone(delta, share))
        return None if epsilon is None else amplified_epsilon(epsilon, share)

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if delta == 0:
            return EpsilonBound.nothing(NEEDS_DELTA)
        if sampling is None:
            epsilon = epsilon_by_loss(rounds, delta)
        else:
            epsilon = (secretly_sampled if sampled is None else sampled)(rounds, delta, sampling)
        if epsilon is None or math.isinf(epsilon):
            return EpsilonBound.nothing("too expensive to compute, or not known, for these rounds, this sampling and this delta")
        return EpsilonBound(epsilon)

    return Account(name, adjacency, bound, assumes=assumes, losses=losses)


def needing_delta(bound: Bound) -> Bound:
    """Return a bound that is infinite at delta = 0, from a bound that needs a positive delta."""
    return lambda delta, rounds, sampling: EpsilonBound.nothing(NEEDS_DELTA) if delta == 0 else bound(delta, rounds, sampling)


def secretly_sampled_curve(adjacency: str) -> SampledCurve:
    """Return a function that amplifies a round's divergences for a secret sample.

    The amplified divergences hold for every mechanism of the adjacency.
    """

    def sampled(curve: RenyiCurve, sampling: Sampling) -> RenyiCurve:
        share = sampled_share(sampling, adjacency)
        return (fixed_size_sampled_curve if isinstance(sampling, FixedSizeSampling) else poisson_sampled_curve)(curve, share)

    return sampled


def amplified_rounds(
    single: Callable[[float], EpsilonBound], delta: float, rounds: int, sampling: Sampling, adjacency: str
) -> EpsilonBound:
    """Return the bound of sampled rounds from the bound of one round with all clients.

    Both bounds are functions of delta. Each round has ln(1 + q (e^epsilon - 1)) at q delta. Rounds that are (e, d)-private each are, for
    every d', (e', T d + d')-private together, with e' the epsilon of T uses of binary randomised response (`composed_singles`).
    """
    share = sampled_share(sampling, adjacency)

    def sampled(delta: float) -> EpsilonBound:
        everyone = single(delta_of_everyone(delta, share))
        return replace(everyone, epsilon=amplified_epsilon(everyone.epsilon, share)) if math.isfinite(everyone.epsilon) else everyone

    return composed_singles(sampled, delta, rounds)


def composed_singles(single: Callable[[float], EpsilonBound], delta: float, rounds: int) -> EpsilonBound:
    """Return the bound of several rounds from the bound of one round, by `composed_rounds`.

    Both bounds are functions of delta; the rounds and their composition each use half of delta. The result is never below the bound of one
    round, which may be loose for a tiny epsilon.
    """
    whole = single(delta)
    if rounds == 1 or math.isinf(whole.epsilon):
        return whole
    of_one = single(delta / (2 * rounds))
    if math.isinf(of_one.epsilon):
        return of_one
    return replace(of_one, epsilon=max(whole.epsilon, composed_rounds(of_one.epsilon, rounds, delta / 2)))


def composed_rounds(epsilon: float, rounds: int, delta: float) -> float:
    """Return an upper bound on epsilon of (epsilon, d)-private rounds at ``rounds * d + delta``.

    The bound is the epsilon of as many uses of binary randomised response (Kairouz, Oh, Viswanath 2015, *The composition theorem for
    differential privacy*, theorem 3.3), or the sum of all epsilons if the uses are too many, or epsilon is too large, to compute it.

    Examples
    --------
    >>> round(composed_rounds(0.1, 100, 1e-5), 4), composed_rounds(2e6, 3, 1e-5)
    (4.3068, 6000000.0)
    """
    composable = rounds <= MOST_COMPOSED_ROUNDS and epsilon <= LARGEST_EPSILON
    return composed_pure_epsilon(epsilon, rounds, delta) if composable else rounds * epsilon


def composed_loss(loss: ComposableLoss, times: int, delta: float, composed_before: int = 1) -> float | None:
    """Return epsilon after independent uses of a privacy loss distribution, or None.

    The result is None if the composition is too expensive, if its numerical error may exceed half of delta, or if epsilon is infinite.

    Parameters
    ----------
    loss : ComposableLoss
        Losses of one use, rounded upward.
    times : int
        Number of uses.
    delta : float
        Failure probability, above 0 and below 1.
    composed_before : int
        Number of uses that the distribution itself composes.
    """
    allowed = delta - FOURIER_ERROR * times * composed_before
    if times > MOST_COMPOSITIONS or allowed < delta / 2:
        return None
    composed: LossAtDelta = loss.self_compose(times) if times > 1 else loss
    # Epsilon is the logarithm of a ratio that may overflow for losses near 700 and above: epsilon is infinite then.
    with np.errstate(over="ignore"):
        epsilon = float(composed.get_epsilon_for_delta(allowed))
    return epsilon if math.isfinite(epsilon) else None


def repeated_losses(loss: ComposableLoss, times: int, delta: float, composed_before: int = 1) -> LossPair | None:
    """Return the losses of independent uses of a distribution; None if they are too expensive, or too inexact for delta.

    Arguments are those of `composed_loss`. The numerical error of the composition counts as certain failure.
    """
    missed = FOURIER_ERROR * times * composed_before
    if times > MOST_COMPOSITIONS or missed > delta / 2:
        return None
    return losses_of_distribution(loss.self_compose(times), missed)


def pure_privacy(epsilon: float, trust_model: str = "local", adjacency: str = "replace-one") -> Privacy:
    """Return the privacy of a mechanism with a given pure epsilon.

    Binary randomised response dominates every such mechanism.

    Composition by privacy loss (``"pld"``) is exact for randomised response, and an upper bound for others.

    Examples
    --------
    >>> report = pure_privacy(0.1).report(1e-5, rounds=100)
    >>> round(report.epsilon, 4), report.best.name, report.account("pure").bound.epsilon
    (4.3068, 'pld', 10.0)
    """

    def composed(rounds: int, delta: float) -> float | None:
        return composed_pure_epsilon(epsilon, rounds, delta) if rounds <= MOST_COMPOSED_ROUNDS else None

    if math.isinf(epsilon):
        return Privacy(trust_model, (pure_account(epsilon, adjacency),))

    def curve() -> RenyiCurve:
        return RenyiCurve(np.array(DEFAULT_ORDERS), pure_renyi_divergences(epsilon, DEFAULT_ORDERS))

    accounts = (pure_account(epsilon, adjacency), renyi_account(curve, adjacency), loss_account("pld", composed, adjacency))
    return Privacy(trust_model, accounts)
