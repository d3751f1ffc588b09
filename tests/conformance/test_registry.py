"""Every mechanism of the registry passes the suite; nothing that is a mechanism is left out of it."""

import importlib
import inspect
import pkgutil

import pytest
from calibrated_mechanisms import DIMENSIONS, ball_cases, calibrated
from mechanism_cases import DELTA, EPSILON, cases_of
from mechanism_suite import SecureSumSuite

from quietbits import design
from quietbits.analysis.catalogue.registry import REGISTRY, accountables, build_mechanism, entry_named
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.registry import Target


class TestRegistry(SecureSumSuite):
    entries = tuple(REGISTRY.values())


def concrete(kind: type[Mechanism]) -> set[type[Mechanism]]:
    """Return the classes of the design that derive from a class, and can be made."""
    derived = {one for child in kind.__subclasses__() for one in concrete(child)}
    return derived if inspect.isabstract(kind) or not kind.__module__.startswith(design.__name__) else derived | {kind}


def test_every_class_of_mechanisms_has_an_entry() -> None:
    for module in pkgutil.walk_packages(design.__path__, f"{design.__name__}."):
        importlib.import_module(module.name)
    assert concrete(Mechanism) == {type(case.mechanism) for entry in REGISTRY.values() for case in cases_of(entry)}


def test_every_calibration_for_a_ball_states_all_that_its_mechanism_is_built_from() -> None:
    found = [case for entry in REGISTRY.values() for case in ball_cases(entry, DIMENSIONS[0])]
    assert len({case.entry.name for case in found}) > 7
    for case in found:
        assert calibrated(case, Target(EPSILON, DELTA, 1, case.adjacency))[1] is not None


def test_entries_have_the_names_that_they_are_registered_by() -> None:
    assert {name: entry.name for name, entry in REGISTRY.items()} == {name: name for name in REGISTRY}
    assert {name: one.name for name, one in accountables().items()} == {name: name for name in accountables()}
    assert [name for name, one in accountables().items() if name in REGISTRY and REGISTRY[name].accounting is not one] == []


@pytest.mark.parametrize("name", ["privunit-2", "Laplace", ""])
def test_an_unknown_name_is_refused_with_those_that_there_are(name: str) -> None:
    task = cases_of(REGISTRY["laplace"])[0].task()
    for call in (lambda: entry_named(name), lambda: build_mechanism(name, task)):
        with pytest.raises(ValueError, match="mechanism must be one of ") as refused:
            call()
        assert str(refused.value) == f"mechanism must be one of {', '.join(REGISTRY)}, got {name!r}"
