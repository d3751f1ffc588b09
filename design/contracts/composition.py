"""Accounts of several mechanisms one after the other: different tasks, different rounds.

Releases of the *same* round share its sample of clients: `joint_privacy` joins them.
"""

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...arguments import check_choice, check_integer
from ...errors import InfeasibleError
from ...progress import counted
from ...solvers.accounting.composed_losses import SMALLEST_DELTA, LossPair, approximate_losses, composed_pair, gaussian_losses, pair_epsilon
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon
from ...solvers.accounting.gaussian_privacy import SMALLEST_DELTA as SMALLEST_GAUSSIAN_DELTA
from ...solvers.accounting.group_privacy import doubled_curve, doubled_epsilon, doubled_losses
from ...solvers.accounting.pure_privacy import LARGEST_EPSILON, pure_renyi_divergences
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, LazyRenyiCurve, RenyiCurve
from ...solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling
from ...solvers.numerics.rounding import UNIT
from .accounts import needing_delta, renyi_account, secretly_sampled_curve
from .gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from .guarantee import ADJACENCIES, TRUST_MODELS
from .privacy import Account, Bound, EpsilonBound, Losses, NearGaussianNoise, Privacy

Part = tuple[Privacy, int, Sampling | None]
"""A mechanism's privacy, the number of its rounds, and the sampling of their clients."""
REPLACE, ADD = ADJACENCIES
MOST_PARTS = 1000
# Largest number of parts whose noise is replaced by Gaussian noise, one inside the other; further parts count by their losses.
MOST_NEAR = 50


def compose(parts: Sequence[Part], adjacency: str | None = None) -> Privacy:
    """Return the privacy of different mechanisms, each used for some rounds.

    A single mechanism keeps its own accounts. Several have these:

    - ``"pure"`` adds up pure epsilons.
    - ``"basic"`` adds up epsilons, each by the part's least proven account at its share of delta.
    - ``"rdp"`` adds up Rényi divergences.
    - ``"pld"`` convolves privacy losses. Noise that is nearly Gaussian counts as Gaussian noise with its log-ratio. A part without a
      distribution of its own has the losses that dominate its epsilon at a share of delta.

    Only guarantees of the parts count: proven accounts without assumptions. The accounts hold for parts that were fixed beforehand; outputs
    may depend on earlier outputs. The trust model is that of the part that trusts most: each part's guarantee is against an observer who
    sees what its own trust model lets out.

    Parameters
    ----------
    parts : sequence of (Privacy, int, PoissonSampling, FixedSizeSampling or None)
        Privacy of each mechanism, its number of rounds, and the sampling of their clients. The order does not matter.
    adjacency : str or None
        Adjacency of all accounts; None for one that all parts have, or for ``"replace-one"``. A part of add-or-remove-one adjacency counts
        for replace-one adjacency at twice the distance (`Guarantee.towards`); nothing converts the other way.

    Returns
    -------
    Privacy
        The accounts. The rounds of a report are the number of times that all parts are repeated.

    Raises
    ------
    ValueError
        If there is no part, a part is out of range, or samples are drawn from different populations.
    InfeasibleError
        If a part has no guarantee that counts for the adjacency.

    Examples
    --------
    >>> from quietbits import compose, gaussian_privacy, laplace_privacy
    >>> mean, count = gaussian_privacy(10.0), laplace_privacy(0.1)
    >>> report = compose([(mean, 20, None), (count, 5, None)]).report(1e-6)
    >>> print(report.guarantee, "by", report.best.name)
    epsilon = 2.21959, delta = 1e-06, replace-one adjacency, local trust model by pld
    >>> round(report.account("basic").bound.epsilon, 3)
    2.495
    """
    checked = [_checked(number, part) for number, part in enumerate(parts, 1)]
    if not 1 <= len(checked) <= MOST_PARTS:
        raise ValueError(f"parts must be from 1 to {MOST_PARTS}, got {len(checked)}")
    check_one_population([sampling for _, _, sampling in checked])
    target = _usual_adjacency(checked) if adjacency is None else check_choice("adjacency", adjacency, ADJACENCIES)
    sources = [_source(number, part, target) for number, part in enumerate(checked, 1)]
    trust_model = max((privacy.trust_model for privacy, _, _ in checked), key=TRUST_MODELS.index)
    on_real_numbers = any(privacy.allow_real_numbers for privacy, _, _ in checked)
    merged: dict[tuple[Privacy, Sampling | None], _Rounds] = {}
    for (privacy, rounds, sampling), source in zip(checked, sources, strict=True):
        before = merged.get((privacy, sampling))
        merged[privacy, sampling] = _Rounds(privacy, rounds + (0 if before is None else before.rounds), sampling, source, target)
    groups = list(merged.values())
    accounts = groups[0].own_accounts() if len(groups) == 1 and groups[0].source == target else _accounts(groups, target)
    return Privacy(trust_model, accounts, on_real_numbers)


