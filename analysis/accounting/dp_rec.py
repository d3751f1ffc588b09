"""DP-REC's account over rounds, and the largest clip ratio for a budget."""

from dataclasses import dataclass

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.guarantee import Guarantee
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.divergences.dp_rec_index_privacy import index_epsilon
from ...solvers.divergences.dp_rec_privacy import (
    LARGEST_CLIP_RATIO,
    LARGEST_POPULATION,
    MOST_BITS,
    SMALLEST_CLIP_RATIO,
    VARIANTS,
    DpRecEpsilon,
    dp_rec_epsilon,
    fewest_dp_rec_bits,
    lost_delta,
)
from ...solvers.numerics.safe_root import safe_root
from ..calibration.privacy_calibration import LARGEST_TARGET, SMALLEST_TARGET, TOLERANCE

# The theorem in two variants, and a bound that we derived from the weights as they are normalised.
ANY_BITS = "any-bits"
DP_REC_VARIANTS = (*VARIANTS, ANY_BITS)
MOST_ROUNDS = 10**9
# Most clients of a round: they are drawn with replacement, and may be more than there are.
MOST_CLIENTS_PER_ROUND = 10**6
# What is not proved: of all variants, and of those of the theorem.
ASSUMPTION = "the other clients' messages count as samples of the prior"
THEOREM_ASSUMPTION = f"{ASSUMPTION}, and all groups as one list of 2**bits samples"
# Stands for an infinite epsilon where a root is looked for.
HUGE_EPSILON = 1e100
# Where the bits leave almost nothing of delta, epsilon rises steeply.
JUMP = 1e-13


