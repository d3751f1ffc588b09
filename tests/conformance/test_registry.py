"""Every mechanism of the registry passes the conformance suite, and is listed."""

import importlib
import inspect
import pkgutil

import pytest
from built_in_trials import cases_of, trial_of

from quietbits import design
from quietbits.analysis.catalogue.registry import BUILT_IN, NOISE, REGISTRY, build_mechanism, entry_named
from quietbits.analysis.conformance.mechanism_cases import Trial
from quietbits.analysis.conformance.mechanism_suite import SecureSumSuite
from quietbits.design.contracts.delegated import Delegated, DelegatedItems, DelegatedNumbers
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.registry import Entry
from quietbits.design.secure_sum.sketched_sum import MedianSum


class TestRegistry(SecureSumSuite):
    entries = tuple(BUILT_IN.values())

    def trial_of(self, entry: Entry) -> Trial:
        return trial_of(entry)


def concrete(kind: type[Mechanism]) -> set[type[Mechanism]]:
    """Return the concrete classes of the design that derive from a class."""
    derived = {item for child in kind.__subclasses__() for item in concrete(child)}
    return derived if inspect.isabstract(kind) or not kind.__module__.startswith(design.__name__) else derived | {kind}


def test_every_class_of_mechanisms_has_an_entry() -> None:
    for module in pkgutil.walk_packages(design.__path__, f"{design.__name__}."):
        importlib.import_module(module.name)
    mechanisms = [case.mechanism for entry in REGISTRY.values() for case in cases_of(entry)]
    # Some mechanisms send the messages of another mechanism, which has no entry of its own; two classes are the parents of these.
    inner = {type(mechanism.inner) for mechanism in mechanisms if isinstance(mechanism, Delegated)}
    # Entries of sketches make the median decoder only if it is asked for.
    assert concrete(Mechanism) == {*map(type, mechanisms), *inner, DelegatedNumbers, DelegatedItems, MedianSum}


def test_entries_have_the_names_that_they_are_registered_by() -> None:
    assert {name: entry.name for name, entry in REGISTRY.items()} == {name: name for name in REGISTRY}
    assert {name: noise.name for name, noise in NOISE.items()} == {name: name for name in NOISE}
    assert set(NOISE).isdisjoint(REGISTRY)


@pytest.mark.parametrize("name", ["privunit-2", "Laplace", ""])
def test_an_unknown_name_is_refused_with_the_closest(name: str) -> None:
    task = cases_of(REGISTRY["laplace"])[0].task()
    for call in (lambda: entry_named(name), lambda: build_mechanism(name, task)):
        with pytest.raises(ValueError, match="mechanism must be a name that ") as refused:
            call()
        close = {"privunit-2": "privunit", "Laplace": "laplace"}
        message = f"mechanism must be a name that quietbits mechanisms lists, got {name!r}"
        assert str(refused.value).startswith(message + (f": did you mean {close[name]}" if name else ""))
