"""The plan of a task: every entry of the registry, built, predicted and ranked."""

import math
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

import pandas as pd

from ...arguments import check_choice, check_integer, check_real, number_text
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.guarantee import TRUST_MODELS, Guarantee
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task, check_task
from ...errors import ConvergenceError, InfeasibleError
from ...progress import OnStep, notebook_progress
from ..catalogue.registry import REGISTRY, entry_named
from ..simulation.populations import SPARSE_POPULATIONS, check_inputs, usual_nonzero
from .bound import proven_bound
from .drop_outs import drop_outs
from .durations import PredictedDuration, predict_duration
from .population import PopulationSample, draw_sample, usual_population
from .prediction import PredictedError, predict_error
from .recommendation import marked, recommended_design, shortest_design
from .record import TOLERANCE, Plan, PlannedMechanism, TriedDesign, ranked
from .references import Reference, least_central_error, references, root_errors

# Factor by which a guarantee computed by another method may exceed the budget.
ROUNDING = 1 + 1e-9
MOST_WORKERS = 1024
T = TypeVar("T")
HELD = {NormBall: "vectors (a dimension)", Interval: "numbers (an interval)", Categories: "items (a number of categories)"}


def plan(
    task: Task,
    *,
    population: str | None = None,
    nonzero: int | None = None,
    trust: str | None = None,
    options: Values = MappingProxyType({}),
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a tidy table with the predicted error of every mechanism, or why it cannot serve.

    Arguments are those of `plan_task`, columns those of `PlannedMechanism` and of the task. Mechanisms that can serve come first, by trust
    model (local, shuffled, secure-sum, central) and predicted error.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> task = Task(NormBall(64, 2.0), clients=1000, epsilon=4.0, delta=0.0, adjacency="replace-one", bits=1)
    >>> frame = plan(task, trust="local")
    >>> bool(frame[frame["feasible"]]["bits_per_coordinate"].max() <= 1)
    True
    """
    return plan_task(
        task, population=population, nonzero=nonzero, trust=trust, options=options, tolerance=tolerance, seed=seed, timed=False
    ).to_frame()


def plan_task(
    task: Task,
    *,
    population: str | None = None,
    nonzero: int | None = None,
    trust: str | None = None,
    options: Values = MappingProxyType({}),
    tolerance: float = TOLERANCE,
    seed: int = 0,
    timed: bool = True,
    workers: int = 1,
    on_step: OnStep = notebook_progress,
) -> Plan:
    """Rank the registry's mechanisms for a task, and recommend one for each trust model.

    The function builds each entry's candidates (`Entry.candidates`) within the task's budget of bits. Among the candidates whose predicted
    errors are within the tolerance of the least, it chooses the candidate with the shortest message. The recommended mechanism of a trust
    model has the shortest message among all designs within the tolerance of the trust model's least error. It is releasable, so its
    guarantee is not of real numbers only. It is unbiased if an unbiased mechanism can serve (`TriedDesign.unbiased`). With several rounds,
    errors are those of the average of all rounds.

    Parameters
    ----------
    task : Task
        The task that mechanisms must serve.
    population : str or None
        Source of the inputs that errors are predicted for, as in `input_chunks`; None for `usual_population`.
    nonzero : int or None
        Number of coordinates other than zero of a sparse population's vector; None for the option ``sparsity``, or one coordinate in 16
        without that option.
    trust : str or None
        Trust model ``"local"``, ``"shuffled"``, ``"secure-sum"`` or ``"central"``, to which the plan is limited; None for all trust models.
    options : mapping
        Design choices by name, such as ``sparsity``, which apply to every entry that has them.
    tolerance : float
        Excess over the least error that a shorter message may have, from 0 to 1.
    seed : int
        Root seed of the sample that predictions average over.
    timed : bool
        Whether encoding and decoding are timed; durations are missing otherwise.
    workers : int
        Number of processes; results do not depend on their number.
    on_step : callable
        Called as ``on_step(done, total, name)`` after each entry.

    Raises
    ------
    ValueError
        If there is no such population, trust model or option, or the domain has no such population.
    """
    if trust is not None:
        check_choice("trust", trust, TRUST_MODELS)
    asked = _asked(task, population, nonzero, options, seed, timed, tolerance)
    names = [name for name, entry in REGISTRY.items() if trust in (None, entry.trust_model)]
    planned = dict[str, PlannedMechanism]()
    for mechanism in _all_planned(names, asked, workers):
        planned[mechanism.name] = mechanism
        on_step(len(planned), len(names), mechanism.name)
    recommended = list[str]()
    for model in dict.fromkeys(mechanism.trust_model for mechanism in planned.values()):
        best = recommended_design((mechanism for mechanism in planned.values() if mechanism.trust_model == model), asked.tolerance)
        if best is None:
            continue
        name, design, most_error = best
        recommended.append(name)
        if design.options != planned[name].options:
            planned[name] = _planned(entry_named(name), asked, most_error)
    mechanisms = marked(ranked(planned[name] for name in names), recommended)
    return Plan(task, asked.population, mechanisms, asked.references, asked.nonzero, asked.tolerance, asked.options, seed)


def plan_mechanism(name: str, task: Task, plan: Plan, options: Values = MappingProxyType({})) -> PlannedMechanism:
    """Predict a mechanism for another task, as a plan does, without durations.

    Arguments beside the task are those of the plan, with some more design choices. The mechanism is infeasible if its entry cannot serve
    the task.
    """
    every = {**plan.options, **options}
    asked = _asked(task, plan.population, plan.nonzero, every, plan.seed, timed=False, tolerance=plan.tolerance)
    return _planned(entry_named(name), asked)


def _asked(task: Task, population: str | None, nonzero: int | None, options: Values, seed: int, timed: bool, tolerance: float) -> "_Asked":
    """Check the arguments of a plan, and draw its sample."""
    population = population or usual_population(check_task(task).domain)
    check_inputs(population, task.domain, nonzero)
    tolerance = check_real("tolerance", tolerance, low=0.0, high=1.0)
    _check_options(options)
    if population in SPARSE_POPULATIONS:
        if nonzero is None and options.get("sparsity") is not None:
            nonzero = check_integer("sparsity", options["sparsity"], low=1, high=task.dimension)
        nonzero = nonzero or usual_nonzero(task.dimension)
    if population == "sparse-mean":
        # Mechanisms for sparse means are stated for the sparsity of this population.
        options = {**options, "sparsity": options.get("sparsity") or nonzero}
        if options["sparsity"] < nonzero:
            raise ValueError(f"nonzero must be at most the sparsity that errors are stated for, {options['sparsity']}, got {nonzero}")
    sample = draw_sample(population, task.domain, task.clients, seed, nonzero)
    return _Asked(task, population, nonzero, options, seed, sample, references(task, sample), timed, tolerance)


def _all_planned(names: list[str], asked: "_Asked", workers: int) -> Iterator[PlannedMechanism]:
    """Yield every entry's part of the plan as it is finished."""
    can, cannot = list[str](), list[str]()
    for name in names:
        (can if isinstance(asked.task.domain, REGISTRY[name].domains) else cannot).append(name)
    yield from (_planned_by_name(name, asked) for name in cannot)
    yield from in_processes(_planned_by_name, [(name, asked) for name in can], workers)


def in_processes(call: Callable[..., T], arguments: list[tuple[Any, ...]], workers: int) -> Iterator[T]:
    """Yield the results of calls as they finish.

    Worker processes know the script's mechanisms.
    """
    if check_integer("workers", workers, low=1, high=MOST_WORKERS) == 1:
        yield from (call(*each) for each in arguments)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        registered = REGISTRY.packed()
        yield from Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="all")(
            delayed(_called_elsewhere)(call, each, registered) for each in arguments
        )


