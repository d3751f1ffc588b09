"""Tests of every entry itself, and of the privacy of the mechanisms that it builds."""

import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.guarantee import ADJACENCIES, TRUST_MODELS
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.options import made
from ...design.contracts.registry import AccountReport, Entry, Option, check_values
from ...design.contracts.task import Budget
from ...errors import InfeasibleError
from ...solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling
from ..audits.mechanism_audit import audit
from ..catalogue.lower_bounds import local_lower_bound
from .mechanism_cases import CLIENTS, DELTA, EPSILON, NORMS, Case, Tried, account_values, accounted, given, reason

# Probability with which an audit is right.
CONFIDENCE = 1 - 1e-6
# Relative error allowed for a composition on a grid.
GRID = 1e-6
# Two dimensions that padding extends to a power of two; 513 nearly doubles.
DIMENSIONS = (21, 513)
EVERY_SAMPLING: dict[str, Sampling] = {"add-or-remove-one": PoissonSampling(0.5), "replace-one": FixedSizeSampling(2 * CLIENTS, CLIENTS)}


def by_account(report: AccountReport) -> dict[str, float]:
    """Return epsilon by account name."""
    return {row.name: row.bound.epsilon for row in report.privacy.accounts}


class PrivacySuite(Tried):
    """Tests of entries and of privacy."""

    # Tests of the entry

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
        if entry.noise is not None:
            assert (entry.noise.name, bool(entry.noise.title)) == (entry.name, True)
        for options in (entry.options, entry.account_options, entry.calibration_options):
            assert len(options) == len({option.name for option in options})
            for option in options:
                assert option.name.isidentifier()
                assert option.name == option.name.lower()
                assert option.help.endswith(".")
                assert option.kind in (int, float, str, bool, Path)
                assert option.required or option.check(option.default) == option.default
                if option.default is None:
                    # A command line or TOML cannot express None, so users type none, and the help explains this value.
                    assert option.check("none") is None
                    assert re.search("default|without|instead of", option.help)
                    assert "None" not in option.help

    def test_the_document_is_json(self, entry: Entry) -> None:
        document = json.loads(json.dumps(entry.document(), allow_nan=False))
        assert (document["name"], document["trust_model"]) == (entry.name, entry.trust_model)
        assert document["adjacencies"] == list(entry.adjacencies)
        assert [option["name"] for option in document["options"]] == [option.name for option in entry.options]
        assert [option["name"] for option in document["parameters"]] == [option.name for option in entry.account_options]

    def test_accounts_and_adjacencies_are_those_that_are_declared(self, entry: Entry, tmp_path: Path) -> None:
        names = set()
        for case in self.cases_of(entry):
            mechanism = case.mechanism
            privacy = mechanism.privacy()
            assert privacy.trust_model == mechanism.guarantee.trust_model == entry.trust_model
            assert case.adjacency in privacy.adjacencies
            names |= {account.name for account in (*privacy.accounts, *accounted(case, mechanism, tmp_path).privacy.accounts)}
            names |= {account.name for account in case.of_many.privacy().accounts}
        assert names == set(entry.accounts)

    def test_bad_values_of_options_are_refused(self, entry: Entry) -> None:
        case = self.cases_of(entry)[0]

        def refusal(option: Option, value: object) -> str:
            return reason(lambda: entry.mechanism_for(case.task(), {**case.options, option.name: value}))

        with pytest.raises(ValueError, match=f"no_such_option is not a parameter of {entry.name}: it has .*; got no_such_option = 1"):
            entry.mechanism_for(case.task(), {"no_such_option": 1})
        for option in entry.options:
            wrong: list[object] = [object()] if option.kind is not str else [7]
            if option.kind in (int, float):
                wrong += [bound + step for bound, step in ((option.low, -1), (option.high, 1)) if math.isfinite(bound)]
            if option.choices:
                wrong.append("no such choice")
            for value in wrong if option.kind is not Path else []:
                assert refusal(option, value).startswith(f"{option.name} must be ")

    # Tests of privacy

    @pytest.mark.parametrize("rounds", [1, 7])
    def test_the_budget_is_kept(self, private_case: Case, rounds: int) -> None:
        mechanism = private_case.built(rounds=rounds)
        assert mechanism.domain == private_case.domain
        assert mechanism.adjacency == private_case.adjacency
        assert mechanism.delta <= DELTA
        assert 0 < mechanism.privacy().epsilon(DELTA, private_case.adjacency, rounds) <= EPSILON
        assert mechanism.guarantee.delta == mechanism.delta
        assert mechanism.guarantee.adjacency == private_case.adjacency
        if rounds == 1:
            assert mechanism.guarantee.epsilon <= EPSILON

    def test_a_small_budget_over_many_rounds_is_kept_or_refused(self, private_case: Case) -> None:
        try:
            mechanism = private_case.built(rounds=100, epsilon=EPSILON / 100, delta=DELTA / 1000)
        except InfeasibleError as error:
            assert " must be at least " in str(error) or " would have to be " in str(error)  # noqa: PT017 - or nothing is raised
        else:
            assert 0 < mechanism.privacy().epsilon(DELTA / 1000, private_case.adjacency, 100) <= EPSILON / 100

    def test_pure_privacy_is_kept_or_refused(self, private_case: Case) -> None:
        try:
            mechanism = private_case.built(delta=0.0)
        except InfeasibleError as error:
            assert str(error).startswith(f"delta must be above 0 for {private_case.entry.name}, got 0")  # noqa: PT017 - or nothing is raised
            assert "pure" not in private_case.entry.accounts or private_case.entry.trust_model != "local"
        else:
            assert 0 < mechanism.privacy().epsilon(0.0, private_case.adjacency) <= EPSILON
            assert mechanism.guarantee.delta == 0
            task = private_case.task(delta=0.0)
            bound = private_case.entry.lower_bound(task)
            assert bound is None or 0 < bound <= mechanism.error().of_mean(CLIENTS)
            # Bounds for unbiased mechanisms do not apply to biased mechanisms.
            assert bound is None or mechanism.bias_bound == 0 or bound == local_lower_bound(task)

    def test_what_is_not_offered_is_refused(self, case: Case) -> None:
        for adjacency in {*ADJACENCIES} - {*case.entry.adjacencies}:
            assert reason(partial(case.built, adjacency=adjacency)).startswith("adjacency must be ")
            with pytest.raises(ValueError, match="adjacency must be one of"):
                case.mechanism.privacy().epsilon(DELTA, adjacency)
        assert reason(lambda: case.built(adjacency="swap")).startswith("adjacency must be one of ")
        others = {Interval: Interval(), NormBall: NormBall(2, 2.0), Categories: Categories(4)}
        for kind in {*others} - {*case.entry.domains}:
            assert reason(partial(case.built, domain=others[kind])).startswith("domain must be ")
        for norm in {*NORMS, 3.0} - {*(case.entry.norms or (*NORMS, 3.0))} if NormBall in case.entry.domains else ():
            assert reason(partial(case.built, domain=NormBall(2, norm))).startswith("norm must be ")

    def test_sampled_clients_are_hidden_better_or_seen(self, sampled_case: Case, tmp_path: Path) -> None:
        sampling = EVERY_SAMPLING[sampled_case.adjacency]
        if sampled_case.entry.trust_model == "local":
            for call in (
                lambda: sampled_case.built(sampling=sampling),
                lambda: sampled_case.mechanism.privacy().report(DELTA, sampling=sampling),
            ):
                assert reason(call).startswith("sampling must be left out in the local trust model")
            return
        privacy = sampled_case.mechanism.privacy()
        sampled = privacy.epsilon(DELTA, sampled_case.adjacency, sampling=sampling)
        assert sampled < privacy.epsilon(DELTA, sampled_case.adjacency)
        assert accounted(sampled_case, sampled_case.mechanism, tmp_path).report(DELTA, sampling=sampling).epsilon == sampled
        mechanism = sampled_case.built(sampling=sampling)
        assert 0 < mechanism.privacy().epsilon(DELTA, sampled_case.adjacency, sampling=sampling) <= EPSILON
        other = next(sampling for name, sampling in EVERY_SAMPLING.items() if name != sampled_case.adjacency)
        assert reason(lambda: privacy.report(DELTA, sampled_case.adjacency, sampling=other)).startswith("sampling must be ")

    @pytest.mark.parametrize("rounds", [1, 7])
    def test_there_is_one_computation_of_privacy(self, case: Case, rounds: int, tmp_path: Path) -> None:
        mechanism = case.mechanism
        report = accounted(case, mechanism, tmp_path).report(mechanism.delta, rounds)
        stated = mechanism.privacy().report(mechanism.delta, case.adjacency, rounds)
        assert (report.privacy.adjacency, report.privacy.rounds) == (case.adjacency, rounds)
        assert report.epsilon == stated.epsilon
        # Each account's proven bound must be the same.
        for expected in stated.accounts:
            row = report.privacy.account(expected.name)
            assert (row.bound.epsilon, row.proven, row.assumes) == (expected.bound.epsilon, expected.proven, expected.assumes)
        if mechanism.guarantee.metric is None:
            assert mechanism.guarantee.epsilon == mechanism.privacy().epsilon(mechanism.delta, case.adjacency)
        else:
            # The guarantee covers two inputs at distance one.
            assert mechanism.guarantee.epsilon >= mechanism.privacy().epsilon(mechanism.delta, case.adjacency)

    @pytest.mark.parametrize("rounds", [1, 7])
    def test_calibrate_build_and_account_agree(self, case: Case, rounds: int, tmp_path: Path) -> None:
        entry, chosen, budget = case.entry, given(case), Budget(EPSILON, DELTA, case.adjacency, rounds)
        if not entry.private:
            return
        subject = entry.calibrate(budget, chosen)
        task, reached = subject.task, subject.report(DELTA, rounds)
        assert reached.epsilon <= EPSILON
        json.dumps(reached.document(), allow_nan=False)
        assert "clip_norm" not in subject.details
        if task is None:
            # Noise has only its own parameters, which are the details and give the same account.
            names = [option.name for option in entry.account_options]
            parameters = {**chosen, **subject.details, "epsilon": subject.details.get("epsilon_per_round")}
            values = {name: parameters[name] for name in names if parameters.get(name) is not None}
        else:
            built = entry.mechanism_for(task, {option.name: chosen[option.name] for option in entry.options})
            stated = built.privacy().report(DELTA, case.adjacency, rounds)
            assert {row.name: row.bound.epsilon for row in stated.accounts} == by_account(reached)
            assert (subject.bits_per_client, task.budget) == (built.bits_per_client, budget)
            values = account_values(case, built, tmp_path)
        checked = check_values(entry.name, entry.account_options, values) | {"delta": DELTA}
        again = entry.account(checked, case.adjacency, None).report(DELTA, rounds)
        assert by_account(again) == by_account(reached)

    @pytest.mark.parametrize("dimension", DIMENSIONS)
    def test_a_mechanism_is_made_from_the_parameters_that_calibration_states(self, entry: Entry, dimension: int) -> None:
        if entry.mechanism is None or NormBall not in entry.domains:
            return
        for small in self.cases_of(entry):
            if not isinstance(small.domain, NormBall):
                continue
            case = replace(small, domain=replace(small.domain, dimension=dimension))
            subject = entry.calibrate(Budget(EPSILON, DELTA, case.adjacency), given(case))
            assert subject.task is not None
            mechanism = entry.mechanism_for(subject.task, case.options)
            own = {"delta": DELTA, "adjacency": case.adjacency}
            assert made(entry.mechanism, {**subject.details, **own}) == mechanism
            assert (mechanism.domain, mechanism.bits_per_client) == (case.domain, subject.bits_per_client)

    def test_epsilon_does_not_fall_with_rounds_or_rise_with_delta(self, case: Case, tmp_path: Path) -> None:
        subject = accounted(case, case.mechanism, tmp_path)
        deltas, rounds = (1e-6, 1e-4, 1e-2), (1, 2, 7)
        reports = [[subject.report(delta, number).privacy for number in rounds] for delta in deltas]
        for name in [account.name for account in subject.privacy.accounts]:
            grid = np.array([[report.account(name).bound.epsilon for report in row] for row in reports])
            for less, more in ((grid[:, :-1], grid[:, 1:]), (grid[1:], grid[:-1])):
                finite = np.isfinite(less) & np.isfinite(more)
                assert (less[finite] <= more[finite] * (1 + GRID)).all()

    def test_an_audit_finds_much_of_the_guarantee_and_does_not_refute_it(self, case: Case) -> None:
        mechanism = case.small
        # Other clients at the edge hide a client the least in a secure sum of messages drawn around their vectors.
        others = "same" if isinstance(mechanism, SecureSumMechanism) else "zero"
        repetitions = case.trial.repetitions or (2000 if case.trial.slow else 20_000)
        result = audit(mechanism, repetitions, np.random.default_rng(3), others=others, confidence=CONFIDENCE)
        assert result.claim == mechanism.guarantee
        assert (result.claim.adjacency, result.claim.trust_model) == (case.adjacency, case.entry.trust_model)
        assert not result.refuted
        # Without a claim, the audit must measure much of what the repetitions can reveal.
        claimed = result.claim.epsilon if case.entry.private else 17.0
        assert result.measured.epsilon_lower_bound > case.trial.audited_share * claimed
