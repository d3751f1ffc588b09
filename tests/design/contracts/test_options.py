"""Tests of parameters, which are fields.

Points under test: a single declaration gives the range check, the option, and the mechanism's values.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.options import (
    REQUIRED,
    budgeted,
    check_parameters,
    check_values,
    made,
    options_of,
    parameter,
    parts,
    values_of,
)


@dataclass(frozen=True)
class Wheel:
    """Record with a ball, a required and a default number, and values of a budget."""

    ball: NormBall = parts(NormBall, dimension={"high": 9, "default": 2})
    clip_share: float = parameter("Share of the clip norm.", 0.0, 1.0, name="share")
    spokes: int = parameter("Number of spokes.", 1, 64, usual=8, unit="spokes")
    delta: float = budgeted()
    colour: str = parameter("Colour.", default="red", choices=("red", "green"))
    turned: bool = parameter("Whether it turns.", default=False, flags="--turned/--still")

    def __post_init__(self) -> None:
        check_parameters(self)


def test_options_are_the_fields_in_their_order() -> None:
    options = {option.name: option for option in options_of(Wheel)}
    assert list(options) == ["dimension", "norm", "clip", "share", "spokes", "colour", "turned"]
    assert [option.kind for option in options.values()] == [int, str, float, float, int, str, bool]
    assert (options["dimension"].default, options["dimension"].high, options["norm"].default) == (2, 9, REQUIRED)
    assert (options["share"].default, options["spokes"].default, options["colour"].default) == (REQUIRED, 8, "red")
    assert (options["spokes"].unit, options["turned"].flags, options["colour"].choices) == ("spokes", "--turned/--still", ("red", "green"))


def test_a_mechanism_is_made_from_its_values_and_has_them_again() -> None:
    values = check_values("a wheel", options_of(Wheel), {"dimension": 3, "norm": "2", "share": 0.5})
    wheel = made(Wheel, {**values, "delta": 1e-5, "adjacency": "replace-one"})
    assert wheel == Wheel(NormBall(3, 2.0), 0.5, 8, 1e-5)
    assert values_of(wheel) == {"dimension": 3, "norm": 2.0, "clip": 1.0, "share": 0.5, "spokes": 8, "colour": "red", "turned": False}
    assert made(Wheel, {**values_of(wheel), "delta": 1e-5}) == wheel


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip_share": 1.5}, "clip_share must be a number from 0 to 1, got 1.5"),
        ({"spokes": 0}, "spokes must be a whole number from 1 to 64, got 0"),
        ({"colour": "blue"}, "colour must be one of red, green, got 'blue'"),
        ({"turned": 1}, "turned must be true or false, got 1"),
        ({"spokes": None}, "spokes must be a whole number from 1 to 64, got None"),
        ({"clip_share": None}, "clip_share must be a number from 0 to 1, got None"),
    ],
)
def test_a_field_out_of_range_is_refused_by_its_name(changes: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"ball": NormBall(3, 2.0), "clip_share": 0.5, "spokes": 8, "delta": 1e-5}
    with pytest.raises(ValueError, match=message):
        Wheel(**(fields | changes))


def test_a_field_takes_the_kind_of_its_annotation() -> None:
    wheel = Wheel(NormBall(3, 2.0), 1, 8, 1e-5)
    assert (type(wheel.clip_share), wheel.clip_share) == (float, 1.0)


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if entry.mechanism is not None])
def test_every_class_of_the_registry_declares_what_its_account_takes(name: str) -> None:
    kind = REGISTRY[name].mechanism
    assert kind is not None
    declared = [option.name for option in options_of(kind)]
    assert len(declared) == len(set(declared)) > 2
    assert [option.name for option in REGISTRY[name].account_options][: len(declared)] == declared
