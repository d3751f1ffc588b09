"""Limits of private frequencies, against mechanisms with exact errors.

Lemmas are tested with random channels.
"""

import itertools
import math

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.solvers.limits.frequency_limits import LOSSES
from quietbits.solvers.limits.frequency_privacy import frequency_bound, item_odds, lost_affinity, message_information

SIZES = [(2, 1), (2, 10**6), (3, 50), (40, 200), (1000, 100), (1000, 10**6), (10**5, 50_000)]
EPSILONS = [0.01, 0.3, 1.0, 3.0, 8.0, 40.0]


def randomised_response(categories: int, clients: int, epsilon: float) -> float:
    """Return the expected squared error of unbiased randomised response."""
    total = math.expm1(epsilon) + categories
    kept, other = math.exp(epsilon) / total, 1 / total
    variance = kept * (categories - 1) * other + (categories - 1) * other * (1 - other)
    return variance / (kept - other) ** 2 / clients


def subset_selection(categories: int, clients: int, epsilon: float) -> float:
    """Return subset selection's squared error with the best size of subsets (Ye, Barg 2018)."""
    best = math.inf
    for size in range(1, categories):
        total = size * math.exp(epsilon) + categories - size
        kept, missed = size * math.exp(epsilon) / total, (categories - size) / total
        other = kept * (size - 1) / (categories - 1) + missed * size / (categories - 1)
        best = min(best, (kept * missed + (categories - 1) * other * (1 - other)) / (kept - other) ** 2)
    return best / clients


def discrete_laplace(categories: int, clients: int, epsilon: float) -> dict[str, float]:
    """Return discrete Laplace noise's errors on counts; a replacement moves two counts by 1."""
    decay = math.exp(-epsilon / 2)
    squared = categories * 2 * decay / (1 - decay) ** 2 / clients**2
    # P(|Z| <= m) = 1 - 2 decay^(m + 1)/(1 + decay), and E max is the sum of P(max > m).
    magnitudes = np.arange(int(60 / epsilon) + 200)
    exceeded = -np.expm1(categories * np.log1p(-2 * decay ** (magnitudes + 1.0) / (1 + decay)))
    return {"linf": float(exceeded.sum()) / clients, "l2": math.sqrt(squared), "l2-squared": squared}


def private_channel(rng: np.random.Generator, categories: int, epsilon: float) -> FloatArray:
    """Return an epsilon-private channel: subset selection, or a random channel."""
    if rng.random() < 0.3:
        size = int(rng.integers(1, categories))
        subsets = itertools.combinations(range(categories), size)
        levels = np.array([[math.exp(epsilon) if item in subset else 1.0 for item in range(categories)] for subset in subsets]).T
    else:
        # Columns vary by half of epsilon, because dividing by the rows' sums may cost as much again.
        levels = np.exp(0.5 * epsilon * rng.integers(0, 2, (categories, int(rng.integers(2, 12)))))
    return levels / levels.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("categories", "clients"), SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_local_mechanism_beats_the_bound(categories: int, clients: int, epsilon: float) -> None:
    squared = randomised_response(categories, clients, epsilon)
    if categories <= 1000:
        squared = min(squared, subset_selection(categories, clients, epsilon))
    constant = {"linf": 0.5, "l2": math.sqrt(1 - 1 / categories), "l2-squared": 1 - 1 / categories}
    for loss in LOSSES:
        attained = min(squared if loss == "l2-squared" else math.sqrt(squared), constant[loss])
        assert 0 < frequency_bound(categories, clients, epsilon, 0.0, "local", loss=loss) <= attained
        assert frequency_bound(categories, clients, epsilon, 1e-6, "local", loss=loss) <= attained
    assert frequency_bound(categories, clients, epsilon, 0.0, "local", unbiased=True) <= squared


@pytest.mark.parametrize("categories", [2, 3, 10, 200])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_subset_selection_is_optimal_among_unbiased_local_mechanisms(categories: int, epsilon: float) -> None:
    bound = frequency_bound(categories, 77, epsilon, 0.0, "local", unbiased=True)
    assert bound == pytest.approx(subset_selection(categories, 77, epsilon), rel=1e-7)


