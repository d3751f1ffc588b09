"""Commands that can be pasted: what simulates a mechanism of a plan."""

import shlex
from typing import Any

from ...arguments import number_text
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task
from ...errors import InfeasibleError


def simulate_command(entry: Entry, task: Task, values: Values, population: str, seed: int = 0, nonzero: int | None = None) -> str:
    """Return the `quietbits simulate` command with which a mechanism is built for a task and simulated."""
    if task.sampling is not None:
        raise InfeasibleError(f"sampling must be left out in a command of one round, got {task.sampling}")
    domain = task.domain
    words: list[str] = ["quietbits", "simulate", entry.name, *_option("clients", task.clients)]
    match domain:
        case Categories():
            words += _option("categories", domain.size)
        case Interval():
            words += ["--interval", number_text(domain.low), number_text(domain.high)]
        case _:
            words += [*_option("dimension", domain.dimension), *_option("norm", domain.norm)]
            words += _option("clip", domain.clip_norm) if domain.clip_norm != 1 else []
    words += [*_option("epsilon", task.epsilon), *_option("delta", task.delta), *_option("adjacency", task.adjacency)]
    words += _option("rounds", task.rounds) if task.rounds > 1 else []
    flags = {option.name: option.flags for option in entry.options}
    for name, value in values.items():
        if isinstance(value, bool) and flags[name]:
            words.append(flags[name].split("/")[0 if value else 1])
        elif value is not None:
            words += _option(name, value)
    words += _option("population", population)
    words += _option("nonzero", nonzero) if nonzero is not None else []
    return shlex.join([*words, *(_option("seed", seed) if seed else [])])


def _option(name: str, value: Any) -> list[str]:
    return [f"--{name.replace('_', '-')}", number_text(value) if isinstance(value, float) else str(value)]
