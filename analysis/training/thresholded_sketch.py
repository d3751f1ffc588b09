"""Sketches in a secure sum with a threshold on the noisy sum, and an error memory.

The mechanism is that of appendix A.2 of Chen, Choquette-Choo, Kairouz, Suresh 2022, *The Fundamental Price of Secure Aggregation in
Differentially Private Federated Learning*: "we further attempt to threshold low values in the sketch ... we keep track of the zero-d values
in an error term".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_real
from ...arrays import FloatArray
from ...design.secure_sum.sketched_sum import SketchedSum
from ...design.transforms.thresholding import MOST_THRESHOLD, threshold_with_memory


@dataclass(frozen=True)
class ThresholdedSketchedSum(SketchedSum):
    """A secure sum of sketches whose noisy mean loses its small coordinates before decoding.

    Messages, noise and guarantee are those of `SketchedSum`, as the server's processing keeps the sum's privacy. `variance` and the other
    stated errors are also those of `SketchedSum`, and do not count the zeroed coordinates. The memory belongs to the training, which adds
    it to the next round's mean of sketches and therefore keeps a sketch for all rounds. (Models then depend on the sketch's public seed,
    which affects accuracy but not privacy.)

    Attributes
    ----------
    threshold : float
        Threshold below which coordinates are zeroed, in root mean squares of the mean of sketches plus the memory; 0 keeps all coordinates.
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "threshold", check_real("threshold", self.threshold, low=0.0, high=MOST_THRESHOLD))

    @property
    def memory_size(self) -> int:
        """Number of coordinates of a sketch."""
        return self.sketch_dimension

    def measured_mean(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the noisy mean of the sketches."""
        return self.inner.decode(aggregate, clients)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the estimate of a round without a memory."""
        return self.decode_remembered(self.measured_mean(aggregate, clients), np.zeros(self.memory_size))[0]

    def decode_remembered(self, measured: FloatArray, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the decoded large coordinates of the mean of sketches plus the memory.

        The memory keeps the remaining coordinates.
        """
        remembered = threshold_with_memory(measured, memory, self.threshold)
        return self.sketch.decode(remembered.kept), remembered.memory
