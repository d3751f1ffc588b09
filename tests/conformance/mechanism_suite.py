"""What every mechanism of the registry keeps to, whatever it is: privacy, error, messages, refusals.

Statistical tests are seeded; of all seeds, each would fail by chance for about one in a million (5 sigma of a normal error).
"""

import functools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mechanism_cases import (
    CLIENTS,
    DELTA,
    EPSILON,
    MORE_BITS_MAY_COST,
    NORMS,
    PUBLIC_COLUMNS,
    Case,
    accounted,
    cases_of,
    given,
)

from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.arrays import FloatArray
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.guarantee import ADJACENCIES, TRUST_MODELS
from quietbits.design.contracts.mechanism import ScalarMechanism, SecureSumMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.registry import Entry, Option, Target, check_values
from quietbits.design.noise.random_words import secure_words, seeded_words
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.tables.file import write_table
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling

ROUNDS = 1500
# How often an audit runs a mechanism on either input, and with which probability it is right.
REPETITIONS, CONFIDENCE = 5000, 1 - 1e-6
# How close calibration comes to a target, and what a composition on a grid may be off by.
CLOSE, GRID = 1e-6, 1e-6
EVERY_SAMPLING: dict[str, Sampling] = {"add-or-remove-one": PoissonSampling(0.5), "replace-one": FixedSizeSampling(2 * CLIENTS, CLIENTS)}


def reason(call: Callable[[], object]) -> str:
    """Return why something is refused."""
    with pytest.raises(ValueError, match=" must ") as refused:
        call()
    return str(refused.value)


@functools.cache
def errors_of_rounds(case: Case) -> FloatArray:
    """Errors of the mean of the same clipped inputs, seeded, shape (ROUNDS, coordinates)."""
    mechanism, inputs = case.mechanism, case.inputs(CLIENTS)
    repeated = np.tile(inputs, (ROUNDS, *[1] * (inputs.ndim - 1))) if inputs.ndim > 1 else np.tile(inputs, ROUNDS)
    messages = mechanism.encode(repeated, np.random.default_rng(2))
    rounds = messages.reshape(ROUNDS, CLIENTS, *messages.shape[1:])
    estimates = np.array([mechanism.decode(mechanism.aggregate(one), CLIENTS) for one in rounds])
    return (estimates - case.clipped(inputs).mean(axis=0)).reshape(ROUNDS, -1)


