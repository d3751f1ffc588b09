"""The plan of a task of a grid, as rows of the grid's table."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ...design.contracts.privacy import Scalar
from ...design.contracts.task import Task
from ...progress import silent
from ...shown import results_first
from ...version import __version__
from ..catalogue.registry import REGISTRY
from ..planner.plan import plan_task
from ..planner.record import Plan, PlannedMechanism, task_columns
from ..planner.words import no_mechanism_in_words, task_in_words

# Fields of a planned mechanism that are columns of the table; the rest is missing where no mechanism serves a task.
FIELDS = (
    "rank",
    "recommended",
    "on_frontier",
    "on_real_numbers",
    "unbiased",
    "predicted_error",
    "predicted_error_of_rounds",
    "relative_error",
    "worst_error",
    "lower_bound",
    "ratio_to_bound",
    "ratio_to_central",
    "bits_per_client",
    "bits_per_coordinate",
    "epsilon",
    "delta",
    "trust_model",
)


@dataclass(frozen=True)
class PlanTask:
    """A task whose plan is made without durations; attributes are arguments of `plan_task`."""

    task: Task
    population: str | None
    nonzero: int | None
    trust: str | None
    tolerance: float
    seed: int

    @property
    def design(self) -> None:
        """None: plans share nothing but caches."""
        return

    @property
    def name(self) -> str:
        """The plan in canonical JSON, without the seed, with the packages of the registry's other mechanisms."""
        record = {key: value for key, value in asdict(self).items() if key != "seed"}
        record["task"]["domain"] = {"kind": type(self.task.domain).__name__, **record["task"]["domain"]}
        providers = sorted({provider for name in REGISTRY if (provider := REGISTRY.provider(name)) is not None})
        return json.dumps({"plan": record, "providers": providers}, sort_keys=True, separators=(",", ":"))

    @property
    def setting(self) -> str:
        """The task in words."""
        return task_in_words(self.task)

    def prepare(self, _: Path | None) -> None:
        """Prepare nothing."""

    def run(self, _: None) -> list[dict[str, Scalar]]:
        """Return a row for each mechanism that serves the task, or one row with the reason why none does."""
        plan = plan_task(
            self.task,
            population=self.population,
            nonzero=self.nonzero,
            trust=self.trust,
            tolerance=self.tolerance,
            seed=self.seed,
            timed=False,
            on_step=silent,
        )
        rows = [_row(plan, mechanism) for mechanism in plan.feasible]
        return rows or [_row(plan, None)]


def _row(plan: Plan, mechanism: PlannedMechanism | None) -> dict[str, Scalar]:
    document = dict.fromkeys(FIELDS) if mechanism is None else mechanism.document()
    provider = None if mechanism is None else REGISTRY.provider(mechanism.name) or f"quietbits {__version__}"
    package, _, version = (provider or "").partition(" ")
    task = task_columns(plan.task, plan.population, plan.nonzero)
    if plan.task.dimension and task["norm"] == "inf":
        # A column holds values of one kind.
        task["norm"] = float("inf")
    row = {
        "mechanism": None if mechanism is None else mechanism.name,
        "options": None if mechanism is None else json.dumps(document["options"]),
        "provider": package or None,
        "provider_version": version or None,
        **{name: document[name] for name in FIELDS},
        "adjacency": plan.task.adjacency,
        "reason": None if mechanism is not None else no_mechanism_in_words(plan),
        "task": task_in_words(plan.task),
        **plan.reference_columns,
        **task,
    }
    return {name: row[name] for name in results_first(row)}
