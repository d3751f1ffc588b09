"""Console of all commands: it prints plain text, without markup or control characters."""

from typing import Any

from rich.console import Console
from rich.text import Text

from ..shown import printable


class PlainConsole(Console):
    """Console without markup and emoji codes.

    Escapes replace control characters, and characters that the stream cannot encode. A line break inside a string is a control character
    too: `rich.text.Text` holds text of several lines.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text of a cell, title or line with its control characters escaped."""
        return super().render_str(printable(text, self.encoding), **options)
