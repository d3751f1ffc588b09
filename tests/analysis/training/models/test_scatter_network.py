"""Tests of scattering features.

Points under test: their number, Kymatio's values, invariances, energy, and the linear model on them.
"""

from collections.abc import Callable

import numpy as np
import pytest

from quietbits.analysis.training.federation import Federation
from quietbits.analysis.training.models import scatter_network
from quietbits.analysis.training.models.named_models import network_named
from quietbits.analysis.training.models.scatter_network import GROUPS, KeptFeatures, ScatterNetwork, scattered
from quietbits.analysis.training.task import TrainingTask

# The values are those of some channels at one place each: the image, both scales, and second-order channels.
KYMATIO = {
    (0, 0, 1): 0.39830545,
    (1, 1, 0): 0.064375734,
    (4, 1, 0): 0.11611897,
    (8, 2, 2): 0.044476936,
    (9, 0, 1): 0.039451606,
    (13, 1, 0): 0.02755316,
    (16, 1, 0): 0.01486188,
    (17, 2, 2): 0.016354076,
    (30, 0, 1): 0.003145017,
    (55, 1, 0): 0.0061119805,
    (80, 2, 2): 0.0053070614,
}
FINE, COARSE, BOTH = slice(1, 9), slice(9, 17), slice(17, 81)


def waves(rows: int, columns: int, side: int = 32) -> np.ndarray:
    places = 2 * np.pi * np.arange(side) / side
    return np.cos(rows * places[:, None] + columns * places[None, :])[None]


def test_there_are_as_many_features_as_in_the_papers() -> None:
    assert scattered(np.zeros((2, 28, 28))).shape == (2, 81, 7, 7)
    # Tramer and Boneh state 81 channels of 7 by 7 for MNIST, and 243 of 8 by 8 for CIFAR-10.
    assert network_named("scatter-softmax", 784, 10, (28, 28, 1)).layers.dimension == (81 * 7 * 7 + 1) * 10
    assert network_named("scatter-softmax", 3072, 10, (32, 32, 3)).layers.dimension == (243 * 8 * 8 + 1) * 10


def test_values_are_those_of_kymatio() -> None:
    # The values are those of Scattering2D(J=2, shape=(12, 12)) of Kymatio 0.3.0, which computes wavelets in float32 with pi = 3.1415.
    image = (np.arange(144) ** 2 % 17 / 17).reshape(12, 12)
    result = scattered(image[None])[0]
    for (channel, row, column), value in KYMATIO.items():
        assert result[channel, row, column] == pytest.approx(value, rel=2e-4, abs=2e-6)


def test_a_constant_image_has_itself_and_nothing_else() -> None:
    result = scattered(np.full((1, 16, 20), 3.0))[0]
    np.testing.assert_allclose(result[0], 3.0, rtol=1e-3)
    assert np.abs(result[1:]).max() < 1e-12


def test_features_are_those_of_the_absolute_scale() -> None:
    images = np.random.default_rng(0).random((2, 16, 16))
    np.testing.assert_allclose(scattered(-2.5 * images)[:, 1:], 2.5 * scattered(images)[:, 1:], rtol=1e-9, atol=1e-12)


def test_waves_are_seen_by_the_wavelet_of_their_direction_and_scale() -> None:
    # Waves over 32 pixels have the frequencies of the two scales, 0.75 and 0.375 pi.
    for periods, own, other in ((12, FINE, COARSE), (6, COARSE, FINE)):
        down, right = (scattered(wave)[0, :, 3:5, 3:5].mean(axis=(1, 2)) for wave in (waves(periods, 0), waves(0, periods)))
        # Angles go from 3 down to -4 eighths of pi; the first axis points down.
        assert (down[own].argmax(), right[own].argmax()) == (3, 7)
        assert down[own].max() > 1.5 * down[other].max()


def test_a_shift_changes_little_and_the_more_of_the_image() -> None:
    rng = np.random.default_rng(1)
    large = rng.random((20, 24, 24))
    here, there = scattered(large[:, 2:22, 2:22]), scattered(large[:, 2:22, 3:23])
    moved = np.linalg.norm(here - there) / np.linalg.norm(here - here.mean(axis=0))
    pixels = np.linalg.norm(large[:, 2:22, 2:22] - large[:, 2:22, 3:23]) / np.linalg.norm(
        large[:, 2:22, 2:22] - large.mean(axis=0)[2:22, 2:22]
    )
    assert moved < 0.75 * pixels


