"""Each name for a number of bits has one meaning.

The names are those of the registry, trainings, commands, and public fields and parameters.
"""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from built_in_trials import cases

import quietbits
from quietbits.analysis.catalogue.accounts import account_options, calibration_options
from quietbits.analysis.catalogue.registry import REGISTRY, accounted_names
from quietbits.analysis.conformance.mechanism_cases import Case
from quietbits.analysis.training.baselines import baselines
from quietbits.cli.main import app
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.mechanism import SecureSumMechanism
from quietbits.design.contracts.options import Option

# Meaning of each typed name for bits, by a word that its help contains.
NAMES = {
    "bits": "coordinate",
    "message_bits": "message",
    "bits_in": "grid",
    "bits_out": "letter",
    "group_bits": "group",
    "index_bits": "indices",
    "letter_bits": "letters",
    "seed_bits": "seeds",
}
# These numbers are computed from a mechanism, and never typed.
COMPUTED = {"bits_per_client", "bits_per_coordinate"}
BUILT = [case for case in cases(REGISTRY.values()) if any(option.name in ("bits", "message_bits") for option in case.entry.options)]


def all_options() -> Iterator[tuple[str, Option]]:
    for entry in (*REGISTRY.values(), *baselines()):
        yield from ((entry.name, option) for option in entry.options)
    for name in accounted_names():
        yield from ((name, option) for option in (*account_options(name), *calibration_options(name)))


def commands(command: Any, path: tuple[str, ...] = ("quietbits",)) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    context = type("Context", (), {"command_path": " ".join(path), "resilient_parsing": False})()
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(context, name), (*path, name))


def test_every_number_of_bits_has_one_of_the_names_and_says_which() -> None:
    for name, option in all_options():
        if option.unit == "bits" or "bits" in option.name:
            assert option.name in NAMES, name
            assert NAMES[option.name] in option.help, (name, option.help)
            assert option.unit == "bits", name


def test_every_command_has_these_names_alone() -> None:
    result = set()
    for path, command in commands(typer.main.get_command(app)):
        typed = {parameter.name for parameter in command.params if "bits" in parameter.name}
        assert typed <= NAMES.keys(), path
        result |= {(path.split()[1], name) for name in typed if len(path.split()) > 1}
        if path == "quietbits plan":
            assert typed == {"bits", "message_bits"}
    everywhere = {"plan", "account", "calibrate", "simulate", "audit", "deploy"}
    assert {command for command, name in result if name == "bits"} == everywhere
    assert {command for command, name in result if name == "message_bits"} == everywhere


def test_fields_and_parameters_of_the_public_face_have_these_names_alone() -> None:
    for name in dir(quietbits):
        value = getattr(quietbits, name)
        typed: list[str] = []
        if inspect.isfunction(value):
            typed = list(inspect.signature(value).parameters)
        elif inspect.isclass(value) and dataclasses.is_dataclass(value):
            typed = [field.name for field in dataclasses.fields(value)]
        assert {item for item in typed if "bits" in item} <= NAMES.keys() | COMPUTED, name


@pytest.mark.parametrize("case", BUILT, ids=str)
def test_messages_are_as_long_as_the_bits_say(case: Case) -> None:
    option = next(option for option in case.entry.options if option.name in ("bits", "message_bits"))
    typed = case.options.get(option.name, 400.0 if option.kind is float else option.default or 2)
    mechanism = case.built(options={option.name: typed})
    if option.name == "message_bits":
        assert mechanism.bits_per_client <= typed
        assert option.kind is float or mechanism.bits_per_client == typed
        return
    if isinstance(case.domain, Categories) and case.entry.trust_model == "central":
        # A trusted server gets the item's number.
        assert mechanism.bits_per_client == 3
        return
    # Poisson-binomial sums of few clients need fewer bits than the option allows, but more than half of them.
    sent = mechanism.padded_dimension if isinstance(mechanism, SecureSumMechanism) else mechanism.domain.dimension
    assert mechanism.bits_per_client <= typed * sent
    # Items are whole steps, and their shares need no more bits.
    few = isinstance(case.domain, Categories) and case.entry.trust_model == "shuffled"
    assert few or mechanism.bits_per_client > typed / 2 * sent
