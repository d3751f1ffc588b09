"""Console of all commands, with plain text and a line of progress.

The text has no markup and no control characters.
"""

from typing import Any

from rich.console import Console
from rich.progress import ProgressColumn, Task
from rich.table import Column
from rich.text import Text

from ..shown import printable


class PlainConsole(Console):
    """Console without markup and emoji codes.

    Escapes replace control characters, and characters that the stream cannot encode. A line break inside a string is also a control
    character; `rich.text.Text` holds text of several lines.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text of a cell, title or line with its control characters escaped."""
        return super().render_str(printable(text, self.encoding), **options)


class StepColumn(ProgressColumn):
    """Column for the current step, the only column that is cut if the line is full."""

    def __init__(self) -> None:
        super().__init__(table_column=Column(overflow="ellipsis"))

    def render(self, task: Task) -> Text:
        """Return the step in one line."""
        return Text(task.description, no_wrap=True, overflow="ellipsis")
