"""Tests of the browser for tests: requests, complaints and widths of pages are noticed."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quietbits.tests.browser import NARROW, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_quiet_page_passes(browser: "Browser", tmp_path: Path) -> None:
    wide = '<p style="width: 900px">Wide.<svg width="900"><path d="M 0 0 L 900 9"></svg>'
    (tmp_path / "page.html").write_text(f'<!DOCTYPE html><p>Quiet.<div style="overflow-x: auto">{wide}</div>')
    with visit(browser, tmp_path / "page.html", width=NARROW) as opened:
        assert opened.page.evaluate("innerWidth") == NARROW
        assert opened.beyond_the_window() == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('<img src="https://example.org/x.png">', "example.org"),
        ("<script>fetch('other.json').catch(() => 0)</script>", "other.json"),
        ("<script>console.warn('a warning')</script>", "a warning"),
        ("<script>throw new Error('a fault')</script>", "a fault"),
    ],
    ids=["image", "fetch", "console", "error"],
)
def test_a_page_that_asks_or_complains_fails(browser: "Browser", tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "page.html").write_text(f"<!DOCTYPE html>{content}")
    with pytest.raises(AssertionError, match=complaint), visit(browser, tmp_path / "page.html"):
        pass


def test_a_wide_element_is_listed(browser: "Browser", tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<!DOCTYPE html><p id="wide" style="width: 900px">Wide.')
    with visit(browser, tmp_path / "page.html", width=NARROW) as opened:
        scrolls, paragraph = opened.beyond_the_window()
        assert scrolls == "the page scrolls to the right"
        assert paragraph.startswith('<p id="wide"')
