"""A task and its mechanisms, from the options of `plan`, `simulate` and `audit`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import REQUIRED, Adjacency, Epsilon, adjacency_of, given

if TYPE_CHECKING:
    from ..design.contracts.domains import Domain
    from ..design.contracts.mechanism import Mechanism
    from ..design.contracts.registry import Entry, Option
    from ..design.contracts.task import Task

Clients = Annotated[int, typer.Option(help="Number of clients.")]
Dimension = Annotated[int | None, typer.Option(help="Number of coordinates of a vector; without it clients hold numbers, if they may.")]
Categories = Annotated[int | None, typer.Option(help="Number of items, where clients hold one of a list.")]
Norm = Annotated[
    str | None,
    typer.Option(help="p of the ball of the vectors: l1, l2, linf or another; the mechanism's usual one, or l2, by default."),
]
Clip = Annotated[float | None, typer.Option(help="Norm that vectors are clipped to; 1 by default.")]
Interval = Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="Public interval of numbers; 0 1 by default.")]
Delta = Annotated[float, typer.Option(help="Failure probability of all rounds together; 0 for pure privacy.")]
Rounds = Annotated[int, typer.Option(help="Rounds that share the budget; errors are of one of them.")]
Dropout = Annotated[
    float,
    typer.Option(help="Share of the clients that may drop out: secure sums and shuffled mechanisms keep the budget with the others alone."),
]
UNUSED = Annotated[float, typer.Option(help="Without effect: the mechanism keeps no budget.")]
TASK: dict[str, tuple[Any, Any]] = {
    "clients": (Clients, REQUIRED),
    "dimension": (Dimension, None),
    "norm": (Norm, None),
    "categories": (Categories, None),
    "clip": (Clip, None),
    "interval": (Interval, None),
    "epsilon": (Epsilon, REQUIRED),
    "delta": (Delta, 0.0),
    "rounds": (Rounds, 1),
    "dropout": (Dropout, 0.0),
    "adjacency": (Adjacency, None),
}
# Kind of domain that each option describes, by the domain's class name.
KINDS = {"categories": "Categories", "dimension": "NormBall", "norm": "NormBall", "clip": "NormBall", "interval": "Interval"}
HELD = {"Categories": "items", "NormBall": "vectors", "Interval": "numbers"}


def entry_names() -> list[str]:
    """Return the names of the registry."""
    from ..analysis.catalogue.registry import REGISTRY

    return list(REGISTRY)


def entries_of(name: str) -> "list[Entry]":
    """Return the entries of one name, or of several names that are joined by commas."""
    from ..analysis.catalogue.registry import entry_named

    return [entry_named(part) for part in name.split(",")]


def title_of(name: str) -> str:
    """Return the titles of the mechanisms whose names are joined by commas."""
    return "; ".join(entry.title for entry in entries_of(name))


def options_of(entries: "list[Entry]") -> "tuple[Option, ...]":
    """Return the design choices of mechanisms, without duplicate names.

    An option that several mechanisms share keeps the default of each. A ValueError refuses a name whose types or choices differ between
    mechanisms.
    """
    if len(entries) == 1:
        return entries[0].options
    named: dict[str, dict[str, Option]] = {}
    for entry in entries:
        for option in entry.options:
            named.setdefault(option.name, {})[entry.name] = option
    return tuple(_shared(name, owners) for name, owners in named.items())


def _shared(name: str, owners: "dict[str, Option]") -> "Option":
    first, *others = owners.values()
    if any((other.kind, other.choices, other.flags) != (first.kind, first.choices, first.flags) for other in others):
        raise ValueError(f"mechanisms must agree on what {name} is to be compared, got {', '.join(owners)}: simulate them one by one")
    texts: dict[str, list[str]] = {}
    for owner, option in owners.items():
        texts.setdefault(option.help, []).append(owner)
    joined = first.help if len(texts) == 1 else "; ".join(f"{', '.join(whose)}: {text.rstrip('.')}" for text, whose in texts.items()) + "."
    return replace(first, default=None, help=joined)


def task_options(entries: "list[Entry]") -> dict[str, tuple[Any, Any]]:
    """Return the options of a task; epsilon is optional if no mechanism keeps a budget."""
    common = tuple(adjacency for adjacency in entries[0].adjacencies if all(adjacency in entry.adjacencies for entry in entries))
    typed = TASK | {"adjacency": (adjacency_of(common, compared=len(entries) > 1), None)}
    return typed if any(entry.private for entry in entries) else typed | {"epsilon": (UNUSED, 1.0), "delta": (UNUSED, 0.0)}


def built(entry: "Entry", values: dict[str, Any]) -> "tuple[Task, Mechanism]":
    """Return the task that was typed and a mechanism for it."""
    from ..design.contracts.registry import usual_adjacency
    from ..design.contracts.task import Task

    task = Task(
        domain_of(values, entry),
        values["clients"],
        values["epsilon"],
        values["delta"],
        usual_adjacency(values["adjacency"], None, entry.adjacencies),
        rounds=values["rounds"],
        dropout=values["dropout"],
    )
    chosen = {name: value for name, value in given(entry.options, values).items() if value is not None}
    return task, entry.mechanism_for(task, chosen)


def domain_of(values: dict[str, Any], entry: "Entry | None" = None) -> "Domain":
    """Return the domain of the clients' inputs, from the options of `KINDS`.

    Options that contradict each other or the mechanism raise a ValueError.
    """
    from ..design.contracts.domains import Categories as Items
    from ..design.contracts.domains import Interval as Numbers
    from ..design.contracts.norm_ball import NormBall, parse_norm

    typed = {name: values[name] for name in KINDS if values[name] is not None}
    if entry is not None:
        _check_held(entry, typed)
    kind = next((KINDS[name] for name in ("categories", "dimension", "interval") if name in typed), "Interval")
    for name, value in typed.items():
        if KINDS[name] != kind:
            held = f"one of {typed['categories']} items" if kind == "Categories" else HELD[kind]
            raise ValueError(f"{name} must be left out where clients hold {held}, got {_shown(value)}")
    if kind == "Categories":
        return Items(typed["categories"])
    if kind == "Interval":
        return Numbers(*typed.get("interval", (0.0, 1.0)))
    usual = 2.0 if entry is None or entry.norms is None or 2.0 in entry.norms else entry.norms[0]
    return NormBall(typed["dimension"], parse_norm(typed["norm"]) if "norm" in typed else usual, typed.get("clip", 1.0))


def size_of(entry: "Entry") -> str | None:
    """Return the required size option of an entry that serves only items or only vectors."""
    sizes = {"Categories": "categories", "NormBall": "dimension"}
    return sizes.get(entry.domains[0].__name__) if len(entry.domains) == 1 else None


def _shown(value: Any) -> str:
    return " ".join(f"{end:g}" for end in value) if isinstance(value, tuple) else str(value)


def _check_held(entry: "Entry", typed: dict[str, Any]) -> None:
    """Raise ValueError if an option does not fit the mechanism's domains, or a size is missing."""
    kinds = [domain.__name__ for domain in entry.domains]
    held = " or ".join(HELD[kind] for kind in kinds)
    for name, value in typed.items():
        if KINDS[name] not in kinds:
            raise ValueError(f"{name} must be left out for {entry.name}, whose clients hold {held}, got {_shown(value)}")
    needed = size_of(entry)
    if needed is not None and needed not in typed:
        raise ValueError(f"{needed} must be given for {entry.name}, whose clients hold {held}: a whole number from 1")
