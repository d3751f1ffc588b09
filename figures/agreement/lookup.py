"""Claims by figure, over all papers."""

from collections.abc import Mapping
from types import MappingProxyType

from . import beyond, cpsgd, dp_rec, linear_compression, mvu, secure_frequencies
from .claims import FigureClaims

MODULES = (mvu, cpsgd, dp_rec, linear_compression, secure_frequencies, beyond)
FIGURE_CLAIMS: Mapping[str, FigureClaims] = MappingProxyType({name: claims for module in MODULES for name, claims in module.CLAIMS.items()})
"""Claims of the papers about each figure, or the figure's findings if no paper has it."""
