"""Numbers, comparisons, tasks and populations in words, for the texts of plans."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.task import Task
from ...shown import in_figures
from ..catalogue.registry import REGISTRY
from .population import input_scale

if TYPE_CHECKING:
    from .record import Plan, PlannedMechanism

# Ratio from which comparisons are in times; comparisons of smaller ratios are in per cent.
TIMES = 1.5


def percentage(share: float) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> percentage(0.12741), percentage(0.02), percentage(0.003991)
    ('12.7 %', '2 %', '0.399 %')
    """
    return f"{in_figures(_rounded(100 * share))} %"


def power_of_ten(value: float) -> str:
    """Return a small probability with an exponent.

    Examples
    --------
    >>> power_of_ten(1e-05), power_of_ten(2.5e-4)
    ('1e-5', '2.5e-4')
    """
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def bits_in_words(bits: float) -> str:
    """Return a number of bits, with its unit; fractions are shown below 100 bits.

    Examples
    --------
    >>> bits_in_words(1), bits_in_words(4.25601), bits_in_words(2814.93)
    ('1 bit', '4.26 bits', '2,815 bits')
    """
    text = in_figures(bits) if bits < 100 else f"{bits:,.0f}"
    return f"{text} bit{'' if text == '1' else 's'}"


def comparison(value: float, other: float) -> str:
    """Return the difference of two values in words, in per cent or in times.

    Examples
    --------
    >>> comparison(1.0, 5600.0), comparison(0.73, 1.0), comparison(1.06, 1.0), comparison(3.0, 1.0), comparison(1.0, 1.0001)
    ('5,600 times less', '27 % less', '6 % more', '3 times more', 'as much')
    """
    ratio = value / other
    if ratio >= TIMES:
        return f"{in_figures(_rounded(ratio))} times more"
    if ratio <= 1 / TIMES:
        return f"{in_figures(_rounded(1 / ratio))} times less"
    change = round(100 * (ratio - 1), 1 if abs(ratio - 1) < 0.1 else 0)
    return "as much" if abs(ratio - 1) < 1e-3 else f"{abs(change):g} % {'more' if change > 0 else 'less'}"


def _rounded(value: float) -> float:
    """Return a number in three significant digits."""
    return float(f"{value:.3g}")


def seconds_in_words(seconds: float) -> str:
    """Return a duration in one of four units.

    Examples
    --------
    >>> seconds_in_words(0.264), seconds_in_words(4.7e-6), seconds_in_words(93.2), seconds_in_words(900.0)
    ('264 ms', '4.7 µs', '93.2 s', '15 min')
    """
    unit, name = next((unit, name) for unit, name in ((60.0, "min"), (1.0, "s"), (1e-3, "ms"), (0.0, "µs")) if seconds >= 2 * unit)
    return f"{in_figures(_rounded(seconds / (unit or 1e-6)))} {name}"


def population_in_words(plan: "Plan") -> str:
    """Return a description of a plan's population and of the unit of errors.

    The description states the distance of the population's mean from the answer without messages.
    """
    name = plan.population
    if plan.nonzero is not None:
        name += f" ({plan.nonzero:,} of {plan.task.dimension:,} coordinates are not zero)"
    zero = plan.references[0]
    scale = scale_in_words(plan.task)
    return (
        f"Population: {name}; its mean is {percentage(zero.relative_error or 0.0)} of {scale} away from the answer without messages. "
        f"Errors are root mean squared errors of the mean of one round: relative to {scale}, and per coordinate."
    )


