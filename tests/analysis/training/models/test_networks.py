"""Gradients of every model against finite differences.

The tests cover shared models and clients' own models, scores, losses and names.
"""

import sys

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from quietbits.analysis.training.models.named_models import network_named
from quietbits.analysis.training.models.network import Network, score_accuracy

MODELS = ("softmax", "mlp-7-5", "cnn-3-4")
CLASSES, SHAPE = 4, (6, 7, 2)
FEATURES = 6 * 7 * 2


def loss(scores: np.ndarray, labels: np.ndarray) -> float:
    if labels.ndim == 1:
        return float(-np.mean(np.take_along_axis(log_softmax(scores, axis=1), labels[:, None], axis=1)))
    shares = expit(scores)
    return float(-np.mean((labels * np.log(shares) + (1 - labels) * np.log1p(-shares)).sum(axis=1)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("examples", [1, 3])
@pytest.mark.parametrize("several", [False, True])
def test_gradients_are_those_of_finite_differences(name: str, examples: int, several: bool) -> None:
    rng = np.random.default_rng(3)
    network: Network = network_named(name, FEATURES, CLASSES, SHAPE)
    dimension = network.layers.dimension
    own = rng.normal(0, 0.5, (2, dimension))
    inputs = rng.random((2, examples, FEATURES))
    labels = rng.integers(0, 2, (2, examples, CLASSES)) if several else rng.integers(0, CLASSES, (2, examples))
    of_each = network.gradients(own, inputs, labels)
    shared = network.gradients(own[0], inputs, labels)
    assert of_each.shape == shared.shape == (2, dimension)
    np.testing.assert_allclose(shared[0], of_each[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(shared[1], network.gradients(own[[0, 0]], inputs, labels)[1], rtol=1e-12, atol=1e-15)
    directions, step = rng.normal(size=(8, dimension)), 1e-6
    for client in range(2):
        for direction in directions:
            up, down = (loss(network.scores(own[client] + sign * step * direction, inputs[client]), labels[client]) for sign in (1.0, -1.0))
            assert of_each[client] @ direction == pytest.approx((up - down) / (2 * step), rel=2e-6, abs=1e-8)


def test_single_coordinates_of_a_gradient_are_right() -> None:
    rng = np.random.default_rng(4)
    network = network_named("cnn-2-3", 25, 3, (5, 5, 1))
    parameters, inputs, labels = rng.normal(0, 0.5, network.layers.dimension), rng.random((1, 2, 25)), np.array([[0, 2]])
    result, step = network.gradients(parameters, inputs, labels)[0], 1e-6
    for place in range(len(parameters)):
        moved = np.zeros(len(parameters))
        moved[place] = step
        slope = (
            loss(network.scores(parameters + moved, inputs[0]), labels[0]) - loss(network.scores(parameters - moved, inputs[0]), labels[0])
        ) / (2 * step)
        assert result[place] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_accuracy_counts_the_best_score_and_recall_the_best_five() -> None:
    scores = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]])
    assert score_accuracy(scores, np.array([0, 2])) == 0.5
    # Two of the three labels are among the five best scores; an example without labels counts as no miss.
    several = np.zeros((3, 8), dtype=np.int64)
    several[0, [0, 7]] = several[1, 6] = 1
    assert score_accuracy(np.tile(np.arange(8.0), (3, 1)), several) == 2 / 3


def test_sizes_are_those_of_the_papers() -> None:
    # The sizes are those of cpSGD's network of three layers of 60 on images of 28 by 28, and of DP-REC's regression for tags.
    assert network_named("mlp-60-60-60", 784, 10).layers.dimension == 785 * 60 + 2 * 61 * 60 + 610
    assert network_named("softmax", 10_000, 500).layers.dimension == 5_000_500


@pytest.mark.parametrize("name", ["", "mlp", "softmax-3", "cnn", "mlp-0", "mlp-a", "resnet-3"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        network_named(name, 64, 10, (8, 8, 1))
    with pytest.raises(ValueError, match="model must be softmax, an mlp or an lstm for inputs that are not images, got 'cnn-3'"):
        network_named("cnn-3", 64, 10)


def test_models_of_torch_are_refused_in_a_line_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("quietbits.analysis.training.models.torch_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"^torch must be installed for model 'lenet-5', got none: pip install 'quietbits\[torch\]'$"):
        network_named("lenet-5", 784, 10, (28, 28, 1))
