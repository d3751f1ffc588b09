"""`quietbits mechanisms`: the registry."""

from typing import TYPE_CHECKING, Annotated

import typer

from .console import console, grid, show_document
from .options import Json, completed_by
from .task import entry_names

if TYPE_CHECKING:
    from ..design.contracts.registry import Entry


def mechanisms_command(
    name: Annotated[str | None, typer.Argument(help="One mechanism, in full.", autocompletion=completed_by(entry_names))] = None,
    json: Json = False,
) -> None:
    """List the mechanisms, or show one with its options, accounts and adjacencies.

    The source is `quietbits.REGISTRY`.
    """
    from ..analysis.catalogue.registry import REGISTRY, entry_named

    entries = list(REGISTRY.values()) if name is None else [entry_named(name)]
    if json:
        documents = [entry.document() | {"provider": REGISTRY.provider(entry.name)} for entry in entries]
        show_document({"mechanisms": documents}, json, None)
    elif name is None:
        _print_all(entries)
    else:
        _print_one(entries[0], REGISTRY.provider(entries[0].name))


def _print_all(entries: "list[Entry]") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ..design.contracts.described_entry import LISTED

    table = Table(title="Mechanisms: quietbits mechanisms NAME has more", box=SIMPLE_HEAD, title_justify="left")
    for heading in LISTED:
        # Users type these names, so the table must not break them.
        table.add_column(heading, no_wrap=heading == "name")
    for entry in entries:
        table.add_row(*entry.listed())
    console().print(table)


def _print_one(entry: "Entry", provider: str | None) -> None:
    own = {} if provider is None else {"provided by": provider}
    grid(entry.name, (own | entry.described()).items())