def recommendations_in_words(plan: "Plan") -> str:
    """Return a sentence that names the recommended mechanism of each trust model.

    The sentence notes each mechanism whose error is at least that of the answer without messages.
    """
    zero = plan.references[0]
    answer = zero.title.partition(":")[0].removeprefix("answer ")
    parts = list[str]()
    for model, name in plan.recommended.items():
        planned = plan.named(name)
        bits, error = bits_in_words(planned.bits_per_client or 0.0), percentage(planned.relative_error or 0.0)
        part = f"{model}: {name}, {bits}, error {error} of {scale_in_words(plan.task)}"
        if (planned.predicted_error_of_rounds or 0.0) >= (zero.predicted_error_of_rounds or 0.0):
            part += f" (answering {answer} has less)"
        parts.append(part)
    return f"Recommended for {'; '.join(parts)}." if parts else "No releasable mechanism can serve."


def guarantees_in_words(plan: "Plan", trust_model: str) -> str:
    """Return the guarantee that all mechanisms of a trust model keep, over all rounds."""
    epsilon = max(planned.epsilon or 0.0 for planned in plan.of(trust_model))
    deltas = sorted({planned.delta or 0.0 for planned in plan.of(trust_model)})
    rounds = "all rounds together" if plan.task.rounds > 1 else "one round"
    return f"Proven of {rounds}: epsilon at most {epsilon:.4g}, delta {' or '.join(f'{delta:g}' for delta in deltas)}."


def drop_outs_in_words(plan: "Plan", shown: "Iterable[PlannedMechanism]") -> str | None:
    """Return epsilon of joint mechanisms when more clients drop out than planned, or None without such mechanisms.

    The two numbers of a mechanism are for one client fewer than the guarantee needs, and for half as many.
    """
    joint = [planned for planned in shown if planned.survivors is not None]
    if not joint:
        return None
    numbers = [f"{planned.name} {_epsilon(planned.epsilon_one_fewer)}, {_epsilon(planned.epsilon_half)}" for planned in joint]
    survivors = joint[0].survivors or 0
    needed = f"all {survivors:,}" if survivors == plan.task.clients else f"at least {survivors:,} of {plan.task.clients:,}"
    return f"The guarantee needs {needed} clients. Epsilon if one fewer remains, and if half of them do: {'; '.join(numbers)}."


def bound_reasons_in_words(shown: "Iterable[PlannedMechanism]") -> list[str]:
    """Return why mechanisms have no lower bound, with their names if the others have a bound or another reason."""
    names: dict[str | None, list[str]] = {}
    for planned in shown:
        names.setdefault(planned.bound_reason, []).append(planned.name)
    alone = len(names) == 1
    reasons = ((reason, own) for reason, own in names.items() if reason is not None)
    return [f"{reason[0].upper()}{reason[1:]}." if alone else f"{', '.join(own)}: {reason}." for reason, own in reasons]


def _epsilon(value: float | None) -> str:
    """Return an epsilon in five digits, rounded up; the last clients may not be missed."""
    if value is None or not math.isfinite(value):
        return "unknown" if value is None else "unbounded"
    return f"{_above(value):g}"


def _above(value: float) -> float:
    """Return the least number of five digits that is at least a positive value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 4) if value > 0 else 1.0
    return math.ceil(value / unit) * unit


def scale_in_words(task: Task) -> str:
    """Return the scale of relative errors in words (`input_scale`)."""
    match task.domain:
        case Interval():
            return "half the interval"
        case Categories():
            return "all clients"
        case ball:
            return "the clip norm" if input_scale(ball) == ball.clip_norm else "the largest L2 norm of an input"


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
    parts += [f"up to {percentage(task.dropout)} of the clients may drop out"] if task.dropout else []
    return ", ".join([*parts, f"{task.adjacency} adjacency"])


def no_mechanism_in_words(plan: "Plan") -> str:
    """Return the reasons why no mechanism for the task's kind of input can serve it."""
    held = {name for name, entry in REGISTRY.items() if isinstance(plan.task.domain, entry.domains)}
    reasons = [f"{refusal.reason} ({', '.join(refusal.mechanisms)})" for refusal in plan.refusals if held.intersection(refusal.mechanisms)]
    return f"no mechanism can serve the task: {'; '.join(reasons) or 'no mechanism of that trust model takes its kind of input'}"
