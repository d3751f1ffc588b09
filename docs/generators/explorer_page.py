"""The live explorer: a page over a small grid of tables, which stands beside the site's pages."""

from pathlib import Path
from tempfile import TemporaryDirectory

from quietbits.analysis.table_grid.run import design_tables
from quietbits.analysis.table_grid.spec import TableGrid
from quietbits.figures.explorer.explorer_page import write_explorer
from quietbits.progress import silent

from .stored import stored

GRID = TableGrid(epsilon=(0.5, 1.0, 2.0, 4.0), bits_in=(3,), bits_out=(1, 2, 3), metric=(None, "l1"), certify_seconds=1.0)
PAGE = "explorer.html"


def write(folder: Path) -> None:
    """Write the explorer of the grid into a folder, whose files the site copies."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as tables:
        for name, text in stored("explorer-tables", designed).items():
            (Path(tables) / name).write_text(text, encoding="ascii")
        write_explorer(Path(tables), folder / PAGE, on_step=silent)


def designed() -> dict[str, str]:
    """Return the contents of the grid's files, by name."""
    with TemporaryDirectory() as folder:
        design_tables(GRID, Path(folder), on_step=silent)
        return {path.name: path.read_text(encoding="ascii") for path in sorted(Path(folder).glob("*.json"))}
