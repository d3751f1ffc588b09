"""Links between README and docs lead to files and headings that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import quietbits

ROOT = Path(quietbits.__file__).parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("[!_]*/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|<!--.*?-->", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST form them."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ +(.*?) *$", CODE.sub("", text), flags=re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "") for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def broken_links(page: Path) -> Iterator[str]:
    """Yield the relative links of a page whose file or heading does not exist."""
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Two words, `code`\n")
    page = tmp_path / "page.md"
    page.write_text("# A\n\n[a](#a) [b](other.md#two-words-code) [c](https://example.org) [d](#b) [e](other.md#c) [f](none.md)\n")
    assert list(broken_links(page)) == ["#b", "other.md#c", "none.md"]
