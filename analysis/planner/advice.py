"""Advice of a plan: reasons for recommendations, and the benefit of other budgets."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...arguments import MOST_CLIENTS, check_integer
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.task import LARGEST_TARGET, Task
from ...progress import OnStep, notebook_progress, silent
from ...shown import in_figures
from ..catalogue.registry import REGISTRY
from .drop_outs import epsilon_of_clients
from .plan import MOST_WORKERS, in_processes, plan_mechanism, plan_task
from .population import draw_sample, input_scale
from .prediction import predict_error
from .record import Advice, ClientsNeeded, Plan, PlannedMechanism, Relaxation
from .references import ANSWER_ZERO
from .words import bits_in_words, comparison, percentage, power_of_ten, scale_in_words, seconds_in_words

# Shares of the inputs' scale for which advice states the number of clients that reaches this root mean squared error.
SHARES = (0.1, 0.01)
# Largest delta of a relaxation, which is also at most a tenth of 1 over the number of clients.
ANOTHER_DELTA = 1e-6
# Share of clients that drop out in the sentence on drop-outs.
DROPPED = 0.1
# Share of the error below which a relaxed constraint is worth a sentence.
WORTH = 0.99
# Relative distance from the wanted error, and number of steps, at which a search for the number of clients ends.
CLOSE, MOST_STEPS = math.log(1.05), 8
# Largest number of items for which advice on shuffled mechanisms states numbers of clients, as designs for more items take long.
MOST_SHUFFLED_ITEMS = 1000
# Largest slope of the error's logarithm that counts as a fall of the error.
FLAT = -0.05


def advise(plan: Plan, *, workers: int = 1, on_step: OnStep = notebook_progress) -> Plan:
    """Return a plan with advice for each trust model whose mechanisms take the task's inputs.

    Parameters
    ----------
    plan : Plan
        The plan.
    workers : int
        Number of processes; the advice does not depend on their number.
    on_step : callable
        Called as ``on_step(done, total, text)`` after each part of a trust model's advice.
    """
    check_integer("workers", workers, low=1, high=MOST_WORKERS)
    models = list(dict.fromkeys(mechanism.trust_model for mechanism in plan.mechanisms if _takes_inputs(mechanism, plan.task)))
    parts = [(plan, model, part) for model in models for part in (PARTS if model in plan.recommended else PARTS_WITHOUT)]
    on_step(0, len(parts), "advice")
    answers: dict[tuple[str, str], Any] = {}
    for model, part, answer in in_processes(_answer, parts, workers):
        answers[model, part] = answer
        on_step(len(answers), len(parts), f"advice for {model}: {part}")
    return replace(plan, advice=tuple(_joined(plan, model, answers) for model in models))


def _joined(plan: Plan, trust_model: str, answers: Mapping[tuple[str, str], Any]) -> Advice:
    """Return the advice for a trust model from the answers of its parts."""
    name = plan.recommended.get(trust_model)
    of_budgets = answers[trust_model, "other budgets"]
    if name is None:
        return Advice(trust_model, None, _reason_without(plan, trust_model), relaxations=of_budgets)
    planned = plan.named(name)
    zero_wins = _error(planned) >= _zero_error(plan)
    return Advice(
        trust_model,
        name,
        _reason(plan, planned),
        answers[trust_model, "drop-outs"],
        tuple(_alternatives(plan, planned)),
        (*of_budgets, *answers[trust_model, "other epsilons"]),
        answers[trust_model, "clients needed"],
        zero_wins,
        _zero_in_words(plan, planned) if zero_wins else None,
        tuple(command for command in (planned.design_command, planned.command, planned.deploy_command) if command is not None),
    )


def _answer(plan: Plan, trust_model: str, part: str) -> tuple[str, str, Any]:
    """Return a part of the advice for a trust model, with its name."""
    name = plan.recommended.get(trust_model)
    if name is None:
        return trust_model, part, PARTS_WITHOUT[part](plan, trust_model)
    return trust_model, part, PARTS[part](plan, plan.named(name))


def _takes_inputs(mechanism: PlannedMechanism, task: Task) -> bool:
    return isinstance(task.domain, REGISTRY[mechanism.name].domains)


def _error(planned: PlannedMechanism) -> float:
    return math.inf if planned.predicted_error_of_rounds is None else planned.predicted_error_of_rounds


def _zero_error(plan: Plan) -> float:
    return next(item.predicted_error_of_rounds or 0.0 for item in plan.references if item.name == ANSWER_ZERO)


def _releasable(plan: Plan, trust_model: str) -> list[PlannedMechanism]:
    return [mechanism for mechanism in plan.of(trust_model) if not mechanism.on_real_numbers]


def _reason_without(plan: Plan, trust_model: str) -> str:
    """Return why no mechanism of a trust model is recommended."""
    feasible = [mechanism.name for mechanism in plan.of(trust_model)]
    if feasible:
        return f"No releasable mechanism can serve. On real numbers, for comparisons only: {', '.join(feasible)}."
    own = {item.name for item in plan.infeasible if item.trust_model == trust_model and _takes_inputs(item, plan.task)}
    reasons = dict.fromkeys(refusal.reason for refusal in plan.refusals if own.intersection(refusal.mechanisms))
    return f"No mechanism can serve: {'; '.join(reasons)}."


def _reason(plan: Plan, planned: PlannedMechanism) -> str:
    """Return why a mechanism is recommended."""
    rivals = _releasable(plan, planned.trust_model)
    unbiased = [mechanism for mechanism in rivals if mechanism.unbiased]
    best = min(unbiased or rivals, key=_error)
    bits, share = bits_in_words(planned.bits_per_client or 0.0), percentage(plan.tolerance)
    rounds = " of the average of all rounds" if plan.task.rounds > 1 else ""
    size = f"{percentage(planned.relative_error or 0.0)} of {scale_in_words(plan.task)}"
    text = f"{planned.name} sends {bits} a client, with an error of {size}"
    if best.name == planned.name:
        text += f": the least squared error{rounds} of a releasable mechanism, and no shorter message is within {share} of it"
    else:
        text += f": the shortest releasable message within {share} of the least squared error{rounds}, which {best.name} has with "
        text += bits_in_words(best.bits_per_client or 0.0)
    return f"{text}{'' if planned.unbiased else '. No unbiased mechanism can serve: its bias remains over many rounds'}."


def _conditions(plan: Plan, planned: PlannedMechanism) -> str | None:
    """Return the conditions of a guarantee by a secure sum or a shuffler, in words."""
    task, mechanism = plan.task, planned.mechanism
    if planned.survivors is None or mechanism is None:
        return None
    if planned.trust_model == "shuffled" and isinstance(mechanism, SecureSumMechanism):
        text = "It needs a shuffler that hides which messages are of one client. If any message is lost, so is the sum."
        if not task.dropout:
            return text
    elif planned.trust_model == "shuffled":
        text = "It needs a shuffler that hides who sent which letter."
    else:
        text = "It needs a protocol that reveals only the sum: a single message hides little."
    if task.dropout:
        error = planned.predicted_error_of_survivors
        kept = f"Epsilon holds while {planned.survivors:,} of {task.clients:,} clients remain"
        more = "" if error is None else f", with {comparison(error, planned.predicted_error or error)} squared error than with all"
        beyond = "" if planned.epsilon_half is None else f" If half of these remain, epsilon is {in_figures(planned.epsilon_half)}."
        return f"{text} {kept}{more}.{beyond}"
    remaining = max(1, math.floor((1 - DROPPED) * task.clients))
    epsilon = epsilon_of_clients(mechanism, task, remaining)
    if epsilon is None:
        return f"{text} Every client must stay."
    return f"{text} If {percentage(DROPPED)} of the clients drop out, epsilon is {in_figures(epsilon)}; a planned dropout prevents that."


def _alternatives(plan: Plan, planned: PlannedMechanism) -> Iterator[str]:
    """Yield comparisons with the next mechanism in error, and the next in message length.

    Both are releasable mechanisms of the same trust model.
    """
    others = [mechanism for mechanism in _releasable(plan, planned.trust_model) if mechanism.name != planned.name]
    following = min([mechanism for mechanism in others if mechanism.unbiased] or others, key=_error, default=None)
    bits = planned.bits_per_client or 0.0
    unbiased = [mechanism for mechanism in others if mechanism.on_frontier and mechanism.unbiased]
    shorter = [mechanism for mechanism in unbiased if (mechanism.bits_per_client or 0.0) < bits]
    longest = max(shorter, key=lambda mechanism: mechanism.bits_per_client or 0.0, default=None)
    if following is not None:
        yield f"Next in error, {_compared(following, planned)}"
    if longest is not None and longest is not following:
        yield f"Next shorter message, {_compared(longest, planned)}"


def _compared(other: PlannedMechanism, planned: PlannedMechanism) -> str:
    sizes = [other.bits_per_client or 0.0, planned.bits_per_client or 0.0]
    parts = [
        bits_in_words(sizes[0]) if sizes[0] == sizes[1] else f"{bits_in_words(sizes[0])} instead of {bits_in_words(sizes[1])}",
        f"{comparison(_error(other), _error(planned))} squared error",
    ]
    if other.client_seconds and planned.client_seconds:
        parts.append(f"{seconds_in_words(other.client_seconds)} of a client's time instead of {seconds_in_words(planned.client_seconds)}")
    return f"{other.name}: {', '.join(parts)}."


def _of_budgets(plan: Plan, trust_model: str, planned: PlannedMechanism | None) -> Iterator[Relaxation]:
    """Yield the benefits of unlimited bits, and of a delta above zero, in a trust model."""
    task = plan.task
    current = planned or min((plan.named(name) for name in plan.recommended.values()), key=_error, default=None)
    if task.bits is not None or task.message_bits is not None:
        best = _best_for(plan, trust_model, replace(task, bits=None, message_bits=None))
        if best is not None:
            bits = bits_in_words(best.bits_per_client or 0.0)
            instead = f" instead of {bits_in_words(planned.bits_per_client or 0.0)}" if planned else ""
            yield from _worthwhile("bits", None, f"With {bits}{instead}", best, current, planned)
    if task.delta == 0:
        delta = min(ANOTHER_DELTA, 10.0 ** math.floor(math.log10(0.1 / task.clients)))
        best = _best_for(plan, trust_model, replace(task, delta=delta))
        if best is not None:
            yield from _worthwhile("delta", delta, f"With delta {power_of_ten(delta)} instead of 0", best, current, planned)


def _best_for(plan: Plan, trust_model: str, task: Task) -> PlannedMechanism | None:
    """Return the recommended mechanism of a trust model for another task."""
    another = plan_task(
        task,
        population=plan.population,
        nonzero=plan.nonzero,
        trust=trust_model,
        options=plan.options,
        tolerance=plan.tolerance,
        seed=plan.seed,
        timed=False,
        on_step=silent,
    )
    name = another.recommended.get(trust_model)
    return None if name is None else another.named(name)


def _worthwhile(
    constraint: str,
    value: float | None,
    start: str,
    best: PlannedMechanism,
    current: PlannedMechanism | None,
    planned: PlannedMechanism | None,
) -> Iterator[Relaxation]:
    """Yield a relaxation if it lowers the error, or makes a mechanism possible at all."""
    error = _error(best)
    if current is None:
        text = f"{start}, {best.name} can serve: its error is {percentage(best.relative_error or 0.0)}."
    elif planned is None:
        text = f"{start}, {best.name} can serve, with {comparison(error, _error(current))} squared error than {current.name}."
    elif error <= WORTH * _error(current):
        text = f"{start}, {best.name} has {comparison(error, _error(current))} squared error."
    else:
        return
    yield Relaxation(constraint, value, best.name, error, text)


def _of_epsilon(plan: Plan, planned: PlannedMechanism) -> Iterator[Relaxation]:
    """Yield relaxations to twice the epsilon, and to ten times the delta.

    Design choices stay the same.
    """
    task = plan.task
    relaxed: dict[str, tuple[float, Task]] = {}
    if 2 * task.epsilon <= LARGEST_TARGET:
        relaxed["epsilon"] = (2 * task.epsilon, replace(task, epsilon=2 * task.epsilon))
    if planned.delta and 10 * task.delta < 1:
        relaxed["delta"] = (10 * task.delta, replace(task, delta=10 * task.delta))
    for constraint, (value, another) in relaxed.items():
        best = plan_mechanism(planned.name, another, plan, _chosen(planned))
        if best.feasible:
            words = in_figures if constraint == "epsilon" else power_of_ten
            start = f"With {constraint} {words(value)} instead of {words(getattr(task, constraint))}"
            yield from _worthwhile(constraint, value, start, best, planned, planned)


def _chosen(planned: PlannedMechanism) -> Mapping[str, Any]:
    """Return the design choices of a mechanism."""
    return {name: value for name, value in planned.options if value is not None}


def _predicted_ratio(plan: Plan, planned: PlannedMechanism, clients: int) -> tuple[float, float] | None:
    """Return a mechanism's relative error for another number of clients.

    The second number is the mechanism's squared error over the squared error of the answer without messages.
    """
    task = replace(plan.task, clients=clients)
    sample = draw_sample(plan.population, task.domain, clients, plan.seed, plan.nonzero)
    if planned.trust_model == "local" and planned.mechanism is not None:
        # A local mechanism does not depend on the number of clients.
        error = predict_error(planned.mechanism, sample, task.rounds)
        single, average = error.of_population, error.of_all_rounds
    else:
        if planned.trust_model == "shuffled" and task.dimension > MOST_SHUFFLED_ITEMS:
            return None
        # The message of a sum may have to be longer for more clients.
        chosen = {} if planned.trust_model == "secure-sum" else _chosen(planned)
        another = plan_mechanism(planned.name, task, plan, chosen)
        if not another.feasible:
            return None
        single, average = another.predicted_error or 0.0, _error(another)
    return math.sqrt(single) / input_scale(task.domain), average / sample.zero_error


def _clients_for(plan: Plan, planned: PlannedMechanism, share: float) -> int | None:
    """Return the number of clients from which the relative error is at most a share."""

    def squared(clients: int) -> float | None:
        ratio = _predicted_ratio(plan, planned, clients)
        return None if ratio is None else ratio[0] ** 2

    return clients_needed(squared, plan.task.clients, (planned.relative_error or 0.0) ** 2, share**2)


def _zero_in_words(plan: Plan, planned: PlannedMechanism) -> str:
    """Return a comparison with the answer without messages, and advice."""
    zero = _zero_error(plan)
    answer = next(item.title for item in plan.references if item.name == ANSWER_ZERO).partition(":")[0].removeprefix("answer ")

    def over_zero(clients: int) -> float | None:
        ratio = _predicted_ratio(plan, planned, clients)
        return None if ratio is None else ratio[1]

    clients = clients_needed(over_zero, plan.task.clients, _error(planned) / zero, 1.0)
    text = f"Answering {answer}, without any message, has {comparison(zero, _error(planned))} squared error for this population. "
    if clients is not None:
        return text + f"{planned.name} is better from about {clients:,} clients on; a larger epsilon or another trust model helps, too."
    return text + "More clients, a larger epsilon or another trust model may change this."


def clients_needed(error: Callable[[int], float | None], clients: int, current: float, wanted: float) -> int | None:
    """Return the number of clients for which a falling error reaches a value.

    The search takes secant steps in logarithms.

    Parameters
    ----------
    error : callable
        Error for a number of clients, None where it is unknown.
    clients : int
        Number of clients from which the search starts.
    current : float
        The error for this number.
    wanted : float
        The wanted error.

    Returns
    -------
    int or None
        A number of two digits, rounded up; None if the search meets an unknown error, or an error that does not fall.

    Examples
    --------
    >>> clients_needed(lambda clients: 1 / clients, 1000, 1e-3, 1.23e-5)
    82000
    """
    slope, point, target = -1.0, (math.log(clients), math.log(current)), math.log(wanted)
    for _ in range(MOST_STEPS):
        end = point[0] + (target - point[1]) / slope
        if end <= 0:
            return 1
        if end > math.log(MOST_CLIENTS):
            return None
        if abs(target - point[1]) <= CLOSE:
            return _two_digits(math.exp(end))
        number = max(1, round(math.exp(end)))
        reached = error(number)
        if reached is None:
            return None
        following = (math.log(number), math.log(reached))
        if following[0] != point[0]:
            slope = (following[1] - point[1]) / (following[0] - point[0])
        if slope > FLAT:
            return None
        point = following
    return None


def _two_digits(number: float) -> int:
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit * (1 - 1e-9)) * unit


# Parts of the advice that take time, by name: for a recommended mechanism, and for a trust model without one.
PARTS: Mapping[str, Callable[[Plan, PlannedMechanism], Any]] = MappingProxyType(
    {
        "drop-outs": _conditions,
        "other budgets": lambda plan, planned: tuple(_of_budgets(plan, planned.trust_model, planned)),
        "other epsilons": lambda plan, planned: tuple(_of_epsilon(plan, planned)),
        "clients needed": lambda plan, planned: tuple(ClientsNeeded(share, _clients_for(plan, planned, share)) for share in SHARES),
    }
)
PARTS_WITHOUT: Mapping[str, Callable[[Plan, str], Any]] = MappingProxyType(
    {"other budgets": lambda plan, trust_model: tuple(_of_budgets(plan, trust_model, None))}
)
