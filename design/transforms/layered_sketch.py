"""Separate sketches of a model's layers.

A layer of large updates can be compressed less than other layers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ...arrays import FloatArray
from .linear_sketch import LinearSketch


@dataclass(frozen=True)
class LayeredSketch(LinearSketch):
    """Sketches of consecutive parts of a vector, one after the other.

    The sketches follow appendix A.2 of Chen, Choquette-Choo, Kairouz, Suresh 2022. The worst layer determines the `distortion` for an
    unknown vector; the `compression_error` of a given vector may be far less.

    Attributes
    ----------
    layers : tuple of LinearSketch
        The sketches, with different seeds, in the order of the parts; each keeps the length of its part, on average.

    Examples
    --------
    >>> from quietbits.design.transforms.count_sketch import CountMeanSketch
    >>> sketch = LayeredSketch((CountMeanSketch(900, 1, 30, seed=1), CountMeanSketch(100, 1, 50, seed=2)))
    >>> sketch.dimension, sketch.sketch_dimension, round(sketch.distortion, 2), sketch.compression_error(np.eye(1, 1000, 950)[0])
    (1000, 80, 29.97, 1.98)
    """

    layers: tuple[LinearSketch, ...]

    def __post_init__(self) -> None:
        """Check that there are layers, and that no layer repeats another's seed."""
        if not self.layers:
            raise ValueError("layers must have at least one sketch, got none")
        if len({layer.seed for layer in self.layers}) < len(self.layers):
            raise ValueError(f"layers must have different seeds, got {[layer.seed for layer in self.layers]}")
        if any(layer.length_factor != 1 for layer in self.layers):
            # A single norm clips all layers' sketches together.
            raise ValueError(f"layers must have a length_factor of 1 each, got {[layer.length_factor for layer in self.layers]}")

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Number of coordinates of all parts."""
        return sum(layer.dimension for layer in self.layers)

    @property
    def seed(self) -> int:  # type: ignore[override]
        """Seed of the first layer."""
        return self.layers[0].seed

    @property
    def sketch_dimension(self) -> int:
        """Number of coordinates of all sketches."""
        return sum(layer.sketch_dimension for layer in self.layers)

    @property
    def distortion(self) -> float:
        """Largest distortion of the layers."""
        return max(layer.distortion for layer in self.layers)

    @property
    def length_variance(self) -> float:
        """Largest length variance of the layers.

        Squared lengths of independent parts add up, and so do their variances.
        """
        return max(layer.length_variance for layer in self.layers)

    @property
    def squared_operator_norm_bound(self) -> float:
        """Sum of the layers' bounds, which exceeds the mean of the largest squared norm."""
        return sum(layer.squared_operator_norm_bound for layer in self.layers)

    @property
    def operator_norm_bound(self) -> float:
        """Largest operator norm bound of the layers."""
        return max(layer.operator_norm_bound for layer in self.layers)

    def compression_error(self, vector: FloatArray) -> float:
        """Return the sum of the layers' errors for a vector."""
        return sum(layer.compression_error(vector[part]) for layer, part, _ in self._parts)

    def renewed(self, seed: int) -> Self:
        """Return sketches of the same sizes from other seeds, derived from `seed`."""
        seeds = np.random.SeedSequence(seed).generate_state(len(self.layers), np.uint64).tolist()
        fields: dict[str, Any] = {"layers": tuple(layer.renewed(layer_seed) for layer, layer_seed in zip(self.layers, seeds, strict=True))}
        return replace(self, **fields)

    def _sketched(self, vectors: FloatArray) -> FloatArray:
        return np.concatenate([layer.encode(vectors[:, part]) for layer, part, _ in self._parts], axis=1)

    def _restored(self, sketches: FloatArray) -> FloatArray:
        return np.concatenate([layer.decode(sketches[:, sketched]) for layer, _, sketched in self._parts], axis=1)

    @cached_property
    def _parts(self) -> tuple[tuple[LinearSketch, slice, slice], ...]:
        return tuple(self._each_part())

    def _each_part(self) -> Iterator[tuple[LinearSketch, slice, slice]]:
        """Yield each layer with its part of the vectors, and of the sketches."""
        start = sketched = 0
        for layer in self.layers:
            yield layer, slice(start, start + layer.dimension), slice(sketched, sketched + layer.sketch_dimension)
            start, sketched = start + layer.dimension, sketched + layer.sketch_dimension