class MechanismSuite:
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

    # The entry

    def test_the_entry_is_well_formed(self, entry: Entry) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", entry.name)
        assert entry.title
        assert re.search(r"(19|20)\d\d", entry.paper)
        assert set(entry.domains) <= {Interval, NormBall, Categories}
        assert entry.trust_model in TRUST_MODELS
        for several in (entry.domains, entry.adjacencies, entry.accounts):
            assert 0 < len(several) == len(set(several))
        assert set(entry.adjacencies) <= set(ADJACENCIES)
        assert entry.norms is None or NormBall in entry.domains
        assert entry.accounting.name == entry.name
        assert entry.accounting.title
        for options in (entry.options, entry.accounting.parameters, entry.accounting.given):
            assert len(options) == len({option.name for option in options})
            for option in options:
                assert option.name.isidentifier()
                assert option.name == option.name.lower()
                assert option.help.endswith(".")
                assert option.kind in (int, float, str, bool, Path)
                assert option.required or option.check(option.default) == option.default

    def test_the_document_is_json(self, entry: Entry) -> None:
        document = json.loads(json.dumps(entry.document(), allow_nan=False))
        assert (document["name"], document["trust_model"]) == (entry.name, entry.trust_model)
        assert document["adjacencies"] == list(entry.adjacencies)
        assert [option["name"] for option in document["options"]] == [option.name for option in entry.options]
        assert [option["name"] for option in document["parameters"]] == [option.name for option in entry.accounting.parameters]

    def test_accounts_and_adjacencies_are_those_that_are_declared(self, entry: Entry, tmp_path: Path) -> None:
        found = set()
        for case in cases_of(entry):
            mechanism = case.mechanism
            privacy = mechanism.privacy()
            assert privacy.trust_model == mechanism.guarantee.trust_model == entry.trust_model
            assert case.adjacency in privacy.adjacencies
            found |= {account.name for account in (*privacy.accounts, *accounted(case, mechanism, tmp_path).privacy.accounts)}
            found |= {account.name for account in case.of_many.privacy().accounts}
        assert found == set(entry.accounts)

    def test_bad_values_of_options_are_refused(self, entry: Entry) -> None:
        case = cases_of(entry)[0]

        def refusal(option: Option, value: object) -> str:
            return reason(lambda: entry.build(case.task(), {option.name: value}))

        with pytest.raises(ValueError, match=f"no_such_option is not a parameter of {entry.name}: it has .*; got no_such_option = 1"):
            entry.build(case.task(), {"no_such_option": 1})
        for option in entry.options:
            wrong: list[object] = [object()] if option.kind is not str else [7]
            if option.kind in (int, float):
                wrong += [bound + step for bound, step in ((option.low, -1), (option.high, 1)) if math.isfinite(bound)]
            if option.choices:
                wrong.append("no such choice")
            for value in wrong if option.kind is not Path else []:
                assert refusal(option, value).startswith(f"{option.name} must be ")

    # Privacy

    @pytest.mark.parametrize("rounds", [1, 7])
    def test_the_budget_is_kept(self, case: Case, rounds: int) -> None:
        mechanism = case.built(rounds=rounds)
        assert mechanism.domain == case.domain
        assert mechanism.adjacency == case.adjacency
        assert mechanism.delta <= DELTA
        assert 0 < mechanism.privacy().epsilon(DELTA, case.adjacency, rounds) <= EPSILON
        assert mechanism.guarantee.delta == mechanism.delta
        assert mechanism.guarantee.adjacency == case.adjacency
        if rounds == 1:
            assert mechanism.guarantee.epsilon <= EPSILON

    def test_a_small_budget_over_many_rounds_is_kept_or_refused(self, case: Case) -> None:
        try:
            mechanism = case.built(rounds=100, epsilon=EPSILON / 100, delta=DELTA / 1000)
        except InfeasibleError as error:
            assert " must be at least " in str(error) or " would have to be " in str(error)  # noqa: PT017 - or nothing is raised
        else:
            assert 0 < mechanism.privacy().epsilon(DELTA / 1000, case.adjacency, 100) <= EPSILON / 100

    def test_pure_privacy_is_kept_or_refused(self, case: Case) -> None:
        try:
            mechanism = case.built(delta=0.0)
        except InfeasibleError as error:
            assert str(error).startswith(f"delta must be above 0 for {case.entry.name}, got 0")  # noqa: PT017 - or nothing is raised
            assert "pure" not in case.entry.accounts or case.entry.trust_model != "local"
        else:
            assert 0 < mechanism.privacy().epsilon(0.0, case.adjacency) <= EPSILON
            assert mechanism.guarantee.delta == 0
            bound = case.entry.lower_bound(case.task(delta=0.0))
            assert bound is None or (mechanism.bias_bound == 0 and 0 < bound <= mechanism.error().of_mean(CLIENTS))

    def test_what_is_not_offered_is_refused(self, case: Case) -> None:
        for adjacency in {*ADJACENCIES} - {*case.entry.adjacencies}:
            assert reason(lambda adjacency=adjacency: case.built(adjacency=adjacency)).startswith("adjacency must be ")
            with pytest.raises(ValueError, match="adjacency must be one of"):
                case.mechanism.privacy().epsilon(DELTA, adjacency)
        assert reason(lambda: case.built(adjacency="swap")).startswith("adjacency must be one of ")
        others = {Interval: Interval(), NormBall: NormBall(2, 2.0), Categories: Categories(4)}
        for kind in {*others} - {*case.entry.domains}:
            assert reason(lambda kind=kind: case.built(domain=others[kind])).startswith("domain must be ")
        for norm in {*NORMS, 3.0} - {*(case.entry.norms or (*NORMS, 3.0))} if NormBall in case.entry.domains else ():
            assert reason(lambda norm=norm: case.built(domain=NormBall(2, norm))).startswith("norm must be ")

    def test_sampled_clients_are_hidden_better_or_seen(self, case: Case, tmp_path: Path) -> None:
        sampling = EVERY_SAMPLING[case.adjacency]
        if case.entry.trust_model == "local":
            for call in (lambda: case.built(sampling=sampling), lambda: case.mechanism.privacy().report(DELTA, sampling=sampling)):
                assert reason(call).startswith("sampling must be left out in the local trust model")
            return
        privacy = case.mechanism.privacy()
        sampled = privacy.epsilon(DELTA, case.adjacency, sampling=sampling)
        assert sampled < privacy.epsilon(DELTA, case.adjacency)
        assert accounted(case, case.mechanism, tmp_path).report(DELTA, sampling=sampling).epsilon == sampled
        mechanism = case.built(sampling=sampling)
        assert 0 < mechanism.privacy().epsilon(DELTA, case.adjacency, sampling=sampling) <= EPSILON
        other = next(one for name, one in EVERY_SAMPLING.items() if name != case.adjacency)
        assert reason(lambda: privacy.report(DELTA, case.adjacency, sampling=other)).startswith("sampling must be ")

    @pytest.mark.parametrize("rounds", [1, 7])
    def test_there_is_one_computation_of_privacy(self, case: Case, rounds: int, tmp_path: Path) -> None:
        mechanism = case.mechanism
        report = accounted(case, mechanism, tmp_path).report(mechanism.delta, rounds)
        stated = mechanism.privacy().report(mechanism.delta, case.adjacency, rounds)
        assert (report.privacy.adjacency, report.privacy.rounds) == (case.adjacency, rounds)
        assert report.epsilon == stated.epsilon
        # Also what is proven is the same, account by account.
        for one in stated.accounts:
            found = report.privacy.account(one.name)
            assert (found.bound.epsilon, found.proven, found.assumes) == (one.bound.epsilon, one.proven, one.assumes)
        if mechanism.guarantee.metric is None:
            assert mechanism.guarantee.epsilon == mechanism.privacy().epsilon(mechanism.delta, case.adjacency)
        else:
            # Of two inputs at distance one.
            assert mechanism.guarantee.epsilon >= mechanism.privacy().epsilon(mechanism.delta, case.adjacency)

    @pytest.mark.parametrize("rounds", [1, 7])
    def test_calibrated_parameters_end_just_below_the_target(self, case: Case, rounds: int, tmp_path: Path) -> None:
        accounting = case.entry.accounting
        if accounting.solve is None:
            return
        chosen = given(case)
        subject = accounting.solve(Target(EPSILON, DELTA, rounds, case.adjacency), chosen)
        # Accounted for by the method that keeps the target, where that is not a proven one.
        method = subject.details.get("variant")
        reached = subject.report(DELTA, rounds).epsilon_by(method)
        assert reached <= EPSILON
        if accounting.close:
            assert EPSILON - reached <= CLOSE
        values = {**subject.details, **chosen}
        if subject.table is not None:
            values["table"] = tmp_path / "table.json"
            write_table(subject.table, values["table"])
        named = {"clip": values.get("clip_norm", values.get("clip")), "epsilon": values.get("epsilon_per_round"), **values}
        parameters = {one.name: named[one.name] for one in accounting.parameters if named.get(one.name) is not None}
        checked = check_values(case.entry.name, accounting.parameters, parameters) | {"delta": DELTA}
        again = accounting.account(checked, case.adjacency, None).report(DELTA, rounds)
        assert again.epsilon_by(method) == reached
        json.dumps(again.document(), allow_nan=False)

    def test_epsilon_does_not_fall_with_rounds_or_rise_with_delta(self, case: Case, tmp_path: Path) -> None:
        subject = accounted(case, case.mechanism, tmp_path)
        deltas, rounds = (1e-6, 1e-4, 1e-2), (1, 2, 7)
        reports = [[subject.report(delta, number).privacy for number in rounds] for delta in deltas]
        for name in [account.name for account in subject.privacy.accounts]:
            grid = np.array([[report.account(name).bound.epsilon for report in row] for row in reports])
            for less, more in ((grid[:, :-1], grid[:, 1:]), (grid[1:], grid[:-1])):
                known = np.isfinite(less) & np.isfinite(more)
                assert (less[known] <= more[known] * (1 + GRID)).all()

    def test_an_audit_does_not_refute_the_guarantee(self, case: Case) -> None:
        mechanism = case.small
        # The other clients hide one the least where they are at the edge, as it is.
        others = "same" if isinstance(mechanism, SecureSumMechanism) else "zero"
        found = audit(mechanism, REPETITIONS, np.random.default_rng(3), others=others, confidence=CONFIDENCE)
        assert found.claim == mechanism.guarantee
        assert not found.refuted

    # Error

    def test_the_estimate_is_off_by_its_bias_at_most(self, case: Case) -> None:
        errors = errors_of_rounds(case)
        spread = math.sqrt(np.square(errors).sum(axis=1).mean() / ROUNDS)
        assert np.linalg.norm(errors.mean(axis=0)) <= case.mechanism.bias_bound + 5 * spread

    def test_the_error_is_as_predicted(self, case: Case) -> None:
        squares = np.square(errors_of_rounds(case)).sum(axis=1)
        predicted = case.mechanism.error(case.inputs(CLIENTS))
        allowed = 5 * squares.std() / math.sqrt(ROUNDS)
        # Biases of clients add up, or cancel out.
        assert squares.mean() <= predicted.of_mean(CLIENTS) + allowed
        assert squares.mean() >= predicted.variance / CLIENTS - predicted.bias**2 - allowed

    def test_no_input_has_more_than_the_worst_error(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(40)
        variances = mechanism.variance(inputs)
        assert variances.shape == (40,)
        assert (variances > 0).all()
        worst, of_these = mechanism.error(), mechanism.error(inputs)
        assert of_these.variance == pytest.approx(variances.mean())
        assert worst.variance == mechanism.worst_variance >= variances.max() * (1 - 1e-9)
        assert (worst.bias, worst.wrap_probability) == (of_these.bias, of_these.wrap_probability)
        assert worst.bias >= 0
        assert 0 <= worst.wrap_probability <= 1

    def test_a_larger_budget_is_never_worse(self, case: Case) -> None:
        def error(**changes: Any) -> float:
            return case.built(**changes).error().of_mean(CLIENTS)

        assert error(epsilon=2 * EPSILON) < error()
        assert error(rounds=7, delta=10 * DELTA) <= error(rounds=7) * (1 + CLOSE)
        assert error() <= error(rounds=7)

    def test_more_bits_are_never_worse_and_too_few_are_refused(self, case: Case) -> None:
        for option in case.entry.options:
            if option.unit != "bits" or (option.default is None and option.name not in case.options):
                continue
            bits = case.options.get(option.name, option.default)
            more = case.built(options={option.name: min(bits + 2, int(option.high))})
            if case.entry.name not in MORE_BITS_MAY_COST:
                assert more.error().of_mean(CLIENTS) <= case.mechanism.error().of_mean(CLIENTS) * (1 + CLOSE)
            try:
                fewest = case.built(options={option.name: int(option.low)})
            except InfeasibleError as error:
                needed = re.match(rf"{option.name} must be at least (\d+) ", str(error))
                assert needed is not None
                fewest = case.built(options={option.name: int(needed[1])})
            assert fewest.privacy().epsilon(DELTA, case.adjacency) <= EPSILON

    # Messages

    def test_chunks_add_up(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(CLIENTS)
        messages = mechanism.encode(inputs, seeded_words(np.random.default_rng(4)))
        np.testing.assert_array_equal(mechanism.encode(inputs, np.random.default_rng(4)), messages)
        whole = mechanism.aggregate(messages)
        parts = functools.reduce(mechanism.combine, [mechanism.aggregate(part) for part in np.array_split(messages, 3)])
        assert (parts.shape, parts.dtype) == (whole.shape, whole.dtype)
        estimates = [np.asarray(mechanism.decode(aggregate, CLIENTS)) for aggregate in (whole, parts)]
        np.testing.assert_allclose(estimates[0], estimates[1], rtol=1e-12, atol=1e-12)
        assert estimates[0].shape == inputs.shape[1:]

    def test_secure_words_make_messages_of_the_same_kind(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(200)
        seeded = mechanism.encode(inputs, np.random.default_rng(5))
        secure, other = (mechanism.encode(inputs, secure_words) for _ in range(2))
        for messages in (secure, other):
            assert (messages.shape, messages.dtype) == (seeded.shape, seeded.dtype)
        # By chance they are all equal with a probability far below 1e-12.
        assert (secure != other).any()
        assert reason(lambda: mechanism.encode(inputs, 0)).startswith("words must be quietbits.secure_words, for releases, or a numpy")

    def test_secure_messages_decode_to_the_mean(self, case: Case) -> None:
        mechanism, inputs = case.mechanism, case.inputs(CLIENTS)
        rounds = 300
        estimates = [mechanism.decode(mechanism.aggregate(mechanism.encode(inputs, secure_words)), CLIENTS) for _ in range(rounds)]
        error = mechanism.error(inputs)
        # There is no seed: 8 sigma of a normal error.
        allowed = error.bias + 8 * math.sqrt(error.variance / CLIENTS / rounds)
        assert np.linalg.norm(np.mean(estimates, axis=0) - case.clipped(inputs).mean(axis=0)) <= allowed

    def test_inputs_outside_the_domain_count_as_clipped(self, case: Case) -> None:
        mechanism, outside = case.mechanism, 3 * case.inputs(24)
        clipped = case.clipped(outside)
        assert (clipped != outside).any()
        for function in (mechanism.variance, lambda given: mechanism.encode(given, np.random.default_rng(6))):
            np.testing.assert_allclose(function(outside), function(clipped), rtol=1e-12)

    def test_messages_take_the_stated_bits(self, case: Case) -> None:
        mechanism = case.mechanism
        messages = mechanism.encode(case.inputs(2000), np.random.default_rng(7))
        rows = messages.reshape(len(messages), -1)
        if isinstance(mechanism, SecureSumMechanism):
            assert messages.shape[1:] == (mechanism.padded_dimension,)
            assert int(messages.max()) < mechanism.modulus
            assert mechanism.bits_per_client == mechanism.padded_dimension * math.log2(mechanism.modulus)
        # No more than the array has, and no fewer than tell the values apart that occur.
        sent = np.delete(rows, np.arange(rows.shape[1])[PUBLIC_COLUMNS.get(case.entry.name, slice(0))], axis=1)
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
            for bad in (math.nan, math.inf, -math.inf):
                inputs = case.inputs(CLIENTS).copy()
                inputs.flat[1] = bad
                assert f" must hold finite numbers only, got {bad}" in reason(lambda: function(inputs))  # noqa: B023
            if not isinstance(mechanism, ScalarMechanism):
                wide = np.zeros((CLIENTS, case.inputs(1).shape[1] + 1))
                for wrong in (wide, wide[0], wide[:, :1]):
                    assert "must have the shape (clients, " in reason(lambda: function(wrong))  # noqa: B023

    @pytest.mark.parametrize("clients", [0, -1, 1.5])
    def test_a_number_of_clients_that_cannot_be_is_refused(self, case: Case, clients: float) -> None:
        mechanism = case.mechanism
        aggregate = mechanism.aggregate(mechanism.encode(case.inputs(CLIENTS), np.random.default_rng(0)))
        assert reason(lambda: mechanism.decode(aggregate, clients)).startswith("clients must be ")


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
