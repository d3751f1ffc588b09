"""The console of all commands: it prints text as text, without markup and without control characters."""

from typing import Any

from rich.console import Console
from rich.text import Text

from ..shown import printable


class PlainConsole(Console):
    """A console that takes no markup and no emoji codes, and escapes control characters and what its stream cannot encode.

    A line break inside a string is a control character too: `rich.text.Text` holds text of several lines.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text as every cell, title and line shows it."""
        return super().render_str(printable(text, self.encoding), **options)
