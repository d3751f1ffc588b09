"""The privacy of a mechanism: named accounts, and the guarantee by the least proven account."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...arguments import check_choice, check_integer, check_real
from ...errors import InfeasibleError
from ...progress import OnStep, silent
from ...shown import BLUE, GREY, Shown
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from ...solvers.accounting.sampling import Sampling, likely_participations, sampled_share
from .guarantee import ADJACENCIES, Guarantee

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes
    from ...solvers.accounting.composed_losses import LossPair
    from ...solvers.accounting.renyi_curve import LazyRenyiCurve, RenyiCurve
    from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon

Scalar = str | float | bool | None


@dataclass(frozen=True)
class EpsilonBound:
    """The epsilon of one account at a failure probability.

    Attributes
    ----------
    epsilon : float
        Upper bound on the privacy parameter of all rounds together; infinite if the account has no bound.
    reason : str or None
        Reason for an infinite epsilon.
    order : float or None
        The Rényi order of the bound, if the account has orders; infinite for the pure guarantee.
    order_at_edge : bool
        Whether that order is the smallest or the largest finite order of the search, so that other orders might give less.
    details : mapping
        Further facts of the account, by name.
    """

    epsilon: float
    reason: str | None = None
    order: float | None = None
    order_at_edge: bool = False
    details: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def nothing(cls, reason: str) -> "EpsilonBound":
        """Return an infinite bound with its reason."""
        return cls(math.inf, reason)


Bound = Callable[[float, int, Sampling | None], EpsilonBound]
"""Epsilon as a function of delta, rounds and sampling."""
Losses = Callable[[float, int, Sampling | None], "LossPair | None"]
"""Dominating privacy losses as a function of delta, rounds and sampling."""


@dataclass(frozen=True, eq=False)
class NearGaussianNoise:
    """Noise that reveals little more than Gaussian noise.

    Releases of one round that all have such noise have a joint account.

    Attributes
    ----------
    epsilon : callable
        Upper bound on epsilon at (delta, rounds, epsilon of the Gaussian noise), as `skellam_near_gaussian_epsilon` returns it. The third
        argument is a function of the multiplier of one round and of delta, or None for rounds in which every client takes part.
    of_a_pair : bool
        Whether the bound holds only for two vectors of the same client, because the same random numbers round both, or because of the
        coordinates in which they differ. In a sample of a fixed size, another client's vector may replace the client's, so such noise is
        amplified round by round.
    multiplier : float or None
        Noise multiplier if the noise is Gaussian itself, whose privacy losses are known; None otherwise.
    """

    epsilon: "Callable[[float, int, GaussianEpsilon | None], float | None]"
    of_a_pair: bool = False
    multiplier: float | None = None


@dataclass(frozen=True, eq=False)
class _LeastOfSampled:
    """The least bound for rounds with secret samples.

    Given the samples, sampled rounds reveal no more about a client than rounds with all clients. They also reveal no more than the rounds
    in which the client takes part, which are few, except with probability delta / 2.
    """

    bound: Bound
    adjacency: str
    at_delta_zero: bool

    def __call__(self, delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if sampling is None:
            return self.bound(delta, rounds, None)
        sampled = _or_nothing(self.bound, delta, rounds, sampling)
        share = sampled_share(sampling, self.adjacency)
        bounds = [sampled, _or_nothing(self.bound, delta, rounds, None)]
        few = rounds if self.at_delta_zero else likely_participations(share, rounds, delta / 2)
        if few < rounds:
            bounds.append(participation_bound(self.bound, delta / 2, few))
        return min(bounds, key=lambda least: least.epsilon)


def participation_bound(bound: Bound, delta: float, participations: int) -> EpsilonBound:
    """Return the bound of a client's own rounds, with their number as a detail."""
    of_participations = EpsilonBound(0.0) if participations == 0 else _or_nothing(bound, delta, participations, None)
    return replace(of_participations, details={**of_participations.details, "participations": participations})


