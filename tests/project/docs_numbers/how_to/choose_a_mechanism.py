"""Numbers of docs/how-to/choose-a-mechanism.md."""

from collections.abc import Iterator

import quietbits
from quietbits.analysis.planner.words import percentage


def recommendations() -> Iterator[list[str]]:
    """Return the recommendation of the page's plan for each trust model."""
    task = quietbits.Task(quietbits.NormBall(100, 2.0), clients=10_000, epsilon=2.0, delta=1e-5, adjacency="replace-one")
    plan = quietbits.plan(task)
    for model in ("local", "secure-sum", "central"):
        chosen = plan[plan["recommended"] & (plan["trust_model"] == model)]
        rows = [[row["name"], f"{row['bits_per_client']:,.0f}", percentage(row["relative_error"])] for _, row in chosen.iterrows()]
        yield [model, *(rows[0] if rows else ["no recommendation", "", ""])]
