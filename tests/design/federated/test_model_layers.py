"""Numbers of parameters of published models, and the positions of their layers."""

import numpy as np
import pytest

from quietbits.design.federated.model_layers import MODELS, Layer, ModelLayers, convolution, dense, lstm, model_layers


@pytest.mark.parametrize(
    ("name", "dimension", "sizes"),
    [
        ("femnist-cnn", 1_018_174, (320, 18_496, 991_360, 7_998)),
        ("femnist-mlp", 209_662, (157_000, 40_200, 12_462)),
        ("stackoverflow-lstm", 4_050_748, (960_384, 2_055_560, 64_416, 970_388)),
    ],
)
def test_published_numbers_of_parameters(name: str, dimension: int, sizes: tuple[int, ...]) -> None:
    model = model_layers(name)
    assert model.dimension == dimension
    assert model.sizes == sizes


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_slices_cover_a_vector_once(model: ModelLayers) -> None:
    counts = np.zeros(model.dimension, dtype=int)
    for layer, part in zip(model.layers, model.places, strict=True):
        counts[part] += 1
        assert part.stop - part.start == layer.size
    assert np.all(counts == 1)


def test_layers_are_those_of_the_usual_frameworks() -> None:
    assert convolution(5, 3, 7).size == 5 * 5 * 3 * 7 + 7
    assert dense(10, 4).size == 44
    assert lstm(8, 3).size == 4 * 3 * (8 + 3 + 1)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="model must be one of femnist-cnn, femnist-mlp, stackoverflow-lstm, got 'resnet'"):
        model_layers("resnet")
    with pytest.raises(ValueError, match="shapes must be a whole number from 1"):
        Layer("empty", ((0, 3),))
    with pytest.raises(ValueError, match="number of layers must be a whole number from 1"):
        ModelLayers("empty", ())
