"""Errors of geometric frequencies against epsilon."""

from .error_panels import errors_figure

FIGURE = errors_figure(4, "geometric", by_epsilon=True)
