"""Grids of tasks to plan as TOML files, which are checked and become tasks before any work begins."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import TRUST_MODELS
from ...design.contracts.norm_ball import NormBall, parse_norm
from ...design.contracts.options import NONE
from ...design.contracts.task import Task
from ...files import MEGABYTE, read_toml
from ..planner.record import TOLERANCE
from ..random_streams import LARGEST_SEED
from ..simulation.populations import check_inputs
from ..sweeps.specification import check_distinct, check_keys, check_some, listed, listed_intervals
from .task import PlanTask

MOST_PLANS = 100_000
DOMAIN_KEYS = ("interval", "dimension", "norm", "clip", "categories")
# Fields of a task that a file states as they are; a field with a default may be left out.
TASK_KEYS = tuple(field.name for field in fields(Task) if field.name not in ("domain", "sampling", "method"))
REQUIRED = ("clients", "epsilon", "delta", "adjacency")
SINGLE = ("population", "nonzero", "trust", "tolerance", "seed")


@dataclass(frozen=True, kw_only=True)
class PlanGrid:
    """Tasks to plan, with the choices that all plans share.

    Attributes
    ----------
    tasks : sequence of Task
        The tasks, all different.
    population, nonzero, trust, tolerance, seed
        Arguments of `plan_task`.

    Raises
    ------
    ValueError
        If a value is out of range, or a task occurs twice.
    """

    tasks: Sequence[Task]
    population: str | None = None
    nonzero: int | None = None
    trust: str | None = None
    tolerance: float = TOLERANCE
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_some("tasks", self.tasks)
        check_distinct("tasks", self.tasks)
        if self.trust is not None:
            check_choice("trust", self.trust, TRUST_MODELS)
        check_real("tolerance", self.tolerance, low=0.0, high=1.0)
        check_integer("seed", self.seed, low=0, high=LARGEST_SEED)
        if self.population is not None:
            for task in self.tasks:
                check_inputs(self.population, task.domain, self.nonzero)

    def plans(self) -> list[PlanTask]:
        """Return a plan to make for each task."""
        shared = {name: getattr(self, name) for name in SINGLE}
        return [PlanTask(task=task, **shared) for task in self.tasks]


def load_plan_grid(path: str | os.PathLike[str], most_bytes: int = MEGABYTE) -> PlanGrid:
    """Read a grid of tasks from a TOML file of at most the given size.

    A ``DataError`` names the file and the wrong key.
    """
    return read_toml(path, parse_plan_grid, most_bytes)


def parse_plan_grid(document: Mapping[str, Any]) -> PlanGrid:
    """Return the grid of tasks that a TOML document, as `tomllib` returns it, describes.

    Every key under ``[grid]`` takes one value or a list; ``"none"`` stands for no limit of `bits`. Tasks hold numbers of each `interval`,
    vectors of each `dimension`, `norm` and `clip`, and items of each `categories`. Blocks ``[[grid]]`` state several grids, whose tasks
    follow each other.

    Examples
    --------
    >>> grid = {"clients": [100, 1000], "epsilon": 1, "delta": 0, "adjacency": "replace-one", "dimension": [4, 8], "categories": 10}
    >>> len(parse_plan_grid({"grid": grid}).tasks), len(parse_plan_grid({"grid": [grid, grid | {"epsilon": 2}]}).tasks)
    (6, 12)
    """
    check_keys("a plan grid's file outside [grid]", [key for key in document if key != "grid"], SINGLE)
    grids = document.get("grid")
    shared = {key: value for key, value in document.items() if key != "grid"}
    if isinstance(grids, dict):
        return PlanGrid(tasks=_tasks(grids, MOST_PLANS), **shared)
    if not isinstance(grids, list) or not grids or not all(isinstance(block, dict) for block in grids):
        raise ValueError(f"[grid] must be a table with {', '.join(REQUIRED)}, or blocks [[grid]] of such tables, got {grids!r}")
    tasks = list[Task]()
    for number, block in enumerate(grids, 1):
        try:
            tasks += _tasks(block, MOST_PLANS - len(tasks))
        except ValueError as error:
            raise ValueError(f"[[grid]] number {number}: {error}") from error
    return PlanGrid(tasks=tasks, **shared)


def _tasks(block: Mapping[str, Any], most: int) -> list[Task]:
    """Return the tasks of one grid, at most the given number."""
    check_keys("[grid]", block, (*TASK_KEYS, *DOMAIN_KEYS), REQUIRED)
    lists = {key: listed_intervals(value) if key == "interval" else listed(value) for key, value in block.items()}
    for key, values in lists.items():
        check_some(key, values)
        check_distinct(key, values)
    domains = _domains(lists)
    budgets = {key: [None if value == NONE else value for value in lists[key]] for key in TASK_KEYS if key in lists}
    count = len(domains) * math.prod(map(len, budgets.values()))
    if count > most:
        raise ValueError(f"a file must have at most {MOST_PLANS} tasks, got {MOST_PLANS - most + count}: ask for fewer values")
    return [Task(domain, **dict(zip(budgets, values, strict=True))) for domain, *values in product(domains, *budgets.values())]


def _domains(lists: Mapping[str, tuple[Any, ...]]) -> list[Domain]:
    """Return the domains of all combinations; the unit interval if no key states one."""
    for key in ("norm", "clip"):
        if key in lists and "dimension" not in lists:
            raise ValueError(f"{key} must be left out without dimension, got {lists[key][0]!r}")
    norms = [parse_norm(str(norm)) for norm in lists.get("norm", (2,))]
    numbers = [Interval(low, high) for low, high in lists.get("interval", ())]
    vectors = [NormBall(*values) for values in product(lists.get("dimension", ()), norms, lists.get("clip", (1.0,)))]
    items = [Categories(size) for size in lists.get("categories", ())]
    return [*numbers, *vectors, *items] or [Interval()]