def _called_elsewhere(call: Callable[..., T], arguments: tuple[Any, ...], registered: bytes) -> T:
    REGISTRY.adopt(registered)
    return call(*arguments)


def _planned_by_name(name: str, asked: "_Asked") -> PlannedMechanism:
    return _planned(entry_named(name), asked)


def _check_options(options: Values) -> None:
    options_by_name = {option.name: option for entry in REGISTRY.values() for option in entry.options}
    for name in options:
        check_choice("option", name, options_by_name)


@dataclass(frozen=True, eq=False)
class _Asked:
    task: Task
    population: str
    nonzero: int | None
    options: Values
    seed: int
    sample: PopulationSample
    references: tuple[Reference, ...]
    timed: bool
    tolerance: float

    @property
    def central(self) -> float | None:
        """Least error of a trusted server."""
        return least_central_error(self.references)


@dataclass(frozen=True, eq=False)
class _Design:
    """A candidate that meets the task."""

    values: Values
    mechanism: Mechanism
    guarantee: Guarantee
    error: PredictedError


def _planned(entry: Entry, asked: _Asked, most_error: float = math.inf) -> PlannedMechanism:
    refused = PlannedMechanism(entry.name, entry.title, entry.trust_model, False, asked.task.adjacency)
    try:
        try:
            _check_asked(entry, asked)
            designs = _designs(entry, asked)
        except (ValueError, ConvergenceError) as error:
            return replace(refused, reason=_reason(str(error), entry))
        return _described(entry, asked, designs, most_error)
    except Exception as error:
        if not REGISTRY.is_installed(entry.name):
            raise
        # A fault of another package must not stop the plan of the other mechanisms.
        fault = f"got {type(error).__name__}: {error}: repair or uninstall {REGISTRY.provider(entry.name)}"
        return replace(refused, reason=f"mechanism must be built without a fault, {fault}")


