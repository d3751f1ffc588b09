"""Limits of privacy for frequencies: the least error of the shares of clients that hold each item, in any number of bits.

Each of n clients holds one of d items. Neighbours differ in one client's item (replace-one); whoever keeps (epsilon, delta) when a client
is added or removed keeps (2 epsilon, (1 + e^epsilon) delta) here. All bounds have explicit constants and err downward.
`docs/frequency-limits.md` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import check_choice
from ...arrays import FloatArray
from ..numerics.bisection import bisect_each
from .frequency_limits import LOSSES, TRUST_MODELS, check_frequencies, one_hot_curves
from .mean_privacy import check_budget, sign_risks
from .prior_risk import ROUNDING, PriorRisks, group_sizes, group_weights

# Shares of clients that a hidden perturbation moves, and how far below their mean a count may fall, in standard deviations.
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
    """Return a bound on the worst-case error of the frequencies for every private mechanism, however much it sends.

    Parameters
    ----------
    categories : int
        How many items there are.
    clients : int
        How many clients hold one item each; their number is public.
    epsilon : float
        Privacy parameter for the replacement of one client's item, from 1e-6 to 10**5.
    delta : float
        From 0 to below 1; 0 for pure privacy, which has the higher bound.
    trust_model : str
        ``"central"`` and ``"secure-sum"``: what is published is private, and the bound the same. ``"local"``: every client's message is
        private; messages are sent at the same time, and randomness may be shared by all.
    loss : str
        ``"linf"``, the expected largest error of a frequency; ``"l2"``, the expected Euclidean norm of all errors; or ``"l2-squared"``,
        the expected square of that.
    unbiased : bool
        Whether the estimate must be unbiased: a higher bound on ``"l2-squared"``, and of no effect on the others.

    Returns
    -------
    float
        In units of shares of clients. Errs downward; 0.0 for a single category.

    Examples
    --------
    >>> [float(f"{frequency_bound(1000, 10_000, 1.0, 1e-6, trust):.3g}") for trust in ("secure-sum", "local")]
    [4.2e-06, 0.000435]
    >>> float(f"{frequency_bound(1000, 10_000, 1.0, 0.0, 'local', unbiased=True):.4g}")
    0.3674
    """
    categories, clients = check_frequencies(categories, clients)
    epsilon, delta = check_budget(epsilon, delta)
    check_choice("trust_model", trust_model, TRUST_MODELS)
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


def revealed(sizes: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """Return delta of groups of these sizes, delta (e^(k epsilon) - 1)/(e^epsilon - 1)."""
    if delta == 0:
        return np.zeros_like(sizes)
    return np.asarray(delta * np.exp((sizes - 1) * epsilon) * np.expm1(-sizes * epsilon) / np.expm1(-epsilon))


def item_odds(items: FloatArray, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
    """Return a bound on explained over unexplained variance of one item among equally likely ones, seen with this privacy; errs upward.

    Pure privacy: the largest sum of squares of a posterior whose probabilities differ by a factor of e^epsilon at most has j items that are
    as likely as possible, with j next to items/(1 + e^epsilon). Otherwise by the probability of a correct guess.
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
    """Return the risks where blocks of items have a group of clients each, who all hold one item, and the diameters of these priors."""
    sizes = group_sizes(clients)
    items = np.append(2.0 ** np.arange(1, max(2, categories.bit_length())), categories)
    items = np.unique(items[items <= categories])[:, None]
    blocks = np.minimum(np.floor(categories / items), np.floor(clients / sizes))
    shares = sizes / clients
    odds = item_odds(items, sizes * epsilon, revealed(sizes, epsilon, delta))
    moments = blocks * shares**2 * (1 - 1 / items)
    return PriorRisks(moments, odds), np.sqrt(2 * blocks) * shares


