"""Numbers of the README."""

from functools import cache

import quietbits
from quietbits.analysis.planner.words import percentage

QUESTION = quietbits.Task(quietbits.NormBall(100, 2.0), clients=10_000, epsilon=2.0, delta=1e-5, adjacency="replace-one")
WORDS = quietbits.Task(quietbits.Categories(100), clients=10_000, epsilon=1.0, delta=1e-6, adjacency="replace-one")


@cache
def planned(task: quietbits.Task) -> quietbits.Plan:
    """Return the plan of a task."""
    return quietbits.plan_task(task, timed=False)


@cache
def advised() -> quietbits.Plan:
    """Return the plan of README's question, with advice."""
    return quietbits.advise(planned(QUESTION))


def recommended_vectors() -> list[list[str]]:
    """Return trust model, mechanism, bits and error of the recommendations for vectors."""
    plan = planned(QUESTION)
    rows = [(model, plan.named(name)) for model, name in plan.recommended.items()]
    return [[model, row.name, f"{row.bits_per_client:,.0f}", percentage(row.relative_error)] for model, row in rows]


def clients_for(trust_model: str, share: float) -> str:
    """Return the number of clients for a relative error, with spaces between thousands."""
    advice = next(item for item in advised().advice if item.trust_model == trust_model)
    (number,) = (item.clients for item in advice.clients_needed if item.relative_error == share)
    return f"{number:,}"


def least_errors() -> list[list[object]]:
    """Return the recommended mechanism of each trust model for items."""
    plan = planned(WORDS)
    rows: list[list[object]] = []
    for model, name in plan.recommended.items():
        row = plan.named(name)
        bits = f"{row.bits_per_client:,.0f}" if row.bits_per_client > 100 else f"{row.bits_per_client:.4g}"
        rows.append([model, ..., name, bits, percentage(row.relative_error)])
    return rows


def mechanisms() -> int:
    """Return the number of mechanisms of the registry."""
    return len(quietbits.REGISTRY)


def gap() -> float:
    """Return the optimality gap of README's table in percent."""
    return 100 * quietbits.design_mvu(epsilon=3.0, bits_in=5, bits_out=3).certificate.optimality_gap
