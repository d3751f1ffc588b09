"""A figure's files: vector graphics, a bitmap, and the table behind them."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...files import write_atomically
from ...version import __version__
from .style import add_title, solve_layout

DOTS_PER_INCH = 220
# Metadata without dates and random identifiers, so that the same figure gives the same files.
METADATA: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
PROGRAM = f"quietbits {__version__}"


@dataclass(frozen=True)
class FigureFacts:
    """Facts about a figure that its files hold beside the drawing.

    Attributes
    ----------
    title : str
        Title.
    description : str
        Caption, which states the guarantee.
    keywords : tuple of str
        Further facts: the seed, adjacencies, trust models.
    """

    title: str
    description: str
    keywords: tuple[str, ...] = ()

    def metadata(self, kind: str) -> dict[str, Any]:
        """Return the metadata of a file of a kind in `METADATA`, by the keys of its format."""
        keywords = "; ".join((PROGRAM, *self.keywords))
        facts: dict[str, dict[str, Any]] = {
            "svg": {"Title": self.title, "Description": self.description, "Keywords": [PROGRAM, *self.keywords], "Creator": PROGRAM},
            "pdf": {"Title": self.title, "Subject": self.description, "Keywords": keywords, "Creator": PROGRAM},
            "png": {"Title": self.title, "Description": self.description, "Comment": keywords, "Software": PROGRAM},
        }
        return {**METADATA[kind], **facts[kind]}


def _keywords(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the seed, adjacencies and trust models of a table."""
    words = {"seed": "seed {}", "adjacency": "{} adjacency", "trust_model": "{} trust model"}
    return tuple(text.format(value) for name, text in words.items() if name in frame for value in dict.fromkeys(frame[name].dropna()))


def save_figure(figure: Figure, frame: pd.DataFrame, output: Path, name: str, title: str, markdown: str) -> list[Path]:
    """Write ``<name>.svg``, ``.pdf``, ``.png``, ``.csv`` and ``.md`` to a folder.

    The function creates the folder if it is missing, and returns the files. The csv file holds the tidy table that the figure was drawn
    from, with numbers that can be read back exactly; the md file is for readers. Each file is written completely or not at all.
    """
    _settle_layout(figure)
    area = add_title(figure, title)
    about = FigureFacts(title, " ".join(figure.get_supxlabel().split()), _keywords(frame))
    contents = {"csv": frame.to_csv(index=False, lineterminator="\n").encode(), "md": markdown.encode()}
    for kind in METADATA:
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=about.metadata(kind), bbox_inches=area)
        contents[kind] = buffer.getvalue()
    output.mkdir(parents=True, exist_ok=True)
    files = {output / f"{name}.{kind}": content for kind, content in contents.items()}
    for file, content in files.items():
        write_atomically(file, content)
    return list(files)


def _settle_layout(figure: Figure) -> None:
    """Fix the layout at rounded positions, which are the same in every run.

    The solver of constrained layouts visits its variables in an order that changes from figure to figure, and so does the last bit of
    its solution, which would change the identifiers in the SVG.
    """
    solve_layout(figure)
    # Remove the layout engine, for which each format would be drawn twice.
    figure.set_layout_engine(None)
    for axes in figure.axes:
        left, bottom, width, height = np.round(axes.get_position().bounds, 6).tolist()
        axes.set_position((left, bottom, width, height))
    for legend in figure.legends:
        # Keep the legend in place for every saved area.
        legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
