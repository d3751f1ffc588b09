"""Calls that report the progress of long computations."""

from collections.abc import Callable

OnStep = Callable[[int, int, str], None]
"""Callback for progress: ``on_step(done, total, text)`` after each step."""


def silent(done: int, total: int, text: str) -> None:
    """Report nothing: the default of every `on_step`."""
