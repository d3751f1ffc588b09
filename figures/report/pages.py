"""HTML pages: filling templates, and writing pages."""

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
        Name of the template's file.
    filters : mapping
        Filters of the template.
    folder : Path
        Folder of the template, which may also include templates of the folder of the pages' style.
    **values
        Values that the template shows. Text is escaped and stripped of control characters; only `Markup` is HTML.
    """
    environment = Environment(loader=FileSystemLoader([folder, STYLES]), autoescape=True, undefined=StrictUndefined, finalize=_plain)
    environment.filters |= filters
    return environment.get_template(name).render(**values)


def write_page(path: Path, page: str) -> None:
    """Write a page, and replace an existing file."""
    write_atomically(path, page.encode())


def _plain(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
