"""Numbers of docs/reference/training.md."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import quietbits
from quietbits import REGISTRY
from quietbits.analysis.catalogue.tables import vector_table_of
from quietbits.analysis.training.models.named_models import network_named
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.spec import CHECKPOINT_EVERY as CHECKPOINT_EVERY
from quietbits.design.contracts.sketched_mechanism import CLIP_MARGIN as CLIP_MARGIN
from quietbits.design.federated.model_layers import model_layers
from quietbits.figures.dp_rec.communication import FEDERATIONS


def default(key: str) -> Any:
    """Return the default value of a key in training files."""
    return next(field.default for field in dataclasses.fields(TrainingSetting) if field.name == key)


def message_epsilon(bits_in: int, metric: str | None) -> float:
    """Return epsilon of a message of 650 coordinates with a one-bit MVU table for epsilon 1."""
    task = quietbits.Task(quietbits.NormBall(650, 2.0), clients=1, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    options = {option.name: option.default for option in REGISTRY["mvu"].options}
    return vector_table_of(task, {**options, "bits_in": bits_in, "bits_out": 1, "metric": metric}, 1.0).guarantee.epsilon


def model_rows() -> Iterator[list[object]]:
    """Return numbers of parameters from the papers' tensors, without torch."""
    tensors = {federation.dataset: federation.parameters for federation in FEDERATIONS}
    images = ((784, 10, (28, 28, 1)), (3072, 10, (32, 32, 3)))
    scattering = [network_named("scatter-softmax", *shape).layers.dimension for shape in images]
    # The numbers add kernels and biases of two convolutions and two dense layers.
    convolutions = 16 * (8 * 8 + 1) + 32 * (4 * 4 * 16 + 1) + 32 * (4 * 4 * 32 + 1) + 10 * (32 + 1)
    for name, numbers in (
        ("scatter-softmax", scattering),
        ("mvu-cnn", [convolutions]),
        ("lenet-5", [tensors["MNIST"]]),
        ("dp-rec-cnn", [tensors["FEMNIST"]]),
        ("femnist-cnn", [model_layers("femnist-cnn").dimension]),
        ("character-lstm", [tensors["Shakespeare"]]),
        ("next-word-lstm", [model_layers("stackoverflow-lstm").dimension]),
    ):
        yield [f"`{name}`", ..., ", ".join(f"{number:,}".replace(",", " ") for number in numbers), ...]
