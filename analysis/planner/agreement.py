"""Comparison of plans' predictions with simulations over random tasks."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ...progress import OnStep, notebook_progress, silent
from ..random_streams import named_stream
from .check import check_mechanism
from .plan import plan_task
from .words import task_in_words

# Least dimension of the tasks' vectors, as errors of few coordinates vary and would need many simulated rounds.
FEWEST_COORDINATES, MOST_COORDINATES = 8, 128
FEWEST_CLIENTS, MOST_CLIENTS = 50, 1000
NORMS = (1.0, 2.0, 2.0, 2.0, float("inf"))


def random_tasks(count: int, seed: int = 0) -> Iterator[Task]:
    """Yield random tasks of a few clients, with all domains, adjacencies and kinds of budgets."""
    for number in range(count):
        rng = named_stream(seed, f"task {number} of a plan")
        yield Task(
            _domain(rng),
            clients=int(np.exp(rng.uniform(np.log(FEWEST_CLIENTS), np.log(MOST_CLIENTS)))),
            epsilon=float(np.round(np.exp(rng.uniform(np.log(0.5), np.log(8.0))), 2)),
            delta=float(rng.choice([0.0, 1e-6, 1e-5, 1e-4])),
            adjacency=str(rng.choice(ADJACENCIES, p=[0.75, 0.25])),
            rounds=int(rng.choice([1, 1, 1, 5])),
            bits=rng.choice(np.array([None, None, 1, 4, 16])),
        )


def _domain(rng: np.random.Generator) -> Domain:
    kind = rng.choice(["vectors", "vectors", "numbers", "items"])
    size = int(np.exp(rng.uniform(np.log(FEWEST_COORDINATES), np.log(MOST_COORDINATES))))
    if kind == "items":
        return Categories(size)
    if kind == "numbers":
        low = float(np.round(rng.uniform(-10, 10), 1))
        return Interval(low, low + float(np.round(rng.uniform(0.5, 20), 1)))
    return NormBall(size, float(rng.choice(NORMS)), float(np.round(rng.uniform(0.1, 10), 1)))


def compare_with_simulations(tasks: Iterable[Task], *, seed: int = 0, on_step: OnStep = notebook_progress) -> pd.DataFrame:
    """Return the predicted and simulated errors of every feasible mechanism for each task.

    The columns are `task` in words, `mechanism`, `trust_model`, `ratio_to_bound`, and the fields of `CheckedError`.
    """
    every = list(tasks)
    rows = []
    for done, task in enumerate(every, start=1):
        plan = plan_task(task, timed=False, seed=seed, on_step=silent)
        for planned in plan.feasible:
            check = check_mechanism(plan, planned, seed=seed)
            rows.append(
                {
                    "task": task_in_words(task),
                    "mechanism": planned.name,
                    "trust_model": planned.trust_model,
                    "ratio_to_bound": planned.ratio_to_bound,
                    "predicted_error": check.predicted_error,
                    "squared_error": check.squared_error,
                    "standard_error": check.standard_error,
                    "repetitions": check.repetitions,
                    "excess": check.excess,
                    "off": check.off,
                }
            )
        on_step(done, len(every), task_in_words(task))
    return pd.DataFrame(rows)
