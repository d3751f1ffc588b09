"""A figure's files are reproducible, complete, and self-contained."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.dom import minidom

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread as read_png
from PIL import Image

import quietbits
from quietbits.figures.drawing import save
from quietbits.figures.drawing.save import DOTS_PER_INCH, save_figure
from quietbits.figures.drawing.style import TITLE_GAP, TITLE_LINE, print_style
from quietbits.figures.mvu.fig1 import draw_tables
from quietbits.figures.mvu.fig5 import draw_bits_out
from quietbits.figures.mvu.table_entries import DesignPoint


@pytest.fixture(scope="module")
def entries(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return rows_of([DesignPoint(seed=0, epsilon=1.0, bits_in=2, bits_out=bits) for bits in (1, 2)])


def test_files_are_the_same_each_time_and_the_table_reads_back(entries: pd.DataFrame, tmp_path: Path) -> None:
    frame = entries[entries["bits_out"] == 2].reset_index(drop=True)
    for folder in ("one", "two"):
        with print_style():
            written = save_figure(draw_tables(frame), frame, tmp_path / folder, "figure", "A title", "# A title\n")
        assert sorted(path.name for path in written) == ["figure.csv", "figure.md", "figure.pdf", "figure.png", "figure.svg"]
    names = ["figure.csv", "figure.md", "figure.pdf", "figure.png", "figure.svg"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    back = pd.read_csv(tmp_path / "one" / "figure.csv", dtype=str, keep_default_na=False)
    assert list(back) == list(frame)
    for column, values in frame.items():
        if column == "metric":
            assert set(back[column]) == {""}
        elif values.dtype.kind in "if":
            assert [float(text) for text in back[column]] == values.tolist()
        else:
            assert back[column].tolist() == values.tolist()


def test_the_svg_stands_alone(entries: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    with print_style():
        save_figure(draw_bits_out(entries, 1.0), entries, tmp_path, "figure", "A title", "# A title\n")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    svg = minidom.parseString(text).documentElement  # noqa: S318 - our own file
    assert svg.tagName == "svg"
    assert svg.getElementsByTagName("dc:date") == []
    # Letters are drawn as outlines, so that no font is necessary.
    assert svg.getElementsByTagName("text") == []
    pictures = [image.getAttribute("xlink:href") for image in svg.getElementsByTagName("image")]
    assert all(link.startswith("data:image/png;base64,") for link in pictures)


@pytest.mark.skipif(mpl.__version_info__[:2] < (3, 11), reason="before 3.11, the height that a title adds moves text by parts of a pixel")
def test_a_title_stands_above_a_legend_outside_and_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save, "METADATA", {"png": save.METADATA["png"]})
    pictures = []
    for title in ("Short", "A finding that is too long for a single line of the width of a page, which takes another line of its own"):
        with print_style():
            figure = Figure(figsize=(7.0, 3.0), layout="constrained")
            figure.subplots().plot([0, 1], label="a line")
            figure.legend(loc="outside upper center")
            save_figure(figure, pd.DataFrame({"a": [1]}), tmp_path, "figure", title, "# A title\n")
        pictures.append(read_png(tmp_path / "figure.png"))
    heights = [len(picture) for picture in pictures]
    expected = [(3.0 + TITLE_GAP + lines * TITLE_LINE) * DOTS_PER_INCH for lines in (1, 2)]
    assert heights == pytest.approx(expected, abs=1)
    rows = int(3.0 * DOTS_PER_INCH) - 1
    assert (pictures[0][-rows:] == pictures[1][-rows:]).all()
    assert (pictures[1][: -rows - 2] < 1).any()


def test_files_say_what_they_show(entries: pd.DataFrame, tmp_path: Path) -> None:
    frame = entries[entries["bits_out"] == 2].reset_index(drop=True).assign(seed=7)
    with print_style():
        save_figure(draw_tables(frame), frame, tmp_path, "figure", "Tables by ε", "# Tables by ε\n")
    program = f"quietbits {quietbits.__version__}"
    facts = ("seed 7", "replace-one adjacency", "local trust model")
    svg = minidom.parseString((tmp_path / "figure.svg").read_text(encoding="utf-8"))  # noqa: S318 - our own file
    texts = {
        name: [node.firstChild.data for node in svg.getElementsByTagName(name) if node.firstChild]
        for name in ("dc:title", "dc:description", "rdf:li")
    }
    assert texts["dc:title"] == ["Tables by ε", program]
    assert "Guarantee: ε as above each panel, replace-one adjacency, local trust model." in texts["dc:description"][0]
    assert {program, *facts} <= set(texts["rdf:li"])
    with Image.open(tmp_path / "figure.png") as image:
        assert image.text["Title"] == "Tables by ε"
        assert image.text["Description"] == texts["dc:description"][0]
        assert image.text["Comment"] == "; ".join((program, *facts))
    pdf = (tmp_path / "figure.pdf").read_bytes()
    assert f"/Keywords ({'; '.join((program, *facts))})".encode() in pdf
    assert b"/Subject" in pdf
    assert "Tables by ε".encode("utf-16-be") in pdf
