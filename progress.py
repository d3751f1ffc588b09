"""How long computations say how far they are."""

from collections.abc import Callable

OnStep = Callable[[int, int, str], None]
"""Called as ``on_step(done, total, text)`` after each step."""


def silent(done: int, total: int, text: str) -> None:
    """Report nothing: the default of every `on_step`."""
