"""Errors of Zipf's frequencies against the number of clients."""

from .error_panels import errors_figure

FIGURE = errors_figure(
    3, "zipf", "A secure sum beats local messages on Zipf's frequencies, unless it is compressed and epsilon is large", by_epsilon=False
)