def _largest_error(categories: int, clients: int, epsilon: float, delta: float) -> float:
    """Return the bound on the expected largest error, for central privacy."""
    sizes = group_sizes(clients)
    shares = sizes / clients
    if delta > 0:
        known = revealed(sizes, epsilon, delta)
        missed = categories * (1 - known) / (np.expm1(sizes * epsilon) + categories)
        return float(np.max(np.where(known < 1, shares / 2 * missed, 0.0)))
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
    """Return the risks of independent groups with one item each: of all, and of two."""
    sizes = group_sizes(clients)
    weights = group_weights(sizes, clients)
    items = np.unique(np.append(2.0 ** np.arange(1, max(2, categories.bit_length())), categories))
    items = items[items <= categories][:, None]
    known = revealed(sizes, epsilon, delta)
    of_all = item_odds(items, sizes * epsilon, known)
    if delta == 0:
        of_two = np.expm1(sizes * np.log1p(4 * np.sinh(min(epsilon / 2, 350.0)) ** 2)) / 2
    else:
        of_two = np.where(known < 1, (np.sinh(np.minimum(sizes * epsilon / 2, 350.0)) ** 2 + known) / (1 - known), np.inf)
    return PriorRisks(weights * (1 - 1 / items), of_all), PriorRisks(weights / 2, of_two)


@dataclass(frozen=True, eq=False)
class LostAffinity:
    """One minus the affinity of two laws of a private message, whose clients' laws differ in the sign of one pair of items.

    Attributes
    ----------
    mean : ndarray
        Bounds on its mean over all pairs.
    most : ndarray
        Bounds on it for each pair.
    """

    mean: FloatArray
    most: FloatArray


def lost_affinity(items: int, moved: FloatArray, epsilon: float) -> LostAffinity:
    """Return how well a message tells signs of pairs with probabilities (1 +- moved)/items from their opposites; errs upward."""
    growth = math.expm1(min(epsilon, 700.0))
    # The least ratio of the two laws is one minus that.
    lost = np.minimum(2 * moved * growth / items, 1 - math.exp(-min(epsilon, 700.0)))
    root = 1 + np.sqrt(1 - lost)
    halved = (1 - moved) * growth / 2
    worst = np.where(halved <= 1, 1 / (1 + halved) ** 2, 1 / (4 * np.maximum(halved, 1)))
    # Of all pairs of laws with ratios that are no smaller, those of randomised response have the least affinity.
    most = (1 - np.sqrt(1 - lost)) ** 2 / (2 - lost)
    return LostAffinity(np.minimum(2 * (moved * growth / (items * root)) ** 2 * worst, most), most)


def _dense_perturbation(categories: int, clients: int, epsilon: float, *, squared: bool) -> float:
    """Return the bound where clients draw items from a law in which pairs of items are perturbed by hidden signs (Assouad)."""
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
    """Return nats that one private message can share with hidden items that it holds with these probabilities; errs upward."""
    growth = math.expm1(min(epsilon, 700.0))
    return np.asarray(moved**2 * growth**2 / (4 * (1 + moved * growth)) * (1 + ROUNDING))


def _hidden_items(categories: int, clients: int, epsilon: float) -> float:
    """Return the bound on the squared error where clients hold item 0, or else one of some hidden items of a block each."""
    parts = 2.0 ** np.arange(max(1, (categories - 1).bit_length() - 1))
    sizes = np.floor((categories - 1) / parts)
    parts, sizes = parts[sizes >= 2], sizes[sizes >= 2]
    if not parts.size:
        return 0.0
    curves = one_hot_curves(sizes)
    best = 0.0
    for moved, information in zip(PERTURBATIONS[::-1], message_information(PERTURBATIONS, epsilon)[::-1], strict=True):
        # No distortion is above 1: smaller perturbations have no larger errors than these.
        if moved <= best:
            break
        hidden = moved**2 / parts * curves.distortion(clients * information / parts**2)
        drawn = (1 - (1 - moved) ** 2 - moved**2 / parts) / clients
        best = max(best, float(np.max(np.sqrt(hidden) - np.sqrt(np.maximum(drawn, 0.0)))))
    return best**2


def _hidden_item(categories: int, clients: int, epsilon: float) -> float:
    """Return the bound on the largest error where clients hold item 0, or else one hidden item (Fano)."""
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
    # Chernoff's bound on a count below its mean.
    rare = np.exp(-expected * (fallen + kept * np.log(np.maximum(kept, 1e-300))))
    return float(np.max(kept * PERTURBATIONS / 2 * np.maximum(1 - success - rare, 0.0)))