@pytest.mark.parametrize(("categories", "clients"), SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_central_mechanism_beats_the_bound(categories: int, clients: int, epsilon: float) -> None:
    attained = discrete_laplace(categories, clients, epsilon)
    constant = {"linf": 0.5, "l2": math.sqrt(1 - 1 / categories), "l2-squared": 1 - 1 / categories}
    for loss, delta in itertools.product(LOSSES, (0.0, 1e-9, 1e-3, 0.4)):
        bound = frequency_bound(categories, clients, epsilon, delta, "central", loss=loss)
        assert 0 < bound <= min(attained[loss], constant[loss])
        # Releasing the histogram with probability delta, else a constant, is (0, delta) private.
        assert bound <= (1 - delta) * constant[loss]
    assert frequency_bound(categories, clients, epsilon, unbiased=True) <= attained["l2-squared"]


def test_the_bound_is_within_a_constant_of_laplace_noise_for_many_clients() -> None:
    for epsilon in (0.1, 1.0):
        laplace = discrete_laplace(100, 10**6, epsilon)
        assert frequency_bound(100, 10**6, epsilon) > laplace["l2-squared"] / 20
        assert frequency_bound(100, 10**6, epsilon, unbiased=True) > laplace["l2-squared"] / 2.5
        assert frequency_bound(100, 10**6, epsilon, loss="linf") > laplace["linf"] / 8


def test_local_bounds_have_the_known_orders() -> None:
    """With many clients the bounds have the orders of the literature."""
    clients = 10**12
    assert 0.3 < frequency_bound(100, clients, 0.1, 0.0, "local") * clients * 0.01 / 100 < 4
    largest = frequency_bound(10**5, clients, 0.1, 0.0, "local", loss="linf")
    assert 0.2 < largest / math.sqrt(math.log(10**5) / (clients * 0.01)) < 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("trust_model", ["local", "secure-sum"])
def test_more_privacy_and_fewer_clients_cost_more(loss: str, trust_model: str) -> None:
    by_epsilon = [frequency_bound(50, 1000, epsilon, 1e-7, trust_model, loss=loss) for epsilon in np.geomspace(0.01, 20, 30)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(by_epsilon))
    by_clients = [frequency_bound(50, clients, 1.0, 0.0, trust_model, loss=loss) for clients in (10, 100, 1000, 10**4, 10**6)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(by_clients))
    assert frequency_bound(50, 1000, 1.0, 0.0, "local", loss=loss) >= frequency_bound(50, 1000, 1.0, 0.0, "secure-sum", loss=loss)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("items", [2, 3, 7])
def test_no_private_posterior_explains_more(items: int, epsilon: float) -> None:
    bound = float(item_odds(np.array([float(items)]), np.array([epsilon]), np.zeros(1))[0])
    best = 0.0
    for levels in itertools.product([1.0, math.exp(epsilon), math.exp(epsilon / 2)], repeat=items):
        posterior = np.array(levels) / sum(levels)
        explained = float((posterior**2).sum()) - 1 / items
        best = max(best, explained / (1 - 1 / items - explained))
    assert bound == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("moved", [0.05, 0.5, 1.0])
def test_the_affinity_that_is_lost_on_signs_of_pairs(epsilon: float, moved: float) -> None:
    rng = np.random.default_rng(1)
    items = 6
    bound = lost_affinity(items, np.array([moved]), epsilon)
    signs = np.array(list(itertools.product([-1, 1], repeat=items // 2)))
    sources = np.stack([1 + moved * signs, 1 - moved * signs], axis=2).reshape(len(signs), items) / items
    # Each row of signs has, for each pair, a row that differs only in the sign of that pair.
    flipped = np.arange(len(signs))[:, None] ^ (1 << np.arange(items // 2))
    assert (np.abs(signs[:, None] - signs[flipped]).sum(axis=2) == 2).all()
    largest = 0.0
    for _ in range(200):
        channel = private_channel(rng, items, epsilon)
        assert float(np.max(channel.max(axis=0) / channel.min(axis=0))) <= math.exp(epsilon) * (1 + 1e-12)
        roots = np.sqrt(sources @ channel)
        lost = 1 - (roots[:, None] * roots[flipped]).sum(axis=2)
        assert lost.max() <= bound.most[0]
        largest = max(largest, float(lost.mean(axis=1).max()))
    assert bound.mean[0] / 8 < largest <= bound.mean[0]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("moved", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("parts", [1, 2])
def test_the_information_about_hidden_items(epsilon: float, moved: float, parts: int) -> None:
    rng = np.random.default_rng(2)
    size = 3
    bound = float(message_information(np.array([moved]), epsilon)[0]) / parts
    hidden = np.array(list(itertools.product(range(size), repeat=parts)))
    sources = np.zeros((len(hidden), 1 + parts * size))
    sources[:, 0] = 1 - moved
    np.put_along_axis(sources, 1 + np.arange(parts) * size + hidden, moved / parts, axis=1)
    largest = 0.0
    for _ in range(300):
        laws = sources @ private_channel(rng, 1 + parts * size, epsilon)
        largest = max(largest, float((laws * np.log(laws / laws.mean(axis=0))).sum(axis=1).mean()))
    assert bound / 20 < largest <= bound


def test_a_single_category_has_no_error() -> None:
    assert frequency_bound(1, 10, 1.0) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10, 1.0), "categories must be"),
        ((10, 10, 0.0), "epsilon must be"),
        ((10, 10, 1.0, 1.0), "delta must be"),
        ((10, 10, 1.0, 0.0, "shuffled"), "trust_model must be one of"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        frequency_bound(*arguments)


@pytest.mark.parametrize("categories", [2, 5, 1000])
@pytest.mark.parametrize("clients", [1, 40, 10**6])
@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.5])
def test_unbiased_bounds_allow_to_show_items_with_probability_delta(categories: int, clients: int, delta: float) -> None:
    """The bounds allow a mechanism to show items with probability delta."""
    spread = (1 - 1 / categories) * (1 / delta - 1)
    assert frequency_bound(categories, clients, 1e-6, delta, "local", unbiased=True) <= spread / clients
    assert frequency_bound(categories, clients, 1e-6, delta, "central", unbiased=True) <= min(spread, spread / clients)
