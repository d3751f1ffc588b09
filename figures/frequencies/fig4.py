"""Errors of geometric frequencies against epsilon."""

from .error_panels import errors_figure

FIGURE = errors_figure(4, "geometric", "Geometric frequencies gain from a larger epsilon, sketched or not", by_epsilon=True)
