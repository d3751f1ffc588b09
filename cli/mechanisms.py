"""`quietbits mechanisms`: the registry."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import console, grid, show_document
from .options import Json

if TYPE_CHECKING:
    from ..design.contracts.registry import Entry, Option


def mechanisms_command(
    name: Annotated[str | None, typer.Argument(help="One mechanism, in full.")] = None,
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

    table = Table(title="Mechanisms: quietbits mechanisms NAME has more", box=SIMPLE_HEAD, title_justify="left")
    # Users type these names, so the table must not break them.
    table.add_column("name", no_wrap=True)
    for heading in ("trust model", "clients hold", "adjacency", "what it does"):
        table.add_column(heading)
    for entry in entries:
        domains = ", ".join("numbers" if domain.__name__ == "Interval" else _held(entry) for domain in entry.domains)
        table.add_row(entry.name, entry.trust_model, domains, ", ".join(entry.adjacencies), entry.title)
    console().print(table)


def _print_one(entry: "Entry", provider: str | None) -> None:
    from ..design.contracts.registry import REAL_NUMBERS

    rows = [
        ("title", entry.title),
        ("paper", entry.paper),
        *([("when to use it", entry.use)] if entry.use else []),
        *([("provided by", provider)] if provider is not None else []),
        ("trust model", entry.trust_model),
        ("adjacency", ", ".join(entry.adjacencies)),
        ("accounts", ", ".join(entry.accounts)),
        *([("account, calibrate", _of_account(entry))] if entry.account_adjacencies != entry.adjacencies else []),
        *([("note", REAL_NUMBERS)] if entry.on_real_numbers else []),
        *((f"simulate --{option.name.replace('_', '-')}", _describe(option)) for option in entry.options),
        *((f"account --{option.name.replace('_', '-')}", _describe(option)) for option in entry.account_options),
        *((f"calibrate --{option.name.replace('_', '-')}", _describe(option)) for option in entry.calibration_options),
    ]
    grid(entry.name, rows)


def _of_account(entry: "Entry") -> str:
    """Return the title of the accounts and their adjacencies, which differ from a message's."""
    title = entry.title if entry.noise is None else entry.noise.title
    return f"{title}; {' or '.join(entry.account_adjacencies)} adjacency"


def _held(entry: "Entry") -> str:
    if not any(domain.__name__ == "NormBall" for domain in entry.domains):
        return "items"
    return "vectors" if entry.norms is None else f"vectors of an {' or '.join(f'L{norm:g}' for norm in entry.norms)} ball"


def _describe(option: "Option") -> str:
    from ..design.contracts.options import NONE

    facts: list[Any] = [option.help]
    if option.choices:
        facts.append(f"One of {', '.join(option.choices)}.")
    elif option.kind in (int, float) and option.low > -1e300:
        facts.append(f"From {option.low:g} to {option.high:g}{f' {option.unit}' if option.unit else ''}.")
    facts.append("Required." if option.required else f"Default {NONE if option.default is None else option.default}.")
    return " ".join(facts)
