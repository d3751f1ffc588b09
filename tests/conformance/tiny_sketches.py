"""Sketch options for tasks of a few coordinates, in which compression costs more than noise.

Any test may import this module. It holds no assertions, which pytest would have to rewrite before the first import.
"""

from collections.abc import Mapping
from typing import Any

# Options of sketches of two coordinates, or of one coordinate.
SKETCHES: Mapping[str, Mapping[str, Any]] = {
    "sketched-discrete-gaussian": {"rows": 1, "sketch_dimension": 2},
    "sketched-skellam": {"rows": 1, "sketch_dimension": 2},
    "central-sketch": {"rows": 1, "sketch_dimension": 2},
    "sparse-discrete-gaussian": {"sparsity": 1, "sketch_dimension": 2},
}
SKETCHES_OF_ONE: Mapping[str, Mapping[str, Any]] = {name: {**options, "sketch_dimension": 1} for name, options in SKETCHES.items()}
# Options of sketches of five items.
ITEM_SKETCHES: Mapping[str, Mapping[str, Any]] = {
    "sketched-poisson-binomial": {"rows": 2, "width": 4, "trials": 2},
    "sketched-discrete-gaussian-frequencies": {"rows": 2, "width": 3},
    "sketched-skellam-frequencies": {"rows": 2, "width": 3, "signed": True},
    "sparse-discrete-gaussian-frequencies": {"distinct_items": 2, "rows": 3, "width": 3},
}


def as_typed(options: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return options in the form that a user types."""
    return {
        name: [part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        for name, given in options.items()
    }
