"""The index page: outcomes computed from the tables, parts named as such, and a page that fits and is quiet."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from quietbits.figures import registry
from quietbits.figures.agreement.index_page import sizes_in_words
from quietbits.figures.agreement.lookup import FIGURE_CLAIMS
from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.figures.drawing import save
from quietbits.figures.finished import read_finished
from quietbits.figures.registry import FIGURES, reproduce
from quietbits.tests.browser import NARROW, WIDE, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# One agrees, one in part, and one is beyond the papers.
NAMES = ("binomial-slack", "dprec-communication", "sampled-coordinates")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
        reproduce(NAMES, output, quick=True)
    return output


@pytest.fixture
def copy(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_the_page_states_outcomes_with_numbers_of_the_tables(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    table = pd.read_csv(folder / "binomial-slack.csv")
    assert "Figures: agrees 1, agrees in part 1, beyond the papers 1." in page
    assert f"in {table['ratio'].notna().sum()} of {table['ratio'].notna().sum()} settings" in page
    assert "Totals are counted from the model&#39;s parameters" in page
    assert "No paper has this figure." in page
    assert "Part of the grid" not in page
    for name in NAMES:
        assert all(f'href="{name}.{kind}"' in page for kind in ("csv", "md", "svg", "pdf"))


def test_an_outcome_follows_the_table_and_not_the_claim(copy: Path) -> None:
    """A changed table is a changed figure, which is drawn again; another table has another outcome."""
    table = pd.read_csv(copy / "binomial-slack.csv")
    claims = FIGURE_CLAIMS["binomial-slack"]
    assert claims.agreement(table) == "agrees"
    assert claims.agreement(table.assign(ratio=0.5)) == "differs"
    assert claims.agreement(table.assign(ratio=[0.5] + [2.0] * (len(table) - 1))) == "agrees in part"
    (copy / "binomial-slack.csv").write_text("epsilon\n1\n")
    assert read_finished(copy, "binomial-slack") is None


def test_what_was_drawn_is_kept_and_the_rest_is_made(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    draw = registry.save_figure
    monkeypatch.setattr(
        registry, "save_figure", lambda figure, frame, output, name, *rest: drawn.append(name) or draw(figure, frame, output, name, *rest)
    )
    monkeypatch.setattr(SlackPoint, "run", None)
    before = (copy / "index.html").read_bytes()
    reproduce(NAMES, copy, quick=True)
    assert drawn == []
    assert (copy / "index.html").read_bytes() == before
    # A run that was killed before it recorded a figure, and a lost file.
    (copy / "results" / "dprec-communication" / "figure.json").unlink()
    (copy / "sampled-coordinates.svg").unlink()
    reproduce(NAMES, copy, quick=True)
    assert drawn == ["dprec-communication", "sampled-coordinates"]
    assert (copy / "index.html").read_bytes() == before


@pytest.mark.parametrize(
    "record", ["", "null", "[]", '{"format": "quietbits-figure/1"}', '{"format": "quietbits-figure/1", "files": [[]]}']
)
def test_a_figure_with_a_damaged_record_is_drawn_again(copy: Path, record: str) -> None:
    path = copy / "results" / "dprec-communication" / "figure.json"
    drawn = path.read_bytes()
    path.write_text(record, encoding="utf-8")
    assert read_finished(copy, "dprec-communication") is None
    reproduce(["dprec-communication"], copy, quick=True)
    assert path.read_bytes() == drawn


def test_a_part_is_named_in_picture_and_page_and_serves_the_whole(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[str] = []
    output = copy / "part"
    reproduce(NAMES, output, quick=True, only=["scale=1"], on_work=lambda expected: work.append(str(expected)))
    tasks = FIGURES["binomial-slack"].tasks(0, True)
    part = [task for task in tasks if task.scale == 1]
    assert work == [
        f"1 figure: {len(part)} of {len(part)} tasks are left, about 1 s of processor time; part: scale 1; "
        "left out, without such tasks: dprec-communication, sampled-coordinates"
    ]
    stated = f"Part of the grid: scale 1 ({len(part)} of {len(tasks)} tasks)"
    assert stated in (output / "binomial-slack.md").read_text(encoding="utf-8")
    page = (output / "index.html").read_text(encoding="utf-8")
    assert f"This is a part of the grid: scale 1, {len(part)} of {len(tasks)} tasks." in page
    assert "Not drawn in this run, as no task has scale 1: dprec-communication, sampled-coordinates." in page
    ran: list[float] = []
    run = SlackPoint.run
    monkeypatch.setattr(SlackPoint, "run", lambda self, _=None: ran.append(self.scale) or run(self))
    reproduce(["binomial-slack"], output, quick=True)
    assert len(ran) == len(tasks) - len(part)
    assert (output / "binomial-slack.csv").read_bytes() == (copy / "binomial-slack.csv").read_bytes()


def test_a_part_that_cannot_be_drawn_is_an_error_after_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    with pytest.raises(ValueError, match=r"mvu-fig5: .+\. only must leave .+ got epsilon 5: allow more values"):
        reproduce(["mvu-fig5", "cpsgd-fig1"], tmp_path, quick=True, only=["epsilon=5"])
    assert (tmp_path / "cpsgd-fig1.svg").is_file()
    assert not (tmp_path / "mvu-fig5.svg").exists()
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.search(r"Not drawn in this run, as its drawing failed: .+; the part may lack tasks that the picture needs: mvu-fig5\.", page)


def test_sizes_are_those_of_the_table() -> None:
    table = pd.DataFrame({"clients": [10, 20, 30, 40, 2_000_000], "epsilon": 0.12345, "rounds": float("nan")})
    assert sizes_in_words(table) == "clients 10 to 2,000,000; ε 0.124"
    assert sizes_in_words(pd.DataFrame({"epsilon": [2.9991, 2.9992, 2.9993, 2.9994, 2.9995]})) == "ε 3"


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_page_fits_is_quiet_and_filters(folder: Path, browser: "Browser", width: int) -> None:
    with visit(browser, folder / "index.html", width=width) as opened:
        assert opened.beyond_the_window() == []
        page = opened.page
        # Pictures keep their places before they are loaded, so that links lead to their figures.
        page.get_by_role("link", name=NAMES[1], exact=True).click()
        assert abs(page.locator(f"#{NAMES[1]}").bounding_box()["y"]) < 2
        page.wait_for_timeout(200)
        assert abs(page.locator(f"#{NAMES[1]}").bounding_box()["y"]) < 2
        page.get_by_role("button", name="agrees in part").click()
        shown = page.locator("article:visible")
        assert shown.count() == 1
        assert shown.get_attribute("id") == "dprec-communication"
        page.get_by_role("button", name="all 3").click()
        assert page.locator("article:visible").count() == len(NAMES)
