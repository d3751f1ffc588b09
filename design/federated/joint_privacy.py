"""Joint accounts of several releases of one round.

The releases share the round's clients and its secret sample.

Epsilons of rounds with independent samples add up; epsilons of releases about the *same* sample do not. Let N0 and N1 be the laws of all
releases of a round without and with a client. The server sees (1 - q) N0 + q N1 of the releases together: if the first release shows that
the client was drawn, the second is no longer amplified. So the releases are joined first, and the joint release is amplified.

Example: a vector and a count with Gaussian noise of multipliers 1 and 1.2, for a client drawn with probability 1/100, at delta = 1e-5. The
sum of the two amplified epsilons, each at delta / 2, is 0.37; the joint release has 0.57.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np

from ...arguments import check_choice
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon
from ...solvers.accounting.renyi_curve import LazyRenyiCurve, RenyiCurve
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon
from ...solvers.numerics.rounding import UNIT
from ..contracts.accounts import amplified_rounds, renyi_account
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.privacy import Account, Bound, EpsilonBound, NearGaussianNoise, Privacy


def joint_privacy(releases: Sequence[Privacy], adjacency: str) -> Privacy:
    """Return the privacy of a round with several releases, whose noises are independent.

    The account ``"basic"`` adds up epsilons of the releases at equal parts of delta. The account ``"rdp"`` adds up Rényi divergences. The
    account ``"near-gaussian"`` joins Gaussian noises of multipliers z_i to noise of multiplier ``sum(z_i**-2)**(-1/2)``. The last two exist
    if every release has such an account. Only proven accounts of the releases count. Each account amplifies the joint release, not its
    parts.

    Parameters
    ----------
    releases : sequence of Privacy
        Privacy of each release, at least one, all of the same trust model.
    adjacency : str
        Adjacency of all accounts.

    Raises
    ------
    ValueError
        If a release has no account for the adjacency, or trust models differ.

    Examples
    --------
    >>> from quietbits import PoissonSampling, gaussian_privacy, joint_privacy
    >>> vector, count = (gaussian_privacy(multiplier, "add-or-remove-one", "central") for multiplier in (1.0, 1.2))
    >>> sampling = PoissonSampling(0.01)
    >>> round(joint_privacy([vector, count], "add-or-remove-one").epsilon(1e-5, sampling=sampling), 3)
    0.574
    >>> round(vector.epsilon(5e-6, sampling=sampling) + count.epsilon(5e-6, sampling=sampling), 3)
    0.372
    """
    if not releases:
        raise ValueError("releases must be at least one, got none")
    check_choice("adjacency", adjacency, ADJACENCIES)
    for release in releases:
        check_choice("adjacency", adjacency, release.adjacencies)
    trust_models = {release.trust_model for release in releases}
    if len(trust_models) > 1:
        raise ValueError(f"releases must be of one trust model, got {' and '.join(sorted(trust_models))}")
    guarantees = [
        [account for account in release.accounts if account.is_guarantee and account.adjacency == adjacency] for release in releases
    ]
    accounts = [Account("basic", adjacency, _added_epsilons(releases, adjacency))]
    curves = [[account.curve for account in of_release if account.curve is not None] for of_release in guarantees]
    if all(curves):
        accounts.append(renyi_account(lambda: _added_curves([curve(None) for curve, *_ in curves]), adjacency))
    noises = [[account.near_gaussian for account in of_release if account.near_gaussian is not None] for of_release in guarantees]
    if all(noises):
        joint = _joint_noise([noise for noise, *_ in noises])
        accounts.append(near_gaussian_account(joint, adjacency, "the noise of each release must be larger to be nearly Gaussian"))
    return Privacy(trust_models.pop(), tuple(accounts))


def _added_epsilons(releases: Sequence[Privacy], adjacency: str) -> Bound:
    """Return the bound by basic composition of the releases, each at the same part of delta."""

    def everyone(delta: float, rounds: int = 1) -> EpsilonBound:
        epsilon = math.fsum(release.epsilon(delta / len(releases), adjacency, rounds) for release in releases)
        return EpsilonBound(epsilon * (1 + UNIT * 2)) if math.isfinite(epsilon) else EpsilonBound.nothing("a release has no finite epsilon")

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        return everyone(delta, rounds) if sampling is None else amplified_rounds(everyone, delta, rounds, sampling, adjacency)

    return bound


def _added_curves(curves: Sequence[RenyiCurve | LazyRenyiCurve]) -> RenyiCurve:
    """Return the sum of the divergences at the common orders of all curves.

    Rényi divergences of independent releases add up (Mironov 2017, proposition 1).
    """
    whole = [curve.whole() if isinstance(curve, LazyRenyiCurve) else curve for curve in curves]
    orders = functools.reduce(np.intersect1d, [curve.orders for curve in whole])
    divergences = [dict(zip(curve.orders.tolist(), curve.divergences.tolist(), strict=True)) for curve in whole]
    added = np.array([math.fsum(of_order[order] for of_order in divergences) for order in orders.tolist()])
    return RenyiCurve(orders, added * (1 + len(curves) * UNIT))


def _joint_noise(noises: Sequence[NearGaussianNoise]) -> NearGaussianNoise:
    """Return the noise of all releases together.

    Each noise in turn is replaced by Gaussian noise, while the others stay: each bound holds for any other releases. The resulting Gaussian
    noises equal one Gaussian noise with the joint multiplier.
    """

    def epsilon(delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
        def gaussian(multiplier: float, delta: float) -> float | None:
            if sampled is not None:
                return sampled(multiplier, delta)
            of_all_rounds = multiplier / math.sqrt(rounds)
            within = of_all_rounds >= SMALLEST_MULTIPLIER and delta >= SMALLEST_DELTA
            return gaussian_epsilon(of_all_rounds, min(delta, LARGEST_DELTA)) if within else None

        def of_others(left: Sequence[NearGaussianNoise], inverses: tuple[float, ...], delta: float) -> float | None:
            if not left:
                return gaussian((1 - (4 + len(noises)) * UNIT) / math.hypot(*inverses), delta)
            return left[0].epsilon(delta, rounds, lambda multiplier, delta: of_others(left[1:], (*inverses, 1 / multiplier), delta))

        return of_others(noises, (), delta)

    return NearGaussianNoise(epsilon, of_a_pair=any(noise.of_a_pair for noise in noises))