def check_one_population(samplings: Sequence[Sampling | None]) -> None:
    """Raise ValueError if samples of a fixed size are drawn from different populations."""
    populations = {sampling.population: number for number, sampling in enumerate(samplings, 1) if isinstance(sampling, FixedSizeSampling)}
    if len(populations) > 1:
        (first, at_first), (second, at_second) = sorted(populations.items(), key=lambda item: item[1])[:2]
        raise ValueError(
            f"population must be the same for all sampled parts, got {first} for part {at_first} and {second} for part {at_second}: "
            "account for each population by itself"
        )


def _checked(number: int, part: Part) -> Part:
    if not isinstance(part, tuple) or len(part) != 3 or not isinstance(part[0], Privacy):
        raise ValueError(f"part {number} must be (privacy, rounds, sampling), got {part!r}")
    privacy, rounds, sampling = part
    rounds = check_integer(f"rounds of part {number}", rounds, low=1, high=MOST_ROUNDS)
    if sampling is not None and not isinstance(sampling, PoissonSampling | FixedSizeSampling):
        raise ValueError(f"sampling of part {number} must be PoissonSampling, FixedSizeSampling or None, got {sampling!r}")
    if sampling is not None and privacy.trust_model == "local":
        raise ValueError(
            f"sampling of part {number} must be left out in the local trust model, got {str(sampling)!r}: the server sees who reports, so "
            "that sampling does not amplify the guarantee"
        )
    return privacy, rounds, sampling


def proven_adjacencies(privacy: Privacy, sampling: Sampling | None) -> tuple[str, ...]:
    """Return the adjacencies of the guarantees, with the sampling."""
    guaranteed = dict.fromkeys(account.adjacency for account in privacy.accounts if account.is_guarantee)
    return tuple(adjacency for adjacency in guaranteed if sampling is None or adjacency == sampling.adjacency)


def _usual_adjacency(parts: Sequence[Part]) -> str:
    """Return the first adjacency that all parts have, or replace-one."""
    common = [proven_adjacencies(privacy, sampling) for privacy, _, sampling in parts]
    return next((adjacency for adjacency in common[0] if all(adjacency in of_part for of_part in common)), REPLACE)


def _source(number: int, part: Part, target: str) -> str:
    """Return the adjacency of a part's accounts that count for an adjacency."""
    privacy, _, sampling = part
    proven = proven_adjacencies(privacy, sampling)
    if target in proven:
        return target
    if target == REPLACE and ADD in proven:
        return ADD
    sampled = "," if sampling is None else f", with {sampling},"
    if not proven:
        raise InfeasibleError(
            f"part {number} must have a proven account without assumptions{sampled.rstrip(',')}, got accounts for "
            f"{' and '.join(privacy.adjacencies) or 'no'} adjacency"
        )
    raise InfeasibleError(
        f"adjacency must be {proven[0]} for part {number}{sampled} got {target}: a guarantee for replacing a client says nothing of "
        "removing it"
    )


