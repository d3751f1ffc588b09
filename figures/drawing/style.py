"""Style of every figure: sizes for print, colours and captions.

The colours stay distinct under the common kinds of colour blindness.
"""

import re
import textwrap
from contextlib import AbstractContextManager
from functools import cache

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font, get_font_names
from matplotlib.transforms import Bbox

from .ticks import label_logarithms

# Width of a page's text block, in inches, and the smallest type, in points.
WIDTH = 7.0
SMALLEST_TYPE = 8.0
# Number of characters of the smallest type on a line of the full width, and of lines of a caption; docs/how-to/reproduce-figures.md states
# the rules.
CAPTION_CHARACTERS = 112
CAPTION_LINES = 3
# Size of a title's type in points, its characters on a line of the full width, and the heights of a line and of the gap below in inches.
TITLE_TYPE = 9.5
TITLE_CHARACTERS = 84
TITLE_LINE = 0.18
TITLE_GAP = 0.06

GREY = "#555555"
# Colour map from white (probability zero) to dark, whose order survives printing in grey.
PROBABILITY_COLOURS = "Blues"
# Share of that map whose colours are light enough for black text.
LIGHT_SHARE = 0.6

# Matplotlib's own font, and families with other scripts, of which those that are installed are used for letters that it lacks.
FAMILY = "DejaVu Sans"
OTHER_FAMILIES = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR", "Source Han Sans"),
    *("Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Yu Gothic", "Meiryo", "MS Gothic", "Microsoft YaHei", "Malgun Gothic"),
    *("IPAGothic", "TakaoGothic", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Unifont"),
    *("Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Segoe UI Symbol", "Arial Unicode MS"),
)


def field_colours() -> LinearSegmentedColormap:
    """Return a colour map for fields with black numbers, from white to a blue that is light enough for them."""
    return LinearSegmentedColormap.from_list("light-blues", mpl.colormaps[PROBABILITY_COLOURS](np.linspace(0, LIGHT_SHARE, 64)))


@cache
def font_families() -> list[str]:
    """Return the families of figures' text, the first for most letters, the others for scripts that it lacks."""
    installed = set(get_font_names())
    return [FAMILY, *(family for family in OTHER_FAMILIES if family in installed)]


@cache
def letters() -> frozenset[int]:
    """Return the code points of the letters that some family of `font_families` has."""
    fonts = [get_font(findfont(FontProperties(family=[family]))) for family in font_families()]
    return frozenset[int]().union(*(font.get_charmap() for font in fonts))


def print_style() -> AbstractContextManager[None]:
    """Return the context in which figures are made and saved."""
    return mpl.rc_context(
        {
            "font.family": font_families(),
            "font.size": SMALLEST_TYPE,
            "axes.labelsize": SMALLEST_TYPE,
            "axes.titlesize": 9,
            "xtick.labelsize": SMALLEST_TYPE,
            "ytick.labelsize": SMALLEST_TYPE,
            "legend.fontsize": SMALLEST_TYPE,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.7,
            "axes.axisbelow": True,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.5,
            "lines.linewidth": 1.3,
            "lines.markersize": 4,
            # Outlines in SVG and embedded outlines in PDF make a figure look the same in every program.
            "svg.fonttype": "path",
            "pdf.fonttype": 42,
            # Identifiers are fixed instead of random, so that the same figure gives the same file.
            "svg.hashsalt": "quietbits",
            # A figure has its own layout, and no layout engine once the layout is fixed.
            "figure.autolayout": False,
            "figure.constrained_layout.use": False,
        }
    )


def add_title(figure: Figure, text: str) -> Bbox:
    """Write a title above a figure; return the area of both in inches for ``savefig``.

    The argument of ``savefig`` is ``bbox_inches``.
    """
    lines = textwrap.wrap(text, TITLE_CHARACTERS, break_on_hyphens=False)
    width, height = figure.get_size_inches()
    figure.text(0.01, 1 + TITLE_GAP / height, "\n".join(lines), verticalalignment="bottom", fontsize=TITLE_TYPE, fontweight="bold")
    return Bbox.from_extents(0, 0, width, height + TITLE_GAP + len(lines) * TITLE_LINE)


def add_caption(figure: Figure, text: str) -> None:
    """Write a caption under a figure, whose constrained layout makes room for it.

    Lines are broken to fit, but not at "ε = 1".
    """
    joined = re.sub(r"(\w) = (?=[\d.])", "\\1\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(joined, CAPTION_CHARACTERS, break_on_hyphens=False)
    figure.supxlabel("\n".join(lines), x=0.01, horizontalalignment="left", fontsize=SMALLEST_TYPE, linespacing=1.35)


def solve_layout(figure: Figure) -> None:
    """Label logarithmic axes and apply the figure's layout without drawing; a saved figure keeps its fixed layout."""
    label_logarithms(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
