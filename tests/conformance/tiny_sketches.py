"""Sketches for tasks of a few coordinates, where compression costs more than noise: by default an entry refuses to sketch there.

Any test may import this; no assertion stands here, which pytest would have to rewrite before the first import.
"""

from collections.abc import Mapping
from typing import Any

# Of two coordinates, or of one.
SKETCHES: Mapping[str, Mapping[str, Any]] = {
    "sketched-discrete-gaussian": {"rows": 1, "sketch_dimension": 2},
    "central-sketch": {"rows": 1, "sketch_dimension": 2},
    "sparse-discrete-gaussian": {"sparsity": 1, "sketch_dimension": 2},
}
SKETCHES_OF_ONE: Mapping[str, Mapping[str, Any]] = {name: {**options, "sketch_dimension": 1} for name, options in SKETCHES.items()}
# Of five items.
ITEM_SKETCHES: Mapping[str, Mapping[str, Any]] = {
    "sketched-poisson-binomial": {"rows": 2, "width": 4, "trials": 2},
    "sketched-discrete-gaussian-frequencies": {"rows": 2, "width": 3},
    "sketched-skellam-frequencies": {"rows": 2, "width": 3, "signed": True},
    "sparse-discrete-gaussian-frequencies": {"distinct_items": 2, "rows": 3, "width": 3},
}


def as_typed(options: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return options as they are typed."""
    return {
        name: [part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        for name, given in options.items()
    }
