"""A figure's files: vector graphics, a bitmap, and the table behind them."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...files import write_atomically

DOTS_PER_INCH = 220
# No dates and no random identifiers: the same figure gives the same files.
METADATA: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def save_figure(figure: Figure, frame: pd.DataFrame, output: Path, name: str) -> None:
    """Write ``<name>.svg``, ``<name>.pdf``, ``<name>.png`` and ``<name>.csv`` to a folder, which is created if necessary.

    The csv file holds the tidy table that the figure was drawn from, with numbers that can be read back exactly. Each file is written whole
    or not at all.
    """
    _settle_layout(figure)
    contents = {"csv": frame.to_csv(index=False, lineterminator="\n").encode()}
    for kind, metadata in METADATA.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
        contents[kind] = buffer.getvalue()
    output.mkdir(parents=True, exist_ok=True)
    for kind, content in contents.items():
        write_atomically(output / f"{name}.{kind}", content)


def _settle_layout(figure: Figure) -> None:
    """Fix the layout, in positions rounded so far that they are the same each time.

    The solver of constrained layouts visits its variables in an order that changes from figure to figure, and so does the last bit of
    its solution, which would change the identifiers in the SVG.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = np.round(axes.get_position().bounds, 6).tolist()
        axes.set_position((left, bottom, width, height))
