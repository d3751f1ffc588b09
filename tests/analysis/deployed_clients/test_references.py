import pytest
from deployments import NAMES, deployment_of_name

from quietbits.analysis.deployed_clients.references import reference_errors


@pytest.mark.parametrize("name", NAMES)
def test_the_worst_error_is_above_the_bound_and_falls_with_clients(name: str) -> None:
    deployment = deployment_of_name(name)
    few, many = reference_errors(deployment, 1000), reference_errors(deployment, 4000)
    assert many.worst == pytest.approx(few.worst / 4)
    assert few.lower_bound is None or few.lower_bound <= few.worst
