"""Sketched sums of items.

Points under test: guarantees by enumeration, exact expectations, and the law of simulated sums.
"""

import math
from dataclasses import replace
from functools import reduce
from itertools import product

import numpy as np
import pytest
from scipy.special import ive

from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.design.frequencies import sketched_frequencies
from quietbits.design.frequencies.item_sketch import ItemSketch
from quietbits.design.frequencies.item_thresholds import error_threshold, proof_threshold, stated_threshold, thresholded
from quietbits.design.frequencies.noisy_sketch import SketchedDiscreteGaussianFrequencies, SketchedSkellamFrequencies
from quietbits.design.frequencies.sketched_frequencies import SketchedFrequencies
from quietbits.design.frequencies.sketched_poisson_binomial import SketchedPoissonBinomialFrequencies
from quietbits.design.frequencies.worst_pair import worst_pair
from quietbits.errors import ConvergenceError
from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

SIGNED, UNSIGNED, HISTOGRAM = ItemSketch(5, 1, 2, seed=1), ItemSketch(5, 1, 4, signed=False), ItemSketch(3, 1, 4, signed=False)


def tosses(sketch: ItemSketch, clients: int = 3, trials: int = 1, theta: float = 0.3) -> SketchedPoissonBinomialFrequencies:
    return SketchedPoissonBinomialFrequencies(sketch, clients, trials, theta, 1e-2)


def gaussian(sketch: ItemSketch, clients: int = 2, **fields: object) -> SketchedDiscreteGaussianFrequencies:
    made = SketchedDiscreteGaussianFrequencies(sketch, clients, steps=2, local_sigma=1.3, delta=1e-2)
    return replace(made, **fields)  # type: ignore[arg-type]


def skellam(sketch: ItemSketch, clients: int = 2, **fields: object) -> SketchedSkellamFrequencies:
    made = SketchedSkellamFrequencies(sketch, clients, steps=2, local_variance=2.0, delta=1e-2)
    return replace(made, **fields)  # type: ignore[arg-type]


def entries(sketch: ItemSketch) -> np.ndarray:
    """Return the coin biases of each item, shape (items, coordinates)."""
    every = np.array([walsh_hadamard(sketch.counted(row).astype(float)) for row in np.eye(sketch.categories)])
    return (every if sketch.signed else every[:, :, 1:]).reshape(sketch.categories, -1)


def count_distribution(mechanism: SketchedPoissonBinomialFrequencies, items: tuple[int, ...]) -> np.ndarray:
    """Return the probabilities of all sums, with one axis per coordinate."""
    leaning = entries(mechanism.sketch)[list(items)]
    coordinates = []
    for column in leaning.T:
        masses = np.ones(1)
        for sign in column:
            for _ in range(mechanism.trials):
                masses = np.convolve(masses, [0.5 - sign * mechanism.theta, 0.5 + sign * mechanism.theta])
        coordinates.append(masses)
    return reduce(np.multiply.outer, coordinates)


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def renyi(first: np.ndarray, second: np.ndarray, order: float) -> float:
    return math.log(float((first**order * second ** (1 - order)).sum())) / (order - 1)


@pytest.mark.parametrize(("sketch", "clients"), [(SIGNED, 2), (SIGNED, 3), (UNSIGNED, 2), (UNSIGNED, 3), (HISTOGRAM, 3)])
def test_tosses_keep_their_guarantee_for_every_pair_of_neighbours(sketch: ItemSketch, clients: int) -> None:
    mechanism = tosses(sketch, clients)
    accounts = {account.name: account.bound.epsilon for account in mechanism.privacy().report(1e-2).accounts}
    ours = np.array([1.5, 2.0, 8.0])
    bounds = mechanism.differing_coordinates * extreme_tosses(clients, 1, mechanism.theta).renyi_divergences(ours)
    largest, pure, divergences = 0.0, 0.0, np.zeros(3)
    for others in product(range(sketch.categories), repeat=clients - 1):
        sums = [count_distribution(mechanism, (own, *others)) for own in range(sketch.categories)]
        for first, second in product(sums, sums):
            largest = max(largest, hockey_stick(first, second, accounts["rdp"]))
            pure = max(pure, float(np.abs(np.log(first / second)).max()))
            divergences = np.maximum(divergences, [renyi(first, second, order) for order in ours])
    assert largest <= 1e-2
    assert pure <= accounts["pure"] * (1 + 1e-12)
    # The bounds are tight: neighbours attain these divergences if all other clients hold the item of one of them.
    np.testing.assert_allclose(divergences, bounds, rtol=1e-7)
    assert pure == pytest.approx(accounts["pure"])


