"""Tests of the explorer's page in headless Chromium.

Points under test: keyboard, screen readers and narrow windows; the client that the page runs; the table that it hands out.
"""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from quietbits.analysis.deployed_clients.deploy import deploy_table
from quietbits.design.deployment.folder import deployment_files
from quietbits.design.tables.file import read_table, write_table
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.errors import DataError
from quietbits.figures.explorer import explorer_page
from quietbits.figures.explorer.explorer_page import explorer_html, write_explorer
from quietbits.figures.explorer.table_record import script_json, table_record, variance_lines
from quietbits.progress import silent
from quietbits.tests.browser import NARROW, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = ("heat", "letters", "variance", "renyi", "estimate")
# No table has epsilon 3 and two bits.
TABLES = {
    "epsilon_1_bits_2_1.json": {"epsilon": 1.0, "bits_out": 1},
    "epsilon_1_bits_2_2.json": {"epsilon": 1.0, "bits_out": 2},
    "epsilon_2_bits_2_1.json": {"epsilon": 2.0, "bits_out": 1, "metric": "l1"},
    "epsilon_3_bits_2_1.json": {"epsilon": 3.0, "bits_out": 1},
}
DEPLOYED = "epsilon_1_bits_2_2.json"
# Standard errors of a mean that true draws exceed with a probability of 6e-7.
MOST_ERRORS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explorer") / "tables"
    folder.mkdir()
    for name, design in TABLES.items():
        write_table(design_mvu(bits_in=2, interval=(-1.0, 3.0), **design), folder / name)
    return folder


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    output = folder.parent / "explorer.html"
    assert write_explorer(folder, output, on_step=silent) == len(TABLES)
    return output


def wait(page: "Page") -> None:
    """Wait until the page has drawn its first table."""
    page.wait_for_function("document.getElementById('summary').textContent !== ''")


def sentence(page: "Page") -> str:
    return page.text_content("#summary") or ""


def choose(page: "Page", name: str) -> None:
    page.select_option("#file", label=name)
    page.wait_for_function(f"explorer.state.table.file === {json.dumps(name)}")


def descriptions(page: "Page") -> dict[str, str]:
    return {key: page.get_attribute(f"#{key} [role=img]", "aria-label") or "" for key in PICTURES}


def test_a_slider_moves_by_keyboard_and_the_pictures_follow(browser: "Browser", file: Path) -> None:
    with visit(browser, file) as opened:
        page = opened.page
        wait(page)
        before, summary, heat = descriptions(page), page.text_content("#summary"), page.inner_html("#heat svg")
        page.keyboard.press("Tab")
        assert page.evaluate("[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]") == ["epsilon", "solid"]
        assert page.get_attribute("#epsilon", "aria-valuetext") == "1"
        page.keyboard.press("ArrowRight")
        page.wait_for_function("explorer.state.table.file === 'epsilon_2_bits_2_1.json'")
        after = descriptions(page)
        assert page.get_attribute("#epsilon", "aria-valuetext") == "2"
        assert page.inner_html("#heat svg") != heat
        assert [key for key in PICTURES if after[key] in ("", before[key])] == []
        assert page.text_content("#summary") != summary
        # The metric moved too, and the page says so.
        assert sentence(page).startswith("No table has epsilon 2, bits in 2, bits out 1, metric none (local privacy): ")
        # A value changes three pictures, and not the table's own.
        page.focus("#value")
        page.keyboard.press("Home")
        at_the_end = descriptions(page)
        assert [key for key in PICTURES if at_the_end[key] != after[key]] == ["letters", "variance", "estimate"]
        assert page.get_attribute("#value", "aria-valuetext") == "\N{MINUS SIGN}1"


def test_every_control_and_picture_has_a_name(browser: "Browser", file: Path) -> None:
    names: dict[Any, list[str]] = {
        "slider": ["Epsilon", "Bits in", "Bits out", "A client's value"],
        "combobox": ["Metric", "File"],
        "button": ["Send 1 message", "Send 100", "Send 10,000", "Start over"],
        "link": ["Download the table", "Download its JavaScript client"],
        "img": [
            "Heat map of 4 inputs",
            "Probabilities of 2 letters",
            "Variance by value",
            "Rényi epsilon by order",
            "No message has been sent",
        ],
    }
    with visit(browser, file) as opened:
        page = opened.page
        wait(page)
        for role, of_role in names.items():
            assert page.get_by_role(role).count() == len(of_role), role
            assert [name for name in of_role if page.get_by_role(role, name=name).count() == 0] == []
        assert page.get_by_role("status").count() == 2


