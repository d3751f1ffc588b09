"""Tests of every mechanism's errors and messages.

Statistical tests are seeded; of all seeds, each would fail by chance for about one in a million (5 sigma of a normal error).
"""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ...arrays import FloatArray
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism, ScalarMechanism, SecureSumMechanism
from ...design.contracts.real_numbers import RealNumberMechanism
from ...design.noise.random_words import secure_words, seeded_words
from ...errors import InfeasibleError
from .mechanism_cases import CLIENTS, DELTA, EPSILON, Case, Tried, reason, released

# Number of simulated rounds, by whether the mechanism is slow.
ROUNDS, SLOW_ROUNDS = 1500, 300
# Relative tolerance between a calibrated account and its target.
CLOSE = 1e-6


@functools.cache
def errors_of_rounds(case: Case) -> FloatArray:
    """Return the errors of the mean of the same clipped inputs, shape (rounds, coordinates)."""
    mechanism, inputs = case.mechanism, case.inputs(CLIENTS)
    mean = case.mean(inputs)
    number = SLOW_ROUNDS if case.trial.slow or mechanism.worst_shared_variance > 0 else ROUNDS
    if mechanism.worst_shared_variance > 0:
        # Stated errors average over public randomness, so each round draws its own.
        words, renewed = np.random.default_rng(2), [mechanism.renewed(seed) for seed in range(number)]
        return np.array([copy.decode(copy.aggregate(copy.encode(inputs, words)), CLIENTS) - mean for copy in renewed])
    messages = mechanism.encode(np.tile(inputs, (number, *[1] * (inputs.ndim - 1))), np.random.default_rng(2))
    rounds = messages.reshape(number, CLIENTS, *messages.shape[1:])
    estimates = np.array([mechanism.decode(mechanism.aggregate(messages), CLIENTS) for messages in rounds])
    return (estimates - mean).reshape(number, -1)


