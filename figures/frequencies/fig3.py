"""Errors of Zipf's frequencies against the number of clients."""

from .error_panels import errors_figure

FIGURE = errors_figure(
    3, "zipf", "A secure sum beats local messages on Zipf's frequencies; at large epsilon a sketch's collisions remain", by_epsilon=False
)
