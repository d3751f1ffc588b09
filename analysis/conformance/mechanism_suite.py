"""Tests of properties of every mechanism in the registry."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from ...design.contracts.error import Error
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.registry import Entry
from ...design.secure_sum.aggregation import SecureSum
from ...solvers.accounting.sampling import FixedSizeSampling
from ..catalogue.accounts import account
from ..catalogue.registry import entry_named
from .mechanism_cases import CLIENTS, DELTA, EPSILON, USUAL, Case, Trial, cases_of, one_adjacency, one_domain, reason
from .message_suite import MessageSuite
from .privacy_suite import PrivacySuite


def _none(*_: object) -> list[Case]:
    return []


def _private(cases: Callable[[Entry, Trial], list[Case]]) -> Callable[[Entry, Trial], list[Case]]:
    return lambda entry, trial: (cases if entry.private else _none)(entry, trial)


# Test arguments select the cases of a mechanism.
CASES: Mapping[str, Callable[[Entry, Trial], list[Case]]] = {
    "case": cases_of,
    "one_case": one_adjacency,
    "one_private_case": _private(one_adjacency),
    "sampled_case": _private(one_domain),
    "private_case": _private(cases_of),
    "exact_case": lambda entry, trial: (_none if entry.private else cases_of)(entry, trial),
    "sum_case": lambda entry, trial: (cases_of if entry.trust_model == "secure-sum" else _none)(entry, trial),
}


class MechanismSuite(PrivacySuite, MessageSuite):
    """Tests of every entry and of each of its cases; a subclass sets `entries`."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test the cases of its argument."""
        for argument in CASES:
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, [case for entry in self.entries for case in self.cases_for(argument, entry)], ids=str)
        if "entry" in metafunc.fixturenames:
            metafunc.parametrize("entry", self.entries, ids=[entry.name for entry in self.entries])

    def cases_for(self, argument: str, entry: Entry) -> list[Case]:
        """Return the cases of a mechanism for a test's argument."""
        return CASES[argument](entry, self.trial_of(entry))


class ExactSuite(MechanismSuite):
    """The mechanism suite with the tests of exact, non-private mechanisms."""

    def test_no_budget_is_kept_and_none_is_claimed(self, exact_case: Case) -> None:
        for changes in ({}, {"epsilon": EPSILON / 100, "delta": 0.0}, {"rounds": 7}, {"sampling": FixedSizeSampling(2 * CLIENTS, CLIENTS)}):
            mechanism = exact_case.built(**changes)
            assert mechanism == exact_case.mechanism
            report = mechanism.privacy().report(DELTA, exact_case.adjacency, rounds=3)
            assert mechanism.guarantee.epsilon == report.epsilon == math.inf
            assert report.document()["epsilon"] is None
            assert all(row.bound.reason for row in report.accounts)
        exact = account(exact_case.entry.name, **exact_case.options)
        assert (exact.epsilon, exact.document()["epsilon"], exact.privacy.best) == (math.inf, None, None)

    def test_what_is_decoded_is_exact(self, exact_case: Case) -> None:
        mechanism, inputs = exact_case.mechanism, exact_case.inputs(CLIENTS)
        for present in (inputs, inputs[CLIENTS // 2 :]):
            estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(present, np.random.default_rng(0))), len(present))
            np.testing.assert_array_equal(estimate, exact_case.mean(present))
        assert mechanism.error(inputs) == mechanism.error() == Error(0.0)


class SecureSumSuite(ExactSuite):
    """The mechanism suite with the tests of secure sums."""

    def test_a_secure_sum_recovers_what_clients_sent(self, sum_case: Case) -> None:
        mechanism, inputs = sum_case.mechanism, sum_case.inputs(CLIENTS)
        assert isinstance(mechanism, SecureSumMechanism)
        steps = mechanism.noisy_steps(inputs, np.random.default_rng(8))
        recovered = mechanism.recovered_steps(mechanism.aggregate(mechanism.encode(inputs, np.random.default_rng(8))))
        assert mechanism.wrap_probability < 1e-2
        np.testing.assert_array_equal(recovered, steps.sum(axis=0))
        # Masks that add up to zero leave the sum unchanged.
        masked = SecureSum(CLIENTS, mechanism.padded_dimension, mechanism.modulus)
        messages = mechanism.encode(inputs, np.random.default_rng(8))
        total = masked.total([messages[:2], messages[2:]], np.random.default_rng(9))
        np.testing.assert_array_equal(mechanism.recovered_steps(total), recovered)
        assert masked.bits_per_client == pytest.approx(mechanism.bits_per_client)
        aggregate = mechanism.aggregate(steps % mechanism.modulus)
        assert reason(lambda: mechanism.decode(aggregate, CLIENTS + 1)).startswith(
            ("clients must be 6, for", "clients must be a whole number from 1 to 6, got 7")
        )


def conformance_suite(mechanism: str | Entry, trial: Trial = USUAL) -> type[MechanismSuite]:
    """Return a pytest class of tests of a mechanism, to assign to a name such as `TestMine`.

    Parameters
    ----------
    mechanism : str or Entry
        The mechanism, or its name in the registry.
    trial : Trial
        Settings of the test.

    Examples
    --------
    >>> TestLaplace = conformance_suite("laplace")
    >>> [entry.name for entry in TestLaplace.entries]
    ['laplace']
    """
    entry = entry_named(mechanism) if isinstance(mechanism, str) else mechanism
    functions = inspect.getmembers(SecureSumSuite, inspect.isfunction)
    tests = [(name, set(inspect.signature(function).parameters)) for name, function in functions if name.startswith("test_")]
    unused = {argument for argument, cases in CASES.items() if not cases(entry, trial)}
    # pytest would report a test without cases as skipped.
    members: dict[str, Any] = {name: None for name, arguments in tests if arguments & unused}
    return type("Conformance", (SecureSumSuite,), {**members, "entries": (entry,), "trial_of": lambda _, __: trial})
