"""The numbers of a mechanism's page: errors against epsilon and bits, accounts and wire size, for one stated task."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from quietbits import NormBall, Task
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.planner.population import draw_sample, usual_population
from quietbits.analysis.planner.prediction import predict_error
from quietbits.analysis.planner.stated_error import stated_error
from quietbits.design.contracts.domains import Categories, Domain, Interval
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.registry import Entry, Values
from quietbits.errors import InfeasibleError

CLIENTS = 1000
EPSILONS = (0.5, 1.0, 2.0, 4.0)
# Accounts, message and bits are those at this epsilon.
EPSILON = 2.0
DELTA = 1e-5
# Sizes of the tasks to try: sketches are shorter than vectors of many coordinates only.
DIMENSIONS = (64, 2**10, 2**20)
ITEMS = 64
# Design choices without a default, for the page's populations.
CHOICES = {"sparsity": 8, "distinct_items": 16}
NONZERO = 8
# Message lengths to try, in shares of the usual one.
SHARES = (1 / 4, 1 / 2)


@dataclass(frozen=True)
class Setting:
    """The task of a mechanism's page, with the design choices that have no default, and the population of its errors."""

    task: Task
    choices: Values
    population: str


def page_numbers(name: str) -> dict[str, Any]:
    """Return the numbers of one mechanism's page as a JSON document."""
    entry = REGISTRY[name]
    setting = setting_of(entry)
    task = setting.task
    mechanism = entry.mechanism_for(task, setting.choices)
    report = mechanism.privacy().report(task.delta or DELTA, task.adjacency)
    stated = stated_error(entry, task, mechanism)
    return {
        "task": words(setting),
        "class": [type(mechanism).__module__, type(mechanism).__name__],
        "bits": mechanism.bits_per_client,
        "choices": dict(setting.choices),
        "accounts": [{"name": account.name, **account.document()} for account in report.accounts],
        "account_delta": task.delta or DELTA,
        "bound": stated.lower_bound,
        "bound_reason": stated.bound_reason,
        "central": stated.central_squared_error,
        "by_epsilon": list(_by_epsilon(entry, setting)) if entry.private else [],
        "by_bits": sorted(_by_bits(entry, setting, mechanism.bits_per_client), key=lambda point: point["bits"]),
    }


def setting_of(entry: Entry) -> Setting:
    """Return the first of the tasks for the entry's domain that the mechanism serves."""
    refusals = list[str]()
    for domain in _domains(entry):
        delta = 0.0 if entry.builds_pure else DELTA
        task = Task(domain, CLIENTS, EPSILON, delta, entry.adjacencies[0])
        choices = {option.name: CHOICES[option.name] for option in entry.options if option.name in CHOICES}
        try:
            entry.mechanism_for(task, choices)
        except InfeasibleError as error:
            refusals.append(str(error))
            continue
        population = usual_population(domain) if entry.populations is None else entry.populations[0]
        return Setting(task, choices, population)
    raise InfeasibleError(f"tasks must include one that {entry.name} serves, got refusals: {'; '.join(refusals)}")


def words(setting: Setting) -> str:
    """Return the task in words."""
    task, domain = setting.task, setting.task.domain
    if isinstance(domain, Categories):
        held = f"an item of a list of {domain.size}"
    elif isinstance(domain, NormBall):
        held = f"a vector of {domain.dimension:,} coordinates in the L{domain.norm:g} unit ball"
    else:
        held = "a number from 0 to 1"
    choices = "".join(f", {name.replace('_', ' ')} {value}" for name, value in setting.choices.items())
    delta = "0" if task.delta == 0 else f"{task.delta:g}"
    return f"{task.clients:,} clients, each with {held}; delta {delta}, {task.adjacency} adjacency{choices}"


def _domains(entry: Entry) -> list[Domain]:
    if entry.domains[0] is Interval:
        return [Interval()]
    if entry.domains[0] is Categories:
        return [Categories(ITEMS)]
    norm = 2.0 if entry.norms is None else entry.norms[0]
    return [NormBall(dimension, norm) for dimension in DIMENSIONS]


def _by_epsilon(entry: Entry, setting: Setting) -> Iterator[dict[str, Any]]:
    for epsilon in EPSILONS:
        task = replace(setting.task, epsilon=epsilon)
        try:
            mechanism = entry.mechanism_for(task, setting.choices)
        except InfeasibleError:
            continue
        stated = stated_error(entry, task, mechanism)
        yield {"epsilon": epsilon, "bound": stated.lower_bound, "central": stated.central_squared_error, **_errors(mechanism, setting)}


def _by_bits(entry: Entry, setting: Setting, usual_bits: float) -> Iterator[dict[str, Any]]:
    """Yield the designs that plans try, without a limit of bits and within several limits; each message length and error once."""
    seen = set[tuple[float, float]]()
    for limit in (None, *(share * usual_bits for share in SHARES)):
        task = replace(setting.task, message_bits=limit)
        for candidate in ({}, *entry.candidates(task)):
            try:
                mechanism = entry.mechanism_for(task, {**candidate, **setting.choices})
            except (InfeasibleError, ValueError):
                # A candidate need not exist within every limit: a plan leaves it out as well.
                continue
            point = _errors(mechanism, setting)
            key = (round(point["bits"], 6), float(f"{point['error']:.6g}"))
            if key not in seen:
                seen.add(key)
                yield point


def _errors(mechanism: Mechanism, setting: Setting) -> dict[str, Any]:
    task = setting.task
    nonzero = NONZERO if setting.population.startswith("sparse") else None
    sample = draw_sample(setting.population, task.domain, task.clients, 0, nonzero)
    error = predict_error(mechanism, sample)
    worst = error.worst if math.isfinite(error.worst) else None
    return {"bits": mechanism.bits_per_client, "error": error.of_population, "worst": worst}
