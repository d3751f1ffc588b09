"""Errors of Zipf's frequencies against the number of clients."""

from .error_panels import errors_figure

FIGURE = errors_figure(3, "zipf", by_epsilon=False)
