"""Tests of points as tasks.

Points under test: unique and stable names, settings in words, and a round trip through workers.
"""

import pickle
from dataclasses import replace

import pytest

from quietbits.analysis.training.task import TrainingTask
from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.figures.dp_rec.communication import FEDERATIONS, CommunicationPoint
from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS, ReferencePoint
from quietbits.figures.registry import FIGURES

POINT = SlackPoint(seed=3, trials=1000, scale=0.1, delta=1e-6)


def test_a_name_is_canonical_and_has_everything_but_the_seed() -> None:
    expected = '["SlackPoint",{"delta":1e-06,"probability":0.5,"scale":0.1,"sensitivity":1.0,"trials":1000}]'
    assert POINT.name == replace(POINT, seed=4).name == expected
    assert replace(POINT, trials=1001).name != POINT.name


def test_settings_are_in_words() -> None:
    assert POINT.setting == "trials 1000, scale 0.1, delta 1e-06, probability 0.5, sensitivity 1"
    assert ReferencePoint(seed=0, published=PUBLISHED_SETTINGS[0], account="Gaussian, pld").setting == "MNIST at epsilon 3, Gaussian, pld"
    assert CommunicationPoint(seed=0, federation=FEDERATIONS[2], scheme="uncompressed").setting == "FEMNIST, 1500 rounds, uncompressed"


@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
@pytest.mark.parametrize("name", FIGURES)
def test_tasks_of_a_figure_have_different_names_and_travel(name: str, quick: bool) -> None:
    tasks = FIGURES[name].tasks(7, quick)
    # Repeated trainings use successive seeds.
    seeds = sorted({task.seed for task in tasks})
    assert seeds == list(range(7, 7 + len(seeds)))
    assert len(seeds) == 1 or all(isinstance(task, TrainingTask) for task in tasks)
    assert len({(task.name, task.seed) for task in tasks}) == len(tasks) > 0
    for task in (tasks[0], tasks[-1]):
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - our own
        hash(task.design)