def noise_masses(mechanism: object, clients: int, reach: int) -> np.ndarray:
    """Return the probabilities of the sum of clients' noise from -reach to reach."""
    points = np.arange(-reach, reach + 1)
    if isinstance(mechanism, SketchedDiscreteGaussianFrequencies):
        density = np.exp(-(points**2) / (2 * mechanism.local_sigma**2))
        density /= density.sum()
        return reduce(lambda left, _: np.convolve(left, density)[reach : 3 * reach + 1], range(clients - 1), density)
    assert isinstance(mechanism, SketchedSkellamFrequencies)
    rate = clients * mechanism.local_variance / 2
    return np.asarray(ive(np.abs(points), 2 * rate))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("sketch", [SIGNED, ItemSketch(4, 1, 3, signed=False)])
@pytest.mark.parametrize("made", [gaussian, skellam])
def test_noise_keeps_the_guarantee_for_every_pair_of_neighbours(made: object, sketch: ItemSketch, adjacency: str) -> None:
    assert callable(made)
    mechanism = made(sketch, adjacency=adjacency)
    rows = np.array([sketch.counted(row)[0] for row in np.eye(sketch.categories)]) * mechanism.steps
    if adjacency == "add-or-remove-one":
        rows = np.concatenate([rows, np.zeros((1, sketch.width), dtype=int)])
    reach = 40
    noise = noise_masses(mechanism, 2, reach)
    wide = np.pad(noise, 2 * mechanism.steps, constant_values=0.0)

    def shifted(vector: np.ndarray) -> np.ndarray:
        return reduce(np.multiply.outer, [np.roll(wide, shift) for shift in vector])

    claim = mechanism.guarantee.epsilon
    # The items of the other clients move both sums equally.
    sums = [shifted(row) for row in rows]
    result, at_a_quarter = [], []
    for own, other in product(range(len(rows)), repeat=2):
        if adjacency == "add-or-remove-one" and len(rows) - 1 not in (own, other):
            continue
        result.append(hockey_stick(sums[own], sums[other], claim))
        at_a_quarter.append(hockey_stick(sums[own], sums[other], claim / 4))
    assert max(result) <= 1e-2 < max(at_a_quarter)


@pytest.mark.parametrize("sketch", [SIGNED, UNSIGNED, HISTOGRAM, ItemSketch(7, 2, 4, seed=2)])
def test_tosses_decode_without_bias_by_exact_expectation(sketch: ItemSketch) -> None:
    mechanism = tosses(sketch, clients=4, trials=2, theta=0.2)
    counts = np.zeros(sketch.categories)
    counts[[0, 1, sketch.categories - 1]] += [2, 1, 1]
    leaning = counts @ entries(sketch)
    mean = mechanism.trials * (4 / 2 + mechanism.theta * leaning)
    # Decoding is affine: decoding the expected sum gives the expected estimate.
    unit = np.zeros(mechanism.padded_dimension, dtype=np.uint64)
    constant = mechanism.decode(unit, 4)
    gradient = np.empty((mechanism.padded_dimension, sketch.categories))
    for place in range(mechanism.padded_dimension):
        unit[place] = 1
        gradient[place] = mechanism.decode(unit, 4) - constant
        unit[place] = 0
    np.testing.assert_allclose(constant + mean @ gradient, sketch.decoded(sketch.counted(counts).astype(float)) / 4, atol=1e-12)
    variance = 4 * mechanism.trials * (0.25 - mechanism.theta**2)
    np.testing.assert_allclose(variance * (gradient**2).sum(axis=0), mechanism.item_variance / 4, rtol=1e-9)


