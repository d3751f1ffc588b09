"""The picture of the home page: the designs of one plan, error against bits."""

from pathlib import Path

from quietbits.figures.drawing.style import print_style
from quietbits.figures.planner.pareto import PlanPoint, draw_plan
from quietbits.figures.report.report_figures import svg_text

from .stored import stored

# Vectors of 256 coordinates take seconds to plan, and show all trust models.
TASK = PlanPoint(clients=10_000, dimension=256, epsilon=2.0, delta=1e-5, seed=0)


def write(path: Path) -> None:
    """Draw the plan, and write it as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(stored("home-picture", _drawn), encoding="utf-8")


def _drawn() -> str:
    import pandas as pd

    with print_style():
        return svg_text(draw_plan(pd.DataFrame(TASK.run())), "plan")