def test_a_combination_without_a_table_moves_to_the_nearest(browser: "Browser", file: Path) -> None:
    with visit(browser, file) as opened:
        page = opened.page
        wait(page)
        choose(page, "epsilon_3_bits_2_1.json")
        page.focus("#bits_out")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("explorer.state.table.file === 'epsilon_1_bits_2_2.json'")
        assert sentence(page).startswith("No table has epsilon 3, bits in 2, bits out 2, ")
        assert page.input_value("#epsilon") == "0"
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("explorer.state.table.file === 'epsilon_1_bits_2_1.json'")
        assert sentence(page).startswith("With epsilon 1, bits in 2, bits out 1, ")


def test_numbers_fit_a_narrow_window_and_are_those_of_the_table(browser: "Browser", file: Path, folder: Path) -> None:
    table = read_table(folder / DEPLOYED)
    with visit(browser, file, width=NARROW) as opened:
        page = opened.page
        wait(page)
        choose(page, DEPLOYED)
        page.click("[data-send='100']")
        for key in PICTURES:
            page.click(f"#{key} summary")
        assert opened.beyond_the_window() == []
        rows = page.locator("#heat tbody tr")
        shown = [
            [float(cell.replace("\N{MINUS SIGN}", "-")) for cell in rows.nth(row).locator("td").all_text_contents()]
            for row in range(rows.count())
        ]
        assert np.allclose(shown, table.probabilities, rtol=1e-3)
        assert page.locator("#renyi tbody tr").count() == len(table_record(DEPLOYED, b"", table)["orders"]) + 1


def test_the_downloaded_table_is_the_file(browser: "Browser", file: Path, folder: Path, tmp_path: Path) -> None:
    with visit(browser, file) as opened:
        page = opened.page
        wait(page)
        choose(page, DEPLOYED)
        with page.expect_download() as download:
            page.click("#download")
        assert download.value.suggested_filename == DEPLOYED
        download.value.save_as(tmp_path / DEPLOYED)
    assert (tmp_path / DEPLOYED).read_bytes() == (folder / DEPLOYED).read_bytes()
    read_table(tmp_path / DEPLOYED)


def test_the_page_runs_the_deployed_client(browser: "Browser", file: Path, folder: Path, tmp_path: Path) -> None:
    files = deployment_files(deploy_table(folder / DEPLOYED), ["typescript"])
    vectors = json.loads(files["vectors.json"])["vectors"]
    with visit(browser, file) as opened:
        page = opened.page
        wait(page)
        choose(page, DEPLOYED)
        messages = page.evaluate(
            """async vectors => {
                const { client } = await explorer.opened;
                return vectors.map(({ input, words }) => {
                    const left = words.map(BigInt), message = client.encodeWith(Number(input), { next: () => left.shift() });
                    return [Array.from(message, byte => byte.toString(16).padStart(2, "0")).join(""), left.length];
                });
            }""",
            vectors,
        )
        assert messages == [[vector["message"], 0] for vector in vectors]
        with page.expect_download() as download:
            page.click("#download-client")
        download.value.save_as(tmp_path / "index.js")
    assert (tmp_path / "index.js").read_bytes() == files["typescript/index.js"]


def test_sent_messages_converge_to_the_value(browser: "Browser", file: Path, folder: Path) -> None:
    table, count = read_table(folder / DEPLOYED), 20_000
    with visit(browser, file) as opened:
        page = opened.page
        wait(page)
        choose(page, DEPLOYED)
        for _ in range(2):
            page.click("[data-send='10000']")
        value, sent = page.evaluate("[explorer.state.table.values[explorer.state.step], explorer.state.sent]")
        error = math.sqrt(table.variance([value])[0] / count)
        assert (sent["count"], sum(sent["counts"])) == (count, count)
        assert sent["mean"] == pytest.approx(np.dot(sent["counts"], table.letters) / count)
        assert abs(sent["mean"] - value) < MOST_ERRORS * error
        assert (page.text_content("#sent") or "").startswith("20,000 messages about the value 0.6: the estimate is ")
        stated = float((page.text_content("#sent") or "").rpartition(" ")[2].rstrip("."))
        assert stated == pytest.approx(error, rel=0.05)
        page.click("#again")
        assert page.text_content("#sent") == "No message has been sent yet."