@dataclass(frozen=True)
class DpRecAccount:
    """What a client of DP-REC is promised against whoever sees the models of all rounds.

    Attributes
    ----------
    clip_ratio : float
        Clip norm of a client's update over the standard deviation of the prior.
    population : int
        Number of clients.
    clients_per_round : int
        Number of draws of a round, with replacement.
    rounds : int
        Number of rounds.
    bits : int
        Bits of a message, all groups together.
    delta : float
        Failure probability of all rounds together.
    variant : str
        ``"published"`` or ``"conservative"`` (`dp_rec_epsilon`), or ``"any-bits"`` (`index_epsilon`).
    epsilon : float
        Privacy parameter of all rounds together; errs upward in what the variant computes.
    order : int
        The Rényi order that gave it.
    order_at_edge : bool
        Whether that order is the largest that was tried, or for ``"any-bits"`` also the smallest, so that others might give less.
    minimum_bits : int
        Fewest bits with which epsilon is finite; 1 for ``"any-bits"``.
    lost_delta : float
        Part of delta that coding with so few samples costs; errs upward.
    adjacency : str
        ``"add-or-remove-one"``: where the client is drawn, it codes its own update, or sends a sample of the prior.
    trust_model : str
        ``"central"``: the server sees each message with its sender, and is trusted not to let on who was drawn.
    sampling : str
        How clients are chosen.
    assumption : str
        What is taken for granted: that the messages of the other clients hide a client as samples of the prior would (updates
        on the other side of the prior hide less), and, but for ``"any-bits"``, that a message is an index into one list of 2**bits samples
        (groups with lists of their own need about as many bits each).
    """

    clip_ratio: float
    population: int
    clients_per_round: int
    rounds: int
    bits: int
    delta: float
    variant: str
    epsilon: float
    order: int
    order_at_edge: bool
    minimum_bits: int
    lost_delta: float
    adjacency: str
    trust_model: str
    sampling: str
    assumption: str

    @property
    def mechanism(self) -> str:
        """Which mechanism, in words."""
        return f"DP-REC, clip ratio {self.clip_ratio:g}, {self.bits} bits per message, {self.variant} accountant"

    @property
    def guarantee(self) -> Guarantee:
        """The account as a guarantee."""
        return Guarantee(self.epsilon, self.adjacency, self.trust_model, delta=self.delta)

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the account as JSON holds it.

        Returns
        -------
        dict
            The mechanism in words, and the fields by name.
        """
        return {"mechanism": self.mechanism} | {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class DpRecCalibration:
    """A clip ratio, and the account that it gives.

    Attributes
    ----------
    target_epsilon : float
        Epsilon that was asked for.
    account : DpRecAccount
        What holds with the clip ratio that was found: its epsilon is at most the target, and less than 1e-6 below it unless a larger clip
        ratio would need more bits, or epsilon jumps there, as it does from 0 where delta alone covers all that is revealed.
    """

    target_epsilon: float
    account: DpRecAccount

    @property
    def clip_ratio(self) -> float:
        """What was found: clip norm of a client's update over the standard deviation of the prior."""
        return self.account.clip_ratio

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the calibration as JSON holds it.

        Returns
        -------
        dict
            The target, and the account's document.
        """
        return self.account.document() | {"target_epsilon": self.target_epsilon}


def dp_rec_account(
    clip_ratio: float, population: int, clients_per_round: int, rounds: int, bits: int, delta: float, variant: str = "published"
) -> DpRecAccount:
    """Return what a client of DP-REC is promised after all rounds.

    Parameters
    ----------
    clip_ratio : float
        Clip norm of a client's update over the standard deviation of the prior, from 1e-6 to 100.
    population : int
        Number of clients, at least 1.
    clients_per_round : int
        Number of clients of a round, drawn with replacement, from 1 to 10**6.
    rounds : int
        Number of rounds, from 1 to 10**9.
    bits : int
        Bits of a message, all groups together, from 1 to 10**6.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    variant : str
        ``"published"``, the theorem as printed; ``"conservative"``, with Hölder's inequality where the theorem adds dependent losses;
        ``"any-bits"``, derived from the weights as they are normalised, which holds for any number of bits and any groups.

    Returns
    -------
    DpRecAccount
        The account.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits leave nothing of delta, so that no epsilon is finite; the message says how many bits would do.

    Examples
    --------
    MNIST in the paper, where it says 3.

    >>> account = dp_rec_account(0.545, 100, 10, 1000, 42, 100**-1.1)
    >>> round(account.epsilon, 3), account.order, account.minimum_bits
    (3.016, 5, 25)
    """
    population = check_integer("population", population, low=1, high=LARGEST_POPULATION)
    draws = _draws(clients_per_round, rounds)
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    found = _epsilon(clip_ratio, population, draws, bits, delta, variant)
    derived = variant == ANY_BITS
    fewest = 1 if derived else fewest_dp_rec_bits(clip_ratio, draws, delta)
    if found.order is None:
        raise InfeasibleError(
            f"bits must be at least {fewest} for clip ratio {clip_ratio:g} and {draws} draws at delta = {delta:g}, got {bits}: coding with "
            f"so few samples costs {lost_delta(clip_ratio, draws, bits):.3g} of delta"
        )
    return DpRecAccount(
        clip_ratio=float(clip_ratio),
        population=population,
        clients_per_round=clients_per_round,
        rounds=rounds,
        bits=bits,
        delta=float(delta),
        variant=variant,
        epsilon=found.epsilon,
        order=found.order,
        order_at_edge=found.at_edge,
        minimum_bits=fewest,
        lost_delta=0.0 if derived else lost_delta(clip_ratio, draws, bits),
        adjacency="add-or-remove-one",
        trust_model="central",
        sampling=f"{clients_per_round} of {population} clients drawn with replacement",
        assumption=ASSUMPTION if derived else THEOREM_ASSUMPTION,
    )


def calibrate_dp_rec(
    epsilon: float, population: int, clients_per_round: int, rounds: int, bits: int, delta: float, variant: str = "published"
) -> DpRecCalibration:
    """Return the largest clip ratio, and so the least noise for a clip norm, with which epsilon is at most the target.

    Parameters
    ----------
    epsilon : float
        Privacy parameter after all rounds, from 1e-5 to 10**4.
    population, clients_per_round, rounds, bits, delta, variant
        As in `dp_rec_account`.

    Returns
    -------
    DpRecCalibration
        The clip ratio with its account; errs toward a smaller ratio, which is more noise. Where the bits are what limits the clip ratio,
        epsilon may end well below the target.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no clip ratio from 1e-6 to 100 will do; the message says how many bits would, if those are at fault.

    Examples
    --------
    >>> found = calibrate_dp_rec(3.0, 100, 10, 1000, 42, 100**-1.1)
    >>> round(found.clip_ratio, 4), 0 <= 3.0 - found.account.epsilon <= 1e-6
    (0.5429, True)
    """
    epsilon = check_real("epsilon", epsilon, low=SMALLEST_TARGET, high=LARGEST_TARGET)
    delta = check_delta(delta)
    draws = _draws(clients_per_round, rounds)
    # Refuses what is out of range, and bits that are too few for every clip ratio.
    dp_rec_account(SMALLEST_CLIP_RATIO, population, clients_per_round, rounds, bits, delta, variant)
    clip_ratio = safe_root(
        lambda ratio: min(_epsilon(ratio, population, draws, bits, delta, variant).epsilon, HUGE_EPSILON),
        epsilon,
        start=1.0,
        low=SMALLEST_CLIP_RATIO,
        high=LARGEST_CLIP_RATIO,
        tolerance=TOLERANCE * min(1.0, epsilon),
        jump=JUMP,
        name="clip ratio",
    )
    return DpRecCalibration(epsilon, dp_rec_account(clip_ratio, population, clients_per_round, rounds, bits, delta, variant))


def _epsilon(clip_ratio: float, population: int, draws: int, bits: int, delta: float, variant: str) -> DpRecEpsilon:
    check_choice("variant", variant, DP_REC_VARIANTS)
    if variant != ANY_BITS:
        return dp_rec_epsilon(clip_ratio, population, draws, bits, delta, variant)
    found = index_epsilon(clip_ratio, population, draws, delta)
    return DpRecEpsilon(found.epsilon, int(found.order), found.at_edge)


def _draws(clients_per_round: int, rounds: int) -> int:
    clients_per_round = check_integer("clients_per_round", clients_per_round, low=1, high=MOST_CLIENTS_PER_ROUND)
    return clients_per_round * check_integer("rounds", rounds, low=1, high=MOST_ROUNDS)
