"""Grids of tables as TOML files, which are checked and become tasks before any work begins."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from ...arguments import check_choice, check_integer, check_interval
from ...design.tables.letter_certification import check_search
from ...files import MEGABYTE, read_toml
from ...solvers.bounds.privacy_constraint import metric_name, ratio_constraint
from ..random_streams import LARGEST_SEED
from ..sweeps.specification import Combinations, check_distinct, check_keys, check_some, listed, listed_intervals
from .task import TableTask

MOST_BITS = 9
MOST_TABLES = 1_000_000
OBJECTIVES = ("mean", "worst")
REQUIRED = ("epsilon", "bits_in", "bits_out")


@dataclass(frozen=True, kw_only=True)
class TableGrid:
    """A grid of tables: all combinations of values.

    Attributes
    ----------
    epsilon : tuple of float
        Privacy parameters.
    bits_in, bits_out : tuple of int
        Number of bits of the input grid and of a message, 1 to 9.
    metric : tuple of str or None
        Metrics, as in `design_mvu`.
    objective : tuple of str
        Objectives, ``"mean"`` or ``"worst"``.
    interval : tuple of (float, float)
        Interval of the values.
    certify_seconds : float or None
        Duration, for each table, of a search for a bound among tables of as many letters, and for a better table; None without a search.
    seed : int
        Root seed of the searches.

    Raises
    ------
    ValueError
        If a value is out of range for all other values, a value occurs twice, or a list is empty. An infeasible combination fails when its
        table is designed.
    """

    epsilon: tuple[float, ...]
    bits_in: tuple[int, ...]
    bits_out: tuple[int, ...]
    metric: tuple[str | None, ...] = (None,)
    objective: tuple[str, ...] = ("mean",)
    interval: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    certify_seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values, and write metrics by their canonical names."""
        for key in KEYS:
            check_some(key, getattr(self, key))
        for name in ("bits_in", "bits_out"):
            for bits in getattr(self, name):
                check_integer(name, bits, low=1, high=MOST_BITS)
        for objective in self.objective:
            check_choice("objective", objective, OBJECTIVES)
        object.__setattr__(self, "metric", tuple(map(metric_name, self.metric)))
        object.__setattr__(self, "interval", tuple(check_interval("interval", pair) for pair in self.interval))
        if self.certify_seconds is not None:
            check_search(seconds=self.certify_seconds, name="certify_seconds")
        check_integer("seed", self.seed, low=0, high=LARGEST_SEED)
        # The metric with the highest power allows the largest epsilon.
        widest = max(product(self.metric, self.bits_in), key=lambda pair: (float((pair[0] or "l0")[1:]), pair[1]))
        for epsilon in self.epsilon:
            ratio_constraint(epsilon, widest[1], widest[0])
        for key in KEYS:
            check_distinct(key, getattr(self, key))
        if len(self.tasks()) > MOST_TABLES:
            raise ValueError(f"a grid must have at most {MOST_TABLES} tables, got {len(self.tasks())}: ask for fewer values")

    def tasks(self) -> Sequence[TableTask]:
        """Return a task for each table, made on demand.

        Epsilon varies slowest, and the interval fastest.
        """
        shared = len(self.interval) > 1

        def task(epsilon: float, *others: Any) -> TableTask:
            values: dict[str, Any] = dict(zip(KEYS, (float(epsilon), *others), strict=True))
            return TableTask(**values, seed=self.seed, certify_seconds=self.certify_seconds, shared=shared)

        return Combinations(task, *(getattr(self, key) for key in KEYS))


# Keys with one value for all tables of a grid.
SINGLE = ("certify_seconds", "seed")
KEYS = tuple(field.name for field in fields(TableGrid) if field.name not in SINGLE)


def load_grid(path: str | os.PathLike[str], most_bytes: int = MEGABYTE) -> TableGrid:
    """Read a grid from a TOML file of at most the given size.

    A ``DataError`` names the file and the wrong key.
    """
    return read_toml(path, parse_grid, most_bytes)


def parse_grid(document: Mapping[str, Any]) -> TableGrid:
    """Return the grid that a TOML document, as `tomllib` returns it, describes.

    Every key under ``[grid]`` but ``certify_seconds`` takes one value or a list; ``"none"`` stands for local privacy in `metric`.

    Examples
    --------
    >>> len(parse_grid({"grid": {"epsilon": [0.5, 1, 2], "bits_in": 3, "bits_out": [2, 3]}}).tasks())
    6
    """
    check_keys("a grid's file outside [grid]", [key for key in document if key != "grid"], ("seed",))
    block = document.get("grid")
    if not isinstance(block, dict):
        raise ValueError(f"[grid] must be a table with {', '.join(REQUIRED)}, got {block!r}")
    check_keys("[grid]", block, (*KEYS, "certify_seconds"), REQUIRED)
    lists = {key: value for key, value in block.items() if key in KEYS}
    values: dict[str, Any] = {key: listed_intervals(value) if key == "interval" else listed(value) for key, value in lists.items()}
    return TableGrid(**values, certify_seconds=block.get("certify_seconds"), seed=document.get("seed", 0))
