"""The page of the explorer: sliders and pictures over a folder of certified tables, in one file that asks for nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...analysis.table_grid.verification import verified_tables
from ...design.tables.file import MOST_BYTES, table_json
from ...design.tables.lookup_table import LookupTable
from ...errors import DataError
from ...files import MEGABYTE, read_limited, shown_path
from ...progress import OnStep, notebook_progress
from ...shown import counted, in_figures
from ...version import __version__
from ..drawing.marks import BLUE, GREY, SKY, VERMILION
from ..report.pages import fill_template, write_page
from .table_record import script_json, settings_of, table_record

TEMPLATE = "explorer.html.jinja"
# Names of sliders and choices. Sliders are always shown, a choice only where the folder has several values of it.
SLIDERS = {"epsilon": "Epsilon", "bits_in": "Bits in", "bits_out": "Bits out"}
CHOICES = {"mechanism": "Mechanism", "metric": "Metric", "objective": "Objective", "interval": "Interval of the values"}
WORDS = {
    "metric": {"none": "none (local privacy)"},
    "objective": {"mean": "mean variance", "worst": "worst variance", "prior": "prior-weighted variance"},
}
# Largest size of a page, which a browser opens within seconds.
LARGEST_PAGE = 64 * MEGABYTE
# Colours of the heat map, from probability 0 to the table's largest probability.
SHADES = 17


@dataclass(frozen=True)
class Control:
    """A slider or a choice: its key, its title, and the words of each value."""

    key: str
    title: str
    values: tuple[Any, ...]

    @property
    def labels(self) -> list[str]:
        """Words of the values."""
        return [_words(self.key, value) for value in self.values]


def write_explorer(folder: Path, output: Path, *, on_step: OnStep = notebook_progress) -> int:
    """Write the page of all tables of a folder, which are verified first, and return their number.

    The page needs no network. `on_step` is called as in `verify_folder`.

    Parameters
    ----------
    folder : Path
        Folder of tables, such as that of `design_tables`.
    output : Path
        The HTML file; an existing file is replaced.
    on_step : callable
        Progress.

    Raises
    ------
    DataError
        If a file is refused, the folder has no tables, or the page would be too large; nothing is written then.
    """
    tables = verified_tables(folder, on_step=on_step)
    if not tables:
        raise DataError(f"{shown_path(folder)}: it has no tables: quietbits design grid makes some")
    files = {path.name: read_limited(path, MOST_BYTES) for path in tables}
    page = explorer_html({path.name: table for path, table in tables.items()}, files)
    if len(page.encode()) > LARGEST_PAGE:
        size = f"{len(page.encode()) / MEGABYTE:.0f} megabytes"
        raise DataError(
            f"{shown_path(folder)}: its tables must make a page of at most {LARGEST_PAGE / MEGABYTE:g} megabytes, got {size}: "
            "put fewer or smaller tables into a folder"
        )
    write_page(output, page)
    return len(tables)


def explorer_html(tables: Mapping[str, LookupTable], files: Mapping[str, bytes] | None = None) -> str:
    """Return the page of verified tables, by the names of their files, whose contents are those of `write_table` by default."""
    contents = files or {name: table_json(table) for name, table in tables.items()}
    settings = {name: settings_of(table) for name, table in tables.items()}
    controls = {
        key: Control(key, title, tuple(sorted({chosen[key] for chosen in settings.values()}, key=_order)))
        for key, title in (SLIDERS | CHOICES).items()
    }
    varied = [control for control in controls.values() if control.key in SLIDERS or len(control.values) > 1]
    document = {
        "controls": [{"key": control.key, "title": control.title, "labels": control.labels} for control in varied],
        "shades": _shades(),
        "tables": [
            {
                "place": [control.values.index(settings[name][control.key]) for control in varied],
                **table_record(name, contents[name], table),
            }
            for name, table in tables.items()
        ],
    }
    return fill_template(
        TEMPLATE,
        {},
        folder=Path(__file__).parent,
        title=counted(len(tables), "certified table"),
        version=__version__,
        sliders=[control for control in varied if control.key in SLIDERS],
        choices=[control for control in varied if control.key in CHOICES],
        names=list(tables),
        colours={"blue": BLUE.colour, "sky": SKY.colour, "vermilion": VERMILION.colour, "grey": GREY.colour},
        # Only the document is marked as safe: it has no characters that HTML reads as markup.
        document=Markup(script_json(document)),  # noqa: S704 -- see above
    )


def _shades() -> list[str]:
    """Return the colours of probabilities, from zero to the largest; matplotlib is loaded for a page only."""
    import matplotlib as mpl

    from ..drawing.style import PROBABILITY_COLOURS

    return [mpl.colors.to_hex(mpl.colormaps[PROBABILITY_COLOURS](step / (SHADES - 1))) for step in range(SHADES)]


def _order(value: Any) -> tuple[bool, Any]:
    """Return the sort key of a value; local privacy stands before the metrics."""
    return value != "none", value


def _words(key: str, value: Any) -> str:
    if key == "interval":
        return f"{in_figures(value[0])} to {in_figures(value[1])}"
    return WORDS.get(key, {}).get(value, value) if isinstance(value, str) else f"{value:g}"