@pytest.mark.parametrize("sketch", [ItemSketch(20, 3, 4, seed=1), ItemSketch(20, 2, 8, signed=False), ItemSketch(20, 1, 32, signed=False)])
def test_simulated_sums_have_the_law_of_messages(sketch: ItemSketch) -> None:
    clients = 30
    items = np.repeat([0, 3, 19], [15, 10, 5])
    made: list[SketchedFrequencies] = [
        tosses(sketch, clients, trials=2),
        gaussian(sketch, clients, local_sigma=0.4),
        gaussian(sketch, clients, local_sigma=1.6),
        skellam(sketch, clients),
    ]
    for mechanism in made:
        rng = np.random.default_rng(0)
        rounds = 200
        slow = mechanism.noisy_steps(np.tile(items, rounds), rng).reshape(rounds, clients, -1).sum(axis=1)
        fast = np.array([mechanism.summed_steps(items, rng) for _ in range(rounds)])
        assert fast.shape == slow.shape
        spread = np.maximum(slow.std(axis=0), 1e-9)
        # The margin is 6 sigma of a normal error, for means and for variances.
        assert (np.abs(fast.mean(axis=0) - slow.mean(axis=0)) <= 6 * spread * math.sqrt(2 / rounds) + 1e-12).all()
        assert np.abs(fast.var(axis=0).mean() / slow.var(axis=0).mean() - 1) <= 6 * math.sqrt(6 / rounds / slow.shape[1])
        aggregate = np.mod(fast[0], mechanism.modulus).astype(np.uint64)
        np.testing.assert_array_equal(mechanism.recovered_steps(aggregate), fast[0])
        with pytest.raises(ValueError, match=f"clients must be {clients}, for whose noise the guarantee is stated, got 31"):
            mechanism.decode_median(aggregate, 31)


def test_a_sum_of_little_discrete_gaussian_noise_is_drawn_from_its_distribution() -> None:
    mechanism = gaussian(ItemSketch(10_000, 1, 5000, signed=False), clients=6, local_sigma=0.35)
    counts = np.zeros(10_000, dtype=np.int64)
    counts[0] = 6
    drawn = np.concatenate([mechanism.simulated_sum(counts, np.random.default_rng(seed)) for seed in range(8)])
    noise = drawn[np.abs(drawn) < 6]
    expected = noise_masses(mechanism, 6, 30)[25:36] * len(drawn)
    observed = np.array([(noise == value).sum() for value in range(-5, 6)])
    common = expected > 10
    # One bucket of each draw holds the items.
    statistic = float(np.sum((observed[common] - expected[common]) ** 2 / expected[common]))
    assert common.sum() >= 5
    assert statistic < 60
    assert (mechanism.simulated_sum(np.zeros(10_000, dtype=np.int64), np.random.default_rng(0)) == 0).all()


@pytest.mark.parametrize("made", [tosses, gaussian, skellam])
def test_medians_withstand_a_heavy_item_in_one_row(made: object) -> None:
    assert callable(made)
    sketch = ItemSketch(2000, 9, 64, seed=4)
    mechanism = made(sketch, clients=4000)
    items = np.repeat([7, 20], [3600, 400])
    aggregate = np.mod(mechanism.summed_steps(items, np.random.default_rng(1)), mechanism.modulus).astype(np.uint64)
    errors = []
    for estimate in (mechanism.decode(aggregate, 4000), mechanism.decode_median(aggregate, 4000)):
        estimate[[7, 20]] -= [0.9, 0.1]
        errors.append(float(np.abs(estimate).max()))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.1


def test_the_largest_numbers_fit_the_modulus() -> None:
    largest = gaussian(SIGNED, clients=10**9, local_sigma=1e12, steps=2**30)
    assert 2**61 < largest.modulus < 2**62
    sums = np.array([10**9, -(10**9)]) * 2**30
    np.testing.assert_array_equal(largest.recovered_steps(np.mod(sums, largest.modulus).astype(np.uint64)), sums)


def test_standard_errors_are_of_noise_and_collisions() -> None:
    mechanism = skellam(ItemSketch(50, 3, 8, signed=False), clients=200)
    frequencies = np.zeros(50)
    frequencies[:2] = [0.6, 0.4]
    expected = mechanism.item_variance / 200 + (0.52 - frequencies**2) / (3 * 7)
    np.testing.assert_allclose(mechanism.standard_errors(frequencies, 200) ** 2, expected)
    items = np.repeat([0, 1], [120, 80])
    assert float(expected.sum()) == pytest.approx(mechanism.error(items).of_mean(200))


