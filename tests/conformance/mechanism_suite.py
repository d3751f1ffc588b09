"""What every mechanism of the registry keeps to, whatever it is: derive a class with `entries`."""

import math

import numpy as np
import pytest
from mechanism_cases import CLIENTS, DELTA, EPSILON, Case, cases_of, one_adjacency, one_domain, reason
from message_suite import MessageSuite
from privacy_suite import PrivacySuite

from quietbits.analysis.catalogue.accounts import account
from quietbits.design.contracts.mechanism import Error, SecureSumMechanism
from quietbits.design.contracts.registry import Entry
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.solvers.accounting.sampling import FixedSizeSampling


class MechanismSuite(PrivacySuite, MessageSuite):
    """Tests of every entry, and of every case of it; derive a class with `entries`."""

    entries: tuple[Entry, ...] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", [case for entry in self.entries for case in cases_of(entry)], ids=str)
        elif "one_case" in metafunc.fixturenames:
            metafunc.parametrize("one_case", [case for entry in self.entries for case in one_adjacency(entry)], ids=str)
        elif "one_private_case" in metafunc.fixturenames:
            private = [case for entry in self.entries if entry.private for case in one_adjacency(entry)]
            metafunc.parametrize("one_private_case", private, ids=str)
        elif "sampled_case" in metafunc.fixturenames:
            metafunc.parametrize("sampled_case", [case for entry in self.entries if entry.private for case in one_domain(entry)], ids=str)
        elif "private_case" in metafunc.fixturenames:
            metafunc.parametrize("private_case", [case for entry in self.entries if entry.private for case in cases_of(entry)], ids=str)
        elif "exact_case" in metafunc.fixturenames:
            metafunc.parametrize("exact_case", [case for entry in self.entries if not entry.private for case in cases_of(entry)], ids=str)
        elif "sum_case" in metafunc.fixturenames:
            sums = [case for entry in self.entries if entry.trust_model == "secure-sum" for case in cases_of(entry)]
            metafunc.parametrize("sum_case", sums, ids=str)
        elif "entry" in metafunc.fixturenames:
            metafunc.parametrize("entry", self.entries, ids=[entry.name for entry in self.entries])


class ExactSuite(MechanismSuite):
    """The same, and what holds where nothing is private."""

    def test_no_budget_is_kept_and_none_is_claimed(self, exact_case: Case) -> None:
        for changes in ({}, {"epsilon": EPSILON / 100, "delta": 0.0}, {"rounds": 7}, {"sampling": FixedSizeSampling(2 * CLIENTS, CLIENTS)}):
            mechanism = exact_case.built(**changes)
            assert mechanism == exact_case.mechanism
            report = mechanism.privacy().report(DELTA, exact_case.adjacency, rounds=3)
            assert mechanism.guarantee.epsilon == report.epsilon == math.inf
            assert report.document()["epsilon"] is None
            assert all(one.bound.reason for one in report.accounts)
        found = account(exact_case.entry.name, **exact_case.options)
        assert (found.epsilon, found.document()["epsilon"], found.privacy.best) == (math.inf, None, None)

    def test_what_is_decoded_is_exact(self, exact_case: Case) -> None:
        mechanism, inputs = exact_case.mechanism, exact_case.inputs(CLIENTS)
        for present in (inputs, inputs[CLIENTS // 2 :]):
            estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(present, np.random.default_rng(0))), len(present))
            np.testing.assert_array_equal(estimate, exact_case.mean(present))
        assert mechanism.error(inputs) == mechanism.error() == Error(0.0)


class SecureSumSuite(ExactSuite):
    """The same, and what secure sums have beyond it."""

    def test_a_secure_sum_recovers_what_clients_sent(self, sum_case: Case) -> None:
        mechanism, inputs = sum_case.mechanism, sum_case.inputs(CLIENTS)
        assert isinstance(mechanism, SecureSumMechanism)
        steps = mechanism.noisy_steps(inputs, np.random.default_rng(8))
        recovered = mechanism.recovered_steps(mechanism.aggregate(mechanism.encode(inputs, np.random.default_rng(8))))
        assert mechanism.wrap_probability < 1e-2
        np.testing.assert_array_equal(recovered, steps.sum(axis=0))
        # Masks that add up to zero change nothing.
        masked = SecureSum(CLIENTS, mechanism.padded_dimension, mechanism.modulus)
        messages = mechanism.encode(inputs, np.random.default_rng(8))
        total = masked.total([messages[:2], messages[2:]], np.random.default_rng(9))
        np.testing.assert_array_equal(mechanism.recovered_steps(total), recovered)
        assert masked.bits_per_client == pytest.approx(mechanism.bits_per_client)
        aggregate = mechanism.aggregate(steps % mechanism.modulus)
        assert reason(lambda: mechanism.decode(aggregate, CLIENTS + 1)).startswith(
            ("clients must be 6, for", "clients must be a whole number from 1 to 6, got 7")
        )
