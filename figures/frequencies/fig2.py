"""Errors of geometric frequencies against the number of clients."""

from .error_panels import errors_figure

FIGURE = errors_figure(2, "geometric", by_epsilon=False)
