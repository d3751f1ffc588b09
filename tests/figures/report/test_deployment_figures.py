import numpy as np
import pytest
from deployments import NAMES, deployment_of_name, inputs_of, messages_of

from quietbits.figures.report.deployment_figures import estimate_figure, in_order


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_drawn(name: str) -> None:
    deployment = deployment_of_name(name)
    estimate = deployment.decoder().add(*messages_of(deployment, inputs_of(deployment, 200))).estimate()
    figure = estimate_figure(deployment, estimate)
    assert figure.startswith("<svg")
    # The same estimate has the same picture.
    assert figure == estimate_figure(deployment, estimate)


def test_items_stand_by_frequency_and_coordinates_in_order() -> None:
    values = np.array([0.1, 0.5, 0.4])
    assert in_order("item", values) == [1, 2, 0]
    assert in_order("vector", values) == [0, 1, 2]