@dataclass(frozen=True, eq=False)
class _Rounds:
    """All rounds of a mechanism with the same sampling.

    Attributes
    ----------
    privacy, rounds, sampling
        A part.
    source, target : str
        Adjacency of the part's accounts, and of the composition.
    """

    privacy: Privacy
    rounds: int
    sampling: Sampling | None
    source: str
    target: str

    @functools.cached_property
    def guarantees(self) -> tuple[Account, ...]:
        return tuple(account for account in self.privacy.accounts if account.is_guarantee and account.adjacency == self.source)

    def own_accounts(self) -> tuple[Account, ...]:
        """Return the mechanism's own accounts of all rounds."""

        def own(account: Account) -> Account:
            def bound(delta: float, times: int, sampling: Sampling | None) -> EpsilonBound:
                _check_unsampled(sampling)
                return account.bound(delta, self.rounds * times, self.sampling)

            return Account(account.name, account.adjacency, bound, account.proven, account.assumes, account.at_delta_zero)

        return tuple(own(account) for account in self.privacy.accounts)

    def epsilon(self, delta: float, times: int) -> float:
        """Return the least proven epsilon for the target adjacency."""

        def of_step(delta: float) -> float:
            return self.privacy.epsilon(delta, self.source, self.rounds * times, self.sampling)

        return of_step(delta) if self.source == self.target else doubled_epsilon(of_step, delta)

    def curve(self) -> RenyiCurve | None:
        """Return the Rényi divergences of all rounds, or None."""
        curve = next((account.curve for account in self.guarantees if account.curve is not None), None)
        if curve is not None:
            of_round = curve(self.sampling)
            whole = of_round.whole() if isinstance(of_round, LazyRenyiCurve) else of_round
        else:
            pure = self.privacy.epsilon(0.0, self.source)
            if not pure <= LARGEST_EPSILON:
                return None
            whole = RenyiCurve(np.array(DEFAULT_ORDERS), pure_renyi_divergences(pure, DEFAULT_ORDERS))
            whole = whole if self.sampling is None else secretly_sampled_curve(self.source)(whole, self.sampling)
        return (whole if self.source == self.target else doubled_curve(whole)).composed(self.rounds)

    @property
    def convolves_gaussians(self) -> bool:
        """Whether noise that is nearly Gaussian counts as Gaussian: not at twice the distance, nor for samples of a fixed size."""
        return self.source == self.target and not isinstance(self.sampling, FixedSizeSampling)

    def convolvable(self, delta: float, times: int) -> list[Account]:
        """Return the accounts whose losses, or whose Gaussian noise, can be convolved; the least epsilon comes first."""
        epsilons: dict[Account, float] = {}
        for account in self.guarantees:
            if account.losses is not None or (self.convolves_gaussians and account.near_gaussian is not None):
                with contextlib.suppress(InfeasibleError):
                    epsilons[account] = account.bound(delta, self.rounds * times, self.sampling).epsilon
        return sorted((account for account in epsilons if math.isfinite(epsilons[account])), key=epsilons.__getitem__)

    def losses(self, losses: Losses, delta: float, times: int) -> LossPair | None:
        """Return the losses of all rounds for the target adjacency; None if they are unknown or too expensive."""
        pair = losses(delta, self.rounds * times, self.sampling)
        if pair is not None and self.source != self.target:
            return doubled_losses(pair)
        # A client that joins or leaves does so in all parts. A client that is replaced has other inputs in each part, so that the losses of
        # one part may go in one direction and those of another part in the other: losses that differ between directions say too little.
        return None if pair is not None and pair.back is not None and self.target == REPLACE else pair


def _check_unsampled(sampling: Sampling | None) -> None:
    if sampling is not None:
        raise ValueError(f"sampling must be left out of a composition's report, got {str(sampling)!r}: state it for each part")