def _or_nothing(bound: Bound, delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
    try:
        return bound(delta, rounds, sampling)
    except InfeasibleError as error:
        return EpsilonBound.nothing(str(error))


@dataclass(frozen=True, eq=False)
class Account:
    """One account of a mechanism's privacy.

    Attributes
    ----------
    name : str
        ``"pure"``, ``"rdp"``, ``"pld"``, ``"near-gaussian"``, ``"blanket"``, ``"theorem-1"``, ...
    adjacency : str
        Adjacency of the account.
    bound : callable
        Epsilon at (delta, rounds, sampling); delta is from 0 to below 1. An ``InfeasibleError`` counts as an infinite bound with a reason.
        Clients that are not sampled send zeros or nothing: a bound for rounds with all clients also holds for a secret sample. A bound at
        half of delta also holds for the most rounds in which a client is sampled, except with probability delta / 2. The account takes the
        least of these.
    proven : bool
        Whether the bound is a theorem wherever it is finite. A published theorem with a counterexample is not proven.
    assumes : str or None
        Assumption of the bound about other clients' data or messages; None for no assumption.
    at_delta_zero : bool
        Whether the bound holds at delta = 0, for every delta.
    curve : callable or None
        Rényi divergences of one round, as a function of the sampling, if the account rests on them (`joint_privacy` and `compose` add them
        up).
    near_gaussian : NearGaussianNoise or None
        The noise, if the account compares it with Gaussian noise (`joint_privacy`, `compose`).
    losses : callable or None
        Privacy losses of all rounds as a function of (delta, rounds, sampling), if the account rests on a dominating distribution
        (`compose` convolves them). The function returns None where they are too expensive or unknown.
    """

    name: str
    adjacency: str
    bound: Bound
    proven: bool = True
    assumes: str | None = None
    at_delta_zero: bool = False
    curve: "Callable[[Sampling | None], RenyiCurve | LazyRenyiCurve] | None" = None
    near_gaussian: NearGaussianNoise | None = None
    losses: "Losses | None" = None

    def __post_init__(self) -> None:
        """Replace the bound by the least bound for sampled rounds."""
        if not isinstance(self.bound, _LeastOfSampled):
            object.__setattr__(self, "bound", _LeastOfSampled(self.bound, self.adjacency, self.at_delta_zero))

    @property
    def is_guarantee(self) -> bool:
        """Whether the bound is a guarantee, which is proven and without assumptions."""
        return self.proven and self.assumes is None


@dataclass(frozen=True)
class AccountedEpsilon:
    """The epsilon of one account, with its assumptions."""

    name: str
    adjacency: str
    proven: bool
    assumes: str | None
    bound: EpsilonBound

    def document(self) -> dict[str, Scalar]:
        """Return the bound as a JSON document, with null for infinity."""
        document: dict[str, Scalar] = {
            "epsilon": self.bound.epsilon,
            "proven": self.proven,
            "assumes": self.assumes,
            "adjacency": self.adjacency,
            "reason": self.bound.reason,
        }
        if self.bound.order is not None:
            document |= {"order": self.bound.order, "order_at_edge": self.bound.order_at_edge}
        document |= self.bound.details
        return {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in document.items()}


@dataclass(frozen=True, repr=False)
class PrivacyReport(Shown):
    """A client's privacy after some rounds, by all accounts.

    Attributes
    ----------
    delta : float
        Failure probability of all rounds together.
    rounds : int
        Number of rounds in which the same client takes part.
    adjacency, trust_model : str
        Adjacency and trust model of the guarantee.
    sampling : Sampling or None
        Sampling of the clients of a round; None if every client takes part in every round.
    accounts : tuple of AccountedEpsilon
        The bound of each account, with its own adjacency.
    allow_real_numbers : bool
        Field of `Guarantee`.
    """

    delta: float
    rounds: int
    adjacency: str
    trust_model: str
    sampling: Sampling | None
    accounts: tuple[AccountedEpsilon, ...]
    allow_real_numbers: bool = False

    @property
    def summary(self) -> str:
        """One line with the guarantee, its account, and the rounds."""
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        by = "" if self.best is None else f", by {self.best.name}"
        return f"{self.guarantee}, {rounds}" + ("" if self.sampling is None else f", {self.sampling}") + by

    def to_frame(self) -> "pd.DataFrame":
        """Return a data frame with one row per account.

        Columns are `account`, `epsilon` (missing if infinite), `proven`, `assumes`, `adjacency`, `reason`.
        """
        import pandas as pd

        return pd.DataFrame([{"account": account.name, **account.document()} for account in self.accounts])

    def draw(self, axes: "Axes") -> None:
        """Draw the epsilon of every account with a finite bound.

        Bounds that are not guarantees for the adjacency are grey.
        """
        shown = [account for account in self.accounts if math.isfinite(account.bound.epsilon)]
        colours = [BLUE if self._is_guarantee(account) else GREY for account in shown]
        axes.barh(
            [f"{account.name}, {account.adjacency}" for account in shown], [account.bound.epsilon for account in shown], color=colours
        )
        axes.set(
            xlabel=f"epsilon at delta = {self.delta:g}, {self.rounds} rounds", title=f"{self.trust_model} trust model, {self.adjacency}"
        )

    @property
    def best(self) -> AccountedEpsilon | None:
        """The least proven account for the adjacency; None if all are infinite."""
        usable = [account for account in self.accounts if self._is_guarantee(account) and math.isfinite(account.bound.epsilon)]
        return min(usable, key=lambda account: account.bound.epsilon, default=None)

    def _is_guarantee(self, account: AccountedEpsilon) -> bool:
        return account.proven and account.assumes is None and account.adjacency == self.adjacency

    @property
    def epsilon(self) -> float:
        """Upper bound on epsilon of all rounds together; infinite without a proven bound."""
        return math.inf if self.best is None else self.best.bound.epsilon

    @property
    def guarantee(self) -> Guarantee:
        """The proven guarantee of all rounds together."""
        return Guarantee(self.epsilon, self.adjacency, self.trust_model, delta=self.delta, allow_real_numbers=self.allow_real_numbers)

    def account(self, name: str) -> AccountedEpsilon:
        """Return the bound of the account of that name."""
        check_choice("account", name, [account.name for account in self.accounts])
        return next(account for account in self.accounts if account.name == name)

    def epsilon_by(self, name: str | None) -> float:
        """Return the epsilon of the named account, or the proven epsilon for None."""
        return self.epsilon if name is None else self.account(name).bound.epsilon

    def check_anything_is_known(self) -> None:
        """Raise InfeasibleError, with all reasons, if every account is infinite."""
        if all(math.isinf(account.bound.epsilon) for account in self.accounts):
            reasons = dict.fromkeys(account.bound.reason for account in self.accounts if account.bound.reason)
            raise InfeasibleError("; ".join(reasons) or "epsilon is infinite: the mechanism is not private")

    def document(self) -> dict[str, Scalar | dict[str, dict[str, Scalar]]]:
        """Return the report as a JSON document, with null for infinity."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "rounds": self.rounds,
            "adjacency": self.adjacency,
            "trust_model": self.trust_model,
            "sampling": None if self.sampling is None else str(self.sampling),
            "method": None if self.best is None else self.best.name,
            "accounts": {account.name: account.document() for account in self.accounts},
        }


@dataclass(frozen=True, eq=False)
class Privacy:
    """The privacy of a mechanism's client over rounds.

    Attributes
    ----------
    trust_model : str
        Trust model, which determines the observer: ``"local"``, ``"shuffled"``, ``"secure-sum"`` or ``"central"``.
    accounts : tuple of Account
        The accounts, with different names for each adjacency.
    allow_real_numbers : bool
        Field of `Guarantee`.
    """

    trust_model: str
    accounts: tuple[Account, ...]
    allow_real_numbers: bool = False

    @property
    def adjacencies(self) -> tuple[str, ...]:
        """Adjacencies of the accounts."""
        return tuple(dict.fromkeys(account.adjacency for account in self.accounts))

    def account(self, name: str) -> Account:
        """Return the account of that name."""
        check_choice("account", name, [account.name for account in self.accounts])
        return next(account for account in self.accounts if account.name == name)

    def report(
        self,
        delta: float,
        adjacency: str | None = None,
        rounds: int = 1,
        sampling: Sampling | None = None,
        *,
        on_step: OnStep = silent,
    ) -> PrivacyReport:
        """Return the report of all accounts.

        Parameters
        ----------
        delta : float
            Failure probability of all rounds together, from 0 to below 1.
        adjacency : str or None
            Adjacency of the guarantee; None for the first adjacency of the accounts.
        rounds : int
            Number of rounds in which the same client takes part, at least 1.
        sampling : PoissonSampling, FixedSizeSampling or None
            Sampling of the clients of a round, in secret.
        on_step : callable
            ``on_step(done, total, text)``, called before each account and at the end.

        Raises
        ------
        ValueError
            If an argument is out of range, the mechanism has no account for the adjacency, or sampling does not amplify the guarantee.
        """
        return self._report(delta, adjacency, rounds, sampling, self.accounts, on_step)

    def epsilon(
        self, delta: float, adjacency: str | None = None, rounds: int = 1, sampling: Sampling | None = None, account: str | None = None
    ) -> float:
        """Return epsilon by the named account, or the proven epsilon for None.

        The result is `PrivacyReport.epsilon_by` of `report`, without the accounts that it does not need.
        """
        return self._report(delta, adjacency, rounds, sampling, self._asked(adjacency, account)).epsilon_by(account)

    def _asked(self, adjacency: str | None, account: str | None) -> tuple[Account, ...]:
        if account is not None:
            return (self.account(account),)
        usual = self.adjacencies[0] if adjacency is None else adjacency
        return tuple(candidate for candidate in self.accounts if candidate.is_guarantee and candidate.adjacency == usual)

    def _report(
        self,
        delta: float,
        adjacency: str | None,
        rounds: int,
        sampling: Sampling | None,
        asked: tuple[Account, ...],
        on_step: OnStep = silent,
    ) -> PrivacyReport:
        rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
        delta = check_real("delta", delta, low=0.0, high=1 - 1e-16)
        adjacency = self.adjacencies[0] if adjacency is None else check_choice("adjacency", adjacency, ADJACENCIES)
        check_choice("adjacency", adjacency, self.adjacencies)
        if sampling is not None and self.trust_model == "local":
            raise ValueError(
                f"sampling must be left out in the local trust model, got {str(sampling)!r}: the server sees who reports, so that sampling "
                "does not amplify the guarantee"
            )

        def answer(done: int, account: Account) -> AccountedEpsilon:
            on_step(done, len(asked), f"account {account.name}")
            bound = _or_nothing(account.bound, delta, rounds, sampling)
            return AccountedEpsilon(account.name, account.adjacency, account.proven, account.assumes, bound)

        answers = tuple(answer(done, account) for done, account in enumerate(asked))
        on_step(len(asked), len(asked), "done")
        return PrivacyReport(delta, rounds, adjacency, self.trust_model, sampling, answers, self.allow_real_numbers)

    def guarantee(self, delta: float, adjacency: str | None = None) -> Guarantee:
        """Return the proven guarantee of one round in which every client takes part."""
        return self._report(delta, adjacency, 1, None, self._asked(adjacency, None)).guarantee