def test_shifts_by_whole_strides_move_features() -> None:
    image = np.zeros((1, 32, 32))
    image[0, 14:17, 13:19] = 1.0
    np.testing.assert_allclose(
        scattered(np.roll(image, (4, -4), axis=(1, 2)))[..., 2:-1, 1:-2], scattered(image)[..., 1:-2, 2:-1], atol=1e-4
    )


def test_depth_decreases_energy_and_all_of_it_is_at_most_the_images() -> None:
    images = np.random.default_rng(2).normal(size=(8, 32, 32))
    result = scattered(images)
    energies = [16 * float(np.sum(result[:, part] ** 2)) for part in (slice(0, 1), slice(1, 17), BOTH)]
    assert 0 < energies[2] < energies[1]
    assert sum(energies) < float(np.sum(images**2))


def test_features_of_an_image_do_not_depend_on_others() -> None:
    images = np.random.default_rng(3).random((11, 8, 8))
    np.testing.assert_allclose(scattered(images), np.concatenate([scattered(image[None]) for image in images]), rtol=1e-12, atol=1e-15)


def test_groups_have_mean_0_and_variance_1() -> None:
    network = network_named("scatter-softmax", 12 * 8 * 3, 5, (12, 8, 3))
    # The smallest variance is negligible beside the variances of large numbers.
    groups = network.features(1e3 * np.random.default_rng(4).random((4, 288))).reshape(4, GROUPS, -1)
    np.testing.assert_allclose(groups.mean(axis=2), 0.0, atol=1e-12)
    np.testing.assert_allclose(groups.var(axis=2), 1.0, rtol=1e-4)


def test_gradients_are_those_of_the_linear_model_on_features() -> None:
    rng, network = np.random.default_rng(5), network_named("scatter-softmax", 64, 4, (8, 8, 1))
    parameters, inputs, labels = rng.normal(0, 0.1, network.layers.dimension), rng.random((3, 2, 64)), rng.integers(0, 4, (3, 2))
    linear = network_named("softmax", 324, 4)
    # The network rounds features to single precision and computes them at the first request; the second pass uses the stored features.
    features = np.stack([network.features(item) for item in inputs]).astype(np.float32).astype(float)
    for _ in range(2):
        np.testing.assert_allclose(
            network.gradients(parameters, inputs, labels), linear.gradients(parameters, features, labels), rtol=1e-12
        )
        for entry in (0, 1):
            np.testing.assert_allclose(network.scores(parameters, inputs[entry]), linear.scores(parameters, features[entry]), rtol=1e-12)


def test_features_are_made_once_and_no_more_are_kept_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    features = ScatterNetwork.features

    def counted(network: ScatterNetwork, inputs: np.ndarray) -> np.ndarray:
        made.append(len(inputs))
        return features(network, inputs)

    monkeypatch.setattr(ScatterNetwork, "features", counted)
    kept = KeptFeatures(2 * 324 + 323)
    monkeypatch.setattr(scatter_network, "_KEPT", kept)
    first, images = np.zeros(3250), np.random.default_rng(6).random((3, 1, 64))
    labels = np.zeros((3, 1), dtype=np.int64)
    # Features do not depend on the network that computes them, as each run of a grid has its own network.
    once, again = (ScatterNetwork((8, 8, 1), 10).gradients(first, images, labels) for _ in range(2))
    assert (once == again).all()
    # The cache keeps two of three images.
    assert (len(made), len(kept.kept), kept.numbers) == (4, 2, 2 * 324)
    ScatterNetwork((8, 8, 1), 10).scores(first, images[:2, 0])
    assert len(made) == 4


def test_it_learns_digits(task: Callable[..., TrainingTask], federation: Callable[[TrainingTask], Federation]) -> None:
    running = federation(task("none", model="scatter-softmax", rounds=8, server="momentum", server_rate=0.1, evaluate_every=8))
    running.run()
    assert running.records["accuracy"][-1] > 0.9


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "model must be softmax, an mlp or an lstm for inputs that are not images, got 'scatter-softmax'"),
        ((10, 8, 1), "side of an image must be a multiple of 4 for scatter-softmax, got 10"),
        ((4, 8, 1), "side of an image must be"),
    ],
)
def test_other_inputs_are_refused(shape: tuple[int, int, int] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network_named("scatter-softmax", 80, 10, shape)
