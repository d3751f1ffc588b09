"""Parts of grids: tasks are chosen by fields, and unknown fields and values are refused with those that there are."""

from dataclasses import dataclass

import pytest

from quietbits.figures.cpsgd.fig1 import NoisePoint
from quietbits.figures.registry import FIGURES
from quietbits.figures.selection import parse_selection, task_fields

NOISE = [
    NoisePoint(seed=0, accounting=accounting, epsilon=epsilon, delta=1e-6, scale=scale)
    for epsilon in (0.5, 1.0)
    for accounting, scale in (("analytic", None), ("exact", 0.1), ("exact", 0.01))
]


@dataclass(frozen=True)
class Named:
    name: str
    options: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Whole:
    seed: int
    mechanism: Named
    rounds: int | None = None


def chosen(*only: str) -> list[tuple[float, float | None]]:
    return [(task.epsilon, task.scale) for task in parse_selection(only, [NOISE]).of(NOISE)]


def test_a_value_selects_tasks_and_references_stay() -> None:
    assert chosen() == [(task.epsilon, task.scale) for task in NOISE]
    assert chosen("epsilon=1") == [(1.0, None), (1.0, 0.1), (1.0, 0.01)]
    # Gaussian noise has no scale, and belongs to every part.
    assert chosen("scale=0.1") == [(0.5, None), (0.5, 0.1), (1.0, None), (1.0, 0.1)]
    assert chosen("epsilon=0.50", "scale=1e-2") == [(0.5, None), (0.5, 0.01)]
    assert len(chosen("epsilon=0.5", "epsilon=1")) == len(NOISE)
    assert str(parse_selection(["epsilon=0.5", "epsilon=1", "scale=0.1"], [NOISE])) == "epsilon 0.5 or 1, scale 0.1"


def test_a_figure_without_such_tasks_has_none() -> None:
    others = [Whole(0, Named("mvu", (("bits", 3),)))]
    selection = parse_selection(["epsilon=1"], [NOISE, others])
    assert selection.of(others) == []


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("epsilom=1", "only must name a field of the figures' tasks, got 'epsilom=1': did you mean epsilon"),
        ("colour=1", "got 'colour=1': they are accounting, delta, epsilon, scale, seed"),
        ("epsilon=4", "only must name a value that tasks have, got 'epsilon=4': epsilon is 0.5 and 1"),
        ("accounting=x", "got 'accounting=x': accounting is analytic and exact"),
        ("epsilon", "only must be NAME=VALUE, got 'epsilon'"),
        ("=1", "only must be NAME=VALUE, got '=1'"),
    ],
)
def test_unknown_names_and_values_are_refused_with_those_that_there_are(only: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_selection([only], [NOISE])


def test_parts_and_options_are_fields() -> None:
    task = Whole(7, Named("mvu", (("bits", 3),)))
    assert task_fields(task) == {"seed": 7, "mechanism": "mvu", "bits": 3, "rounds": None}
    training = FIGURES["price-training"].tasks(0, True)[-1]
    own = task_fields(training)
    assert (own["mechanism"], own["rounds"], own["rows"]) == ("sketched-discrete-gaussian", 40, 15)
    # State that changes no result selects nothing.
    assert "checkpoint_every" not in own
