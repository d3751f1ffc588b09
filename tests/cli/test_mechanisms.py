"""`quietbits mechanisms` on the command line, which lists the registry."""

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from quietbits.analysis.catalogue.registry import REGISTRY

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]


def test_the_registry(answer: Answer) -> None:
    result = answer("mechanisms")["mechanisms"]
    assert [item["name"] for item in result] == list(REGISTRY)
    assert {item["name"] for item in result} >= {
        *("mvu", "cldp", "laplace", "gaussian", "skellam", "sqkr", "privunit-g", "minimal-random-coding"),
        *("privunit", "projunit", "fast-projunit", "rotating-simplex", "minimal-random-coding-plain", "poisson-private-representation"),
        *("distributed-discrete-gaussian", "distributed-skellam", "cpsgd", "poisson-binomial", "dp-rec"),
        *("bitwise-randomised-response", "generalised-randomised-response"),
    }
    for entry in result:
        assert entry["trust_model"] in ("local", "shuffled", "secure-sum", "central")
        assert entry["adjacencies"]
        assert entry["accounts"]
        for option in entry["options"]:
            assert option.keys() == {"name", "type", "help", "required", "default", "low", "high", "choices", "unit"}


@pytest.mark.parametrize("name", REGISTRY)
def test_one_mechanism(run: Run, answer: Answer, name: str) -> None:
    (result,) = answer("mechanisms", name)["mechanisms"]
    assert result["name"] == name
    shown = run("mechanisms", name).stdout
    for part in (result["trust_model"], *result["adjacencies"], *result["accounts"]):
        assert part in shown
    assert ("in its low bits" in " ".join(shown.replace("│", " ").split())) == result["on_real_numbers"]


def test_a_table_for_people(run: Run) -> None:
    shown = run("mechanisms").stdout
    assert "secure-sum" in shown
    # Names are printed whole, on one line each.
    assert set(REGISTRY) <= set(shown.split())


def test_an_unknown_name_is_an_error_with_the_closest_ones(fault: Callable[..., str]) -> None:
    message = fault("mechanisms", "privunit-2")
    assert message.startswith("mechanism must be a name that quietbits mechanisms lists, got 'privunit-2': did you mean privunit")
