"""The account of a composition.

Points under test: it is `compose`, a single part is `account`, adjacencies of parts, what each part assumes, plug-ins, errors.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

import quietbits
from quietbits.analysis.catalogue.accounts import account
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.composition.account import account_after_each_part, account_composition
from quietbits.analysis.composition.spec import AccountedPart, Composition
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

DELTA = 1e-6
REPLACE, ADD = "replace-one", "add-or-remove-one"
LAPLACE = AccountedPart.of("laplace", rounds=5, epsilon=0.1)
LOCAL = AccountedPart.of("cldp", epsilon=0.5)
CENTRAL: dict[str, Any] = {"noise_multiplier": 5.0, "trust_model": "central"}
SUM: dict[str, Any] = {"clients": 1000, "dimension": 16, "granularity": 0.01, "local_sigma": 0.5}


def composed(*parts: AccountedPart, adjacency: str | None = None) -> quietbits.CompositionReport:
    return account_composition(Composition(parts), delta=DELTA, adjacency=adjacency)


def epsilons(report: quietbits.CompositionReport | Any) -> dict[str, float]:
    return {answer.name: answer.bound.epsilon for answer in report.privacy.accounts}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("laplace", {"epsilon": 0.1}),
        ("gaussian", {"noise_multiplier": 5.0}),
        ("distributed-discrete-gaussian", SUM),
        ("poisson-binomial", {"clients": 1000, "dimension": 4, "trials": 4, "theta": 0.1}),
        ("shuffled-frequency-randomised-response", {"clients": 1000, "epsilon": 1.0, "categories": 4}),
        ("binomial", {"trials": 5000, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 1.0, "l2": 1.0, "linf": 1.0}),
        ("dp-rec", {"clip_ratio": 0.01, "population": 1000, "clients_per_round": 10, "index_bits": 12}),
        ("cldp", {"epsilon": 0.5}),
    ],
)
def test_one_part_is_its_account(name: str, parameters: dict[str, Any]) -> None:
    own = account(name, delta=DELTA, rounds=3, **parameters)
    report = composed(AccountedPart.of(name, rounds=3, **parameters))
    assert epsilons(report) == epsilons(own)
    assert (report.epsilon, report.privacy.rounds, report.privacy.adjacency) == (own.epsilon, 3, own.privacy.adjacency)
    # Two parts that are equal are one with the sum of their rounds.
    parts = [AccountedPart.of(name, rounds=rounds, **parameters) for rounds in (1, 2)]
    assert epsilons(composed(*parts)) == epsilons(own)


def test_parts_without_an_adjacency_take_that_of_the_composition() -> None:
    summed = AccountedPart.of("distributed-discrete-gaussian", **SUM)
    # The sum's usual adjacency is add-or-remove-one; beside a local mechanism it has replace-one accounts of its own.
    assert composed(summed).privacy.adjacency == ADD
    mixed = composed(summed, LAPLACE)
    assert [part.privacy.adjacency for part in mixed.parts] == [REPLACE, REPLACE]
    converted = composed(replace(summed, adjacency=ADD), LAPLACE)
    assert [part.privacy.adjacency for part in converted.parts] == [ADD, REPLACE]
    assert mixed.epsilon < converted.epsilon
    assert f"{ADD} adjacency, counted for {REPLACE} adjacency at twice the distance" in converted.parts[0].assumptions
    with pytest.raises(InfeasibleError, match=f"adjacency must be {REPLACE} for part 2, got {ADD}"):
        composed(summed, LOCAL, adjacency=ADD)
    with pytest.raises(ValueError, match="part 1, laplace: adjacency must be one of replace-one, got 'add-or-remove-one'"):
        composed(replace(LAPLACE, adjacency=ADD))


def test_each_part_states_its_assumptions() -> None:
    report = composed(
        LAPLACE,
        AccountedPart.of("distributed-discrete-gaussian", **SUM),
        AccountedPart.of("gaussian", sampling=FixedSizeSampling(1000, 10), **CENTRAL),
        AccountedPart.of("shuffled-frequency-randomised-response", clients=1000, epsilon=1.0, categories=4),
        AccountedPart.of("binomial", trials=5000, probability=0.5, scale=1.0, dimension=1, l1=1.0, l2=1.0, linf=1.0),
    )
    local, summed, central, shuffled, noise = (" ".join(part.assumptions) for part in report.parts)
    assert "no party is trusted" in local
    assert "floating-point messages reveal more" in local
    assert "all 1000 clients add their noise: epsilon is larger if some drop out" in summed
    assert "the server is trusted" in central
    assert "nobody but the server learns who was sampled" in central
    assert "all 1000 clients draw theirs by the protocol" in shuffled
    assert "clones does not count: it is not proven" in shuffled
    assert "theorem-1 does not count: it is not proven" in noise
    assert report.privacy.trust_model == "central"


def test_the_document_has_the_keys_of_accounts() -> None:
    report = composed(LAPLACE, AccountedPart.of("gaussian", sampling=PoissonSampling(0.01), rounds=7, **CENTRAL))
    document = report.document()
    own = account("gaussian", delta=DELTA, **CENTRAL).document()
    shared = {"mechanism", "bits_per_client", "epsilon", "delta", "rounds", "adjacency", "trust_model", "sampling", "method", "accounts"}
    assert shared <= own.keys() & document.keys()
    assert (document["rounds"], document["method"]) == (12, report.privacy.best.name)  # type: ignore[union-attr]
    assert [part["rounds"] for part in document["parts"]] == [5, 7]
    assert document["parts"][1]["sampling"] == "Poisson sampling with probability 0.01"
    assert document["parts"][0]["parameters"] == {"epsilon": 0.1, "dimension": 1, "norm": "1"}
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert report.summary.startswith("2 parts: laplace, gaussian: epsilon = ")
    assert list(report.to_frame()["account"]) == list(document["accounts"])


def test_epsilon_after_each_part_rises() -> None:
    parts = Composition((LAPLACE, AccountedPart.of("gaussian", noise_multiplier=5.0), replace(LAPLACE, rounds=2)))
    reports = account_after_each_part(parts, delta=DELTA)
    assert [report.privacy.rounds for report in reports] == [5, 6, 8]
    assert reports[0].epsilon < reports[1].epsilon < reports[2].epsilon == account_composition(parts, delta=DELTA).epsilon


def test_without_delta_pure_guarantees_add_up() -> None:
    pure = account_composition(Composition((LAPLACE, AccountedPart.of("cldp", epsilon=0.5, rounds=2))))
    assert pure.epsilon == pytest.approx(1.5, rel=1e-12)
    with pytest.raises(ValueError, match="delta must be given for parts without a pure guarantee"):
        account_composition(Composition((LAPLACE, AccountedPart.of("gaussian", noise_multiplier=5.0))))


def test_errors_name_the_part() -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        composed(LAPLACE, AccountedPart.of("table", table="missing.json"))
    with pytest.raises(ValueError, match="sampling of part 2 must be left out in the local trust model"):
        composed(LAPLACE, replace(LOCAL, sampling=PoissonSampling(0.1)))
    with pytest.raises(ValueError, match="adjacency must be one of replace-one, add-or-remove-one, got 'both'"):
        composed(LAPLACE, adjacency="both")


def test_a_registered_entry_is_a_part() -> None:
    own = replace(REGISTRY["cldp"], name="my-cldp", title="An entry of a script")
    REGISTRY["my-cldp"] = own
    try:
        report = composed(LAPLACE, AccountedPart.of("my-cldp", epsilon=0.5, rounds=2))
    finally:
        del REGISTRY["my-cldp"]
    assert report.epsilon == composed(LAPLACE, AccountedPart.of("cldp", epsilon=0.5, rounds=2)).epsilon
    assert report.parts[1].part.name == "my-cldp"
