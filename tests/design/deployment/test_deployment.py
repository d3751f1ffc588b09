import copy
import json
from typing import Any

import pytest
from deployments import NAMES, deployment_of_name, leaves

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.deployment.deployment import Deployment, deployment_of
from quietbits.design.frequencies.randomised_response import FrequencyRandomisedResponse
from quietbits.errors import DataError, InfeasibleError


@pytest.mark.parametrize("name", NAMES)
def test_a_document_gives_the_same_deployment(name: str) -> None:
    deployment = deployment_of_name(name, rounds=2)
    document = json.loads(json.dumps(deployment.document()))
    again = deployment_of(document, deployment.table)
    assert again.document() == deployment.document()
    assert (again.hash, again.hash_start.hex()) == (deployment.hash, deployment.hash[:16])
    assert deployment_of_name(name, rounds=3).hash != deployment.hash


def changes(value: Any) -> list[Any]:
    """Return other values of a leaf."""
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int):
        return [value + 1, float(value), str(value), None, -value - 1]
    if isinstance(value, str):
        digit = next((place for place, letter in enumerate(value) if letter.isdigit()), None)
        near = [] if digit is None else [value[:digit] + str((int(value[digit]) + 1) % 10) + value[digit + 1 :]]
        return [f"{value}0", f" {value}", value[1:], None, 0, *near]
    return [0, "", False, [], {}]


@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_any_field_is_refused(name: str) -> None:
    deployment = deployment_of_name(name, rounds=2)
    document = json.loads(json.dumps(deployment.document()))
    places = list(leaves(document))
    assert len(places) > 20
    for container, key in places:
        value = container[key]
        for changed in changes(value):
            container[key] = changed
            with pytest.raises(ValueError, match=r"^.+$"):
                deployment_of(copy.deepcopy(document), deployment.table)
        del container[key]
        with pytest.raises(ValueError, match=r"^.+$"):
            deployment_of(copy.deepcopy(document), deployment.table)
        if isinstance(container, list):
            container.insert(key, value)
        else:
            container[key] = value
    document["more"] = None
    with pytest.raises(DataError, match="more differs"):
        deployment_of(document, deployment.table)


def test_changes_are_named() -> None:
    deployment = deployment_of_name("randomised-response")
    for key, value, message in (
        ("rounds", 2, "rounds differs|client_budget differs"),
        ("trust_model", "shuffled", 'trust_model differs: the file states "shuffled", the mechanism\'s parameters give "local"'),
        ("public_words", 0.0, "public_words differs: the file states 0.0, the mechanism's parameters give 0"),
        ("sha256", "0" * 64, "sha256 differs"),
        ("format", "quietbits-deployment/2", "format must be 'quietbits-deployment/1', got 'quietbits-deployment/2'"),
    ):
        with pytest.raises(ValueError, match=message):
            deployment_of(deployment.document() | {key: value}, None)


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": {}, "categories": 5},
        {"epsilon": {"float": 10**400}, "categories": 5},
        {"epsilon": {"float": "1.0", "more": 0}, "categories": 5},
        {"epsilon": {"float": [1]}, "categories": 5},
        {"epsilon": {"os": {}}, "categories": 5},
        {"epsilon": {"table": "table.json", "sha256": "0"}, "categories": 5},
        {"epsilon": {"NormBall": {"dimension": 3}}, "categories": 5},
        {"epsilon": {"float": "1.0"}},
        [],
        None,
    ],
)
def test_strange_parameters_are_refused(parameters: Any) -> None:
    document = deployment_of_name("randomised-response").document() | {"parameters": parameters}
    with pytest.raises(ValueError, match=r"^.+$"):
        deployment_of(document, None)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "os.path:join",
        "quietbits.cli.main:app",
        "quietbits.design.deployment.deployment:Deployment",
        "antigravity:x",
        ":",
        "",
        "json:JSONDecoder",
    ],
)
def test_only_mechanisms_are_built(name: str) -> None:
    document = deployment_of_name("randomised-response").document() | {"class": name}
    with pytest.raises(DataError, match=r"class must be (a mechanism|of quietbits)"):
        deployment_of(document, None)


def test_a_table_of_another_deployment_is_refused() -> None:
    deployment, other = deployment_of_name("table"), deployment_of_name("table", epsilon=2.0)
    for table in (None, other.table):
        with pytest.raises(DataError, match=r"table.json must be the table with sha256"):
            deployment_of(deployment.document(), table)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rounds", 0, "rounds must be"),
        ("rounds", 1.0, "rounds must be"),
        ("rounds", True, "rounds must be"),
        ("name", "Age", "name must be small letters"),
        ("name", "a--b", "name must be small letters"),
        ("name", "a\n", "name must be small letters"),
        ("name", "a" * 41, "name must be small letters"),
        ("supersedes", "0" * 63, "supersedes must be the hash of a deployment"),
        ("supersedes", "0" * 64 + "\n", "supersedes must be the hash of a deployment"),
        ("valid_until", "2027-02-30", "valid_until must be a day such as 2027-12-31, got '2027-02-30'"),
        ("valid_until", "20271231", "valid_until must be a day such as 2027-12-31, got '20271231'"),
        ("delta", -1.0, "delta must be"),
        ("delta", float("nan"), "delta must be"),
        ("version", "1\n*/ evil", "version must be letters"),
        ("mechanism_name", '"; evil', "mechanism_name must be letters"),
    ],
)
def test_wrong_fields_are_refused(field: str, value: Any, message: str) -> None:
    mechanism = FrequencyRandomisedResponse(1.0, 5)
    with pytest.raises(ValueError, match=message):
        Deployment(**{"mechanism": mechanism, "mechanism_name": "frequency-randomised-response", field: value})


def test_mechanisms_on_real_numbers_are_refused() -> None:
    for name in ("gaussian", "laplace"):
        with pytest.raises(InfeasibleError, match=f"mechanism must be released as it is, got {name}"):
            deploy(name, epsilon=1.0, delta=1e-6 if name == "gaussian" else 0.0)


def test_a_hash_depends_on_the_labels() -> None:
    mechanism, name = FrequencyRandomisedResponse(1.0, 5), "frequency-randomised-response"
    plain = Deployment(mechanism, name)
    labels: list[dict[str, Any]] = [{"name": "a"}, {"rounds": 2}, {"valid_until": "2027-12-31"}, {"supersedes": plain.hash}, {"delta": 0.1}]
    assert len({plain.hash, *(Deployment(mechanism, name, **label).hash for label in labels)}) == 1 + len(labels)
    assert plain.full_name == f"{name}-{plain.hash[:8]}"
    assert plain.identifier.isidentifier()


def test_the_domain_is_stated() -> None:
    parameters = deployment_of_name("ball").document()["parameters"]
    assert parameters["ball"]["NormBall"]["dimension"] == 3
    assert isinstance(deployment_of_name("ball").mechanism.domain, NormBall)