class MessageSuite(Tried):
    """Tests of errors and messages."""

    # Tests of errors

    def test_the_estimate_is_off_by_its_bias_at_most(self, one_case: Case) -> None:
        errors = errors_of_rounds(one_case)
        spread = math.sqrt(np.square(errors).sum(axis=1).mean() / len(errors))
        assert np.linalg.norm(errors.mean(axis=0)) <= one_case.mechanism.bias_bound + 5 * spread

    def test_the_parts_of_the_variance_add_up_to_it(self, one_case: Case) -> None:
        mechanism, inputs = one_case.mechanism, one_case.inputs(CLIENTS)
        parts, variance = mechanism.variance_parts(inputs), mechanism.law(inputs).variance
        assert np.allclose(parts.total, variance, rtol=1e-9, atol=0.0)
        for part in (parts.compression, parts.rounding, parts.noise, parts.unsplit):
            assert part.shape == variance.shape
            assert (part >= -1e-12 * variance).all()

    def test_the_error_is_as_predicted(self, one_case: Case) -> None:
        squares = np.square(errors_of_rounds(one_case)).sum(axis=1)
        predicted = one_case.mechanism.error(one_case.inputs(CLIENTS))
        allowed = 5 * squares.std() / math.sqrt(len(squares))
        # Biases of clients may add up or cancel out.
        assert squares.mean() <= predicted.of_mean(CLIENTS) + allowed
        assert squares.mean() >= predicted.variance / CLIENTS + predicted.shared - predicted.bias**2 - allowed

    def test_no_input_has_more_than_the_worst_error(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(40)
        variances = mechanism.variance(inputs)
        assert variances.shape == (40,)
        assert ((variances > 0) == case.entry.private).all()
        worst, of_these = mechanism.error(), mechanism.error(inputs)
        assert of_these.variance == pytest.approx(variances.mean())
        assert worst.variance == mechanism.variance_bound >= variances.max() * (1 - 1e-9)
        assert worst.shared == mechanism.worst_shared_variance >= of_these.shared >= 0
        assert worst.of_mean(40, rounds=2) <= worst.of_mean(40)
        assert (worst.bias, worst.wrap_probability) == (of_these.bias, of_these.wrap_probability)
        assert worst.bias >= 0
        assert 0 <= worst.wrap_probability <= 1

    def test_a_larger_budget_is_never_worse(self, one_private_case: Case) -> None:
        def error(**changes: Any) -> float:
            return one_private_case.built(**changes).error().of_mean(CLIENTS)

        assert error(epsilon=2 * EPSILON) < error()
        assert error(rounds=7, delta=10 * DELTA) <= error(rounds=7) * (1 + CLOSE)
        assert error() <= error(rounds=7)

    def test_more_bits_are_never_worse_and_too_few_are_refused(self, one_case: Case) -> None:
        for option in one_case.entry.options:
            if option.unit != "bits" or (option.default is None and option.name not in one_case.options):
                continue
            bits = one_case.options.get(option.name, option.default)
            if not one_case.trial.more_bits_may_cost:
                more = one_case.built(options={option.name: min(bits + 2, int(option.high))})
                assert more.error().of_mean(CLIENTS) <= one_case.mechanism.error().of_mean(CLIENTS) * (1 + CLOSE)
            try:
                fewest = one_case.built(options={option.name: int(option.low)})
            except InfeasibleError as error:
                needed = re.match(rf"{option.name} must be at least (\d+) ", str(error))
                assert needed is not None
                fewest = one_case.built(options={option.name: int(needed[1])})
            assert fewest.privacy().epsilon(DELTA, one_case.adjacency) <= EPSILON

    # Tests of messages

    def test_chunks_add_up(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(CLIENTS)
        messages = mechanism.encode(inputs, seeded_words(np.random.default_rng(4)))
        np.testing.assert_array_equal(mechanism.encode(inputs, np.random.default_rng(4)), messages)
        whole = mechanism.aggregate(messages)
        parts = functools.reduce(mechanism.combine, [mechanism.aggregate(part) for part in np.array_split(messages, 3)])
        assert (parts.shape, parts.dtype) == (whole.shape, whole.dtype)
        estimates = [np.asarray(mechanism.decode(aggregate, CLIENTS)) for aggregate in (whole, parts)]
        np.testing.assert_allclose(estimates[0], estimates[1], rtol=1e-12, atol=1e-12)
        assert estimates[0].shape == case.mean(inputs).shape

    def test_secure_words_make_messages_of_the_same_kind(self, case: Case) -> None:
        mechanism, inputs = released(case.mechanism), case.inputs(200)
        seeded = mechanism.encode(inputs, np.random.default_rng(5))
        secure, other = (mechanism.encode(inputs, secure_words) for _ in range(2))
        for messages in (secure, other):
            assert (messages.shape, messages.dtype) == (seeded.shape, seeded.dtype)
        # Two independent draws are equal with a probability far below 1e-12.
        assert (secure != other).any() == case.entry.private
        number: Any = 0
        assert reason(lambda: mechanism.encode(inputs, number)).startswith(
            "random_words must be quietbits.secure_words, for releases, or a numpy"
        )

    def test_real_numbers_are_released_only_by_name(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(3)
        assert isinstance(mechanism, RealNumberMechanism) == case.entry.on_real_numbers
        if not isinstance(mechanism, RealNumberMechanism):
            return
        assert reason(lambda: mechanism.encode(inputs, secure_words)).startswith(
            "words must be a numpy.random.Generator, or seeded_words of"
        )
        allowed = released(mechanism)
        allowed.encode(inputs, secure_words)
        assert replace(allowed.guarantee, allow_real_numbers=False) == mechanism.guarantee
        for guarantee in (allowed.guarantee, allowed.privacy().report(DELTA, case.adjacency, 3).guarantee):
            assert str(guarantee).endswith("of real numbers only (allow_real_numbers): floating-point messages reveal more")

    def test_secure_messages_decode_to_the_mean(self, one_case: Case) -> None:
        mechanism, inputs = one_case.mechanism, one_case.inputs(CLIENTS)
        rounds = 100 if one_case.trial.slow else 150
        renewed = [released(mechanism).renewed(seed) for seed in range(rounds)]
        estimates = [copy.decode(copy.aggregate(copy.encode(inputs, secure_words)), CLIENTS) for copy in renewed]
        error = mechanism.error(inputs)
        # The words have no seed, so the test allows 8 sigma of a normal error.
        allowed = 1e-12 + error.bias + 8 * math.sqrt((error.variance / CLIENTS + error.shared) / rounds)
        assert np.linalg.norm(np.mean(estimates, axis=0) - one_case.mean(inputs)) <= allowed

    def test_inputs_outside_the_domain_count_as_clipped(self, case: Case) -> None:
        mechanism, outside = case.mechanism, 3 * case.inputs(24)
        if isinstance(case.domain, Categories):
            # An unknown item cannot be clipped to any item.
            for function in (mechanism.variance, mechanism.error, lambda given: mechanism.encode(given, np.random.default_rng(6))):
                assert reason(lambda: function(outside)).startswith("items must be whole numbers from 0 to 4, got 12")  # noqa: B023
            return
        clipped = case.clipped(outside)
        assert (clipped != outside).any()
        for function in (mechanism.variance, lambda given: mechanism.encode(given, np.random.default_rng(6))):
            np.testing.assert_allclose(function(outside), function(clipped), rtol=1e-12)

    def test_messages_take_the_stated_bits(self, case: Case) -> None:
        mechanism = case.mechanism
        messages = mechanism.encode(case.inputs(2000), np.random.default_rng(7))
        rows = messages.reshape(len(messages), -1)
        # Guarantees of whole numbers and letters hold exactly in computer arithmetic.
        assert case.entry.on_real_numbers == (messages.dtype.kind == "f")
        if case.entry.trust_model == "secure-sum":
            assert isinstance(mechanism, SecureSumMechanism)
            assert messages.shape[1:] == (mechanism.padded_dimension,)
            assert int(messages.max()) < mechanism.modulus
            assert mechanism.bits_per_client == mechanism.padded_dimension * math.log2(mechanism.modulus)
        if type(mechanism).bits_of_messages is not Mechanism.bits_of_messages:
            # Messages differ in length, so the mechanism states a bound on the mean.
            lengths = mechanism.bits_of_messages(messages)
            assert 0 < lengths.mean() <= mechanism.bits_per_client + 5 * lengths.std() / math.sqrt(len(lengths))
            return
        # The stated bits are at most the array's bits, and enough to distinguish the occurring values.
        sent = np.delete(rows, np.arange(rows.shape[1])[case.trial.public_columns], axis=1)
        assert mechanism.bits_per_client <= 8 * sent.itemsize * sent.shape[1]
        if messages.dtype.kind == "f":
            assert mechanism.bits_per_client == 8 * sent.itemsize * sent.shape[1]
        else:
            ranges = sent.max(axis=0).astype(float) - sent.min(axis=0) + 1
            assert np.log2(ranges).sum() <= mechanism.bits_per_client * (1 + 1e-12)
            assert math.log2(len(np.unique(sent, axis=0))) <= mechanism.bits_per_client

    def test_bad_inputs_are_refused(self, case: Case) -> None:
        mechanism = case.mechanism
        functions: tuple[Callable[[Any], object], ...] = (
            mechanism.variance,
            mechanism.error,
            lambda given: mechanism.encode(given, np.random.default_rng(0)),
        )
        for function in functions:
            if isinstance(case.domain, Categories):
                for wrong_items in (np.zeros(CLIENTS), np.zeros((CLIENTS, 1), dtype=int), np.array([-1])):
                    assert reason(lambda: function(wrong_items)).startswith("items must be whole numbers")  # noqa: B023
                continue
            for bad in (math.nan, math.inf, -math.inf):
                inputs = case.inputs(CLIENTS).copy()
                inputs.flat[1] = bad
                assert f" must hold finite numbers only, got {bad}" in reason(lambda: function(inputs))  # noqa: B023
            if not isinstance(mechanism, ScalarMechanism):
                wide = np.zeros((CLIENTS, case.inputs(1).shape[1] + 1))
                for wrong in (wide, wide[0], wide[:, :1]):
                    assert "must have the shape (clients, " in reason(lambda: function(wrong))  # noqa: B023

    def test_withheld_inputs_are_refused(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(CLIENTS)
        withheld = np.zeros(inputs.shape, dtype=bool)
        withheld.flat[1] = True
        masked, unmasked = np.ma.MaskedArray(inputs, withheld), np.ma.MaskedArray(inputs, ~withheld & withheld)
        for function in (mechanism.variance, mechanism.error, lambda given: mechanism.encode(given, np.random.default_rng(0))):
            function(unmasked)
            assert "must be without masked values, got 1 of these" in reason(lambda: function(masked))  # noqa: B023
            if inputs.ndim == 2:
                assert "must be without masked values, got 1 of these" in reason(lambda: function(list(masked)))  # noqa: B023

    def test_a_number_of_clients_that_cannot_be_is_refused(self, case: Case) -> None:
        mechanism = case.mechanism
        aggregate = mechanism.aggregate(mechanism.encode(case.inputs(CLIENTS), np.random.default_rng(0)))
        impossible: tuple[Any, ...] = (0, -1, 1.5)
        for clients in impossible:
            assert reason(lambda: mechanism.decode(aggregate, clients)).startswith("clients must be ")  # noqa: B023
