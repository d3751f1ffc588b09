"""Claims by figure, over all papers."""

from collections.abc import Mapping
from types import MappingProxyType

from . import beyond, cpsgd, mvu
from .claims import FigureClaims

MODULES = (mvu, cpsgd, beyond)
FIGURE_CLAIMS: Mapping[str, FigureClaims] = MappingProxyType({name: claims for module in MODULES for name, claims in module.CLAIMS.items()})
"""Claims of the papers about each figure, or the figure's findings if no paper has it."""
