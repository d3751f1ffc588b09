"""DP-REC over the rounds of a training: what is published, and what is proven."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ...arguments import check_integer, check_real
from ...design.contracts.accounts import amplified_rounds, needing_delta
from ...design.contracts.privacy import Account, Bound, EpsilonBound, Privacy, participation_bound
from ...design.contracts.registry import AccountReport, AccountSubject, usual_adjacency
from ...design.relative_entropy.dp_rec import message_account
from ...design.relative_entropy.shared_randomness import SEED_BITS
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, RenyiCurve
from ...solvers.accounting.sampling import (
    SMALLEST_PROBABILITY,
    FixedSizeSampling,
    Sampling,
    fixed_size_sampled_curve,
    likely_participations,
)
from ...solvers.divergences.dp_rec_privacy import (
    LARGEST_CLIP_RATIO,
    LARGEST_POPULATION,
    MOST_BITS,
    SMALLEST_CLIP_RATIO,
    VARIANTS,
    dp_rec_epsilon,
    fewest_dp_rec_bits,
    index_epsilon,
    lost_delta,
    message_divergences,
)

ANY_BITS, ANY_CLIENTS, MESSAGE = "any-bits", "any-clients", "message"
DP_REC_ACCOUNTS = (*VARIANTS, ANY_BITS, ANY_CLIENTS, MESSAGE)
# The usual one is that for which something is proven without an assumption about other clients.
DP_REC_ADJACENCIES = ("replace-one", "add-or-remove-one")
# Most clients of a round: they are drawn with replacement, and may be more than there are.
MOST_CLIENTS_PER_ROUND = 10**6
# What is not proved: of the accounts for add-or-remove-one adjacency, and of those of the theorem.
ASSUMPTION = "the other clients' messages count as samples of the prior"
THEOREM_ASSUMPTION = f"{ASSUMPTION}, all groups as one list of 2**bits samples, and the paper's bound on what coding costs of delta holds"


@dataclass(frozen=True)
class DpRecTraining:
    """The clients of a training with DP-REC, and their messages.

    Attributes
    ----------
    clip_ratio : float
        Clip norm of a client's update over the standard deviation of the prior, from 1e-6 to 100.
    population : int
        Number of clients.
    clients_per_round : int
        Number of draws of a round, with replacement, from 1 to 10**6.
    index_bits : int
        Bits of all groups' indices together, from 1 to 10**6; a message has the seed, too.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    clip_ratio: float
    population: int
    clients_per_round: int
    index_bits: int

    def __post_init__(self) -> None:
        """Check the fields."""
        ratio = check_real("clip_ratio", self.clip_ratio, low=SMALLEST_CLIP_RATIO, high=LARGEST_CLIP_RATIO)
        object.__setattr__(self, "clip_ratio", ratio)
        check_integer("population", self.population, low=1, high=LARGEST_POPULATION)
        check_integer("clients_per_round", self.clients_per_round, low=1, high=MOST_CLIENTS_PER_ROUND)
        check_integer("index_bits", self.index_bits, low=1, high=MOST_BITS)

    def privacy(self) -> Privacy:
        """Return the privacy against whoever sees the models of all rounds: the server is trusted not to let on who was drawn.

        Add-or-remove-one adjacency: where the client is drawn, it codes its own update, or sends a sample of the prior. ``"published"`` is
        the theorem as printed, whose proof adds dependent losses; ``"conservative"`` uses Hölder's inequality there; ``"any-bits"`` is
        derived from the weights as they are normalised, and holds for any number of bits and any groups. All three assume that the
        messages of the other clients hide a client as samples of the prior would: updates on the other side of the prior hide less.

        Replace-one adjacency, where nothing is assumed: ``"any-clients"`` amplifies what a message reveals between any two updates by the
        secret choice of one client in every draw, whatever the others' updates are; ``"message"`` is that of the client's own messages, one
        for every draw. A client that sends a sample of the prior has the law of one whose update is zero: both hold for it, too.
        """
        own = message_account(self.clip_ratio)

        def of_all_draws(delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
            found = own.bound(delta, self._draws(rounds), None)
            return replace(found, details={**found.details, "trust_model": "local"})

        theorem = (
            Account(
                variant,
                "add-or-remove-one",
                _drawn_already(self._published(variant)),
                proven=variant != "published",
                assumes=THEOREM_ASSUMPTION,
            )
            for variant in VARIANTS
        )
        derived = Account(ANY_BITS, "add-or-remove-one", _drawn_already(self._any_bits), assumes=ASSUMPTION)
        unconditional = Account(ANY_CLIENTS, "replace-one", _drawn_already(self._any_clients))
        return Privacy("central", (*theorem, derived, unconditional, replace(own, bound=_drawn_already(of_all_draws))))

    def _draws(self, rounds: int) -> int:
        """Return the number of draws of all rounds, which is what accounts compose."""
        if rounds * self.clients_per_round > MOST_ROUNDS:
            raise ValueError(
                f"rounds must be at most {MOST_ROUNDS // self.clients_per_round} for dp-rec with {self.clients_per_round} clients a round, "
                f"got {rounds}: accounts are for {MOST_ROUNDS:g} messages at most"
            )
        return rounds * self.clients_per_round

    def _published(self, variant: str) -> Bound:
        def bound(delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
            draws = self._draws(rounds)
            found = dp_rec_epsilon(self.clip_ratio, self.population, draws, self.index_bits, delta, variant)
            fewest, lost = fewest_dp_rec_bits(self.clip_ratio, draws, delta), lost_delta(self.clip_ratio, draws, self.index_bits)
            details = {"minimum_bits": fewest, "lost_delta": lost}
            if found.order is None:
                reason = (
                    f"index_bits must be at least {fewest} for clip ratio {self.clip_ratio:g} and {draws} draws at delta = {delta:g}, got "
                    f"{self.index_bits}: coding with so few samples costs {lost:.3g} of delta"
                )
                return EpsilonBound(math.inf, reason, details=details)
            return EpsilonBound(found.epsilon, order=found.order, order_at_edge=found.at_edge, details=details)

        return bound

    def _any_bits(self, delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
        found = index_epsilon(self.clip_ratio, self.population, self._draws(rounds), delta)
        return EpsilonBound(found.epsilon, order=found.order, order_at_edge=found.at_edge, details={"minimum_bits": 1, "lost_delta": 0.0})

    def _any_clients(self, delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
        """Return the least of three ways.

        Rényi divergences of sampled draws (Wang, Balle, Kasiviswanathan 2019), (epsilon, delta) of them, and what is known of the draws
        that are the client's.
        """
        draws = self._draws(rounds)
        orders = np.array(DEFAULT_ORDERS[:-1])
        message = RenyiCurve(orders, message_divergences(self.clip_ratio, orders))
        by_moments = fixed_size_sampled_curve(message, max(SMALLEST_PROBABILITY, 1 / self.population)).composed(draws).epsilon(delta)
        drawn = FixedSizeSampling(self.population, 1)
        own = message_account(self.clip_ratio)
        by_draws = amplified_rounds(lambda delta: own.bound(delta, 1, None), delta, draws, drawn, "replace-one")
        few = likely_participations(1 / self.population, draws, delta / 2)
        return min(
            EpsilonBound(by_draws.epsilon),
            EpsilonBound(by_moments.epsilon, order=by_moments.order, order_at_edge=by_moments.at_edge),
            participation_bound(own.bound, delta / 2, few),
            key=lambda one: one.epsilon,
        )


def _drawn_already(bound: Bound) -> Bound:
    """Return a bound that needs delta, and refuses to be told how clients are drawn."""

    def checked(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        if sampling is not None:
            raise ValueError(f"sampling must be left out for dp-rec, whose clients are drawn with replacement, got {str(sampling)!r}")
        return needing_delta(bound)(delta, rounds, None)

    return checked


def accounted_dp_rec(training: DpRecTraining, adjacency: str | None = None) -> AccountSubject:
    """Return a training as accounting sees it; the usual adjacency is replace-one; the paper's is add-or-remove-one."""
    return AccountSubject(
        mechanism=f"DP-REC, clip ratio {training.clip_ratio:g}, {training.index_bits} bits of indices",
        privacy=training.privacy(),
        adjacency=usual_adjacency(adjacency, None, DP_REC_ADJACENCIES),
        bits_per_client=float(8 * math.ceil((SEED_BITS + training.index_bits) / 8)),
        details={
            "clip_ratio": training.clip_ratio,
            "population": training.population,
            "clients_per_round": training.clients_per_round,
            "index_bits": training.index_bits,
            "drawn": f"{training.clients_per_round} of {training.population} clients drawn with replacement",
        },
    )


def dp_rec_account(
    clip_ratio: float,
    population: int,
    clients_per_round: int,
    rounds: int,
    index_bits: int,
    delta: float,
    adjacency: str | None = None,
) -> AccountReport:
    """Return what a client of DP-REC is promised after all rounds, by all accounts.

    Parameters
    ----------
    clip_ratio, population, clients_per_round, index_bits
        As in `DpRecTraining`.
    rounds : int
        Number of rounds.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    adjacency : str or None
        ``"replace-one"``, the default; or ``"add-or-remove-one"``, the paper's, for which nothing is proven without an assumption.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    MNIST in the paper, where it says 3; and what is proven, whatever the other clients' updates are.

    >>> report = dp_rec_account(0.545, 100, 10, 1000, 42, 100**-1.1)
    >>> published = report.privacy.account("published")
    >>> round(published.bound.epsilon, 3), published.bound.order, published.bound.details["minimum_bits"], round(report.epsilon, 3)
    (3.016, 5, 25, 12.507)
    """
    return accounted_dp_rec(DpRecTraining(clip_ratio, population, clients_per_round, index_bits), adjacency).report(delta, rounds)
