import re
from datetime import date
from pathlib import Path

import pytest
from deployments import NAMES, deployment_of_name, inputs_of, messages_of

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.analysis.deployed_clients.references import reference_errors
from quietbits.design.deployment.decoder import VALUE
from quietbits.design.deployment.deployment import Deployment
from quietbits.figures.report.deployment_report import deployment_report_html, write_deployment_report


def text_of(page: str) -> str:
    """Return the words of a page, without its figure."""
    return " ".join(re.sub(r"<(svg|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL).split())


@pytest.mark.parametrize("name", NAMES)
def test_the_page_states_the_estimate_and_its_deployment(name: str, tmp_path: Path) -> None:
    deployment = deployment_of_name(name, rounds=2)
    estimate = deployment.decoder().add(*messages_of(deployment, inputs_of(deployment, 300))).estimate()
    write_deployment_report(deployment, estimate, tmp_path / "report.html", command="quietbits decode <folder>")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = text_of(page)
    for stated in (
        deployment.hash,
        deployment.privacy_words,
        "300 accepted messages",
        "1 round, epsilon",
        "quietbits decode &lt;folder&gt;",
    ):
        assert stated in text
    assert f"quietbits {deployment.version}" in text
    assert page.count("<svg") == 1
    assert 'class="warning"' not in page
    assert not re.findall(r"https?://(?!www\.w3\.org)|@import|<link|<script", page)
    errors = reference_errors(deployment, 300)
    assert f"the mechanism's worst case {errors.worst:.4g}" in text.replace("&#39;", "'")
    assert errors.lower_bound is None or errors.lower_bound <= errors.worst * (1 + 1e-9)


def test_many_items_are_drawn_in_part() -> None:
    deployment = deploy("hadamard-response", epsilon=2.0, categories=100)
    estimate = deployment.decoder().add(*messages_of(deployment, inputs_of(deployment, 500))).estimate()
    text = text_of(deployment_report_html(deployment, estimate))
    assert "The 30 largest estimates" in text
    assert f"is item {int(estimate.mean.argmax())}:" in text  # type: ignore[union-attr]


def test_an_expired_deployment_and_many_refused_messages_are_warnings() -> None:
    table = deployment_of_name("table")
    deployment = Deployment(table.mechanism, table.mechanism_name, valid_until="2027-01-31")
    decoder = deployment.decoder().add(*messages_of(deployment, inputs_of(deployment, 90)))
    page = deployment_report_html(deployment, decoder.estimate(), today=date(2027, 1, 31))
    assert 'class="warning"' not in page
    decoder.refuse(VALUE, 10)
    page = deployment_report_html(deployment, decoder.estimate(), today=date(2027, 2, 1))
    assert page.count('class="warning"') == 2
    assert "The deployment expired: it was valid until 2027-01-31, and this page is of 2027-02-01." in page
    assert "0.1 of all messages were refused" in page
    assert f"refused: {VALUE} 10" in text_of(page)


def test_a_mechanism_outside_the_registry_has_no_references() -> None:
    table = deployment_of_name("table")
    errors = reference_errors(Deployment(table.mechanism, "my-own"), 100)
    assert (errors.central, errors.lower_bound) == (None, None)
    assert errors.worst > 0
