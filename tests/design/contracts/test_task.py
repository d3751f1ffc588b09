"""Tasks and domains: checks at their creation, and refusals that name the mechanism."""

import math
from typing import Any

import numpy as np
import pytest

from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.errors import InfeasibleError

BALL = NormBall(3, 1.0)


def task(**changes: Any) -> Task:
    return Task(**({"domain": BALL, "clients": 10, "epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"} | changes))


def test_there_is_no_default_adjacency() -> None:
    with pytest.raises(TypeError, match="adjacency"):
        Task(BALL, 10, 1.0, 1e-5)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients must be a whole number from 1 to 9007199254740992, got 0"),
        ({"epsilon": 0.0}, "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        ({"epsilon": 1e5}, r"epsilon must be a number from 1e-05 to 10000, got 100000\.0"),
        ({"delta": -1e-9}, "delta must be a number from 0 to 1, got -1e-09"),
        ({"delta": 1.0}, "delta must be a number from 0 to below 1, got 1.0"),
        ({"adjacency": "swap"}, "adjacency must be one of replace-one, add-or-remove-one, got 'swap'"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 1000000000000, got 0"),
        ({"bits": 0}, r"bits must be a number from 1e-09 to 1e\+06, got 0"),
        ({"message_bits": 0}, r"message_bits must be a number from 1e-09 to 1e\+15, got 0"),
        (
            {"bits": 2, "message_bits": 5},
            "message_bits must be bits times the number of coordinates, 2 x 3 = 6, got 5: leave one of them out",
        ),
        ({"domain": 100}, r"domain must be an Interval, a NormBall or Categories, got 100: NormBall\(100, 2.0\) has vectors of 100"),
        ({"domain": (0.0, 1.0)}, r"domain must be an Interval, a NormBall or Categories, got \(0.0, 1.0\)$"),
        ({"domain": None}, "domain must be an Interval, a NormBall or Categories, got None$"),
    ],
)
def test_fields_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task(**changes)


def test_what_a_mechanism_is_not_for_is_infeasible_and_says_what_it_is_for() -> None:
    with pytest.raises(InfeasibleError, match=r"domain must be a ball of vectors for sqkr, got Interval\(low=0\.0, high=1\.0\)"):
        task(domain=Interval()).ball("sqkr")
    with pytest.raises(InfeasibleError, match=r"domain must be an interval of numbers for bitwise, got NormBall"):
        task().interval("bitwise")
    with pytest.raises(InfeasibleError, match="norm must be 2 or inf for sqkr, got 1"):
        task().ball("sqkr", (2.0, math.inf))
    with pytest.raises(InfeasibleError, match=r"delta must be above 0 for gaussian, got 0\.0"):
        task(delta=0.0).check_delta("gaussian")
    with pytest.raises(InfeasibleError, match="adjacency must be add-or-remove-one for x, got 'replace-one'"):
        task().check_adjacency("x", ("add-or-remove-one",))
    assert task().ball("sqkr") is BALL
    assert task().check_delta("gaussian") == 1e-5
    assert (task().dimension, task(domain=Interval()).dimension, task(domain=Categories(5)).dimension) == (3, 1, 5)
    assert task(domain=Interval(-1, 2)).interval("x") == (-1.0, 2.0)


def test_an_interval_clips_and_counts() -> None:
    interval = Interval(-1.0, 3.0)
    values = np.array([-2.0, -1.0, 0.5, 3.0, 4.0])
    assert interval.clip(values).tolist() == [-1.0, -1.0, 0.5, 3.0, 3.0]
    assert interval.clipped_count(values) == 2
    with pytest.raises(ValueError, match="values must hold finite numbers only, got nan"):
        interval.clip([math.nan])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(1.0, 1.0), "interval must be two finite numbers with low < high"),
        (lambda: Interval(0.0, math.inf), "interval must be two finite numbers with low < high"),
        (lambda: Categories(0), "size must be a whole number from 1 to 1099511627776, got 0"),
    ],
)
def test_bad_domains_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("domain", "coordinates"), [(BALL, 3), (Categories(9), 9), (Interval(), 1)])
def test_bits_of_a_coordinate_and_of_a_message_are_one_limit(domain: Any, coordinates: int) -> None:
    of_coordinates, of_message = task(domain=domain, bits=11.7), task(domain=domain, message_bits=11.7 * coordinates)
    both = task(domain=domain, bits=11.7, message_bits=11.7 * coordinates)
    for item in (of_coordinates, of_message, both):
        assert (item.most_bits, item.most_message_bits) == (pytest.approx(11.7), pytest.approx(11.7 * coordinates))
    assert (task().most_bits, task().most_message_bits) == (None, None)
