"""The papers' torch models.

Points under test: sizes, gradients of single clients, first parameters, dropout, and short trainings.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quietbits.analysis.datasets.federated_data import Cohort, Examples
from quietbits.analysis.training.checkpoint import Checkpoint
from quietbits.analysis.training.federation import Federation, LocalTraining
from quietbits.analysis.training.models.named_models import network_named
from quietbits.analysis.training.models.network import is_random, network_accuracy
from quietbits.analysis.training.task import TrainingTask
from quietbits.design.federated.model_layers import model_layers
from quietbits.figures.dp_rec.communication import FEDERATIONS

torch = pytest.importorskip("torch")

MNIST, FEMNIST = (784, 10, (28, 28, 1)), (784, 62, (28, 28, 1))
CHARACTERS, WORDS = (80, 90), (20, 10_004)
TENSORS = {federation.dataset: federation.tensors for federation in FEDERATIONS}


def sizes(tensors: object) -> list[int]:
    return [int(np.prod(shape)) for shape in tensors]


@pytest.mark.parametrize(
    ("name", "data", "parameters"),
    [
        ("lenet-5", MNIST, 582_026),
        ("dp-rec-cnn", FEMNIST, 231_742),
        ("femnist-cnn", FEMNIST, 1_018_174),
        # The kernels and biases are 16 * (8 * 8 + 1), 32 * (4 * 4 * 16 + 1), 32 * (4 * 4 * 32 + 1) and 10 * (32 + 1).
        ("mvu-cnn", MNIST, 26_010),
        ("character-lstm", CHARACTERS, 820_522),
        ("next-word-lstm", WORDS, 4_050_748),
    ],
)
def test_sizes_are_those_of_the_papers(name: str, data: tuple, parameters: int) -> None:
    assert network_named(name, *data).layers.dimension == parameters


@pytest.mark.parametrize(
    ("name", "data", "dataset"),
    [("lenet-5", MNIST, "MNIST"), ("dp-rec-cnn", FEMNIST, "FEMNIST"), ("character-lstm", CHARACTERS, "Shakespeare")],
)
def test_tensors_are_those_whose_bytes_are_counted_for_dp_rec(name: str, data: tuple, dataset: str) -> None:
    layers = network_named(name, *data).layers.layers
    assert sizes(shape for layer in layers for shape in layer.shapes) == sizes(TENSORS[dataset])


@pytest.mark.parametrize(
    ("name", "data", "published"), [("femnist-cnn", FEMNIST, "femnist-cnn"), ("next-word-lstm", WORDS, "stackoverflow-lstm")]
)
def test_layers_are_those_of_linear_compression(name: str, data: tuple, published: str) -> None:
    assert network_named(name, *data).layers.sizes == model_layers(published).sizes


# Inputs are as small as each model permits: features, classes, and the shape of an image.
SMALL = {
    "lenet-5": (16 * 16, 4, (16, 16, 1)),
    "dp-rec-cnn": (10 * 10 * 2, 4, (10, 10, 2)),
    "femnist-cnn": (8 * 8, 4, (8, 8, 1)),
    "mvu-cnn": (18 * 18, 4, (18, 18, 1)),
    "character-lstm": (5, 4),
    "next-word-lstm": (5, 4),
}


def examples(name: str, clients: int, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng, (features, classes, *images) = np.random.default_rng(seed), SMALL[name]
    inputs = rng.random((clients, count, features)) if images else rng.integers(0, classes, (clients, count, features)).astype(float)
    return inputs, rng.integers(-1, classes, inputs.shape) if name == "next-word-lstm" else rng.integers(0, classes, (clients, count))


def loss(scores: np.ndarray, labels: np.ndarray) -> float:
    scores, labels = scores.reshape(-1, scores.shape[-1]), labels.ravel()
    likely = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-np.mean(np.take_along_axis(likely, labels[:, None], axis=1)[labels >= 0]))


@pytest.mark.parametrize("name", SMALL)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    rng, network = np.random.default_rng(3), network_named(name, *SMALL[name])
    inputs, labels = examples(name, 2, 3)
    own = network.start(rng) + rng.normal(0, 0.02, (2, network.layers.dimension))
    of_each, shared = network.gradients(own, inputs, labels), network.gradients(own[0], inputs, labels)
    np.testing.assert_allclose(shared[0], of_each[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(shared[1], network.gradients(own[[0, 0]], inputs, labels)[1], rtol=1e-9, atol=1e-12)
    direction, step = rng.normal(size=network.layers.dimension), 1e-6
    for client in range(2):
        up, down = (loss(network.scores(own[client] + sign * step * direction, inputs[client]), labels[client]) for sign in (1, -1))
        assert of_each[client] @ direction == pytest.approx((up - down) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_a_client_gets_what_backpropagation_through_the_module_gives(name: str) -> None:
    network = network_named(name, *SMALL[name])
    module, parameters = network.module.to_empty(device="cpu").double(), network.start(np.random.default_rng(4))
    for part in module.modules():
        if hasattr(part, "kept"):
            part.kept.fill_(1.0)
    torch.nn.utils.vector_to_parameters(torch.tensor(parameters), module.parameters())
    inputs, labels = examples(name, 1, 1, seed=5)
    scores = module(torch.tensor(inputs[0]))
    torch.nn.functional.cross_entropy(scores.flatten(0, -2), torch.tensor(labels).flatten(), ignore_index=-1).backward()
    expected = np.concatenate([tensor.grad.numpy().ravel() for tensor in module.parameters()])
    result = network_named(name, *SMALL[name]).gradients(parameters, inputs, labels)[0]
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-13)


def test_the_cell_is_the_one_of_torch() -> None:
    from quietbits.analysis.training.models.torch_models import LongShortTermMemory

    own, reference = LongShortTermMemory(3, 4), torch.nn.LSTM(3, 4, batch_first=True)
    # Both implementations order the gates as input, forget, cell and output.
    with torch.no_grad():
        own.inputs.copy_(reference.weight_ih_l0.T)
        own.units.copy_(reference.weight_hh_l0.T)
        own.biases.copy_(reference.bias_ih_l0 + reference.bias_hh_l0)
    sequences = torch.rand(2, 6, 3)
    torch.testing.assert_close(own(sequences), reference(sequences)[0])


def test_several_labels_have_a_sigmoid_each() -> None:
    network = network_named("femnist-cnn", *SMALL["femnist-cnn"])
    rng, inputs = np.random.default_rng(5), examples("femnist-cnn", 1, 2)[0]
    labels, parameters = rng.integers(0, 2, (1, 2, 4)), network.start(rng)
    biases = slice(-4, None)
    shares = 1 / (1 + np.exp(-network.scores(parameters, inputs[0])))
    np.testing.assert_allclose(network.gradients(parameters, inputs, labels)[0, biases], (shares - labels[0]).mean(axis=0), rtol=1e-9)


def test_examples_of_many_pieces_are_one_mean() -> None:
    network = network_named("femnist-cnn", *SMALL["femnist-cnn"])
    inputs, labels = examples("femnist-cnn", 1, 600)
    parameters = network.start(np.random.default_rng(6))
    one_by_one = network.gradients(parameters, inputs[0][:, None], labels[0][:, None]).mean(axis=0)
    np.testing.assert_allclose(network.gradients(parameters, inputs, labels)[0], one_by_one, rtol=1e-9, atol=1e-14)


def test_the_first_model_depends_on_the_generator_alone_and_single_precision_is_near() -> None:
    double, single = (network_named("femnist-cnn", *SMALL["femnist-cnn"], precision=bits) for bits in (64, 32))
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = double.start(np.random.default_rng(7))
    inputs, labels = examples("femnist-cnn", 2, 3)
    result = double.gradients(first, inputs, labels)
    assert (before == torch.random.get_rng_state()).all()
    torch.manual_seed(2)
    assert (single.start(np.random.default_rng(7)) == first).all()
    near = single.gradients(first, inputs, labels)
    assert near.dtype == float
    assert 0 < np.abs(near - result).max() < 1e-5 * np.abs(result).max()


def test_dropout_is_that_of_the_generator_and_right_on_average() -> None:
    network = network_named("femnist-cnn", *SMALL["femnist-cnn"])
    assert is_random(network)
    assert not network_named("dp-rec-cnn", *FEMNIST).drawing(np.random.default_rng(0)).rng
    inputs, labels = examples("femnist-cnn", 1, 200)
    rng = np.random.default_rng(8)
    parameters = network.start(rng)
    cohort = Cohort(Examples(np.repeat(inputs[0][:1], 200, axis=0), np.repeat(labels[0][:1], 200)), np.ones(200, dtype=np.int64))
    once, again = (LocalTraining().updates(network, parameters, cohort, np.random.default_rng(9)) for _ in range(2))
    assert (once == again).all()
    # All rows belong to the same example.
    assert len(np.unique(once, axis=0)) == 200
    factors = next(iter(network._dropouts.values())).draw(rng, (500,))
    assert set(np.unique(factors)) == {0.0, 1 / 0.75}
    # The mean of 500 * 4 * 64 or more factors of variance 1 / 3 is within five standard deviations.
    assert factors.mean() == pytest.approx(1.0, abs=5 * (3 * factors.size) ** -0.5)


def test_answers_are_best_scores_and_count_where_something_is_asked() -> None:
    network, (inputs, labels) = network_named("next-word-lstm", 5, 4), examples("next-word-lstm", 1, 270)
    parameters = network.start(np.random.default_rng(10))
    best = network.scores(parameters, inputs[0]).argmax(axis=-1)
    assert len(np.unique(best)) > 1
    assert 0 < np.count_nonzero(labels < 0) < labels.size
    expected = np.mean((best == labels[0])[labels[0] >= 0])
    assert network_accuracy(network, parameters, inputs[0], labels[0]) == pytest.approx(expected, rel=1e-12)
    assert network_accuracy(network, parameters, inputs[0], np.full_like(labels[0], -1)) == 0
    # A client without required positions has a zero gradient.
    assert not network.gradients(parameters, inputs[:, :2], np.full((1, 2, 5), -1)).any()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="model must be one for images of 8 by 8, got 'lenet-5', which needs larger ones"):
        network_named("lenet-5", 64, 10, (8, 8, 1))
    with pytest.raises(ValueError, match="model must be softmax, an mlp or an lstm for inputs that are not images, got 'mvu-cnn'"):
        network_named("mvu-cnn", 784, 10)
    with pytest.raises(ValueError, match="model must not be one for characters or words, as inputs are images, got 'character-lstm'"):
        network_named("character-lstm", 64, 10, (8, 8, 1))
    network = network_named("character-lstm", 5, 4)
    parameters = np.zeros(network.layers.dimension)
    for numbers in (np.full((1, 5), 4.0), np.full((1, 5), 0.5), np.full((1, 5), -1.0)):
        with pytest.raises(
            ValueError, match="data must be whole numbers from 0 to 3, of characters or words, for the model character-lstm"
        ):
            network.scores(parameters, numbers)
    with pytest.raises(ValueError, match=r"model must fit labels of shape \(2, 5\), got character-lstm, which gives \(2, 4\)"):
        network.gradients(parameters, np.zeros((1, 2, 5)), np.zeros((1, 2, 5), dtype=np.int64))


def test_lenet_learns_digits_that_are_enlarged(task: Callable[..., TrainingTask]) -> None:
    data = task("none").training.federated_data(0)
    network = network_named("lenet-5", 256, 10, (16, 16, 1), precision=32)
    chosen = data.cohort(np.arange(200)).examples
    inputs, labels = enlarged(chosen.inputs)[None], chosen.labels[None]
    parameters = network.start(np.random.default_rng(1))
    for start in [*range(0, 1400, 20)] * 2:
        batch = slice(start, start + 20)
        parameters -= 0.3 * network.gradients(parameters, inputs[:, batch], labels[:, batch])[0]
    assert np.mean(network.scores(parameters, enlarged(data.test.inputs)).argmax(axis=1) == data.test.labels) > 0.8


def enlarged(rows: np.ndarray) -> np.ndarray:
    return np.kron(rows.reshape(-1, 8, 8), np.ones((1, 2, 2))).reshape(len(rows), -1)


def test_a_lstm_learns_to_repeat_what_it_has_read() -> None:
    network, rng = network_named("character-lstm", 3, 3, precision=32), np.random.default_rng(2)
    inputs = rng.integers(0, 3, (1, 30, 3)).astype(float)
    labels, parameters = inputs[:, :, 1].astype(np.int64), network.start(rng)
    moving = np.zeros_like(parameters)
    for _ in range(60):
        moving = 0.9 * moving + network.gradients(parameters, inputs, labels)[0]
        parameters -= 2.0 * moving
    assert np.mean(network.scores(parameters, inputs[0]).argmax(axis=1) == labels[0]) > 0.9


def test_a_training_goes_on_from_its_checkpoint_with_the_same_bytes(
    task: Callable[..., TrainingTask], federation: Callable[[TrainingTask], Federation], tmp_path: Path
) -> None:
    asked = task("none", model="femnist-cnn", rounds=16, local_epochs=1, batch=4, client_rate=0.2, server="momentum", evaluate_every=8)
    whole, halted = federation(asked), federation(asked)
    whole.run()
    assert whole.records["accuracy"][-1] > 0.6

    class HaltedError(Exception):
        pass

    def halt(running: Federation) -> None:
        if running.state.rounds == 12:
            raise HaltedError

    with pytest.raises(HaltedError):
        halted.run(Checkpoint(tmp_path / "halted.npz", 5, b"key"), halt)
    resumed = federation(asked)
    resumed.run(Checkpoint(tmp_path / "halted.npz", 5, b"key"))
    assert resumed.state.parameters.tobytes() == whole.state.parameters.tobytes()
    np.testing.assert_array_equal(resumed.records["accuracy"], whole.records["accuracy"])


def test_a_character_lstm_trains_on_files_of_leaf(
    task: Callable[..., TrainingTask], federation: Callable[[TrainingTask], Federation], tmp_path: Path
) -> None:
    line = "To be, or not to be: that is the question: Whether 'tis nobler in the mind to suffer"
    roles = {
        name: {"x": [line[start : start + 80] for start in range(count)], "y": list(line[80 : 80 + count])}
        for name, count in (("A", 3), ("B", 1))
    }
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        content = {"users": list(roles), "num_samples": [len(role["y"]) for role in roles.values()], "user_data": roles}
        (tmp_path / part / "all_data.json").write_text(json.dumps(content))
    asked = task(
        "none", data="shakespeare", folder=str(tmp_path), split="writer", model="character-lstm", clients=2, clients_per_round=2, rounds=2,
        local_epochs=1, batch=2, client_rate=1.0,
    )  # fmt: skip
    running = federation(asked)
    running.run()
    assert running.records["accuracy"][-1] in (0, 0.25, 0.5, 0.75, 1)
    assert running.records["bytes_up"] == [2 * 4 * 820_522] * 2
    assert np.abs(running.state.parameters - federation(asked).state.parameters).max() > 1e-3
