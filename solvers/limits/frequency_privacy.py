"""Lower bounds of privacy on the error of frequencies, for any number of bits.

Each of n clients holds one of d items. Neighbours differ in one client's item (replace-one); a mechanism with (epsilon, delta) under
add-or-remove-one adjacency has (2 epsilon, (1 + e^epsilon) delta) in this sense. All bounds have explicit constants and are lower bounds
after rounding. `docs/proofs/frequency-limits.md` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_choice
from ...arrays import FloatArray
from ..numerics.bisection import bisect_each
from .compression import BOUNDED_TRUST_MODELS
from .frequency_limits import LOSSES, check_frequencies, one_hot_curves
from .mean_privacy import check_budget, group_deltas, sign_risks
from .prior_risk import ROUNDING, PriorRisks, group_sizes, group_weights

# The search tries these shares of clients that a hidden perturbation moves, and these drops of a count below its mean, in standard
# deviations.
PERTURBATIONS = np.geomspace(1e-9, 1.0, 180)
SHORTFALLS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0])


def frequency_bound(
    categories: int,
    clients: int,
    epsilon: float,
    delta: float = 0.0,
    trust_model: str = "secure-sum",
    *,
    loss: str = "l2-squared",
    unbiased: bool = False,
) -> float:
    """Return a lower bound on the worst-case error of the frequencies under privacy.

    The bound holds for every private mechanism, whatever it sends.

    Parameters
    ----------
    categories : int
        Number of items.
    clients : int
        Number of clients, which is public; every client holds one item.
    epsilon : float
        Privacy parameter for the replacement of one client's item, from 1e-6 to 10**5.
    delta : float
        Failure probability, from 0 to below 1; 0 for pure privacy, which has the higher bound.
    trust_model : str
        ``"central"`` and ``"secure-sum"``: the server's output is private, and the bounds are equal. ``"local"``: every client's message is
        private; messages are sent at the same time, and all clients may share randomness.
    loss : str
        ``"linf"``, the expected largest error of a frequency; ``"l2"``, the expected Euclidean norm of all errors; or ``"l2-squared"``, the
        expected square of that norm.
    unbiased : bool
        Whether the estimate must be unbiased, which raises the bound on ``"l2-squared"`` and leaves the other bounds.

    Returns
    -------
    float
        Lower bound on the error in shares of clients; 0.0 for a single category.

    Examples
    --------
    >>> [float(f"{frequency_bound(1000, 10_000, 1.0, 1e-6, trust):.3g}") for trust in ("secure-sum", "local")]
    [4.2e-06, 0.000435]
    >>> float(f"{frequency_bound(1000, 10_000, 1.0, 0.0, 'local', unbiased=True):.4g}")
    0.3674
    """
    categories, clients = check_frequencies(categories, clients)
    epsilon, delta = check_budget(epsilon, delta)
    check_choice("trust_model", trust_model, BOUNDED_TRUST_MODELS)
    check_choice("loss", loss, LOSSES)
    if categories == 1:
        return 0.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        best = _central(categories, clients, epsilon, delta, loss, unbiased)
        if trust_model == "local":
            best = max(best, _local(categories, clients, epsilon, delta, loss, unbiased))
    return best * (1 - ROUNDING)


def _central(categories: int, clients: int, epsilon: float, delta: float, loss: str, unbiased: bool) -> float:
    signs = sign_risks(categories // 2, clients, epsilon, delta)
    signs = PriorRisks(signs.second_moments / 2, signs.odds)
    items, diameters = _item_risks(categories, clients, epsilon, delta)
    if loss == "l2-squared":
        return max(risks.unbiased_error() if unbiased else risks.error() for risks in (signs, items))
    largest = _largest_error(categories, clients, epsilon, delta)
    if loss == "linf":
        return largest
    sizes = group_sizes(clients)
    sign_diameters = np.sqrt(2 * np.minimum(categories // 2, np.floor(clients / sizes))) * sizes / clients
    of_signs = PriorRisks(signs.second_moments / sign_diameters, signs.odds).error()
    return max(math.sqrt(2) * largest, of_signs, PriorRisks(items.second_moments / diameters, items.odds).error())


def item_odds(items: FloatArray, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
    """Return an upper bound on explained over unexplained variance of a private item.

    All items are equally likely before the message. With pure privacy, posterior probabilities differ by a factor of at most e^epsilon. The
    posterior of the largest sum of squares then has j items that are as likely as possible, with j next to items/(1 + e^epsilon). Otherwise
    the probability of a correct guess gives the bound.
    """
    low = np.exp(-epsilon)
    best = items * low / (1 + low)
    odds = np.zeros(np.broadcast(items, epsilon).shape)
    for likely in (np.floor(best), np.floor(best) + 1):
        high = np.clip(likely, 1, items - 1)
        rest = items - high
        explained = high * rest * (1 - low) ** 2 / items
        unexplained = high * (high - 1) + 2 * high * rest * low + rest * (rest - 1) * low**2
        odds = np.maximum(odds, explained / unexplained)
    guessed = (np.expm1(epsilon) + items * delta) / (items * (1 - delta))
    return np.where(delta == 0, odds, np.where(delta < 1, guessed, np.inf))


def _item_risks(categories: int, clients: int, epsilon: float, delta: float) -> tuple[PriorRisks, FloatArray]:
    """Return the risks and diameters of priors in which groups hold an item of a block each."""
    sizes = group_sizes(clients)
    items = np.append(2.0 ** np.arange(1, max(2, categories.bit_length())), categories)
    items = np.unique(items[items <= categories])[:, None]
    blocks = np.minimum(np.floor(categories / items), np.floor(clients / sizes))
    shares = sizes / clients
    odds = item_odds(items, sizes * epsilon, group_deltas(sizes, epsilon, delta))
    moments = blocks * shares**2 * (1 - 1 / items)
    return PriorRisks(moments, odds), np.sqrt(2 * blocks) * shares


def _largest_error(categories: int, clients: int, epsilon: float, delta: float) -> float:
    """Return the bound on the expected largest error, for central privacy."""
    sizes = group_sizes(clients)
    shares = sizes / clients
    if delta > 0:
        group_delta = group_deltas(sizes, epsilon, delta)
        missed = categories * (1 - group_delta) / (np.expm1(sizes * epsilon) + categories)
        return float(np.max(np.where(group_delta < 1, shares / 2 * missed, 0.0)))
    blocks = 2.0 ** np.arange(categories.bit_length() - 1)[:, None]
    items = np.floor(categories / blocks)
    missed = -np.expm1(-blocks * np.log1p((items - 1) * np.exp(-sizes * epsilon)))
    return float(np.max(np.where(blocks * sizes <= clients, shares * np.minimum(0.5, missed), 0.0)))


def _local(categories: int, clients: int, epsilon: float, delta: float, loss: str, unbiased: bool) -> float:
    pure = delta == 0
    hidden = _hidden_item(categories, clients, epsilon) if pure and loss != "l2-squared" else 0.0
    if loss == "linf":
        return hidden
    groups = _group_risks(categories, clients, epsilon, delta)
    dense = _dense_perturbation(categories, clients, epsilon, squared=loss == "l2-squared") if pure else 0.0
    if loss == "l2-squared":
        sparse = _hidden_items(categories, clients, epsilon) if pure else 0.0
        return max(dense, sparse, *(risks.unbiased_error() if unbiased else risks.error() for risks in groups))
    sizes = group_sizes(clients)
    diameters = np.sqrt(2 * np.floor(clients / sizes)) * sizes / clients
    return max(math.sqrt(2) * hidden, dense, *(PriorRisks(risks.second_moments / diameters, risks.odds).error() for risks in groups))


def _group_risks(categories: int, clients: int, epsilon: float, delta: float) -> tuple[PriorRisks, PriorRisks]:
    """Return the risks of all groups, and of two groups, with an independent item each."""
    sizes = group_sizes(clients)
    weights = group_weights(sizes, clients)
    items = np.unique(np.append(2.0 ** np.arange(1, max(2, categories.bit_length())), categories))
    items = items[items <= categories][:, None]
    group_delta = group_deltas(sizes, epsilon, delta)
    of_all = item_odds(items, sizes * epsilon, group_delta)
    if delta == 0:
        of_two = np.expm1(sizes * np.log1p(4 * np.sinh(min(epsilon / 2, 350.0)) ** 2)) / 2
    else:
        of_two = np.where(group_delta < 1, (np.sinh(np.minimum(sizes * epsilon / 2, 350.0)) ** 2 + group_delta) / (1 - group_delta), np.inf)
    return PriorRisks(weights * (1 - 1 / items), of_all), PriorRisks(weights / 2, of_two)


@dataclass(frozen=True, eq=False)
class LostAffinity:
    """One minus the affinity of two laws of a private message.

    The clients' laws of items differ in the sign of one pair of items.

    Attributes
    ----------
    mean : ndarray
        Upper bounds on the mean loss over all pairs.
    most : ndarray
        Upper bounds on the loss for each pair.
    """

    mean: FloatArray
    most: FloatArray


def lost_affinity(items: int, moved: FloatArray, epsilon: float) -> LostAffinity:
    """Return upper bounds on the affinity lost when the sign of a pair of items changes.

    Items of a pair have probabilities (1 +- moved)/items.
    """
    growth = math.expm1(min(epsilon, 700.0))
    # The least ratio of the two laws is 1 - lost.
    lost = np.minimum(2 * moved * growth / items, 1 - math.exp(-min(epsilon, 700.0)))
    root = 1 + np.sqrt(1 - lost)
    halved = (1 - moved) * growth / 2
    worst = np.where(halved <= 1, 1 / (1 + halved) ** 2, 1 / (4 * np.maximum(halved, 1)))
    # Among all pairs of laws with at least these ratios, randomised response has the least affinity.
    most = (1 - np.sqrt(1 - lost)) ** 2 / (2 - lost)
    return LostAffinity(np.minimum(2 * (moved * growth / (items * root)) ** 2 * worst, most), most)


def _dense_perturbation(categories: int, clients: int, epsilon: float, *, squared: bool) -> float:
    """Return the bound for a law of items whose pairs are perturbed by hidden signs (Assouad)."""
    items = 2 * (categories // 2)
    moved = PERTURBATIONS
    affinity = lost_affinity(items, moved, epsilon)
    most = np.clip(affinity.most, 1e-300, 0.999)
    steepness = np.maximum(-np.log1p(-most) / most, 1.0)
    unknown = np.where(affinity.most > most, 0.0, np.exp(-2 * clients * affinity.mean * steepness * (1 + ROUNDING)))
    drawn = (1 - (1 + moved**2) / items) / clients
    if squared:
        return float(np.max(np.maximum(moved * np.sqrt(unknown / items) - np.sqrt(drawn), 0.0))) ** 2
    return float(np.max(moved * unknown / (2 * math.sqrt(items)) - np.sqrt(drawn), initial=0.0))


def message_information(moved: FloatArray, epsilon: float) -> FloatArray:
    """Return an upper bound on the nats that a private message shares with its hidden item.

    A client holds a hidden item with probability `moved`.
    """
    growth = math.expm1(min(epsilon, 700.0))
    return np.asarray(moved**2 * growth**2 / (4 * (1 + moved * growth)) * (1 + ROUNDING))


def _hidden_items(categories: int, clients: int, epsilon: float) -> float:
    """Return the bound on the squared error if clients hold item 0 or a block's hidden item."""
    parts = 2.0 ** np.arange(max(1, (categories - 1).bit_length() - 1))
    sizes = np.floor((categories - 1) / parts)
    parts, sizes = parts[sizes >= 2], sizes[sizes >= 2]
    if not parts.size:
        return 0.0
    curves = one_hot_curves(sizes)
    best = 0.0
    for moved, information in zip(PERTURBATIONS[::-1], message_information(PERTURBATIONS, epsilon)[::-1], strict=True):
        # No distortion is above 1, so smaller perturbations have no larger errors.
        if moved <= best:
            break
        hidden = moved**2 / parts * curves.distortion(clients * information / parts**2)
        drawn = (1 - (1 - moved) ** 2 - moved**2 / parts) / clients
        best = max(best, float(np.max(np.sqrt(hidden) - np.sqrt(np.maximum(drawn, 0.0)))))
    return best**2


def _hidden_item(categories: int, clients: int, epsilon: float) -> float:
    """Return the bound on the largest error if clients hold item 0 or a hidden item (Fano)."""
    choices = categories - 1
    if choices < 2:
        return 0.0
    nats = clients * message_information(PERTURBATIONS, epsilon)

    def too_much(success: FloatArray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            missed = np.where(success < 1, (1 - success) * np.log((1 - success) * choices / (choices - 1)), 0.0)
        return np.asarray(success * np.log(success * choices) + missed > nats)

    success = bisect_each(too_much, np.full_like(nats, 1.0), np.full_like(nats, 1 / choices), 60).holds
    success = np.where(nats >= math.log(choices), 1.0, success)
    expected = PERTURBATIONS * clients
    fallen = SHORTFALLS[:, None] / np.sqrt(expected)
    kept = np.maximum(1 - fallen, 0.0)
    # Chernoff's bound limits the probability of a count below its mean.
    rare = np.exp(-expected * (fallen + kept * np.log(np.maximum(kept, 1e-300))))
    return float(np.max(kept * PERTURBATIONS / 2 * np.maximum(1 - success - rare, 0.0)))
