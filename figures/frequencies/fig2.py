"""Errors of geometric frequencies against the number of clients."""

from .error_panels import errors_figure

FIGURE = errors_figure(
    2,
    "geometric",
    "A secure sum beats local messages on geometric frequencies, unless it is compressed and epsilon is large",
    by_epsilon=False,
)