def _check_asked(entry: Entry, asked: _Asked) -> None:
    """Refuse a population or option that no candidate could accept."""
    task = asked.task
    if not isinstance(task.domain, entry.domains):
        held = " or ".join(HELD[domain] for domain in entry.domains)
        raise InfeasibleError(f"clients must hold {held} for {entry.name}, got {HELD[type(task.domain)]}")
    if entry.populations is not None and asked.population not in entry.populations:
        raise InfeasibleError(
            f"population must be {' or '.join(entry.populations)} for {entry.name}, whose error is stated for it, got {asked.population}"
        )
    missing = [name for name in entry.planned_with if name not in asked.options]
    if missing:
        raise InfeasibleError(
            f"{missing[0]} is missing: the error of {entry.name} is stated for it; for example --option {missing[0]}=VALUE, or "
            f"options={{{missing[0]!r}: VALUE}}"
        )


def _designs(entry: Entry, asked: _Asked) -> list[_Design]:
    """Return the candidates that meet the task, or raise an error that states why none does."""
    own = {name: value for name, value in asked.options.items() if name in {option.name for option in entry.options}}
    entry.check_bits(asked.task, own)
    candidates = list(entry.candidates(asked.task)) or [{}]
    tried = {tuple(sorted(values.items())): values for values in ({**candidate, **own} for candidate in candidates)}
    designs, faults = list[_Design](), list[Exception]()
    for values in tried.values():
        try:
            designs.append(_design(entry, asked, values))
        except (ValueError, ConvergenceError) as error:
            faults.append(error)
    if not designs:
        # The last candidate has the most resources, so its fault is reported.
        raise faults[-1]
    return designs


def _design(entry: Entry, asked: _Asked, values: Values) -> _Design:
    task = asked.task
    built = entry.design_for(task, values)
    mechanism = built.mechanism
    if task.rounds == 1 and task.sampling is None:
        guarantee = mechanism.guarantee
    else:
        guarantee = mechanism.privacy().report(task.delta, task.adjacency, task.rounds, task.sampling).guarantee
    if guarantee.adjacency != task.adjacency or not guarantee.epsilon <= task.epsilon * ROUNDING or guarantee.delta > task.delta * ROUNDING:
        needed = "an infinite epsilon, which no task has" if guarantee.epsilon == math.inf else "a larger budget"
        raise InfeasibleError(
            f"guarantee must be within epsilon = {task.epsilon:g} and delta = {task.delta:g}, got {guarantee}: it needs {needed}"
        )
    return _Design(built.values, mechanism, guarantee, predict_error(mechanism, asked.sample, task.rounds))


def _described(entry: Entry, asked: _Asked, designs: list[_Design], most_error: float) -> PlannedMechanism:
    task = asked.task
    tried = [_tried(design, task.dimension) for design in designs]
    shortest = shortest_design(tried, asked.tolerance, most_error)
    chosen = designs[tried.index(shortest)]
    per_coordinate, relative = root_errors(chosen.error.of_population, task.domain)
    bound = proven_bound(entry, task, chosen.mechanism, asked.central)
    duration = PredictedDuration()
    if asked.timed:
        duration = predict_duration(entry, task, chosen.values, chosen.mechanism, asked.sample.inputs)
    left = drop_outs(chosen.mechanism, entry.trust_model, task, asked.sample)
    # No command simulates sampled rounds.
    command = (
        None if task.sampling is not None else simulate_command(entry, task, chosen.values, asked.population, asked.seed, asked.nonzero)
    )
    return PlannedMechanism(
        name=entry.name,
        title=entry.title,
        trust_model=entry.trust_model,
        mechanism=chosen.mechanism,
        feasible=True,
        adjacency=task.adjacency,
        predicted_error=chosen.error.of_population,
        predicted_error_of_rounds=chosen.error.of_all_rounds,
        error_per_coordinate=per_coordinate,
        relative_error=relative,
        worst_error=chosen.error.worst,
        bias_bound=chosen.error.bias_bound,
        bits_per_client=chosen.mechanism.bits_per_client,
        bits_per_coordinate=chosen.mechanism.bits_per_client / task.dimension,
        epsilon=chosen.guarantee.epsilon,
        delta=chosen.guarantee.delta,
        lower_bound=bound.value,
        ratio_to_bound=None if bound.value is None else chosen.error.worst / bound.value,
        bound_reason=bound.reason,
        ratio_to_central=None if asked.central is None else chosen.error.of_population / asked.central,
        survivors=left.survivors,
        epsilon_one_fewer=left.epsilon_one_fewer,
        epsilon_half=left.epsilon_half,
        predicted_error_of_survivors=left.predicted_error,
        client_seconds=duration.client,
        server_seconds=duration.server,
        options=tuple(chosen.values.items()),
        command=command,
        design_command=None if task.sampling is not None else design_command(entry, task, chosen.values),
        deploy_command=deploy_command(entry, task, chosen.values, chosen.mechanism),
        on_real_numbers=entry.on_real_numbers,
        tried=tuple(sorted(tried, key=lambda design: design.bits_per_coordinate)),
        unbiased=shortest.unbiased,
    )


