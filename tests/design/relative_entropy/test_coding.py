"""Tests of the coder: importance weights, drawn indices, bias, and groups.

Random checks state their false-alarm probability.
"""

import itertools
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from quietbits.design.noise.random_words import secure_words, seeded_words
from quietbits.design.relative_entropy.coding import (
    decode_groups,
    decode_relative_entropy,
    encode_groups,
    encode_relative_entropy,
    index_distribution,
    log_importance_weights,
)
from quietbits.design.relative_entropy.group_layout import GroupLayout, uniform_layout
from quietbits.design.relative_entropy.shared_randomness import SharedNormals
from quietbits.solvers.divergences.importance_resampling import resampled_moments, resampling_renyi_divergences


@pytest.mark.parametrize(("dimension", "sigma"), [(1, 1.0), (5, 0.01), (1000, 3.0), (70_000, 1e30)])
def test_weights_are_density_ratios_at_the_decoded_samples(dimension: int, sigma: float) -> None:
    mean = sigma * np.random.default_rng(1).standard_normal(dimension) / math.sqrt(dimension)
    samples = np.array([decode_relative_entropy(index, dimension, seed=9, sigma=sigma, group=4) for index in range(8)])
    expected = stats.norm.logpdf(samples, mean, sigma).sum(axis=1) - stats.norm.logpdf(samples, 0, sigma).sum(axis=1)
    np.testing.assert_allclose(log_importance_weights(mean, 3, 9, sigma, group=4), expected, atol=5e-6)
    probabilities = index_distribution(mean, 3, 9, sigma, group=4)
    np.testing.assert_allclose(probabilities, np.exp(expected) / np.exp(expected).sum(), atol=5e-6)
    assert probabilities.sum() == pytest.approx(1, abs=1e-14)


def test_weights_of_many_samples_of_few_coordinates() -> None:
    # The samples make more than one batch, with a shorter last batch.
    weights = log_importance_weights([1.0, -2.0, 0.5], bits=14, seed=3)
    for index in (0, 8191, 8192, 2**14 - 1):
        sample = decode_relative_entropy(index, 3, seed=3)
        assert weights[index] == pytest.approx(sample @ [1.0, -2.0, 0.5] - 5.25 / 2, abs=1e-5)


