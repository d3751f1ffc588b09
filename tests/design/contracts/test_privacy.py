"""Tests of reports.

Points under test: the least proven account is the guarantee, other accounts are listed, and every reason is kept.
"""

import json
import math
from typing import Any

import pytest

from quietbits.design.contracts.privacy import Account, EpsilonBound, NearGaussianNoise, Privacy, PrivacyReport
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling


def stating(name: str, epsilon: float, adjacency: str = "replace-one", **fields: Any) -> Account:
    """Return an account with a fixed answer."""
    return Account(name, adjacency, lambda *_: EpsilonBound(epsilon), **fields)


def silent(name: str, reason: str) -> Account:
    def bound(_: float, __: int, ___: Sampling | None) -> EpsilonBound:
        raise InfeasibleError(reason)

    return Account(name, "replace-one", bound)


PRIVACY = Privacy(
    "central",
    (
        stating("theorem", 0.1, proven=False),
        stating("hopeful", 0.2, assumes="others are honest"),
        stating("removed", 0.3, "add-or-remove-one"),
        stating("close", 1.0),
        stating("loose", 2.0),
        silent("demanding", "trials must be more"),
    ),
)


def test_the_least_of_the_proven_accounts_for_the_adjacency_is_the_guarantee() -> None:
    report = PRIVACY.report(1e-5)
    assert report.best is not None
    assert (report.best.name, report.epsilon) == ("close", 1.0)
    assert str(report.guarantee) == "epsilon = 1, delta = 1e-05, replace-one adjacency, central trust model"
    removed = PRIVACY.report(1e-5, "add-or-remove-one")
    assert (removed.epsilon, removed.guarantee.adjacency) == (0.3, "add-or-remove-one")
    assert PRIVACY.epsilon(1e-5) == PRIVACY.guarantee(1e-5).epsilon == 1.0
    assert PRIVACY.epsilon(1e-5, "add-or-remove-one") == 0.3
    assert PRIVACY.adjacencies == ("replace-one", "add-or-remove-one")


def test_a_step_is_reported_before_each_account_and_at_the_end() -> None:
    steps: list[tuple[int, int, str]] = []
    PRIVACY.report(0.1, on_step=lambda *step: steps.append(step))
    names = [account.name for account in PRIVACY.accounts]
    assert steps == [*((done, 6, f"account {name}") for done, name in enumerate(names)), (6, 6, "done")]


def test_what_is_not_proven_or_assumes_something_is_shown_and_never_taken() -> None:
    report = PRIVACY.report(1e-5)
    assert [report.epsilon_by(name) for name in (None, "theorem", "hopeful")] == [1.0, 0.1, 0.2]
    assert [account.is_guarantee for account in PRIVACY.accounts] == [False, False, True, True, True, True]
    weak = Privacy("central", PRIVACY.accounts[:2]).report(1e-5)
    assert weak.best is None
    assert math.isinf(weak.epsilon)
    assert math.isinf(weak.guarantee.epsilon)
    # At least one account is finite.
    weak.check_anything_is_known()


def test_an_account_that_is_infeasible_says_nothing_and_why() -> None:
    answer = PRIVACY.report(1e-5).account("demanding")
    assert answer.bound == EpsilonBound.nothing("trials must be more")
    reasons = (silent("a", "trials must be more"), silent("b", "trials must be more"), silent("c", "delta must be larger"))
    with pytest.raises(InfeasibleError, match=r"^trials must be more; delta must be larger$"):
        Privacy("central", reasons).report(0.1).check_anything_is_known()
    with pytest.raises(InfeasibleError, match="epsilon is infinite: the mechanism is not private"):
        Privacy("central", (stating("none", math.inf),)).report(0.1).check_anything_is_known()


