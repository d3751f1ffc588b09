"""Errors of Zipf's frequencies against epsilon."""

from .error_panels import errors_figure

FIGURE = errors_figure(
    5, "zipf", "Beyond epsilon of about five a sketch of Zipf's frequencies no longer gains: collisions remain", by_epsilon=True
)