@pytest.mark.parametrize(("dimension", "bits", "limit"), [(10**6, 5, 40), (100, 16, 6)])
def test_samples_are_never_all_in_memory(dimension: int, bits: int, limit: int) -> None:
    # The samples would take 128 and 26 MB; copies of the mean take most of the 40 MB.
    mean = np.full(dimension, 1 / math.sqrt(dimension))
    log_importance_weights(mean[:1], 1, seed=2)
    tracemalloc.start()
    try:
        log_importance_weights(mean, bits, seed=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit * 10**6


@pytest.mark.parametrize(("shift", "bits"), [(0.0, 3), (0.5, 2), (1.5, 5), (3.0, 4)])
def test_indices_have_the_distribution_of_the_weights(shift: float, bits: int) -> None:
    mean, draws = [shift, 0.0, -shift / 2], 1_500
    probabilities = index_distribution(mean, bits, seed=8)
    words = seeded_words(np.random.default_rng(int(10 * shift)))
    counts = np.bincount([encode_relative_entropy(mean, bits, 8, words) for _ in range(draws)], minlength=1 << bits)
    # Rare cells are merged into one cell. The chance of a false alarm is 1e-6.
    rare = probabilities * draws < 5
    observed, expected = [np.append(cells[~rare], cells[rare].sum()) for cells in (counts, probabilities * draws)]
    kept = expected > 0
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > 1e-6


def test_fresh_seeds_make_every_index_equally_likely() -> None:
    words, seeds = seeded_words(np.random.default_rng(0)), 1_500
    counts = np.bincount([encode_relative_entropy([1.2, 1.6, 0.0], 4, seed, words) for seed in range(seeds)], minlength=16)
    # The chance of a false alarm is 1e-6. The weights of a single seed are far from uniform.
    assert stats.chisquare(counts).pvalue > 1e-6
    assert index_distribution([1.2, 1.6, 0.0], 4, seed=0).max() > 0.3


def test_secure_randomness_works_as_well() -> None:
    assert 0 <= encode_relative_entropy([5.0], 4, seed=1, random_words=secure_words) < 16


def test_bias_and_error_are_those_of_the_exact_law() -> None:
    # The Rao-Blackwellised mean over indices is exact for each seed. Each check is within 5 standard errors, and fails with chance below
    # 1e-6.
    seeds, shift = 600, 1.2
    for bits in (1, 3, 6):
        means, errors = [], []
        for seed in range(seeds):
            weights = index_distribution([shift], bits, seed)
            samples = (log_importance_weights([shift], bits, seed) + shift**2 / 2) / shift
            means.append(weights @ samples)
            errors.append(weights @ (samples - shift) ** 2)
        law = resampled_moments(shift, 1 << bits)
        assert abs(np.mean(means) - law.mean) < 5 * np.std(means) / math.sqrt(seeds)
        assert abs(np.mean(errors) - law.squared_error) < 5 * np.std(errors) / math.sqrt(seeds)


@pytest.mark.parametrize(("shift", "samples"), [(0.5, 1), (0.5, 2), (1.0, 16), (2.0, 16), (3.0, 128)])
def test_moments_are_those_of_the_weights_by_steins_lemma(shift: float, samples: int) -> None:
    # K E[sum of w^2] and K^2 E[sum of w^3] are the moments of the divergences from equal weights, computed by another integral.
    second, third = resampling_renyi_divergences(shift, 0.0, samples, [2, 3])
    squares, cubes = math.exp(second) / samples, math.exp(2 * third) / samples**2
    law = resampled_moments(shift, samples)
    assert law.mean == pytest.approx(shift * (1 - squares), abs=1e-6)
    assert law.squared_error == pytest.approx(1 + shift**2 * (2 * cubes - squares), abs=1e-6)


@pytest.mark.parametrize("shift", [0.3, 0.8, 1.4])
def test_bias_falls_as_one_over_the_number_of_samples(shift: float) -> None:
    bias = {samples: shift - resampled_moments(shift, samples).mean for samples in (2**10, 2**14)}
    # The second-order expansion of the ratio of sums gives Cov(r x, r) - x0 Var(r) = exp(m^2) m, over K.
    for samples, value in bias.items():
        assert value * samples / (math.exp(shift**2) * shift) == pytest.approx(1, abs=12 * math.exp(2 * shift**2) / samples)
    assert bias[2**10] / bias[2**14] == pytest.approx(16, rel=12 * math.exp(2 * shift**2) / 2**10)


def test_the_law_of_two_samples_by_direct_integration() -> None:
    points = np.arange(-12, 12, 0.05)
    first, second = np.meshgrid(points, points)
    density = np.exp(-(first**2 + second**2) / 2) * 0.05**2 / (2 * math.pi)
    for target, reference in ((1.0, 0.0), (0.0, 1.0), (0.7, -0.7), (1.5, 0.5)):
        first_share = 1 / (1 + np.exp(target * (second - first)))
        other = 1 / (1 + np.exp(reference * (second - first)))
        mean = (density * (first_share * first + (1 - first_share) * second)).sum()
        if target > 0:
            assert resampled_moments(target, 2).mean == pytest.approx(mean, abs=1e-9)
        for order in (2, 3):
            ratios = first_share**order * other ** (1 - order) + (1 - first_share) ** order * (1 - other) ** (1 - order)
            divergence = math.log((density * ratios).sum()) / (order - 1)
            assert resampling_renyi_divergences(target, reference, 2, [order])[0] == pytest.approx(divergence, abs=1e-8)


def test_compression_by_parts_is_the_joint_coder_on_product_samples() -> None:
    # Theorem 3 holds by enumeration: one coder on all pairs of the groups' samples has the product of the groups' distributions.
    layout, mean, seed = GroupLayout(sizes=(2, 1), group_bits=(2, 3)), np.array([0.4, -0.9, 0.6]), 17
    first, second = layout.slices()
    parts = index_distribution(mean[first], 2, seed, group=0), index_distribution(mean[second], 3, seed, group=1)
    pairs = list(itertools.product(range(4), range(8)))
    samples = np.array([decode_groups(pair, layout, seed) for pair in pairs])
    ratios = np.exp(samples @ mean - mean @ mean / 2)
    np.testing.assert_allclose(ratios / ratios.sum(), np.outer(*parts).ravel(), atol=1e-6)
    # The encoder draws from this distribution: the chi-square test has a false-alarm chance of 1e-6.
    words, draws = seeded_words(np.random.default_rng(4)), 3_000
    drawn = [encode_groups(mean, layout, seed, words) for _ in range(draws)]
    counts = np.bincount([8 * item + other for item, other in drawn], minlength=32)
    assert stats.chisquare(counts, ratios / ratios.sum() * draws).pvalue > 1e-6


def test_another_process_draws_and_decodes_the_same_bits() -> None:
    program = (
        "from quietbits.design.relative_entropy.coding import decode_relative_entropy; import sys;"
        "from quietbits.design.relative_entropy.shared_randomness import SharedNormals;"
        "sys.stdout.buffer.write(SharedNormals(seed=99, dimension=1000, stream=2).vectors(3, 5).tobytes());"
        "sys.stdout.buffer.write(decode_relative_entropy(100, 70_001, seed=6, sigma=0.3, group=2).tobytes())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    drawn = SharedNormals(seed=99, dimension=1000, stream=2).vectors(3, 5).tobytes()
    assert result == drawn + decode_relative_entropy(100, 70_001, seed=6, sigma=0.3, group=2).tobytes()


def test_layouts() -> None:
    assert uniform_layout(7, 7, 1) == GroupLayout(sizes=(1,) * 7, group_bits=(1,) * 7)
    layout = uniform_layout(11, 4, 7)
    assert layout.sizes == (3, 3, 3, 2)
    assert [len(range(11)[part]) for part in layout.slices()] == [3, 3, 3, 2]
    assert (layout.groups, layout.dimension, layout.total_bits) == (4, 11, 28)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": [[0.0]]}, r"mean must have the shape \(dimension,\), got \(1, 1\)"),
        ({"mean": [math.nan]}, "mean must hold finite numbers only, got nan"),
        ({"mean": []}, "dimension must be a whole number from 1"),
        ({"mean": [1e5]}, "mean must have a norm of at most 10000 sigma, got 100000 sigma"),
        ({"bits": 0}, "bits must be a whole number from 1 to 20, got 0"),
        ({"bits": 21}, "bits must be a whole number from 1 to 20, got 21"),
        ({"seed": -1}, "seed must be"),
        ({"sigma": 0.0}, r"sigma must be a number from 1e-100 to 1e\+100, got 0.0"),
        ({"group": -1}, "stream must be"),
    ],
)
def test_bad_arguments_of_the_encoder(arguments: dict[str, object], message: str) -> None:
    good = {"mean": [0.5], "bits": 3, "seed": 1, "sigma": 1.0, "group": 0}
    with pytest.raises(ValueError, match=message):
        encode_relative_entropy(**good | arguments, random_words=secure_words)


