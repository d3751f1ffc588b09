"""HTML pages: how templates are filled, and how a page is written."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...files import write_atomically
from ...shown import printable

STYLES = Path(__file__).parent


def fill_template(name: str, filters: Mapping[str, Callable[..., Any]], *, folder: Path = STYLES, **values: Any) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    name : str
        The template's file.
    filters : mapping
        Filters of the template.
    folder : Path
        Folder of the template; it may include those of the folder of the pages' style, too.
    **values
        What the template shows. Text is escaped and has no control characters, whoever's file it comes from; `Markup` alone is HTML.
    """
    environment = Environment(loader=FileSystemLoader([folder, STYLES]), autoescape=True, undefined=StrictUndefined, finalize=_plain)
    environment.filters |= filters
    return environment.get_template(name).render(**values)


def write_page(path: Path, page: str) -> None:
    """Write a page, which replaces what is there."""
    write_atomically(path, page.encode())


def _plain(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
