"""The leaderboard: parts of its page from the stored rows, and the stored rows from planned tasks.

    PYTHONPATH=docs python -m generators.leaderboard build/leaderboard/results.parquet

stores the rows of that table with today's date.
"""

import datetime as dt
import html
import sys
from pathlib import Path

import pandas as pd

from quietbits.analysis.catalogue.registry import BUILT_IN
from quietbits.analysis.plan_grid.leaderboard import board_rows, read_board
from quietbits.figures.planner.leaderboard_page import leaderboard_parts

FOLDER = Path(__file__).parents[1] / "leaderboard"
TASKS, RESULTS = FOLDER / "tasks.toml", FOLDER / "results.csv"
# Pages of mechanisms, as the leaderboard's page links to them.
MECHANISMS = "../reference/generated/mechanisms"


def write(folder: Path) -> None:
    """Write the parts of the page, which `docs/leaderboard/index.md` includes."""
    parts = leaderboard_parts(read_board(RESULTS), lambda name: f"{MECHANISMS}/{name}.html" if name in BUILT_IN else None)
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "headline.html": _paragraph(parts.headline[0]) + _list(parts.headline[1:]),
        "absent.html": _list(parts.absent),
        "winners.html": parts.winners,
        "standings.html": parts.standings,
        "rows.html": parts.rows + parts.assets,
        "tasks.svg": parts.tasks_figure,
        "trust.svg": parts.trust_figure,
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}.</p>\n"


def _list(texts: tuple[str, ...]) -> str:
    return "<ul>\n" + "".join(f"<li>{html.escape(text)}.</li>\n" for text in texts) + "</ul>\n"


def store(results: Path) -> None:
    """Write the stored rows from the table of the planned tasks."""
    board_rows(pd.read_parquet(results), dt.datetime.now(dt.UTC).date()).to_csv(RESULTS, index=False, lineterminator="\n")


if __name__ == "__main__":
    store(Path(sys.argv[1]))