def _accounts(groups: Sequence[_Rounds], adjacency: str) -> tuple[Account, ...]:
    def pure(_: float, times: int, sampling: Sampling | None) -> EpsilonBound:
        _check_unsampled(sampling)
        return _sum([group.epsilon(0.0, times) for group in groups], "a part has no pure guarantee")

    @functools.cache
    def curve() -> RenyiCurve:
        return _added_curves(groups)

    def renyi(delta: float, times: int, sampling: Sampling | None) -> EpsilonBound:
        _check_unsampled(sampling)
        return by_curve.bound(delta, times, None)

    by_curve = renyi_account(curve, adjacency)
    return (
        Account("pure", adjacency, pure, at_delta_zero=True),
        Account("basic", adjacency, needing_delta(_basic(groups))),
        Account("rdp", adjacency, needing_delta(renyi)),
        Account("pld", adjacency, needing_delta(_by_losses(groups))),
    )


def _sum(epsilons: Sequence[float], reason: str) -> EpsilonBound:
    total = math.fsum(epsilons) if math.inf not in epsilons else math.inf
    return EpsilonBound(total * (1 + 2 * UNIT)) if math.isfinite(total) else EpsilonBound.nothing(reason)


def _basic(groups: Sequence[_Rounds]) -> Bound:
    """Return the sum of epsilons at equal shares of delta.

    Parts with a pure guarantee may leave their share to the others.
    """

    def bound(delta: float, times: int, sampling: Sampling | None) -> EpsilonBound:
        _check_unsampled(sampling)
        pure = [group.epsilon(0.0, times) for group in groups]
        needing = sum(map(math.isinf, pure))
        share = delta / len(groups) * (1 - 2 * UNIT)
        equal = [group.epsilon(share, times) for group in counted(groups, "epsilon of each part")]
        sums = [_sum(equal, "a part has no finite epsilon at its share of delta")]
        if 0 < needing < len(groups):
            share = delta / needing * (1 - 2 * UNIT)
            mixed = [
                epsilon if math.isfinite(epsilon) else group.epsilon(share, times) for group, epsilon in zip(groups, pure, strict=True)
            ]
            sums.append(_sum(mixed, "a part has no finite epsilon at its share of delta"))
        return min(sums, key=lambda total: total.epsilon)

    return bound


def _added_curves(groups: Sequence[_Rounds]) -> RenyiCurve:
    """Return the sum of the divergences at the orders of all curves (Mironov 2017, proposition 1)."""
    curves = [group.curve() for group in groups]
    whole = [curve for curve in curves if curve is not None]
    if len(whole) < len(curves):
        raise InfeasibleError("a part has no Rényi divergences")
    orders = functools.reduce(np.union1d, [curve.orders for curve in whole])
    added = np.array([math.fsum(of_order) for of_order in zip(*(curve.at(orders).tolist() for curve in whole), strict=True)])
    return RenyiCurve(orders, added * (1 + 2 * UNIT))


@dataclass(frozen=True)
class _GaussianRounds:
    """Gaussian noise in place of a part's noise."""

    multiplier: float
    rounds: int
    sampling: Sampling | None


def _by_losses(groups: Sequence[_Rounds]) -> Bound:
    """Return epsilon of the convolved losses of all parts."""

    def bound(delta: float, times: int, sampling: Sampling | None) -> EpsilonBound:
        _check_unsampled(sampling)
        if delta < SMALLEST_DELTA:
            return EpsilonBound.nothing(f"delta must be at least {SMALLEST_DELTA:g} to convolve privacy losses")
        ranked = [(group, group.convolvable(delta, times)) for group in counted(groups, "accounts of each part")]
        least = _convolved(ranked, delta, times, replacing=True)
        if math.isinf(least):
            # Noise may be too far from Gaussian noise for the other parts, or its sampled losses too expensive.
            least = _convolved(ranked, delta, times, replacing=False)
        if math.isinf(least):
            return EpsilonBound.nothing("the privacy losses are too expensive to convolve, or too large for delta")
        return EpsilonBound(least)

    return bound