def test_bounds_of_the_page_are_those_of_the_certificate(folder: Path) -> None:
    table = read_table(folder / "epsilon_1_bits_2_1.json")
    certificate = table.certificate
    lines = {line.kind: line for line in variance_lines(table)}
    assert (lines["objective"].height, lines["letters"].height, lines["bound"].height) == (
        16 * certificate.mean_variance,
        16 * (certificate.letters_lower_bound or 0.0),
        16 * (certificate.lower_bound or 0.0),
    )
    assert all(float(lines[kind].text) <= lines[kind].height for kind in ("letters", "bound"))
    # One letter bound equals the other where no search was made: it is drawn once.
    assert [line.kind for line in variance_lines(read_table(folder / DEPLOYED))] == ["objective", "bound"]
    record = table_record("table.json", b"", table)
    assert np.allclose(record["variances"], table.variance(np.linspace(*record["interval"], record["steps"] + 1)), rtol=1e-4)
    assert record["pure"] >= max(record["divergences"])


def test_a_changed_table_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    content = (folder / DEPLOYED).read_bytes()
    (tmp_path / "sound.json").write_bytes(content)
    (tmp_path / "changed.json").write_bytes(content.replace(b'"epsilon": 1.0', b'"epsilon": 0.5'))
    with pytest.raises(DataError, match=r"changed\.json: refused: checksum: ") as refusal:
        write_explorer(tmp_path, tmp_path / "explorer.html", on_step=silent)
    assert "sound.json" not in str(refusal.value)
    (tmp_path / "worse.json").write_bytes(b"{}")
    with pytest.raises(DataError, match="; and 1 more, which quietbits verify lists"):
        write_explorer(tmp_path, tmp_path / "explorer.html", on_step=silent)
    assert not (tmp_path / "explorer.html").exists()


def test_a_page_that_is_too_large_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer_page, "LARGEST_PAGE", 20_000)
    with pytest.raises(DataError, match=r"its tables must make a page of at most 0\.02 megabytes, got "):
        write_explorer(folder, tmp_path / "explorer.html", on_step=silent)
    assert not (tmp_path / "explorer.html").exists()


def test_a_narrow_interval_far_from_zero_keeps_its_digits(browser: "Browser", tmp_path: Path) -> None:
    low, high = 1e9, 1e9 + 10
    write_table(generalised_randomised_response(1.0, 2, interval=(low, high)), tmp_path / "far.json")
    write_explorer(tmp_path, tmp_path / "explorer.html", on_step=silent)
    with visit(browser, tmp_path / "explorer.html") as opened:
        page = opened.page
        wait(page)
        values = page.evaluate("explorer.state.table.values")
        assert (values[0], values[-1]) == (low, high)
        assert np.allclose(np.diff(values), (high - low) / (len(values) - 1), rtol=1e-4)
        assert page.get_attribute("#value", "aria-valuetext") == "1,000,000,004"
        # The rows and letters of the heat map and the ticks of the axes differ.
        for key in ("heat", "letters", "variance"):
            words = page.locator(f"#{key} svg text[text-anchor=middle]").all_text_contents()
            assert len(set(words)) == len(words) > 1
        page.click("[data-send='10000']")
        sent = page.evaluate("explorer.state.sent")
        assert f"the estimate is {sent['mean']:,.2f}" in (page.text_content("#sent") or "")


def test_names_are_text(browser: "Browser", tmp_path: Path) -> None:
    name = "</script><script>throw new Error('run')</script>.json"
    document: Any = {"name": name, "also": "<!--&amp;"}
    assert json.loads(script_json(document)) == document
    assert not {"<", ">", "&"} & set(script_json(document))
    page = explorer_html({name: generalised_randomised_response(1.0, 1), "b.json": generalised_randomised_response(2.0, 1)})
    (tmp_path / "explorer.html").write_text(page, encoding="utf-8")
    with visit(browser, tmp_path / "explorer.html") as opened:
        wait(opened.page)
        assert opened.page.locator("#file option").first.text_content() == name
