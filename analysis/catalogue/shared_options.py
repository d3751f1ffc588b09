"""Options and searches that several entries share, and options typed as texts."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_choice
from ...design.contracts.calibration import SMALLEST_PURE_EPSILON
from ...design.contracts.domains import Interval
from ...design.contracts.gaussian import LARGEST_MULTIPLIER
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM
from ...design.contracts.options import NONE
from ...design.contracts.registry import Option, Values
from ...design.contracts.task import Task
from ...design.local.laplace import LARGEST_PURE_EPSILON
from ...design.transforms.kashin import LARGEST_SEED
from ...design.transforms.rotation import ROTATIONS
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.divergences.discrete_gaussian_divergence import MOST_CLIENTS

CLIENTS = Option(
    "clients", int, "Number of clients whose messages are added up.", low=1, high=MOST_CLIENTS, unit="clients", at_most="population"
)
CLIP = Option("clip", float, "Norm that vectors are clipped to.", 1.0, 1 / LARGEST_CLIP_NORM, LARGEST_CLIP_NORM, unit="vectors' units")
DIMENSION = Option("dimension", int, "Number of coordinates.", low=1, high=LARGEST_ACCOUNTED_DIMENSION, unit="coordinates")
ROTATION_SEED = Option("rotation_seed", int, "Public seed of the random rotation or frame.", 0, 0, LARGEST_SEED)
ROTATION = Option(
    "rotation", str, "Public rotation: hadamard pads to a power of two, fourier to an even number.", "hadamard", choices=ROTATIONS
)
NORM = Option("norm", str, "p of the L_p norm, 1 or more, or inf.", numeric=True)
TRUST_MODEL = Option(
    "trust_model",
    str,
    "Trust model; local by default, central for sampled Gaussian noise.",
    None,
    choices=("local", "secure-sum", "central"),
)
PURE_EPSILON = Option(
    "epsilon", float, "Pure privacy parameter of one round.", low=SMALLEST_PURE_EPSILON, high=LARGEST_PURE_EPSILON, unit="nats"
)

NOISE = Option(
    "noise_multiplier",
    float,
    "Standard deviation of the noise over the L2 sensitivity; by default the least that keeps the budget.",
    None,
    SMALLEST_MULTIPLIER,
    LARGEST_MULTIPLIER,
)
SUM_NOISE = replace(NOISE, help="Standard deviation of the sum's noise over the L2 sensitivity before rounding, in place of a budget.")
MESSAGE_NOISE = replace(NOISE, help="Standard deviation of a message's noise over the L2 sensitivity, in place of a budget.")


def tried_bits(numbers: Callable[[Task], Iterable[int]], name: str = "bits") -> Callable[[Task], list[Values]]:
    """Return candidates by bits per coordinate: allowed numbers, and the largest allowed number.

    If the task has a number of bits, a candidate without a number gets the largest number that the task allows.
    """

    def candidates(task: Task) -> list[Values]:
        most = task.most_bits
        within: list[Values] = [{name: bits} for bits in numbers(task) if most is None or bits <= most]
        return within if most is None else [{}, *within]

    return candidates


def tried_message_bits(numbers: tuple[int, ...], high: int, *, usual: bool = True) -> Callable[[Task], list[Values]]:
    """Return candidates by bits of a message, fewest bits last, with the most allowed bits.

    If an entry finds the best number by itself, the first candidate is the `usual` one, without a number.
    """

    def candidates(task: Task) -> list[Values]:
        most = task.most_message_bits
        allowed = set() if most is None or most < 1 else {min(high, math.floor(most))}
        return [*([{}] if usual else []), *({"message_bits": bits} for bits in sorted({*numbers, *allowed}, reverse=True))]

    return candidates


def sum_bits(task: Task) -> range:
    """Return bits per coordinate of a secure sum, about the least for one step per client.

    Intervals get more bits, which cost little for a single coordinate and reduce the rounding error.
    """
    of_clients = math.ceil(math.log2(task.clients + 1))
    return (
        range(of_clients + 8, of_clients + 18, 2)
        if isinstance(task.domain, Interval)
        else range(max(2, of_clients - 4), of_clients + 10, 2)
    )


def typed_options(what: str, options: Sequence[Option], texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of options from texts such as ``bits=8``.

    `what` names the owner of the options in errors; dashes in names count as underscores.
    """
    named = {option.name: option for option in options}
    values: dict[str, Any] = {}
    for text in texts:
        if not options:
            raise ValueError(f"option must be left out: {what} has none, got {text!r}")
        name, equals, value = text.partition("=")
        name = check_choice("option", name.replace("-", "_"), named)
        if not equals:
            raise ValueError(f"option must be NAME=VALUE, got {text!r}")
        kind = named[name].kind
        if value == NONE and named[name].default is None:
            values[name] = None
            continue
        try:
            values[name] = (
                {"true": True, "false": False}[value.lower()] if kind is bool else _number(value) if kind is float else kind(value)
            )
        except (KeyError, ValueError):
            raise ValueError(f"{name} must be of the type {kind.__name__}, got {value!r}") from None
    return values


def _number(text: str) -> float:
    """Return the number that a text states, as an int if the number is whole."""
    return int(text) if text.lstrip("+-").isdecimal() else float(text)
