"""Errors of Zipf's frequencies against epsilon."""

from .error_panels import errors_figure

FIGURE = errors_figure(5, "zipf", by_epsilon=True)
