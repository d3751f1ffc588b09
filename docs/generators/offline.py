"""The built pages need no network: nothing that a browser loads by itself comes from another host."""

import re
from collections.abc import Iterator
from pathlib import Path

# Links that a reader may follow are not loaded by a page.
LOADED = {
    ".html": re.compile(
        r"<(?:audio|embed|iframe|img|link|object|script|source|video)\b[^>]*?\s(?:data|href|src|srcset)=[\"'](?:https?:)?//[^\"']*"
    ),
    ".css": re.compile(r"(?:@import\s+|url\()\s*[\"']?(?:https?:)?//[^\"')]*"),
}


def requests(folder: Path) -> Iterator[str]:
    """Yield what the pages and style sheets of a folder would load from another host, with the file."""
    for path in sorted(folder.rglob("*")):
        pattern = LOADED.get(path.suffix)
        if pattern is not None:
            yield from (f"{path.relative_to(folder)}: {found}" for found in pattern.findall(path.read_text(encoding="utf-8")))
