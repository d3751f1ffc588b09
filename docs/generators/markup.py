"""Pieces of reStructuredText that the generated pages have in common."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

# Backticks of a text mark names and commands; everything else must not be taken for markup.
CODE = re.compile(r"(`[^`]+`)")
SPECIAL = re.compile(r"([\\*_|])")


def text(plain: str) -> str:
    """Return a plain text as reStructuredText: words in backticks become literals."""
    parts = CODE.split(plain)
    return "".join(f"``{part[1:-1]}``" if CODE.fullmatch(part) else SPECIAL.sub(r"\\\1", part) for part in parts)


def heading(title: str, underline: str = "=") -> str:
    """Return a heading."""
    return f"{title}\n{underline * len(title)}\n"


def literal(code: str, language: str = "text") -> str:
    """Return a block of code."""
    body = "\n".join(f"   {line}".rstrip() for line in code.splitlines())
    return f".. code-block:: {language}\n\n{body}\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], widths: str = "auto", kind: str = "") -> str:
    """Return a table whose cells are reStructuredText in one line each; `kind` is a class of the style sheet."""
    lines = [".. list-table::", f"   :widths: {widths}", "   :header-rows: 1"]
    lines += [f"   :class: {kind}"] if kind else []
    for row in (head, *rows):
        lines.append("")
        lines += [f"   {'*' if number == 0 else ' '} - {cell}".rstrip() for number, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def toctree(pages: Iterable[str], *, hidden: bool = True) -> str:
    """Return the table of contents of some pages."""
    options = ["   :hidden:"] if hidden else ["   :maxdepth: 1"]
    return "\n".join([".. toctree::", *options, "", *(f"   {page}" for page in pages)]) + "\n"


def write_pages(folder: Path, pages: dict[str, str]) -> None:
    """Write pages of a folder, and remove pages that are no longer among them; unchanged files keep their times."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, content in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
