"""Pages in headless Chromium, without network: what they ask for, what they complain about, and whether they fit their width."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, NARROW = 1400, 400
# Elements that end to the right of the window and do not lie in an element that scrolls by itself, as pictures do in their boxes.
BEYOND_THE_WINDOW = """() => [...document.querySelectorAll("body *")].filter(element => {
    const fits = box => box.right <= innerWidth + 0.5, own = element.getBoundingClientRect();
    if (own.width === 0 || fits(own)) return false;
    for (let around = element.parentElement; around; around = around.parentElement)
        if (getComputedStyle(around).overflowX !== "visible" && fits(around.getBoundingClientRect())) return false;
    return true;
}).map(element => element.outerHTML.slice(0, 100))"""


def chromium() -> str | None:
    """Return the path of the system's Chromium, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(frozen=True)
class Visit:
    """An opened page.

    Attributes
    ----------
    page : Page
        The page, of playwright.
    requests : list of str
        Addresses that the page asked for, in order; the first is its own.
    complaints : list of str
        Errors and warnings on the console, and errors that no script caught.
    """

    page: "Page"
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def beyond_the_window(self) -> list[str]:
        """Return the beginnings of elements that do not fit the width; an element that scrolls by itself fits if its box does."""
        page = self.page
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return [*(["the page scrolls to the right"] if wide else []), *page.evaluate(BEYOND_THE_WINDOW)]


@contextmanager
def visit(browser: "Browser", file: Path, *, width: int = WIDE, height: int = 1000) -> Iterator[Visit]:
    """Open a file without network, and assert in the end that it asked for nothing else and did not complain."""
    context = browser.new_context(offline=True, viewport={"width": width, "height": height}, reduced_motion="reduce")
    try:
        opened = Visit(context.new_page())
        page = opened.page
        page.set_default_timeout(20_000)
        page.on("request", lambda request: opened.requests.append(request.url))
        page.on("console", lambda line: opened.complaints.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.goto(file.as_uri())
        yield opened
        # An answer of the page comes after all events before it.
        page.evaluate("0")
        outside = [address for address in opened.requests[1:] if not address.startswith(("data:", "blob:"))]
        assert not outside + opened.complaints, f"the page asked for {outside} and complained: {opened.complaints}"
    finally:
        context.close()
