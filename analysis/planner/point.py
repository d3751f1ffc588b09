"""A plan as the task of a sweep, for its figure."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ..comparisons.point import Point
from .plan import plan_task


@dataclass(frozen=True, kw_only=True)
class PlanPoint(Point):
    """The plan for vectors of the L2 unit ball; fields are those of `Task`."""

    clients: int = 10_000
    dimension: int = 1000
    epsilon: float = 2.0
    delta: float = 1e-5
    adjacency: str = "replace-one"

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each design that keeps to the task."""
        task = Task(NormBall(self.dimension, 2.0), self.clients, self.epsilon, self.delta, self.adjacency)
        frame = plan_task(task, seed=self.seed, timed=False).designs_frame()
        return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def design_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a plan in its own order: by trust model, mechanism and bits."""
    return rows.reset_index(drop=True)
