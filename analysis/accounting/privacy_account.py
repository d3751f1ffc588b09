"""A mechanism's privacy over rounds, by two ways of composition, with the assumptions under which it holds."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...arguments import check_integer
from ...design.contracts.guarantee import Guarantee
from ...solvers.accounting.renyi_curve import MOST_ROUNDS, RenyiCurve, check_delta


@dataclass(frozen=True)
class PrivacyAccount:
    """What the same client is promised, who takes part in every round.

    Attributes
    ----------
    mechanism : str
        Which mechanism, with its parameters.
    rounds : int
        Number of rounds.
    delta : float or None
        Failure probability of epsilon; None where only the pure guarantee was asked for.
    epsilon : float or None
        The smaller of `epsilon_rdp` and `epsilon_pld`; errs upward. None without delta.
    epsilon_rdp : float or None
        Epsilon by Rényi divergences; errs upward. None without delta.
    order : float or None
        The Rényi order that gave `epsilon_rdp`; infinite where the pure guarantee is the better one. None without delta.
    order_at_edge : bool
        Whether that order is the smallest or the largest finite one that was tried, so that others might give less.
    epsilon_pld : float or None
        Epsilon by the privacy loss distribution of a pair of inputs that dominates all; errs upward. None without delta, where no
        such pair is known, where it would be too expensive, and where delta is too small to be told from rounding.
    pure_epsilon : float or None
        Epsilon without any failure probability; errs upward. None where the mechanism has none.
    adjacency : str
        Which data sets are neighbours.
    trust_model : str
        Whom the guarantee is against.
    sampling : str or None
        How the clients of a round are chosen from all; None where every client takes part in every round.
    """

    mechanism: str
    rounds: int
    delta: float | None
    epsilon: float | None
    epsilon_rdp: float | None
    order: float | None
    order_at_edge: bool
    epsilon_pld: float | None
    pure_epsilon: float | None
    adjacency: str
    trust_model: str
    sampling: str | None

    @property
    def method(self) -> str | None:
        """Which way of composition gave `epsilon`: ``"pld"``, ``"rdp"``, or None where there is no epsilon."""
        if self.epsilon is None:
            return None
        return "pld" if self.epsilon == self.epsilon_pld else "rdp"

    @property
    def guarantee(self) -> Guarantee:
        """The account as a guarantee: the pure one without delta, whose epsilon is infinite where there is none."""
        if self.epsilon is not None and self.delta is not None:
            return Guarantee(self.epsilon, self.adjacency, self.trust_model, delta=self.delta)
        return Guarantee(math.inf if self.pure_epsilon is None else self.pure_epsilon, self.adjacency, self.trust_model)

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the account as JSON holds it.

        Returns
        -------
        dict
            The fields by name, always the same ones, and `method`; an order that is infinite is None.
        """
        document = {name: getattr(self, name) for name in self.__dataclass_fields__} | {"method": self.method}
        return document | {"order": None if self.order == math.inf else self.order}


@dataclass(frozen=True, eq=False)
class AccountedMechanism:
    """What accounting needs to know of a mechanism.

    Attributes
    ----------
    name : str
        Which mechanism, with its parameters.
    curve : RenyiCurve
        Rényi divergences of one round.
    adjacency : str
        Which data sets are neighbours.
    trust_model : str
        Whom the guarantee is against.
    epsilon_by_loss : callable or None
        Epsilon as a function of rounds and delta by the privacy loss distribution of a dominating pair, errs upward, or None where that
        is too expensive, or delta too small for it. None where no such pair is known.
    sampling : str or None
        How the clients of a round are chosen; None where every client takes part in every round.
    """

    name: str
    curve: RenyiCurve
    adjacency: str
    trust_model: str
    epsilon_by_loss: Callable[[int, float], float | None] | None = None
    sampling: str | None = None

    @property
    def pure_epsilon(self) -> float:
        """Pure epsilon of one round; infinite where there is none."""
        return float(self.curve.divergences[self.curve.orders == math.inf].min(initial=math.inf))

    def account(self, rounds: int = 1, delta: float | None = None) -> PrivacyAccount:
        """Return what a client is promised who takes part in every round.

        Parameters
        ----------
        rounds : int
            Number of rounds, at least 1.
        delta : float or None
            Failure probability, above 0 and below 1; None for the pure guarantee alone.

        Returns
        -------
        PrivacyAccount
            The account.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        rounds = check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
        pure = None if math.isinf(self.pure_epsilon) else rounds * self.pure_epsilon
        epsilon, by_curve, by_loss = None, None, None
        if delta is not None:
            by_curve = self.curve.composed(rounds).epsilon(check_delta(delta))
            by_loss = None if self.epsilon_by_loss is None else self.epsilon_by_loss(rounds, delta)
            epsilon = by_curve.epsilon if by_loss is None else min(by_curve.epsilon, by_loss)
        return PrivacyAccount(
            mechanism=self.name,
            rounds=rounds,
            delta=delta,
            epsilon=epsilon,
            epsilon_rdp=None if by_curve is None else by_curve.epsilon,
            order=None if by_curve is None else by_curve.order,
            order_at_edge=by_curve is not None and by_curve.at_edge,
            epsilon_pld=by_loss,
            pure_epsilon=pure,
            adjacency=self.adjacency,
            trust_model=self.trust_model,
            sampling=self.sampling,
        )