def test_a_renewed_sketch_has_no_worse_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(30)
    excess = [worst_pair(ItemSketch(40, 4, 8, seed)).excess for seed in seeds]
    mechanism = gaussian(ItemSketch(40, 4, 8, excess.index(min(excess))))
    for seed in seeds:
        renewed = mechanism.renewed(seed)
        assert renewed.row_excess <= mechanism.row_excess
        assert renewed.sketch.seed % 2**64 == seed
        assert renewed.guarantee.epsilon <= mechanism.guarantee.epsilon
    assert any(mechanism.renewed(seed).sketch.seed != seed for seed in seeds)
    monkeypatch.setattr(sketched_frequencies, "MOST_SEEDS", 1)
    with pytest.raises(ConvergenceError, match="sketch: none of 1 seeds"):
        mechanism.renewed(excess.index(max(excess)))
    free = gaussian(ItemSketch(40, 4, 8, signed=False))
    assert free.renewed(9).sketch == ItemSketch(40, 4, 8, 9, signed=False)


def test_a_round_of_many_clients_is_simulated_by_its_law() -> None:
    mechanism = skellam(ItemSketch(3000, 1, 3000, signed=False), clients=10**6)
    chunks = [np.random.default_rng(0).integers(0, 3000, 5 * 10**5) for _ in range(2)]
    summary = simulate_mean(mechanism, chunks, np.random.default_rng(1))
    assert summary.squared_error == pytest.approx(summary.predicted_squared_error, rel=0.2)
    masked = simulate_mean(gaussian(SIGNED, clients=6), [np.array([0, 1, 2, 3, 4, 4])], np.random.default_rng(1), masked=True)
    assert masked.wrapping is not None
    assert masked.wrapping.wrapped_coordinates == 0


def test_thresholds() -> None:
    mechanism = skellam(ItemSketch(20_000, 1, 20_000, signed=False), clients=10_000, local_variance=0.5)
    counts = np.zeros(20_000, dtype=np.int64)
    counts[:40] = 250
    aggregate = np.mod(mechanism.simulated_sum(counts, np.random.default_rng(2)), mechanism.modulus).astype(np.uint64)
    frequencies = mechanism.decode(aggregate, 10_000)
    threshold = error_threshold(mechanism)
    kept = thresholded(frequencies, threshold) > 0
    assert not kept[40:].any()
    assert kept[:40].mean() > 0.5
    # Lower thresholds let items without holders pass.
    assert (thresholded(frequencies, threshold / 3)[40:] > 0).any()
    assert proof_threshold(15, 10_000, 1.0, 1e-5) < stated_threshold(20_000, 10_000, 1.0, 1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tosses(ItemSketch(9, 1, 6)), "width must be a power of two for Hadamard transforms of rows, got 6"),
        (lambda: tosses(SIGNED, theta=0.5), "theta must be a number from 1e-06 to 0.499, got 0.5"),
        (lambda: tosses(SIGNED, clients=0), "clients must be a whole number from 1 to 10000000, got 0"),
        (lambda: tosses(SIGNED, clients=10**7 + 1), "clients must be a whole number from 1 to 10000000, got 10000001"),
        (lambda: gaussian(SIGNED, steps=0), "steps must be a whole number from 1"),
        (lambda: gaussian(SIGNED, clients=10**9 + 1), "clients must be a whole number from 1 to 1000000000"),
        (lambda: gaussian(SIGNED, adjacency="swap"), "adjacency must be one of"),
        (lambda: skellam(SIGNED, local_variance=0.0), "local_variance must be a number from 2e-06"),
        (lambda: gaussian(UNSIGNED).decode_median(np.zeros(4, dtype=np.uint64), 2), "signed must be True for medians"),
        (lambda: thresholded([0.1], -1.0), "threshold must be a number from 0"),
        (lambda: stated_threshold(10, 10, 1.0, 0.0), "delta must be"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
