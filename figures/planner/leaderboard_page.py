"""The page of a leaderboard: winners of tasks, standings of mechanisms, every row, and two figures."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from markupsafe import Markup

from ...analysis.plan_grid.leaderboard import PROVEN_BOUND, TRUSTED_SERVER, absent, judged, standings, winners_in_words
from ...design.contracts.guarantee import TRUST_MODELS
from ...files import write_atomically
from ...shown import counted, in_figures, listed, with_powers
from ..drawing.directed_rounding import rounded_up
from ..drawing.style import print_style
from ..report.pages import fill_template
from ..report.report_figures import svg_text
from .leaderboard_figure import draw_tasks, draw_trust_models

TABLE, ASSETS, PAGE = (f"leaderboard{part}.html.jinja" for part in ("_table", "_assets", ""))
FOLDER = Path(__file__).parent
# Number of rows that a long table shows at first.
FIRST_ROWS = 30
# Largest number of tasks of a page, as browsers and readers take long for more.
MOST_TASKS = 60
SHORT = {PROVEN_BOUND: "bound", TRUSTED_SERVER: "server"}
# Returns the address of a mechanism's page, or None.
Link = Callable[[str], str | None]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, its sort key, the address that it links to, and a note below."""

    text: str
    order: Any
    link: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: cells, whether a plan recommends it, and words that a search finds beside the cells."""

    cells: tuple[Cell, ...]
    recommended: bool = False
    words: str = ""


@dataclass(frozen=True)
class BoardTable:
    """A sortable table with its headings; a searchable table begins with a form, and shows the first rows that match it."""

    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    searchable: bool = False

    def html(self) -> str:
        """Return the table as an HTML element."""
        words = [any(isinstance(row.cells[place].order, str) and row.cells[place].text for row in self.rows) for place in self.places]
        return fill_template(TABLE, {"powers": with_powers}, folder=FOLDER, table=self, first_rows=FIRST_ROWS, words=words)

    @property
    def places(self) -> range:
        """Places of the columns."""
        return range(len(self.headings))


@dataclass(frozen=True)
class LeaderboardParts:
    """The parts of a leaderboard's page as HTML.

    Attributes
    ----------
    headline : tuple of str
        Sentences: size and date of the board, then the winners of each trust model.
    winners, standings, rows : str
        Tables: a row for each task, for each mechanism, and for both.
    tasks_figure, trust_figure : str
        ``<svg>`` elements: a panel for each task, and for each trust model. Both are empty if no task has a reference.
    assets : str
        Styles and scripts of the tables, which follow them.
    absent : tuple of str
        Mechanisms of the registry without a row, each with the reason.
    """

    headline: tuple[str, ...]
    winners: str
    standings: str
    rows: str
    tasks_figure: str
    trust_figure: str
    assets: str
    absent: tuple[str, ...]


def leaderboard_parts(board: pd.DataFrame, link: Link = lambda _: None) -> LeaderboardParts:
    """Return the parts of the page of a board (`board_rows`), at most of its first tasks (`MOST_TASKS`).

    A board without any mechanism has no page, and raises ValueError.
    """
    rows = judged(board)
    if rows.empty:
        raise ValueError("board must have a row with a mechanism, got none: change the tasks")
    shown = rows[rows["number"] <= MOST_TASKS]
    tasks = trust = ""
    if shown["ratio"].notna().any():
        # Names of other packages are plain text.
        with print_style(), mpl.rc_context({"text.parse_math": False}):
            tasks, trust = svg_text(draw_tasks(shown), "tasks"), svg_text(draw_trust_models(shown), "trust")
    return LeaderboardParts(
        (_size(rows), *winners_in_words(rows)),
        winners_table(board, shown, link).html(),
        standings_table(shown, link).html(),
        rows_table(shown, link).html(),
        tasks,
        trust,
        fill_template(ASSETS, {}, folder=FOLDER),
        tuple(f"{name}: {reason}" for name, reason in absent(rows).items()),
    )


def write_leaderboard_page(board: pd.DataFrame, path: Path) -> None:
    """Write the page of a board as a self-contained HTML file; replace an existing file."""
    parts = leaderboard_parts(board)
    # Only figures and filled templates are marked as safe: matplotlib and jinja escape the names in them.
    markup = {name: Markup(getattr(parts, name)) for name in ("winners", "standings", "rows", "tasks_figure", "trust_figure")}  # noqa: S704
    page = fill_template(PAGE, {"powers": with_powers}, folder=FOLDER, parts=parts, **markup)
    write_atomically(path, page.encode())


def winners_table(board: pd.DataFrame, rows: pd.DataFrame, link: Link) -> BoardTable:
    """Return a table with the recommended mechanism of each task and trust model, its bits and its ratio."""
    models = [model for model in TRUST_MODELS if model in set(rows["trust_model"])]
    chosen = {(row["number"], row["trust_model"]): row for row in rows[rows["recommended"]].to_dict("records")}
    lines = []
    for number, task in enumerate(board["task"].unique()[:MOST_TASKS], 1):
        cells = (_winner(chosen.get((number, model)), link) for model in models)
        lines.append(Row((Cell(str(number), number), Cell(task, task), *cells)))
    return BoardTable(("Task", "Task in words", *models), tuple(lines))


def _winner(row: dict[Any, Any] | None, link: Link) -> Cell:
    if row is None:
        return Cell("", "")
    parts = [_bits(row["bits_per_client"])]
    parts += [] if _missing(row["ratio"]) else [_ratio(row)]
    parts += ["no message is better"] if row["zero_wins"] else []
    return Cell(row["mechanism"], row["mechanism"], link(row["mechanism"]), ", ".join(parts))


def _bits(bits: float) -> str:
    return f"{in_figures(bits, 4)} bit{'s' * (bits != 1)}"


def standings_table(rows: pd.DataFrame, link: Link) -> BoardTable:
    """Return a table with the medians of each mechanism (`standings`)."""
    lines = [
        Row(
            (
                _name(row, link),
                Cell(row["trust_model"], row["trust_model"]),
                Cell(f"{row['wins']}", row["wins"]),
                Cell(f"{row['tasks']}", row["tasks"]),
                _number(row["over_best"]),
                _number(row["ratio"]),
                _number(row["bits_per_coordinate"]),
                Cell(row["provider"], row["provider"]),
            ),
            recommended=row["wins"] > 0,
        )
        for row in standings(rows).to_dict("records")
    ]
    medians = ("Median over least error", "Median over reference", "Median bits a coordinate")
    return BoardTable(("Mechanism", "Trust model", "Tasks won", "Tasks served", *medians, "Package"), tuple(lines))


def rows_table(rows: pd.DataFrame, link: Link) -> BoardTable:
    """Return a searchable table of all rows."""
    lines = [
        Row(
            (
                _name(row, link, _options(row["options"])),
                Cell(f"{row['number']}", row["number"]),
                Cell(row["trust_model"], row["trust_model"]),
                Cell(_ratio(row), "" if _missing(row["ratio"]) else row["ratio"]),
                _number(row["over_best"]),
                _number(row["bits_per_client"], 4),
                _number(row["predicted_error"]),
                _guarantee(row),
                Cell(f"{row['provider']} {row['provider_version']}", f"{row['provider']} {row['provider_version']}", note=row["date"]),
            ),
            recommended=row["recommended"],
            words=row["task"],
        )
        for row in rows.to_dict("records")
    ]
    errors = ("Error over reference", "Over least error", "Bits per client", "Squared error")
    return BoardTable(("Mechanism", "Task", "Trust model", *errors, "Guarantee", "Package, date"), tuple(lines), searchable=True)


def _ratio(row: dict[Any, Any]) -> str:
    """Return the ratio of a judged row's error to its reference."""
    if _missing(row["ratio"]):
        return "no reference"
    return f"{in_figures(row['ratio'])}\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{SHORT[row['reference']]}"


