"""Numbers of docs/reference/data.md."""

from functools import cache

import numpy as np

from quietbits.analysis.datasets.deformation import Deformation
from quietbits.analysis.datasets.federated_data import Examples
from quietbits.analysis.datasets.named_data import digits_data

DEFORMATION = Deformation()


@cache
def images() -> tuple[Examples, Examples]:
    """Return the digits of the only client, which are all training images, and the test set."""
    data = digits_data(1, seed=0)
    return data.client_examples(0), data.test


def recognised(clients: int) -> float:
    """Return the share of deformed images that the nearest original image classifies correctly."""
    kept, made = images()[0], digits_data(clients, seed=0).cohort(np.arange(clients)).examples
    distances = np.sum(kept.inputs**2, axis=1) - 2 * made.inputs @ kept.inputs.T
    return float(np.mean(kept.labels[distances.argmin(axis=1)] == made.labels))
