"""Errors of geometric frequencies against epsilon."""

from .error_panels import errors_figure

FIGURE = errors_figure(
    4, "geometric", "Beyond epsilon of about five a sketch of geometric frequencies no longer gains: collisions remain", by_epsilon=True
)
