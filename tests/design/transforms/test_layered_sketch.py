"""Tests of layered sketches, which have one sketch per layer."""

import numpy as np
import pytest

from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.gaussian_sketch import GaussianSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.layered_sketch import LayeredSketch

LAYERS = (CountMeanSketch(30, 3, 2, seed=1), HadamardSketch(20, 16, seed=2), GaussianSketch(10, 5, seed=3))
PARTS = ((slice(0, 30), slice(0, 6)), (slice(30, 50), slice(6, 22)), (slice(50, 60), slice(22, 27)))
SKETCH = LayeredSketch(LAYERS)


def test_it_is_its_parts() -> None:
    vectors, sketches = (np.random.default_rng(1).normal(size=(4, count)) for count in (60, 27))
    assert (SKETCH.dimension, SKETCH.sketch_dimension, SKETCH.seed) == (60, 27, 1)
    encoded, decoded = SKETCH.encode(vectors), SKETCH.decode(sketches)
    for layer, (part, sketched) in zip(LAYERS, PARTS, strict=True):
        np.testing.assert_array_equal(encoded[:, sketched], layer.encode(vectors[:, part]))
        np.testing.assert_array_equal(decoded[:, part], layer.decode(sketches[:, sketched]))
    errors = [layer.compression_error(vectors[0, part]) for layer, (part, _) in zip(LAYERS, PARTS, strict=True)]
    assert SKETCH.compression_error(vectors[0]) == pytest.approx(sum(errors), rel=1e-14)
    assert SKETCH.distortion == max(layer.distortion for layer in LAYERS)
    assert SKETCH.length_variance == max(layer.length_variance for layer in LAYERS)


def test_a_layer_that_is_long_can_be_compressed_less() -> None:
    # The whole length of the vector is in the first layer, so the compression errors of the other layers are zero.
    vector = np.eye(60)[0]
    assert SKETCH.compression_error(vector) == LAYERS[0].distortion
    finer = LayeredSketch((CountMeanSketch(30, 3, 10, seed=1), *LAYERS[1:]))
    assert finer.compression_error(vector) == pytest.approx(SKETCH.compression_error(vector) / 5, rel=1e-14)


def test_another_round_has_other_seeds_for_all_layers() -> None:
    renewed = SKETCH.renewed(5)
    seeds = {layer.seed for layer in renewed.layers}
    assert len(seeds) == 3
    assert not seeds & {1, 2, 3}
    assert [type(layer) for layer in renewed.layers] == [type(layer) for layer in LAYERS]
    assert renewed == SKETCH.renewed(5) != SKETCH.renewed(6)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((), "layers must have at least one sketch, got none"),
        ((LAYERS[0], HadamardSketch(20, 16, seed=1)), r"layers must have different seeds, got \[1, 1\]"),
        (
            (LAYERS[0], CountMeanSketch(20, 4, 1, seed=2, scaling="mean")),
            r"layers must have a length_factor of 1 each, got \[1.0, 0.5\]",
        ),
    ],
)
def test_bad_layers_are_refused(layers: tuple[CountMeanSketch, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LayeredSketch(layers)
