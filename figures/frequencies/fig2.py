"""Errors of geometric frequencies against the number of clients."""

from .error_panels import errors_figure

FIGURE = errors_figure(
    2, "geometric", "A secure sum beats local messages on geometric frequencies at every epsilon, sketched or not", by_epsilon=False
)