def test_the_question_reaches_every_account_and_the_report() -> None:
    asked: list[tuple[float, int, Sampling | None]] = []

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        asked.append((delta, rounds, sampling))
        return EpsilonBound(1.0, order=4.0, order_at_edge=True, details={"tried": 7})

    sampling = FixedSizeSampling(10, 3)
    report = Privacy("secure-sum", (Account("rdp", "replace-one", bound),)).report(1e-3, "replace-one", 5, sampling)
    # The report compares rounds with all clients, and four of five rounds, which a client's number of rounds exceeds with probability
    # .00243.
    assert asked == [(1e-3, 5, sampling), (1e-3, 5, None)]
    asked.clear()
    Privacy("secure-sum", (Account("rdp", "replace-one", bound),)).report(1e-2, "replace-one", 5, sampling)
    assert asked == [(1e-2, 5, sampling), (1e-2, 5, None), (5e-3, 4, None)]
    assert (report.delta, report.rounds, report.sampling, report.trust_model) == (1e-3, 5, sampling, "secure-sum")
    document = json.loads(json.dumps(report.document(), allow_nan=False))
    assert document == {
        "epsilon": 1.0,
        "delta": 1e-3,
        "rounds": 5,
        "adjacency": "replace-one",
        "trust_model": "secure-sum",
        "sampling": "3 of 10 clients sampled without replacement",
        "method": "rdp",
        "accounts": {
            "rdp": {
                "epsilon": 1.0,
                "proven": True,
                "assumes": None,
                "adjacency": "replace-one",
                "reason": None,
                "order": 4.0,
                "order_at_edge": True,
                "tried": 7,
            }
        },
    }


def test_what_is_not_said_of_accounts_and_bounds_is_the_usual() -> None:
    account = Account("some", "replace-one", lambda *_: EpsilonBound(1.0))
    assert (account.proven, account.assumes, account.at_delta_zero, account.curve, account.near_gaussian) == (True, None, False, None, None)
    assert not NearGaussianNoise(lambda *_: None).of_a_pair
    assert not EpsilonBound(1.0).order_at_edge
    privacy = Privacy("central", (account,))
    report = privacy.report(0.0)
    assert not privacy.allow_real_numbers
    stated = PrivacyReport(report.delta, report.rounds, report.adjacency, report.trust_model, report.sampling, report.accounts)
    assert not stated.guarantee.allow_real_numbers


def test_what_is_infinite_is_null_in_a_document() -> None:
    pure = Account("pure", "replace-one", lambda *_: EpsilonBound(2.0, order=math.inf))
    document = json.loads(json.dumps(Privacy("local", (pure, silent("other", "too dear"))).report(0.0).document(), allow_nan=False))
    assert document["accounts"]["pure"]["order"] is None
    assert (document["accounts"]["other"]["epsilon"], document["accounts"]["other"]["reason"]) == (None, "too dear")
    nothing = Privacy("local", (silent("other", "too dear"),)).report(0.0).document()
    assert nothing["epsilon"] is nothing["method"] is nothing["sampling"] is None


@pytest.mark.parametrize("trust_model", ["secure-sum", "central"])
def test_sampling_amplifies_where_the_server_does_not_see_who_reports(trust_model: str) -> None:
    assert Privacy(trust_model, (stating("any", 1.0),)).report(0.1, sampling=FixedSizeSampling(9, 3)).epsilon == 1.0


def test_sampling_is_refused_where_it_changes_more_than_one_client() -> None:
    message = "sampling must be for replace-one adjacency, got Poisson sampling with probability 0.5, which is for add-or-remove-one"
    with pytest.raises(ValueError, match=message):
        Privacy("central", (stating("any", 1.0),)).report(0.1, sampling=PoissonSampling(0.5))


