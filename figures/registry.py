"""Which figures there are, and what makes each of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from . import mvu_fig1, mvu_fig2, mvu_fig5

# By name: writes the figure's svg, pdf, png and csv files to a folder, from a root seed.
FIGURES: Mapping[str, Callable[[Path, int], None]] = MappingProxyType(
    {
        mvu_fig1.NAME: mvu_fig1.mvu_fig1,
        mvu_fig2.NAME: mvu_fig2.mvu_fig2,
        mvu_fig5.NAME: mvu_fig5.mvu_fig5,
    }
)
