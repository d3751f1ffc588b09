"""Parts of a figure's grid: tasks chosen by the values of their fields."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ..analysis.sweeps.protocol import SweepTask
from ..arguments import suggestion
from ..shown import listed

# Largest number of values that a message lists.
MOST_LISTED = 12


@dataclass(frozen=True)
class Selection:
    """Values of tasks' fields that a run is restricted to.

    Attributes
    ----------
    allowed : mapping of str to tuple of str
        Allowed values of each named field, as typed; an empty mapping selects all tasks.
    """

    allowed: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        """Return the selection in words."""
        return ", ".join(f"{name} {' or '.join(values)}" for name, values in self.allowed.items())

    def of(self, tasks: Sequence[SweepTask]) -> Sequence[SweepTask]:
        """Return the selected tasks of a figure; none if no task has an allowed value of some field.

        A field that is missing or None in a task does not restrict it: references belong to every part of a grid.
        """
        if not self.allowed:
            return tasks
        described = [task_fields(task) for task in tasks]
        for name, values in self.allowed.items():
            if not any(_matches(own[name], values) for own in described if own.get(name) is not None):
                return []
        return [
            task
            for task, own in zip(tasks, described, strict=True)
            if all(own.get(name) is None or _matches(own[name], values) for name, values in self.allowed.items())
        ]


def parse_selection(only: Sequence[str], tasks: Collection[Sequence[SweepTask]]) -> Selection:
    """Return the selection of conditions NAME=VALUE; the same name twice allows both values.

    Raises
    ------
    ValueError
        If a condition is no pair, no task of any figure has such a field, or none has such a value.
    """
    allowed: dict[str, tuple[str, ...]] = {}
    if not only:
        return Selection(allowed)
    values: dict[str, list[Any]] = {}
    for task in (task for own in tasks for task in own):
        for name, value in task_fields(task).items():
            values.setdefault(name, []).append(value)
    for condition in only:
        name, separator, value = condition.partition("=")
        if not (name and separator and value):
            raise ValueError(f"only must be NAME=VALUE, got {condition!r}: NAME is a field of tasks, such as epsilon=1")
        if name not in values:
            names = suggestion(name, values) or f": they are {', '.join(sorted(values))}"
            raise ValueError(f"only must name a field of the figures' tasks, got {condition!r}{names}")
        present = [given for given in values[name] if given is not None]
        if not any(_matches(given, (value,)) for given in present):
            raise ValueError(f"only must name a value that tasks have, got {condition!r}: {name} is {_in_words(present)}")
        allowed[name] = (*allowed.get(name, ()), value)
    return Selection(allowed)


def task_fields(task: object) -> dict[str, Any]:
    """Return the scalar fields of a task by name, with those of its parts; the outermost field of a name counts.

    A part with a name is also the value of its field, and pairs of names and values are fields, as the options of a mechanism are.
    """
    own: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for field in fields(task):  # type: ignore[arg-type]
        value = getattr(task, field.name)
        if not field.compare:
            continue
        if is_dataclass(value):
            parts = task_fields(value)
            if "name" in parts:
                own[field.name] = parts.pop("name")
            inner = parts | inner
        elif isinstance(value, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in value):
            inner = dict(value) | inner
        elif value is None or isinstance(value, str | int | float):
            own[field.name] = value
    return inner | own


def _matches(given: object, values: Sequence[str]) -> bool:
    return any(_equal(given, value) for value in values)


def _equal(given: object, typed: str) -> bool:
    if isinstance(given, bool | str):
        return str(given).lower() == typed.lower()
    try:
        return given == float(typed)
    except ValueError:
        return False


def _in_words(values: Sequence[Any]) -> str:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    ordered = sorted(set(numbers)) if len(numbers) == len(values) else sorted({str(value) for value in values})
    return listed([f"{value:g}" if isinstance(value, int | float) else str(value) for value in ordered], MOST_LISTED)