def _name(row: dict[Any, Any], link: Link, note: str = "") -> Cell:
    reference = " (real numbers)" if row["on_real_numbers"] else ""
    return Cell(f"{row['mechanism']}{reference}", row["mechanism"], link(row["mechanism"]), note)


def _number(value: float | None, digits: int = 3) -> Cell:
    return Cell("none", "") if value is None or math.isnan(value) else Cell(in_figures(value, digits), value)


def _guarantee(row: dict[Any, Any]) -> Cell:
    delta = f", δ = {row['delta']:g}" if row["delta"] else ""
    return Cell(f"ε ≤ {rounded_up(row['epsilon'], 4)}{delta}", row["epsilon"], note=row["adjacency"])


def _options(document: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in json.loads(document).items())


def _missing(value: Any) -> bool:
    return value is None or value != value


def _size(rows: pd.DataFrame) -> str:
    """Return a sentence with the numbers of tasks, mechanisms and rows, the versions, and the dates."""
    packages = (rows["provider"] + " " + rows["provider_version"]).unique().tolist()
    dates = sorted(rows["date"].unique())
    date = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    left = f"; the page shows the first {MOST_TASKS} tasks" if rows["number"].max() > MOST_TASKS else ""
    return (
        f"{counted(rows['number'].nunique(), 'task')}, {counted(rows['mechanism'].nunique(), 'mechanism')}, {counted(len(rows), 'row')}; "
        f"{listed(packages)}, run on {date}{left}"
    )
