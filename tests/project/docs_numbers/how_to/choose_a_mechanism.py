"""Numbers of docs/how-to/choose-a-mechanism.md."""

from collections.abc import Iterator

import quietbits


def plan_rows() -> Iterator[list[str]]:
    """Return three rows of the page's plan."""
    task = quietbits.Task(quietbits.NormBall(1000, 2.0), clients=10_000, epsilon=2.0, delta=1e-5, adjacency="replace-one")
    plan = quietbits.plan(task).set_index("name")
    for name in ("rotating-simplex", "sqkr", "distributed-discrete-gaussian"):
        row = plan.loc[name]
        errors = (f"{row[column]:.3g}" for column in ("predicted_error", "worst_error"))
        bound = f"{row['ratio_to_bound']:.3g}" if row["ratio_to_bound"] > 0 else "none"
        yield [row["trust_model"], name, *errors, f"{row['bits_per_client']:,.0f}", bound, f"{row['ratio_to_central']:.3g}"]
