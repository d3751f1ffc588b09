"""Numbers of docs/choosing.md, except for those of its six settings (`test_choosing.py`)."""

from functools import cache

import quietbits


@cache
def numbers_over_bound() -> list[float]:
    """Return the errors over the bound of what can serve numbers where letters are shuffled or summed, in their order."""
    task = quietbits.Task(quietbits.Interval(), clients=10_000, epsilon=1.0, delta=1e-6, adjacency="replace-one")
    plan = quietbits.plan(task)
    return sorted(plan[plan.trust_model.isin(["shuffled", "secure-sum"])].ratio_to_bound.dropna())