def _tried(design: _Design, dimension: int) -> TriedDesign:
    bits, error = design.mechanism.bits_per_client / dimension, design.error
    return TriedDesign(tuple(design.values.items()), bits, error.of_population, error.of_all_rounds, error.worst, error.bias_bound)


def _reason(message: str, entry: Entry) -> str:
    missing = [option.name for option in entry.options if option.required]
    if missing and "is missing" in message:
        return f"{message}; for example --option {missing[0]}=VALUE, or options={{{missing[0]!r}: VALUE}}"
    return message


def simulate_command(entry: Entry, task: Task, values: Values, population: str, seed: int = 0, nonzero: int | None = None) -> str:
    """Return the `quietbits simulate` command that builds and simulates a mechanism for a task."""
    words = [*_command("simulate", entry, task, values), *_option("population", population)]
    words += _option("nonzero", nonzero) if nonzero is not None else []
    return shlex.join([*words, *(_option("seed", seed) if seed else [])])


def design_command(entry: Entry, task: Task, values: Values) -> str:
    """Return the `quietbits calibrate` command that writes a task's mechanism to a file.

    The file has the lookup table of a mechanism with a table, and the parameters of every other mechanism.
    """
    return shlex.join([*_command("calibrate", entry, task, values), *_option("output", f"{entry.name}.json")])


def deploy_command(entry: Entry, task: Task, values: Values, mechanism: Mechanism) -> str | None:
    """Return the `quietbits deploy` command that writes a mechanism's clients, or None if there are none for other languages."""
    if entry.on_real_numbers or not entry.private or task.sampling is not None:
        return None
    try:
        mechanism.client_program()
    except InfeasibleError:
        return None
    return shlex.join([*_command("deploy", entry, task, values), *_option("output", entry.name)])


def _command(name: str, entry: Entry, task: Task, values: Values) -> list[str]:
    """Return a command's arguments for a mechanism and a task.

    They state the clients, the inputs, the budget and the design choices.
    """
    if task.sampling is not None:
        raise InfeasibleError(f"sampling must be left out in a command of one round, got {task.sampling}")
    domain = task.domain
    match domain:
        case Interval() if name == "simulate":
            inputs = ["--interval", number_text(domain.low), number_text(domain.high)]
        case Interval():
            inputs = [*_option("low", domain.low), *_option("high", domain.high)]
        case _:
            inputs = _vectors_or_items(domain)
    words = ["quietbits", name, entry.name, *_option("clients", task.clients), *inputs]
    return [*words, *_budget_options(task), *_chosen_options(entry, values)]


def _vectors_or_items(domain: NormBall | Categories) -> list[str]:
    if isinstance(domain, Categories):
        return _option("categories", domain.size)
    clip = _option("clip", domain.clip_norm) if domain.clip_norm != 1 else []
    return [*_option("dimension", domain.dimension), *_option("norm", domain.norm), *clip]


def _budget_options(task: Task) -> list[str]:
    rounds = _option("rounds", task.rounds) if task.rounds > 1 else []
    dropout = _option("dropout", task.dropout) if task.dropout else []
    return [*_option("epsilon", task.epsilon), *_option("delta", task.delta), *_option("adjacency", task.adjacency), *rounds, *dropout]


def _chosen_options(entry: Entry, values: Values) -> list[str]:
    words = list[str]()
    flags = {option.name: option.flags for option in entry.options}
    for name, value in values.items():
        if isinstance(value, bool) and flags[name]:
            words.append(flags[name].split("/")[0 if value else 1])
        elif value is not None:
            words += _option(name, value)
    return words


def _option(name: str, value: Any) -> list[str]:
    return [f"--{name.replace('_', '-')}", number_text(value) if isinstance(value, float) else str(value)]