def _convolved(ranked: Sequence[tuple[_Rounds, list[Account]]], delta: float, times: int, *, replacing: bool) -> float:
    """Return epsilon of all parts together; infinite if there is no bound.

    `replacing` says whether Gaussian noise takes the place of nearly Gaussian noise.
    """
    near: list[tuple[_Rounds, NearGaussianNoise]] = []
    gaussian: list[_GaussianRounds] = []
    pairs: list[LossPair] = []
    rest: list[_Rounds] = []
    for group, accounts in ranked:
        for account in accounts:
            noise = account.near_gaussian if replacing and group.convolves_gaussians else None
            if noise is not None and noise.multiplier is not None:
                gaussian.append(_GaussianRounds(noise.multiplier, group.rounds * times, group.sampling))
                break
            if noise is not None and len(near) < MOST_NEAR:
                near.append((group, noise))
                break
            if account.losses is not None and (pair := group.losses(account.losses, delta, times)) is not None:
                pairs.append(pair)
                break
        else:
            rest.append(group)
    # Half of delta goes to parts of which only epsilon is known.
    share = delta / (2 * len(rest)) if rest else 0.0
    for group in rest:
        epsilon = group.epsilon(share, times)
        if not epsilon <= LARGEST_EPSILON:
            return math.inf
        pairs.append(LossPair(approximate_losses(epsilon, share)))
    try:
        together = _with_gaussians(near, gaussian, pairs, delta, times)
    except InfeasibleError:
        return math.inf
    return math.inf if together is None else together


def _with_gaussians(
    near: Sequence[tuple[_Rounds, NearGaussianNoise]],
    gaussian: Sequence[_GaussianRounds],
    pairs: Sequence[LossPair],
    delta: float,
    times: int,
) -> float | None:
    """Return epsilon of losses together with noise that is nearly Gaussian.

    Each nearly Gaussian noise in turn is replaced by Gaussian noise, while everything else stays: the bounds hold for any other releases.
    """
    others = composed_pair(pairs, delta) if pairs else None

    def replaced(left: Sequence[tuple[_Rounds, NearGaussianNoise]], noises: tuple[_GaussianRounds, ...], delta: float) -> float | None:
        if not left:
            return _gaussian_epsilon(noises, others, delta)
        (group, noise), *after = left
        rounds = group.rounds * times

        def everything(multiplier: float, delta: float) -> float | None:
            return replaced(after, (*noises, _GaussianRounds(multiplier, rounds, group.sampling)), delta)

        return noise.epsilon(delta, rounds, everything)

    return replaced(near, tuple(gaussian), delta)


def _gaussian_epsilon(noises: Sequence[_GaussianRounds], others: LossPair | None, delta: float) -> float | None:
    """Return epsilon of Gaussian noises and of other losses; None if it is too expensive."""
    if delta < SMALLEST_GAUSSIAN_DELTA or any(noise.multiplier < SMALLEST_MULTIPLIER for noise in noises):
        return None
    delta = min(delta, LARGEST_DELTA)
    everyone = [noise for noise in noises if noise.sampling is None]
    inverse = math.hypot(*(math.sqrt(noise.rounds) / noise.multiplier for noise in everyone))
    # All noises together equal one Gaussian noise, rounded downward.
    together = (1 - (8 + len(everyone)) * UNIT) / inverse if inverse > 0 else math.inf
    if len(everyone) == len(noises) and others is None:
        return gaussian_epsilon(together, delta) if together >= SMALLEST_MULTIPLIER else None
    pairs = [] if others is None else [others]
    if inverse > 0:
        pairs.append(LossPair(gaussian_losses(together, delta)))
    key: Callable[[_GaussianRounds], tuple[float, str]] = lambda noise: (noise.multiplier, str(noise.sampling))  # noqa: E731
    sampled = sorted((noise for noise in noises if noise.sampling is not None), key=key)
    for (multiplier, _), group in itertools.groupby(sampled, key=key):
        same = list(group)
        losses = gaussian_privacy(min(multiplier, LARGEST_MULTIPLIER), ADD, "central").account("pld").losses
        assert losses is not None  # noqa: S101 - Gaussian noise has losses
        pair = losses(delta, sum(noise.rounds for noise in same), same[0].sampling)
        if pair is None:
            return None
        pairs.append(pair)
    return pair_epsilon(composed_pair(pairs, delta), delta)
