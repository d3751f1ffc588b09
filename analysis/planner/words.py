"""A task in words."""

from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.task import Task


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
