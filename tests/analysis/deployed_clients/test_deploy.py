from pathlib import Path

import pytest
from deployments import deployment_of_name

import quietbits
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.deployed_clients.deploy import deploy, deploy_table
from quietbits.design.tables.file import write_table
from quietbits.errors import InfeasibleError, TableError


def test_the_mechanism_is_that_of_calibrate() -> None:
    deployment = deploy("hadamard-response", epsilon=3.0, rounds=3, categories=50)
    assert deployment.mechanism.guarantee.epsilon == pytest.approx(1.0)
    assert deployment.epsilon == pytest.approx(3.0)
    assert deployment.epsilon <= 3.0


def test_a_table_is_read_from_its_file(tmp_path: Path) -> None:
    table = deployment_of_name("table").table
    assert table is not None
    write_table(table, tmp_path / "table.json")
    deployment = deploy_table(tmp_path / "table.json", rounds=4, name="age")
    assert (deployment.epsilon, deployment.rounds, deployment.full_name) == (pytest.approx(6.0), 4, "age")
    (tmp_path / "table.json").write_text("{}")
    with pytest.raises(TableError):
        deploy_table(tmp_path / "table.json")


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if entry.on_real_numbers])
def test_references_on_real_numbers_are_refused(name: str) -> None:
    with pytest.raises(InfeasibleError, match=f"mechanism must be released as it is, got {name}"):
        deploy(name, epsilon=1.0)


def test_mechanisms_without_clients_say_so() -> None:
    with pytest.raises(InfeasibleError, match="mechanism must have clients in other languages, got"):
        deploy("poisson-binomial", epsilon=1.0, delta=1e-5, clients=100, dimension=4, bits=8).program  # noqa: B018


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="mechanism must be a name that quietbits deploy --help lists, got 'cdlp': did you mean cldp"):
        deploy("cdlp", epsilon=1.0)
    assert quietbits.__version__ == deploy("cldp", epsilon=1.0).version
