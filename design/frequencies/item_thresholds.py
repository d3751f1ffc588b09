"""Thresholds on decoded frequencies: published thresholds, and one from a mechanism's error.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, theorem A.3, whose
statement and proof have different thresholds, both up to a constant that is not stated; this module takes 1.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import MOST_CLIENTS, MOST_ITEMS, check_integer, check_probability, check_real
from ...arrays import FloatArray
from ...solvers.accounting.renyi_curve import check_delta
from ..contracts.mechanism import EPSILON_HIGH, EPSILON_LOW
from .item_sketch import MOST_ROWS
from .sketched_frequencies import SketchedFrequencies


def stated_threshold(categories: int, clients: int, epsilon: float, delta: float, failure: float = 0.05) -> float:
    """Return the threshold of the theorem's statement as a frequency.

    The threshold is ``ln(d/failure) ln(1/delta) / (epsilon n)``.

    Examples
    --------
    >>> round(stated_threshold(100_000, 50_000, 1.0, 1e-5), 5)
    0.00334
    """
    categories = check_integer("categories", categories, low=2, high=MOST_ITEMS)
    return math.log(categories / check_probability("failure", failure)) * _count(clients, epsilon, delta)


def proof_threshold(rows: int, clients: int, epsilon: float, delta: float) -> float:
    """Return the threshold of the theorem's proof as a frequency.

    The threshold is ``sqrt(t ln(1/delta)) / (epsilon n)``.

    Examples
    --------
    >>> round(proof_threshold(15, 50_000, 1.0, 1e-5), 5)
    0.00026
    """
    rows = check_integer("rows", rows, low=1, high=MOST_ROWS)
    return math.sqrt(rows / math.log(1 / delta)) * _count(clients, epsilon, delta)


def error_threshold(mechanism: SketchedFrequencies, failure: float = 0.05, concentration: float = 0.0) -> float:
    """Return the frequency that estimates of items without holders rarely exceed.

    For normal errors, the probability that any of these estimates exceeds the threshold is at most `failure`. The threshold is sqrt(2 ln(d
    / failure)) times the standard error of noise and collisions, where the squared frequencies sum to `concentration`. Collisions have
    longer tails if a single heavy item causes a large part of them.

    Examples
    --------
    >>> from quietbits.design.frequencies.item_sketch import ItemSketch
    >>> from quietbits.design.frequencies.noisy_sketch import SketchedSkellamFrequencies
    >>> sketch = ItemSketch(100_000, rows=15, width=1024, signed=False)
    >>> round(error_threshold(SketchedSkellamFrequencies(sketch, 50_000, steps=8, local_variance=0.53, delta=1e-5)), 5)
    0.00057
    """
    share = check_real("concentration", concentration, low=0.0, high=1.0)
    exponent = math.log(mechanism.categories / check_probability("failure", failure))
    return math.sqrt(2 * exponent * (mechanism.item_variance / mechanism.clients + mechanism.sketch.collision_share * share))


def thresholded(frequencies: ArrayLike, threshold: float) -> FloatArray:
    """Return the frequencies, with 0 in place of those below a threshold.

    Examples
    --------
    >>> thresholded([0.5, 0.01, -0.3], 0.1).tolist()
    [0.5, 0.0, 0.0]
    """
    array = np.asarray(frequencies, dtype=float)
    return np.where(array < check_real("threshold", threshold, low=0.0, high=1e100), 0.0, array)


def _count(clients: int, epsilon: float, delta: float) -> float:
    """Return ln(1/delta) / (epsilon n)."""
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    return -math.log(check_delta(delta)) / check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH) / clients
