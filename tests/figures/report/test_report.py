"""The report is a self-contained page with the expected text.

No name becomes markup.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from quietbits.analysis.study.column_data import DataColumn
from quietbits.analysis.study.frequency_study import study_frequencies
from quietbits.analysis.study.item_column import load_items
from quietbits.analysis.study.mean_study import MeanStudy, study_mean
from quietbits.design.tables.file import table_document
from quietbits.errors import TableError
from quietbits.figures.drawing import style
from quietbits.figures.report.frequency_report import frequency_report_html
from quietbits.figures.report.report import headline, report_html, write_report
from quietbits.figures.report.report_figures import column_name, drawable, is_drawable
from quietbits.shown import gap_up, printable

VOID = {"meta", "br", "hr"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}


class Page(HTMLParser):
    """A parsed page: order of its elements, external resources, identifiers and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.identifiers: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
                self.references.append(value or "")
            if name == "id":
                self.identifiers.append(value or "")
            assert not name.startswith("on")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def study() -> MeanStudy:
    values = np.random.default_rng(2).normal(170, 20, 1000)
    return study_mean(DataColumn("height (cm)", "people.csv", values, (140.0, 200.0)), 2.0, 3, 2, seed=11)


COMMAND = "quietbits estimate mean --data people.csv"


@pytest.fixture(scope="module")
def text(study: MeanStudy) -> str:
    return report_html(study, command=COMMAND)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_the_page_loads_nothing(text: str, page: Page) -> None:
    assert page.tags.isdisjoint(LOADING)
    assert all(reference.startswith("#") for reference in page.references)
    assert "@import" not in text
    assert "@font-face" not in text
    assert set(re.findall(r"url\(([^)]?)", text)) <= {"#"}
    # Names of XML vocabularies, which nothing fetches, are the only addresses.
    assert set(re.findall(r"https?://[^\"'\s<>]*", text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_identifiers_are_unique_and_references_lead_somewhere(page: Page) -> None:
    assert len(page.identifiers) == len(set(page.identifiers))
    assert {reference[1:] for reference in page.references} <= set(page.identifiers)


def test_the_page_says_what_it_should(study: MeanStudy, page: Page) -> None:
    for row in study.comparison.estimates:
        assert row.mechanism in page.text
        assert f"{row.ratio_to_bound:.3f}" in page.text
    for sentence in headline(study):
        assert sentence in page.text
    for table in study.tables.values():
        assert repr(table.certificate.realised_epsilon) in page.text
        assert table_document(table)["sha256"] in page.text
        for weight_row in table.weights.tolist():
            assert " ".join(str(weight) for weight in weight_row) in page.text
        for letter in table.alphabet:
            assert str(letter) in page.text
    for part in ("replace-one", "local", "quietbits estimate mean --data people.csv", "people.csv", "Seed 11", "numpy", "0, exactly"):
        assert part in page.text
    assert page.text.count(study.comparison.clipping_warning or "") == 2
    assert "Do not publish it" in page.text
    assert page.tags >= {"svg", "details", "caption", "figcaption"}


def test_an_interval_from_the_data_is_labelled(study: MeanStudy, page: Page) -> None:
    label = "The interval was taken from the data, which is not private."
    assert label not in page.text
    assert label in Page(report_html(replace(study, data=replace(study.data, interval_is_public=False)))).text


def test_names_are_text_and_nothing_else(study: MeanStudy) -> None:
    name = '</title><script>alert("1")</script> $x_{ & <b>'
    hostile = report_html(replace(study, data=replace(study.data, name=name, source=name)), command=name)
    page = Page(hostile)
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert html.escape(name, quote=False)[:20] in hostile


NAMES = ("$x_{ $", "a\x1b[31mb", "\u202eabc", "体重 [kg]", "a\r\nb", "\udcff", "<b> & [/b]")


def test_names_are_shown_as_text_that_controls_nothing(study: MeanStudy) -> None:
    for name in NAMES:
        page = report_html(replace(study, data=replace(study.data, name=name, source=name)), command=f"quietbits {name}")
        text = Page(page).text
        assert printable(name) in text
        assert not set(page) & set("\x1b\r\u202e\udcff")
        # Comments beside the outlines contain the figures' text.
        assert f"<!-- {column_name(name)} -->" in html.unescape(page)


@pytest.fixture
def only_the_bundled_font(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let figures know no font but matplotlib's own, as on a machine without others."""
    monkeypatch.setattr(style, "get_font_names", lambda: ["DejaVu Sans"])
    for cached in (style.font_families, style.letters):
        cached.cache_clear()
    yield
    for cached in (style.font_families, style.letters):
        cached.cache_clear()


@pytest.mark.usefixtures("only_the_bundled_font")
@pytest.mark.parametrize(
    ("name", "drawn", "column"),
    [
        ("$x_{ $", "$x_{ $", "$x_{ $"),
        ("a\x1b[31m", r"a\x1b[31m", r"a\x1b[31m"),
        ("体重 [kg]", r"\u4f53\u91cd [kg]", "value"),
        ("é µ ε δ", "é µ ε δ", "é µ ε δ"),
    ],
)
def test_figures_draw_names_as_text_with_the_letters_that_the_fonts_have(name: str, drawn: str, column: str) -> None:
    assert drawable(name) == drawn
    assert is_drawable(name) == (column != "value")
    assert column_name(name) == column


def test_installed_fonts_with_other_scripts_are_used_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "get_font_names", lambda: ["IPAGothic", "Unknown", "Noto Sans CJK JP", "DejaVu Sans"])
    style.font_families.cache_clear()
    assert style.font_families() == ["DejaVu Sans", "Noto Sans CJK JP", "IPAGothic"]
    style.font_families.cache_clear()


@pytest.mark.usefixtures("only_the_bundled_font")
def test_items_whose_letters_no_font_has_are_numbered_as_in_the_table(tmp_path: Path) -> None:
    # Missing glyphs would warn, and warnings are errors.
    (tmp_path / "items.txt").write_text("\n".join(("$x_{ $", "b$c", "体重")), encoding="utf-8")
    page = frequency_report_html(study_frequencies(load_items(tmp_path / "items.txt", None), "unary-encoding", 2.0))
    rows = re.findall(r'<tr><th scope="row">(\d)\. ([^<]+)</th><td data-label="Estimate">', page)
    assert [int(number) for number, _ in rows] == [1, 2, 3]
    assert {item for _, item in rows} == {"$x_{ $", "b$c", "体重"}
    assert all(f"<!-- item {number} -->" in page for number in (1, 2, 3))
    assert "lack letters of some items" in page


def test_items_are_drawn_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("\n".join(("$x_{ $", "b$c", "été")), encoding="utf-8")
    page = frequency_report_html(study_frequencies(load_items(tmp_path / "items.txt", None), "unary-encoding", 2.0))
    for item in ("$x_{ $", "b$c", "été"):
        assert f"<!-- {item} -->" in page
    assert "lack letters" not in page


def test_reports_say_at_the_top_that_they_are_experiments(text: str, tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("a\nb\na\n", encoding="utf-8")
    frequencies = frequency_report_html(study_frequencies(load_items(tmp_path / "items.txt", None), "unary-encoding", 2.0))
    for report in (text, frequencies):
        assert re.search(r"<h1>[^<]*, an experiment</h1>", report)
        assert "<h1>Private" not in report
        assert report.index("This is an experiment, not a private release") < report.index('class="headline"')


def test_narrow_screens_name_every_cell_of_a_card(text: str, tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("a\nb\na\n", encoding="utf-8")
    frequencies = frequency_report_html(study_frequencies(load_items(tmp_path / "items.txt", None), "unary-encoding", 2.0))
    for report, count in ((text, 2), (frequencies, 1)):
        cards = re.findall(r'<table class="[^"]*cards">.*?</table>', report, flags=re.DOTALL)
        assert len(cards) == count
        for card in cards:
            assert set(re.findall(r'data-label="([^"]*)"', card)) <= set(re.findall(r'<th[^>]* scope="col">([^<]*)</th>', card))
            assert card.count("<td") == card.count("data-label") > 0


def test_metric_privacy_is_explained() -> None:
    data = DataColumn("x", "numbers", np.linspace(0, 1, 50), (0.0, 1.0))
    text = Page(report_html(study_mean(data, 2.0, 2, 1, metric="l2", objective="worst"))).text
    assert re.search(r"is more than exp\(2 . \|y . y'\| 2 \) times as likely", text)
    assert "a row without the metric promises less" in text
    assert "the largest variance over the input grid" in text
    assert "All values lie inside the interval." in text


def test_long_tables_are_thinned_but_their_weights_are_complete() -> None:
    data = DataColumn("x", "numbers", np.linspace(0, 1, 50), (0.0, 1.0))
    study = study_mean(data, 3.0, 7, 1)
    text = report_html(study)
    assert "128 inputs, of which 64 are shown" in text
    for row in study.table.weights.tolist():
        assert f"{row[0]} {row[1]}" in text


def test_the_headline_never_promises_too_much(study: MeanStudy) -> None:
    gap = study.table.certificate.optimality_gap
    assert gap is not None
    stated = re.search(r"no table of any size is more than ([\d.]+) % better", " ".join(headline(study)))
    assert stated is not None
    assert gap <= float(stated[1]) / 100 <= gap * 1.11 + 1e-12
    for shown in (0.0999, 0.1, 1e-9, 0.123456):
        table = replace(study.table, certificate=replace(study.table.certificate, optimality_gap=shown, letters_gap=shown))
        text = " ".join(headline(replace(study, tables={"MVU, 2 bits": table})))
        stated = re.search(r"is more than ([\d.]+) % better", text)
        assert stated is not None
        assert shown <= float(stated[1]) / 100 * (1 + 1e-12)


def test_tables_of_one_bit_are_stated_to_be_the_best_of_as_many_letters() -> None:
    study = study_mean(DataColumn("x", "numbers", np.linspace(0, 1, 50), (0.0, 1.0)), 3.0, 2, 1)
    gap = study.table.certificate.letters_gap
    assert gap is not None
    stated = re.search(
        r"no 1-bit table is more than ([\d.]+) % better; no table of any size more than [\d.]+ times", " ".join(headline(study))
    )
    assert stated is not None
    assert gap <= float(stated[1]) / 100 <= 1e-6
    # All tables of the study have one bit: MVU and both kinds of randomised response.
    statements = re.findall(r'data-label="Gap, same bits">([^<]+)<', report_html(study))
    assert statements == [gap_up(table.certificate.letters_gap or 0) for table in study.tables.values()]
    assert len(statements) == 3
    other = study_mean(DataColumn("x", "numbers", np.linspace(0, 1, 50), (0.0, 1.0)), 3.0, 2, 2)
    assert "2-bit table" not in " ".join(headline(other))


def test_a_report_is_written_whole_or_not_at_all(study: MeanStudy, text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(study, path, command=COMMAND)
    assert path.read_text(encoding="utf-8") == text
    path.unlink()
    weights = study.table.weights.copy()
    weights[0, :2] += [1, -1]
    with pytest.raises(TableError):
        write_report(replace(study, tables={"changed": replace(study.table, weights=weights)}), path)
    assert list(tmp_path.iterdir()) == []