def test_bad_arguments_of_the_decoder() -> None:
    with pytest.raises(ValueError, match="index must be a whole number from 0 to 1048575, got -1"):
        decode_relative_entropy(-1, 3, seed=1)
    with pytest.raises(ValueError, match="sigma must be"):
        decode_relative_entropy(0, 3, seed=1, sigma=-1.0)


def test_groups_that_do_not_fit_are_refused() -> None:
    layout = GroupLayout(sizes=(2, 1), group_bits=(3, 2))
    with pytest.raises(ValueError, match=r"mean must have the shape \(3,\), got \(2,\)"):
        encode_groups([0.0, 0.0], layout, seed=1, random_words=secure_words)
    with pytest.raises(ValueError, match="indices must have one for each of the 2 groups, got 1"):
        decode_groups((1,), layout, seed=1)
    with pytest.raises(ValueError, match="indices must be a whole number from 0 to 3, got 4"):
        decode_groups((1, 4), layout, seed=1)


@pytest.mark.parametrize(
    ("sizes", "bits", "message"),
    [
        ((), (), "number of groups must be a whole number from 1"),
        ((1, 2), (3,), "sizes and group_bits must have the same length, one for each group, got 2 and 1"),
        ((0,), (3,), "sizes must be a whole number from 1 to 2147483648, got 0"),
        ((1,), (21,), "group_bits must be a whole number from 1 to 20, got 21"),
        ((2**31, 1), (1, 1), "dimension must be a whole number from 1 to 2147483648, got 2147483649"),
    ],
)
def test_bad_layouts(sizes: tuple[int, ...], bits: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupLayout(sizes, bits)


def test_more_groups_than_coordinates_are_refused() -> None:
    with pytest.raises(ValueError, match="groups must be a whole number from 1 to 3, got 4"):
        uniform_layout(3, 4, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 3.1}, "target must be a number from -3 to 3, got 3.1"),
        ({"reference": -4.0}, "reference must be a number from -3 to 3, got -4.0"),
        ({"samples": 0}, "samples must be a whole number from 1 to 1048576, got 0"),
        ({"orders": [2, 17]}, "orders must be a whole number from 2 to 16, got 17"),
    ],
)
def test_bad_arguments_of_the_law(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resampling_renyi_divergences(**{"target": 1.0, "reference": 0.0, "samples": 4, "orders": [2]} | arguments)


def test_bad_arguments_of_the_moments() -> None:
    with pytest.raises(ValueError, match="shift must be a number from 0 to 3, got -1"):
        resampled_moments(-1.0, 4)
    with pytest.raises(ValueError, match="samples must be"):
        resampled_moments(1.0, 0)
