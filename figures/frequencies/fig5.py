"""Errors of Zipf's frequencies against epsilon."""

from .error_panels import errors_figure

FIGURE = errors_figure(5, "zipf", "A sketch of Zipf's frequencies stops gaining where its collisions exceed the noise", by_epsilon=True)