def each_round(epsilon: float, **fields: Any) -> Account:
    """Return an account that does not support sampling."""

    def bound(_: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        return EpsilonBound(epsilon * rounds) if sampling is None else EpsilonBound.nothing("not sampled")

    return Account("some", "add-or-remove-one", bound, **fields)


def test_only_the_rounds_of_a_client_count_but_with_half_of_delta() -> None:
    # A client that is drawn with probability 1/2 takes part in more than 13 of 15 rounds with probability 16 / 2**15 = .00049.
    result = Privacy("central", (each_round(2.0),)).report(1e-3, rounds=15, sampling=PoissonSampling(0.5)).account("some").bound
    assert (result.epsilon, result.details["participations"]) == (26.0, 13)
    assert Privacy("central", (each_round(2.0),)).report(9e-4, rounds=15, sampling=PoissonSampling(0.5)).epsilon == 28.0


def test_a_client_that_is_hardly_ever_drawn_reveals_nothing() -> None:
    def bound(_: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        assert rounds > 0
        return EpsilonBound(2.0 * rounds) if sampling is None else EpsilonBound.nothing("not sampled")

    privacy = Privacy("central", (Account("some", "add-or-remove-one", bound),))
    assert privacy.report(1e-3, rounds=15, sampling=PoissonSampling(1e-5)).epsilon == 0.0


def test_what_holds_at_delta_zero_counts_all_rounds() -> None:
    account = each_round(2.0, at_delta_zero=True)
    assert Privacy("central", (account,)).report(1e-3, rounds=15, sampling=PoissonSampling(0.5)).epsilon == 30.0


@pytest.mark.parametrize(("rounds", "probability", "delta"), [(4, 0.3, 0.02), (10, 0.1, 0.05), (12, 0.5, 1e-2)])
def test_what_the_rounds_of_a_client_reveal_is_no_less_than_the_truth(rounds: int, probability: float, delta: float) -> None:
    # Randomised response answers in each round whether the client is present, and the number of yes answers determines the exact divergence
    # of all rounds.
    epsilon = 3.0
    there = math.exp(epsilon) / (1 + math.exp(epsilon))
    sampled = probability * there + (1 - probability) * (1 - there)
    claimed = Privacy("central", (each_round(epsilon),)).report(delta, rounds=rounds, sampling=PoissonSampling(probability)).epsilon

    def law(yes: float) -> list[float]:
        return [math.comb(rounds, k) * yes**k * (1 - yes) ** (rounds - k) for k in range(rounds + 1)]

    with_client, without = law(sampled), law(1 - there)
    for first, other in ((with_client, without), (without, with_client)):
        assert math.fsum(max(0.0, p - math.exp(claimed) * q) for p, q in zip(first, other, strict=True)) <= delta
    assert claimed < epsilon * rounds


@pytest.mark.parametrize("sampling", [PoissonSampling(1.0), FixedSizeSampling(9, 3)])
def test_sampling_is_refused_where_the_server_sees_who_reports(sampling: Sampling) -> None:
    message = "sampling must be left out in the local trust model, got '.*': the server sees who reports, so that sampling does not amplify"
    with pytest.raises(ValueError, match=message):
        Privacy("local", (stating("any", 1.0),)).report(0.1, sampling=sampling)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": -0.1}, "delta must be a number from 0 to 1, got -0.1"),
        ({"delta": 1.0}, "delta must be a number from 0 to 1, got 1.0"),
        ({"delta": math.nan}, "delta must be a number from 0 to 1, got nan"),
        ({"delta": 0.1, "rounds": 0}, "rounds must be a whole number from 1 to 1000000000000, got 0"),
        ({"delta": 0.1, "rounds": 1.5}, "rounds must be a whole number from 1 to 1000000000000, got 1.5"),
        ({"delta": 0.1, "adjacency": "swap"}, "adjacency must be one of replace-one, add-or-remove-one, got 'swap'"),
    ],
)
def test_bad_questions_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PRIVACY.report(**arguments)


def test_an_adjacency_without_an_account_is_refused() -> None:
    with pytest.raises(ValueError, match="adjacency must be one of replace-one, got 'add-or-remove-one'"):
        Privacy("local", (stating("any", 1.0),)).report(0.1, "add-or-remove-one")


@pytest.mark.parametrize("source", [PRIVACY, PRIVACY.report(0.1)])
def test_an_unknown_account_is_refused_with_those_that_there_are(source: Any) -> None:
    with pytest.raises(ValueError, match="account must be one of theorem, hopeful, removed, close, loose, demanding, got 'rdp'"):
        source.account("rdp")


def test_the_line_states_guarantee_rounds_sampling_and_account() -> None:
    privacy = Privacy("central", (stating("close", 1.0, "add-or-remove-one"),))
    report = privacy.report(1e-5, rounds=3, sampling=PoissonSampling(0.5))
    assert report.summary == f"{report.guarantee}, 3 rounds, {PoissonSampling(0.5)}, by close"
    assert privacy.report(1e-5).summary == f"{privacy.guarantee(1e-5)}, 1 round, by close"
    nothing = Privacy("central", (silent("demanding", "trials must be more"),)).report(1e-5)
    assert nothing.summary == f"{nothing.guarantee}, 1 round"
