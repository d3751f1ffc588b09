"""What a plan says: each mechanism with its error, bits, guarantee and command, or the reason why it cannot serve."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import TRUST_MODELS
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.task import Task
from ...shown import GREY, Shown
from .references import CENTRAL_GAUSSIAN, Reference

if TYPE_CHECKING:
    from ...shown import Axes


@dataclass(frozen=True)
class TriedDesign:
    """Design choices that were tried: bits of a message over the number of coordinates, and the predicted error."""

    options: tuple[tuple[str, Any], ...]
    bits_per_coordinate: float
    predicted_error: float
    worst_error: float


@dataclass(frozen=True)
class CheckedError:
    """What simulated rounds were off by, beside the prediction.

    Attributes
    ----------
    squared_error, standard_error : float
        Average over the rounds, and its standard error.
    predicted_error : float
        Prediction for as many clients.
    clients, repetitions : int
        Number of clients of a round (fewer than the task's where encoding takes long), and of rounds.
    excess : float
        Average over the prediction, less 1.
    off : bool
        Whether that is more than 0.1 in size.
    """

    squared_error: float
    standard_error: float
    predicted_error: float
    clients: int
    repetitions: int
    excess: float
    off: bool


@dataclass(frozen=True)
class PlannedMechanism:
    """A mechanism of the registry in a plan; squared L2 errors of the mean, in squared units of the inputs.

    Attributes
    ----------
    name, title, trust_model, adjacency : str
        From the registry; the adjacency is the task's.
    feasible : bool
        Whether it can serve the task; if not, only `reason` has more.
    reason : str or None
        Why not, and what is needed.
    rank : int or None
        Place within the trust model by predicted error, from 1.
    predicted_error : float or None
        Expected error of one round, for the plan's population.
    predicted_error_of_rounds : float or None
        That of the average over all rounds.
    worst_error : float or None
        Largest expected error of one round over the domain, with the bound on the bias; errs upward.
    bias_bound : float or None
        Bound on the norm of the bias; errs upward.
    bits_per_client, bits_per_coordinate : float or None
        Of the largest message, and that over the number of the input's coordinates.
    epsilon, delta : float or None
        What is proven of all rounds together.
    lower_bound, ratio_to_bound : float or None
        Proven bound on the worst error (errs downward), and `worst_error` over it.
    bound_reason : str or None
        Why there is no bound.
    ratio_to_central : float or None
        Predicted error over that of the central Gaussian.
    client_seconds, server_seconds : float or None
        Predicted durations, as in `PredictedDuration`.
    options : tuple of (str, value)
        The design choices that were made.
    command : str or None
        Simulates it.
    tried : tuple of TriedDesign
        All design choices that keep to the task.
    check : CheckedError or None
        What a simulation said, if there was one.
    mechanism : Mechanism or None
        What the design choices build.
    on_real_numbers : bool
        Whether the guarantee is of real numbers only, as `Entry.on_real_numbers` says.
    """

    name: str
    title: str
    trust_model: str
    feasible: bool
    adjacency: str
    reason: str | None = None
    rank: int | None = None
    predicted_error: float | None = None
    predicted_error_of_rounds: float | None = None
    worst_error: float | None = None
    bias_bound: float | None = None
    bits_per_client: float | None = None
    bits_per_coordinate: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    lower_bound: float | None = None
    ratio_to_bound: float | None = None
    bound_reason: str | None = None
    ratio_to_central: float | None = None
    client_seconds: float | None = None
    server_seconds: float | None = None
    options: tuple[tuple[str, Any], ...] = ()
    command: str | None = None
    tried: tuple[TriedDesign, ...] = ()
    check: CheckedError | None = None
    mechanism: Mechanism | None = field(default=None, compare=False, repr=False)
    on_real_numbers: bool = False

    def document(self) -> dict[str, Any]:
        """Return everything except for what was tried, as JSON holds it; unknown and infinite numbers are null."""
        document = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("tried", "check", "mechanism")}
        document["options"] = dict(self.options)
        document["check"] = None if self.check is None else asdict(self.check)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in document.items()}


@dataclass(frozen=True)
class Refusal:
    """Mechanisms that cannot serve for the same reason, which leaves their names out."""

    reason: str
    mechanisms: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """The registry's answer to a task.

    Attributes
    ----------
    task : Task
        What is wanted.
    population : str
        Source of the inputs that errors are predicted for.
    mechanisms : tuple of PlannedMechanism
        Those that can serve, by trust model and predicted error; then the others.
    references : tuple of Reference
        The answer zero, and a trusted server's Gaussian noise.
    nonzero : int or None
        Coordinates of a vector of a sparse population that are not zero; None for the other populations.
    """

    task: Task
    population: str
    mechanisms: tuple[PlannedMechanism, ...]
    references: tuple[Reference, ...]
    nonzero: int | None = None

    @property
    def line(self) -> str:
        """How many mechanisms can serve, and the best one of each trust model."""
        first = ", ".join(f"{model} {self.of(model)[0].name}" for model in self.trust_models)
        return f"{len(self.feasible)} of {len(self.mechanisms)} mechanisms can serve; the least error: {first or 'none'}"

    def draw(self, axes: "Axes") -> None:
        """Draw predicted error against bits for those that can serve, by trust model, with the references as lines."""
        for model in self.trust_models:
            found = self.of(model)
            bits = [one.bits_per_coordinate or math.nan for one in found]
            axes.scatter(bits, [one.predicted_error or math.nan for one in found], label=model)
        for style, one in zip(("--", ":"), self.references, strict=True):
            if one.predicted_error is not None:
                axes.axhline(one.predicted_error, color=GREY, linestyle=style, label=one.name)
        axes.set(xscale="log", yscale="log", xlabel="bits of a message over coordinates", ylabel="predicted squared L2 error of the mean")
        axes.legend()

    @property
    def feasible(self) -> tuple[PlannedMechanism, ...]:
        """Those that can serve."""
        return tuple(one for one in self.mechanisms if one.feasible)

    @property
    def infeasible(self) -> tuple[PlannedMechanism, ...]:
        """Those that cannot."""
        return tuple(one for one in self.mechanisms if not one.feasible)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Reasons of those that cannot serve, each once."""
        names = dict[str, list[str]]()
        for one in self.infeasible:
            names.setdefault((one.reason or "").replace(f" for {one.name},", ","), []).append(one.name)
        return tuple(Refusal(reason, tuple(found)) for reason, found in names.items())

    @property
    def trust_models(self) -> tuple[str, ...]:
        """Trust models in which a mechanism can serve, in order."""
        return tuple(dict.fromkeys(one.trust_model for one in self.feasible))

    @property
    def best(self) -> tuple[PlannedMechanism, ...]:
        """Those that can serve, by predicted error, in whatever trust model."""
        return tuple(sorted(self.feasible, key=_error))

    @property
    def central_error(self) -> float | None:
        """Error of the central Gaussian."""
        return next(one.predicted_error for one in self.references if one.name == CENTRAL_GAUSSIAN)

    def of(self, trust_model: str) -> tuple[PlannedMechanism, ...]:
        """Return those that can serve in a trust model, the least error first."""
        return tuple(one for one in self.feasible if one.trust_model == trust_model)

    def checked(self, checks: dict[str, CheckedError]) -> "Plan":
        """Return the plan with what simulations of some mechanisms said, by name."""
        return replace(self, mechanisms=tuple(replace(one, check=checks.get(one.name, one.check)) for one in self.mechanisms))

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy table: one row per mechanism, with the task, the references' errors and, after `check_plan`, measured ones."""
        task = _task_columns(self.task, self.population, self.nonzero)
        errors = {f"{one.name.replace('-', '_')}_error": one.predicted_error for one in self.references}
        rows = []
        for one in self.mechanisms:
            document = one.document()
            check = document.pop("check")
            measured = {name: None if check is None else check[name] for name in ("squared_error", "standard_error", "excess", "off")}
            document["options"] = json.dumps(document["options"])
            rows.append(document | {f"check_{name}": value for name, value in measured.items()} | errors | task)
        frame = pd.DataFrame(rows)
        numbers = [name for name in frame if frame[name].isna().all()]
        return frame.astype(dict.fromkeys([name for name in numbers if name not in TEXTS], float))

    def designs_frame(self) -> pd.DataFrame:
        """Return a tidy table for a picture of error against bits: one row per design that was tried and keeps to the task."""
        task = _task_columns(self.task, self.population, self.nonzero) | {"adjacency": self.task.adjacency}
        errors = {f"{one.name.replace('-', '_')}_error": one.predicted_error for one in self.references}
        rows = [
            {
                "trust_model": one.trust_model,
                "mechanism": one.name,
                "options": json.dumps(dict(design.options)),
                "bits_per_coordinate": design.bits_per_coordinate,
                "predicted_error": design.predicted_error,
                "worst_error": design.worst_error,
                "chosen": design.options == one.options,
                "lower_bound": one.lower_bound,
                **errors,
                **task,
            }
            for one in self.feasible
            for design in one.tried
        ]
        return pd.DataFrame(rows)

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON holds it: `mechanisms`, `references`, and what was asked."""
        return {
            "task": _task_columns(self.task, self.population, self.nonzero),
            "mechanisms": [one.document() for one in self.mechanisms],
            "references": [one.document() for one in self.references],
        }


# Columns of text that may be missing in all rows.
TEXTS = ("reason", "bound_reason", "command", "check_off", "sampling")


def ranked(mechanisms: Iterable[PlannedMechanism]) -> tuple[PlannedMechanism, ...]:
    """Return mechanisms in the order of a plan, with their ranks."""
    every = list(mechanisms)
    models = dict.fromkeys([*TRUST_MODELS, *(one.trust_model for one in every)])
    found: list[PlannedMechanism] = []
    for model in models:
        within = sorted((one for one in every if one.feasible and one.trust_model == model), key=_error)
        found += [replace(one, rank=place) for place, one in enumerate(within, start=1)]
    return (*found, *(one for model in models for one in every if not one.feasible and one.trust_model == model))


def _error(one: PlannedMechanism) -> float:
    return math.inf if one.predicted_error is None else one.predicted_error


def _task_columns(task: Task, population: str, nonzero: int | None) -> dict[str, Any]:
    domain = task.domain
    numbers, items = isinstance(domain, Interval), isinstance(domain, Categories)
    vectors = not (numbers or items)
    return {
        "population": population,
        "nonzero": nonzero,
        "clients": task.clients,
        "dimension": domain.dimension if vectors else None,
        "norm": _json(domain.norm) if not isinstance(domain, Interval | Categories) else None,
        "clip_norm": domain.clip_norm if not isinstance(domain, Interval | Categories) else None,
        "categories": domain.size if isinstance(domain, Categories) else None,
        "low": domain.low if isinstance(domain, Interval) else None,
        "high": domain.high if isinstance(domain, Interval) else None,
        "task_epsilon": task.epsilon,
        "task_delta": task.delta,
        "rounds": task.rounds,
        "task_bits": task.bits,
        "task_message_bits": task.message_bits,
        "sampling": None if task.sampling is None else str(task.sampling),
    }


def _json(norm: float) -> float | str:
    return "inf" if math.isinf(norm) else norm


def population_in_words(population: str, domain: Domain, nonzero: int | None) -> str:
    """Return the population's name, and for sparse vectors how many coordinates are not zero."""
    return population if nonzero is None else f"{population} ({nonzero:,} of {domain.dimension:,} coordinates are not zero)"


def task_in_words(task: Task) -> str:
    """Return a task in one line.

    Examples
    --------
    >>> task_in_words(Task(Interval(0.0, 5.0), 100, 1.0, 0.0, "replace-one"))
    '100 clients, numbers from 0 to 5, epsilon = 1, replace-one adjacency'
    """
    match task.domain:
        case Interval(low, high):
            held = f"numbers from {low:g} to {high:g}"
        case Categories(size):
            held = f"one of {size:,} items"
        case ball:
            held = f"vectors of {ball.dimension:,} coordinates, L{ball.norm:g} norm at most {ball.clip_norm:g}"
    parts = [f"{task.clients:,} clients", held, f"epsilon = {task.epsilon:g}"]
    parts += [f"delta = {task.delta:g}"] if task.delta else []
    parts += [f"{task.rounds} rounds"] if task.rounds > 1 else []
    limits = ((task.bits, "a coordinate"), (task.message_bits if task.bits is None else None, "a message"))
    parts += [f"at most {bits:g} bit{'s' if bits != 1 else ''} {of}" for bits, of in limits if bits is not None]
    parts += [str(task.sampling)] if task.sampling is not None else []
    return ", ".join([*parts, f"{task.adjacency} adjacency"])
