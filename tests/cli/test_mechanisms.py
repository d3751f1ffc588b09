"""`quietbits mechanisms`: the registry as it is typed."""

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from quietbits.analysis.catalogue.registry import REGISTRY

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]


def test_the_registry(answer: Answer) -> None:
    found = answer("mechanisms")["mechanisms"]
    assert [one["name"] for one in found] == list(REGISTRY)
    assert {one["name"] for one in found} >= {
        *("mvu", "cldp", "laplace", "gaussian", "skellam", "sqkr", "privunit-g", "minimal-random-coding"),
        *("privunit", "projunit", "fast-projunit", "rotating-simplex", "minimal-random-coding-plain", "poisson-private-representation"),
        *("distributed-discrete-gaussian", "distributed-skellam", "cpsgd", "poisson-binomial", "dp-rec"),
        *("bitwise-randomised-response", "generalised-randomised-response"),
    }
    for one in found:
        assert one["trust_model"] in ("local", "shuffled", "secure-sum", "central")
        assert one["adjacencies"]
        assert one["accounts"]
        for option in one["options"]:
            assert option.keys() == {"name", "type", "help", "required", "default", "low", "high", "choices", "unit"}


@pytest.mark.parametrize("name", REGISTRY)
def test_one_mechanism(run: Run, answer: Answer, name: str) -> None:
    (found,) = answer("mechanisms", name)["mechanisms"]
    assert found["name"] == name
    shown = run("mechanisms", name).stdout
    for part in (found["trust_model"], *found["adjacencies"], *found["accounts"]):
        assert part in shown
    assert ("in its low bits" in " ".join(shown.replace("│", " ").split())) == found["on_real_numbers"]


def test_a_table_for_people(run: Run) -> None:
    shown = run("mechanisms").stdout
    assert "secure-sum" in shown
    # As they are to be typed, on one line each.
    assert set(REGISTRY) <= set(shown.split())


def test_an_unknown_name_is_an_error_with_the_closest_ones(fault: Callable[..., str]) -> None:
    message = fault("mechanisms", "privunit-2")
    assert message.startswith("mechanism must be a name that quietbits mechanisms lists, got 'privunit-2': did you mean privunit")
