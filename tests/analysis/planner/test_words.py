"""Sentences of plans round numbers as people write them."""

import pytest

from quietbits.analysis.planner.record import PlannedMechanism
from quietbits.analysis.planner.words import bound_reasons_in_words, comparison, scale_in_words, seconds_in_words
from quietbits.design.contracts.domains import Categories, Domain, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task


@pytest.mark.parametrize(
    ("domain", "scale"),
    [
        (Interval(0, 5), "half the interval"),
        (Categories(9), "all clients"),
        (NormBall(4, 2.0, 3.0), "the clip norm"),
        (NormBall(4, 1.0, 3.0), "the clip norm"),
        (NormBall(4, float("inf"), 3.0), "the largest L2 norm of an input"),
    ],
)
def test_errors_are_relative_to_a_scale_of_the_inputs(domain: Domain, scale: str) -> None:
    assert scale_in_words(Task(domain, 10, 1.0, 0.0, "replace-one")) == scale


def test_comparisons_never_turn_round() -> None:
    assert comparison(2.0, 1.0) == "2 times more"
    assert comparison(1.0, 2.0) == "2 times less"
    assert comparison(1.0, 1.05) == "4.8 % less"
    assert seconds_in_words(1.5e-3) == "1,500 µs"


def test_reasons_name_their_mechanisms_unless_all_share_one() -> None:
    rows = [
        PlannedMechanism(name, name, "local", feasible=True, adjacency=None, bound_reason=reason)
        for name, reason in zip("abc", ["no x", None, "no x"], strict=True)
    ]
    assert bound_reasons_in_words(rows) == ["a, c: no x."]
    assert bound_reasons_in_words([rows[0], rows[2]]) == ["No x."]
    assert bound_reasons_in_words([rows[1]]) == []
