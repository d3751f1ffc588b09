"""The record of a plan: error, bits, guarantee and command of each mechanism.

A mechanism that does not fit the task has a reason instead.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.guarantee import TRUST_MODELS
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.task import Task
from ...shown import GREY, Shown, results_first
from .references import ANSWER_ZERO, Reference, least_central_error

if TYPE_CHECKING:
    from ...shown import Axes


# Excess over the least error that a recommended mechanism may have for a shorter message.
TOLERANCE = 0.02
# Largest squared bias of a design that counts as unbiased, as a share of the error of the average of all rounds.
SMALL_BIAS = 0.1


@dataclass(frozen=True)
class TriedDesign:
    """A tried set of design choices, with bits per coordinate and errors.

    Fields are those of `PlannedMechanism` with the same names.
    """

    options: tuple[tuple[str, Any], ...]
    bits_per_coordinate: float
    predicted_error: float
    predicted_error_of_rounds: float
    worst_error: float
    bias_bound: float

    @property
    def unbiased(self) -> bool:
        """Whether the squared bias is at most a tenth of the error of the average of all rounds."""
        return self.bias_bound**2 <= SMALL_BIAS * self.predicted_error_of_rounds


@dataclass(frozen=True)
class CheckedError:
    """Errors of simulated rounds beside the prediction.

    Attributes
    ----------
    squared_error, standard_error : float
        Average over the rounds, and its standard error.
    predicted_error : float
        Prediction for as many clients.
    clients, repetitions : int
        Number of clients of a round (fewer than the task's if encoding takes long), and number of rounds.
    excess : float
        Average over the prediction, less 1.
    off : bool
        Whether `excess` is above 0.1 or below -0.1.
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
    """A mechanism of the registry in a plan; errors are squared L2 errors of the mean.

    Attributes
    ----------
    name, title, trust_model, adjacency : str
        The entry's description in the registry; the adjacency is the task's.
    feasible : bool
        Whether the mechanism can serve the task; otherwise `reason` states the obstacle.
    reason : str or None
        Reason why the mechanism cannot serve, and the requirement.
    rank : int or None
        Place within the trust model by predicted error, from 1.
    predicted_error : float or None
        Expected error of one round, for the plan's population.
    predicted_error_of_rounds : float or None
        Expected error of the average over all rounds.
    error_per_coordinate, relative_error : float or None
        Square root of the predicted error over the number of coordinates; square root of the predicted error over the largest L2 norm of
        an input (`input_scale`).
    worst_error : float or None
        Upper bound on the expected error of a round over the domain, with the bound on the bias.
    bias_bound : float or None
        Upper bound on the norm of the bias.
    bits_per_client, bits_per_coordinate : float or None
        Number of bits of a message (`Mechanism.bits_per_client`), and bits per coordinate of the input.
    epsilon, delta : float or None
        Proven guarantee of all rounds together.
    lower_bound, ratio_to_bound : float or None
        Proven lower bound on the worst error, and `worst_error` over it.
    bound_reason : str or None
        Reason for the absence of a bound.
    ratio_to_central : float or None
        Predicted error over the least of a trusted server.
    survivors : int or None
        Smallest number of clients with whose messages `epsilon` holds; None if it does not depend on the clients.
    epsilon_one_fewer, epsilon_half : float or None
        Epsilon if one client fewer than `survivors` remains, and if half of `survivors`, rounded up, remain.
    predicted_error_of_survivors : float or None
        Expected error of one round with the smallest number of clients of a task with drop-outs.
    client_seconds, server_seconds : float or None
        Predicted durations, as in `PredictedDuration`.
    options : tuple of (str, value)
        Chosen design choices.
    command, design_command, deploy_command : str or None
        Commands that simulate the mechanism, that design it and write it to a file, and that write its clients for other languages; None
        for a mechanism without such clients.
    tried : tuple of TriedDesign
        All tried design choices that meet the task.
    check : CheckedError or None
        Result of a simulation, if any.
    mechanism : Mechanism or None
        Mechanism that the design choices build.
    on_real_numbers : bool
        Whether the guarantee is of real numbers only (`Entry.on_real_numbers`), so that the mechanism is a reference and not for releases.
    unbiased : bool
        Whether the chosen design counts as unbiased over all rounds (`TriedDesign.unbiased`).
    on_frontier : bool
        Whether no other releasable mechanism of the trust model has a message and an error that are at most as large, and one of them
        smaller.
    recommended : bool
        Whether the plan recommends the mechanism for its trust model.
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
    error_per_coordinate: float | None = None
    relative_error: float | None = None
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
    survivors: int | None = None
    epsilon_one_fewer: float | None = None
    epsilon_half: float | None = None
    predicted_error_of_survivors: float | None = None
    client_seconds: float | None = None
    server_seconds: float | None = None
    options: tuple[tuple[str, Any], ...] = ()
    command: str | None = None
    design_command: str | None = None
    deploy_command: str | None = None
    tried: tuple[TriedDesign, ...] = ()
    check: CheckedError | None = None
    mechanism: Mechanism | None = field(default=None, compare=False, repr=False)
    on_real_numbers: bool = False
    unbiased: bool = False
    on_frontier: bool = False
    recommended: bool = False

    def document(self) -> dict[str, Any]:
        """Return the fields as JSON, without the tried designs and the mechanism itself.

        Unknown and infinite numbers are null.
        """
        document = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("tried", "check", "mechanism")}
        document["options"] = dict(self.options)
        document["check"] = None if self.check is None else asdict(self.check)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in document.items()}


@dataclass(frozen=True)
class Refusal:
    """Mechanisms that cannot serve for the same reason; its text omits their names."""

    reason: str
    mechanisms: tuple[str, ...]


@dataclass(frozen=True)
class Relaxation:
    """Effect of one relaxed constraint.

    Attributes
    ----------
    constraint : str
        ``"epsilon"``, ``"delta"`` or ``"bits"``.
    value : float or None
        The relaxed value; None for no limit of bits.
    mechanism : str
        Best mechanism under the relaxed constraint.
    predicted_error : float
        Squared error of that mechanism's average of all rounds.
    text : str
        The effect in words.
    """

    constraint: str
    value: float | None
    mechanism: str
    predicted_error: float
    text: str


@dataclass(frozen=True)
class ClientsNeeded:
    """Number of clients, in two digits, from which the relative error is at most a share.

    The number is None if the search finds none.
    """

    relative_error: float
    clients: int | None


@dataclass(frozen=True)
class Advice:
    """Advice for a trust model.

    Attributes
    ----------
    trust_model : str
        The trust model.
    mechanism : str or None
        The recommended mechanism; None if no releasable mechanism can serve.
    reason : str
        Reason for the recommendation, or for its absence.
    conditions : str or None
        Conditions of the guarantee beside the mechanism: the protocol, and the clients that must stay.
    alternatives : tuple of str
        Comparisons with the other releasable mechanism of least error, and with the longest of the shorter messages on the frontier.
    relaxations : tuple of Relaxation
        Constraints whose relaxation lowers the error.
    clients_needed : tuple of ClientsNeeded
        Numbers of clients for relative errors of 10 % and 1 %.
    zero_wins : bool
        Whether the answer without messages has at most the mechanism's error.
    zero : str or None
        Comparison with the answer without messages, and advice, if that answer has at most the mechanism's error.
    commands : tuple of str
        Commands that design and export the mechanism, and that simulate it.
    """

    trust_model: str
    mechanism: str | None
    reason: str
    conditions: str | None = None
    alternatives: tuple[str, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    clients_needed: tuple[ClientsNeeded, ...] = ()
    zero_wins: bool = False
    zero: str | None = None
    commands: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice in sentences.

        The sentences come in the order reason, answer without messages, conditions, alternatives, clients, relaxations.
        """
        needed = [
            f"{'about ' if item.clients > 1 else ''}{item.clients:,} for {100 * item.relative_error:g} %"
            for item in self.clients_needed
            if item.clients is not None
        ]
        counts = f"Clients needed for a relative error: {', '.join(needed)}." if needed else None
        every = (self.reason, self.zero, self.conditions, *self.alternatives, counts, *(relaxation.text for relaxation in self.relaxations))
        return tuple(text for text in every if text)

    def document(self) -> dict[str, Any]:
        """Return the advice as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """The registry's answer to a task.

    Attributes
    ----------
    task : Task
        The task.
    population : str
        Source of the inputs that errors are predicted for.
    mechanisms : tuple of PlannedMechanism
        Feasible mechanisms, by trust model and predicted error; then the infeasible mechanisms.
    references : tuple of Reference
        The answer zero, and the mechanisms of a trusted server, the least error first.
    nonzero : int or None
        Number of coordinates other than zero of a sparse population's vector; None for other populations.
    tolerance : float
        Excess over the least error that a recommended mechanism may have for a shorter message.
    options : mapping
        Design choices that apply to every mechanism that has them.
    seed : int
        Root seed of the sample that predictions average over.
    advice : tuple of Advice
        Advice for each trust model, which `analysis.planner.advice.advise` adds.
    """

    task: Task
    population: str
    mechanisms: tuple[PlannedMechanism, ...]
    references: tuple[Reference, ...]
    nonzero: int | None = None
    tolerance: float = TOLERANCE
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    advice: tuple[Advice, ...] = ()

    @property
    def summary(self) -> str:
        """One line with the number of mechanisms that can serve, and the recommended mechanisms."""
        names = ", ".join(f"{name} ({model})" for model, name in self.recommended.items())
        return f"{len(self.feasible)} of {len(self.mechanisms)} mechanisms can serve; recommended: {names or 'none'}"

    @property
    def recommended(self) -> dict[str, str]:
        """Name of the recommended mechanism of each trust model that has one."""
        return {mechanism.trust_model: mechanism.name for mechanism in self.feasible if mechanism.recommended}

    def draw(self, axes: "Axes") -> None:
        """Draw predicted error against bits of feasible mechanisms, with the references as lines."""
        for model in self.trust_models:
            planned = self.of(model)
            bits = [mechanism.bits_per_coordinate or math.nan for mechanism in planned]
            axes.scatter(bits, [mechanism.predicted_error or math.nan for mechanism in planned], label=model)
        for style, (name, error) in zip((":", "--"), self.reference_columns.items(), strict=True):
            if error is not None:
                axes.axhline(error, color=GREY, linestyle=style, label=name.removesuffix("_error").replace("_", " "))
        axes.set(xscale="log", yscale="log", xlabel="bits of a message over coordinates", ylabel="predicted squared L2 error of the mean")
        axes.legend()

    @property
    def feasible(self) -> tuple[PlannedMechanism, ...]:
        """Mechanisms that can serve the task."""
        return tuple(mechanism for mechanism in self.mechanisms if mechanism.feasible)

    @property
    def infeasible(self) -> tuple[PlannedMechanism, ...]:
        """Mechanisms that cannot serve the task."""
        return tuple(mechanism for mechanism in self.mechanisms if not mechanism.feasible)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Reasons why mechanisms cannot serve, each listed once."""
        names = dict[str, list[str]]()
        for mechanism in self.infeasible:
            names.setdefault((mechanism.reason or "").replace(f" for {mechanism.name},", ","), []).append(mechanism.name)
        return tuple(Refusal(reason, tuple(refused)) for reason, refused in names.items())

    @property
    def trust_models(self) -> tuple[str, ...]:
        """Trust models in which a mechanism can serve, in order."""
        return tuple(dict.fromkeys(mechanism.trust_model for mechanism in self.feasible))

    @property
    def best(self) -> tuple[PlannedMechanism, ...]:
        """Mechanisms that can serve, by predicted error, over all trust models."""
        return tuple(sorted(self.feasible, key=_error))

    @property
    def central_error(self) -> float | None:
        """Least error of a trusted server."""
        return least_central_error(self.references)

    @property
    def reference_columns(self) -> dict[str, float | None]:
        """Errors of the answer zero and of the best trusted server, as columns of tables."""
        zero = next(reference.predicted_error for reference in self.references if reference.name == ANSWER_ZERO)
        return {"answer_zero_error": zero, "central_error": self.central_error}

    def of(self, trust_model: str) -> tuple[PlannedMechanism, ...]:
        """Return the mechanisms that can serve in a trust model, least errors first."""
        return tuple(mechanism for mechanism in self.feasible if mechanism.trust_model == trust_model)

    def frontier(self, trust_model: str) -> tuple[PlannedMechanism, ...]:
        """Return the notable mechanisms of a trust model.

        These are the mechanisms that are recommended, checked by simulation, or on the frontier, or all mechanisms if there are none of
        these.
        """
        every = self.of(trust_model)
        return tuple(item for item in every if item.on_frontier or item.recommended or item.check) or every

    def named(self, name: str) -> PlannedMechanism:
        """Return a mechanism of the plan by its name."""
        return next(mechanism for mechanism in self.mechanisms if mechanism.name == name)

    def checked(self, checks: dict[str, CheckedError]) -> "Plan":
        """Return the plan with simulated errors of some mechanisms, by name."""
        mechanisms = (replace(mechanism, check=checks.get(mechanism.name, mechanism.check)) for mechanism in self.mechanisms)
        return replace(self, mechanisms=tuple(mechanisms))

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy table with a row per mechanism: results first, then references and the task."""
        task = task_columns(self.task, self.population, self.nonzero)
        rows = []
        for mechanism in self.mechanisms:
            document = mechanism.document()
            check = document.pop("check")
            measured = {name: None if check is None else check[name] for name in ("squared_error", "standard_error", "excess", "off")}
            document["options"] = json.dumps(document["options"])
            rows.append(document | {f"check_{name}": value for name, value in measured.items()} | self.reference_columns | task)
        frame = pd.DataFrame(rows)
        frame = frame[results_first(map(str, frame))]
        numbers = [name for name in frame if frame[name].isna().all()]
        return frame.astype(dict.fromkeys([name for name in numbers if name not in TEXTS], float))

    def designs_frame(self) -> pd.DataFrame:
        """Return a tidy table with a row per tried design that meets the task."""
        task = task_columns(self.task, self.population, self.nonzero) | {"adjacency": self.task.adjacency}
        rows = [
            {
                "trust_model": mechanism.trust_model,
                "mechanism": mechanism.name,
                "options": json.dumps(dict(design.options)),
                "bits_per_coordinate": design.bits_per_coordinate,
                "predicted_error": design.predicted_error,
                "predicted_error_of_rounds": design.predicted_error_of_rounds,
                "worst_error": design.worst_error,
                "chosen": design.options == mechanism.options,
                "recommended": mechanism.recommended and design.options == mechanism.options,
                "on_real_numbers": mechanism.on_real_numbers,
                "lower_bound": mechanism.lower_bound,
                **self.reference_columns,
                **task,
            }
            for mechanism in self.feasible
            for design in mechanism.tried
        ]
        return pd.DataFrame(rows)

    def document(self) -> dict[str, Any]:
        """Return the plan as a JSON document."""
        return {
            "task": task_columns(self.task, self.population, self.nonzero),
            "tolerance": self.tolerance,
            "recommended": self.recommended,
            "advice": [advice.document() for advice in self.advice],
            "mechanisms": [mechanism.document() for mechanism in self.mechanisms],
            "references": [reference.document() for reference in self.references],
        }


# Text columns whose values may be missing in all rows.
TEXTS = ("reason", "bound_reason", "command", "design_command", "deploy_command", "check_off", "sampling")


def ranked(mechanisms: Iterable[PlannedMechanism]) -> tuple[PlannedMechanism, ...]:
    """Return mechanisms in the order of a plan, with their ranks."""
    every = list(mechanisms)
    models = dict.fromkeys([*TRUST_MODELS, *(mechanism.trust_model for mechanism in every)])
    ordered: list[PlannedMechanism] = []
    for model in models:
        within = sorted((mechanism for mechanism in every if mechanism.feasible and mechanism.trust_model == model), key=_error)
        ordered += [replace(mechanism, rank=place) for place, mechanism in enumerate(within, start=1)]
    return (*ordered, *(mechanism for model in models for mechanism in every if not mechanism.feasible and mechanism.trust_model == model))


def _error(mechanism: PlannedMechanism) -> float:
    return math.inf if mechanism.predicted_error is None else mechanism.predicted_error


def task_columns(task: Task, population: str, nonzero: int | None) -> dict[str, Any]:
    """Return a task and its population as columns of a plan's tables."""
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
        "dropout": task.dropout,
    }


def _json(norm: float) -> float | str:
    return "inf" if math.isinf(norm) else norm
