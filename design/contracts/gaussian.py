"""Gaussian noise: its privacy, and the reference error of a trusted server."""

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...solvers.accounting.composed_losses import LossPair, gaussian_losses
from ...solvers.accounting.gaussian_privacy import (
    LARGEST_DELTA,
    SMALLEST_DELTA,
    SMALLEST_MULTIPLIER,
    gaussian_epsilon,
    gaussian_noise_multiplier,
)
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.accounting.sampled_noise import is_loss_affordable, sampled_gaussian_curve, sampled_gaussian_loss
from ...solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling, sampled_share
from .accounts import ComposableLoss, amplified_rounds, composed_loss, loss_account, needing_delta, renyi_account, repeated_losses
from .guarantee import ADJACENCIES, TRUST_MODELS
from .mechanism import EPSILON_HIGH, EPSILON_LOW, check_vector_epsilon
from .norm_ball import NormBall, check_ball
from .privacy import Account, EpsilonBound, NearGaussianNoise, Privacy

if TYPE_CHECKING:
    from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon

LARGEST_MULTIPLIER = 1e6


def gaussian_privacy(noise_multiplier: float, adjacency: str = "replace-one", trust_model: str = "local") -> Privacy:
    """Return the privacy of Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a coordinate's noise over the L2 sensitivity for the adjacency; from 0.001 to 10**6. (For a clip norm c the
        sensitivity of a sum is 2 c with replace-one and c with add-or-remove-one adjacency.)
    adjacency, trust_model : str
        Adjacency of the sensitivity, and the trust model of the guarantee.

    Returns
    -------
    Privacy
        Accounts ``"rdp"`` (Mironov 2017, *Rényi differential privacy*, proposition 7); ``"rdp-classic"``, the same divergences with the
        conversion of papers before 2020, which is looser and serves comparisons with their tables; and ``"pld"``, which is exact without
        sampling: T rounds equal one round with the noise multiplier divided by sqrt(T).

    Examples
    --------
    >>> report = gaussian_privacy(20.0).report(1e-5, rounds=100)
    >>> [round(report.account(name).bound.epsilon, 4) for name in ("rdp", "pld")]
    [2.1659, 1.9931]
    """
    multiplier = check_real("noise_multiplier", noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_choice("trust_model", trust_model, TRUST_MODELS)

    def curve() -> RenyiCurve:
        orders = np.array(DEFAULT_ORDERS[:-1])
        return RenyiCurve(orders, orders / (2 * multiplier**2))

    @cache
    def sampled_curve(sampling: Sampling) -> RenyiCurve:
        return sampled_gaussian_curve(multiplier, sampling, adjacency)

    @cache
    def sampled_loss(sampling: Sampling) -> ComposableLoss:
        loss: ComposableLoss = sampled_gaussian_loss(multiplier, sampling, adjacency)
        return loss

    def by_loss(rounds: int, delta: float) -> float | None:
        of_all_rounds = multiplier / math.sqrt(rounds)
        within = of_all_rounds >= SMALLEST_MULTIPLIER and delta >= SMALLEST_DELTA
        # A bound for a smaller delta also holds for a larger delta.
        return gaussian_epsilon(of_all_rounds, min(delta, LARGEST_DELTA)) if within else None

    def by_sampled_loss(rounds: int, delta: float, sampling: Sampling) -> float | None:
        if not isinstance(sampling, PoissonSampling):
            return None
        if not is_loss_affordable(multiplier, sampling.probability, rounds, sampled_curve(sampling)):
            return None
        return composed_loss(sampled_loss(sampling), rounds, delta)

    def nearly(delta: float, rounds: int, sampled: "GaussianEpsilon | None") -> float | None:
        return by_loss(rounds, delta) if sampled is None else sampled(multiplier, delta)

    def losses(delta: float, rounds: int, sampling: Sampling | None) -> LossPair | None:
        if sampling is None:
            return LossPair(gaussian_losses(multiplier / math.sqrt(rounds), delta))
        if not isinstance(sampling, PoissonSampling):
            return None
        if not is_loss_affordable(multiplier, sampling.probability, rounds, sampled_curve(sampling)):
            return None
        return repeated_losses(sampled_loss(sampling), rounds, delta)

    pld = loss_account("pld", by_loss, adjacency, sampled=by_sampled_loss, losses=losses)
    return Privacy(
        trust_model,
        (
            renyi_account(curve, adjacency, sampled=lambda _, sampling: sampled_curve(sampling)),
            renyi_account(curve, adjacency, name="rdp-classic", sampled=lambda _, sampling: sampled_curve(sampling), conversion="classic"),
            replace(pld, near_gaussian=NearGaussianNoise(nearly, multiplier=multiplier)),
        ),
    )


def near_gaussian_account(noise: NearGaussianNoise, adjacency: str, too_little: str) -> Account:
    """Return the account ``"near-gaussian"``, for all clients or for a secret sample of clients.

    For sampled rounds the account is the lesser of two bounds: one from sampled Gaussian noise, the other from amplified (epsilon,
    delta)-private rounds. For samples of a fixed size, noise with `of_a_pair` has only the second bound.

    Parameters
    ----------
    noise : NearGaussianNoise
        The noise of one round.
    adjacency : str
        Adjacency of the account.
    too_little : str
        Reason that the account states if the noise has no bound.
    """

    def everyone(delta: float, rounds: int = 1) -> EpsilonBound:
        epsilon = noise.epsilon(delta, rounds, None)
        return EpsilonBound.nothing(too_little) if epsilon is None else EpsilonBound(epsilon)

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if sampling is None:
            return everyone(delta, rounds)
        by_rounds = amplified_rounds(everyone, delta, rounds, sampling, adjacency)
        if sampled_share(sampling, adjacency) == 1 or (noise.of_a_pair and isinstance(sampling, FixedSizeSampling)):
            return by_rounds

        def sampled(multiplier: float, delta: float) -> float | None:
            if multiplier < SMALLEST_MULTIPLIER:
                return None
            # Lowering the noise multiplier gives an upper bound.
            privacy = gaussian_privacy(min(multiplier, LARGEST_MULTIPLIER), adjacency, "central")
            return privacy.report(min(delta, LARGEST_DELTA), adjacency, rounds, sampling).epsilon

        epsilon = noise.epsilon(delta, rounds, sampled)
        return by_rounds if epsilon is None or epsilon >= by_rounds.epsilon else EpsilonBound(epsilon)

    return Account("near-gaussian", adjacency, needing_delta(bound), near_gaussian=noise)


def l2_radius(ball: NormBall) -> float:
    """Return the largest L2 norm of a vector of a ball.

    Parameters
    ----------
    ball : NormBall
        Ball of any norm p.

    Returns
    -------
    float
        ``clip_norm`` for p <= 2, else ``clip_norm * dimension**(1/2 - 1/p)``. The ball's L2 diameter is twice that.

    Examples
    --------
    >>> l2_radius(NormBall(dimension=16, norm=1.0)), l2_radius(NormBall(dimension=16, norm=float("inf")))
    (1.0, 4.0)
    """
    return ball.clip_norm * math.pow(ball.dimension, max(0.0, 0.5 - 1 / ball.norm))


def central_gaussian_error(ball: NormBall, clients: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the expected squared L2 error of the mean under a trusted server's Gaussian noise.

    The error is the reference for mechanisms whose clients trust the server less.

    Parameters
    ----------
    ball : NormBall
        Ball of the vectors.
    clients : int
        Number of clients, which is public.
    epsilon, delta : float
        Guarantee of the noise, as in `VectorGaussianMechanism.of_epsilon`.
    adjacency : str
        ``"replace-one"``: the sum moves by at most the ball's diameter; ``"add-or-remove-one"``: by at most its radius.

    Returns
    -------
    float
        ``dimension * (noise_multiplier * sensitivity / clients)**2``, in squared units of the vectors, too large by a relative 2e-9.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(central_gaussian_error(NormBall(dimension=128, norm=2.0), 10_000, 1.0, 1e-5, "replace-one"), 8)
    7.126e-05
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_ball(ball, "Gaussian noise")
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    multiplier = gaussian_noise_multiplier(check_vector_epsilon(epsilon), delta)
    sensitivity = l2_radius(ball) * (2 if adjacency == "replace-one" else 1)
    return ball.dimension * (multiplier * sensitivity / clients) ** 2


def central_gaussian_reference(ball: NormBall, clients: int, epsilon: float, delta: float, adjacency: str) -> float | None:
    """Return `central_gaussian_error`, or None if epsilon or delta is outside its range."""
    if not (EPSILON_LOW <= epsilon <= EPSILON_HIGH and SMALLEST_DELTA <= delta <= LARGEST_DELTA):
        return None
    return central_gaussian_error(ball, clients, epsilon, delta, adjacency)
