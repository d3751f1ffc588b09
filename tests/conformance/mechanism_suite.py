"""What every mechanism of the registry keeps to, whatever it is: derive a class with `entries`."""

import numpy as np
import pytest
from mechanism_cases import CLIENTS, Case, cases_of, reason
from message_suite import MessageSuite
from privacy_suite import PrivacySuite

from quietbits.design.contracts.mechanism import SecureSumMechanism
from quietbits.design.contracts.registry import Entry
from quietbits.design.secure_sum.aggregation import SecureSum


class MechanismSuite(PrivacySuite, MessageSuite):
    """Tests of every entry, and of every case of it; derive a class with `entries`."""

    entries: tuple[Entry, ...] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", [case for entry in self.entries for case in cases_of(entry)], ids=str)
        elif "sum_case" in metafunc.fixturenames:
            sums = [case for entry in self.entries if entry.trust_model == "secure-sum" for case in cases_of(entry)]
            metafunc.parametrize("sum_case", sums, ids=str)
        elif "entry" in metafunc.fixturenames:
            metafunc.parametrize("entry", self.entries, ids=[entry.name for entry in self.entries])


class SecureSumSuite(MechanismSuite):
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
        assert reason(lambda: mechanism.decode(aggregate, CLIENTS + 1)).startswith(f"clients must be {CLIENTS}, for")
