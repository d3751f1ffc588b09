"""A page for each mechanism of the registry: use, formula, figure, message, options, accounts and commands."""

import math
import os
import re
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from quietbits.analysis.catalogue.accounts import calibrates
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.design.contracts.described_entry import REAL_NUMBERS
from quietbits.design.contracts.options import NONE
from quietbits.design.contracts.registry import Entry, Option
from quietbits.figures.drawing.marks import mechanism_mark
from quietbits.figures.drawing.style import print_style
from quietbits.figures.report.report_figures import svg_text

from . import markup
from .mechanism_errors import EPSILON, page_numbers
from .mechanism_figure import draw_errors
from .name_pages import public_names
from .stored import stored

TRUST_MODELS = {
    "local": "Local trust model: the server sees each message",
    "shuffled": "Shuffled trust model: the server sees messages without their senders",
    "secure-sum": "Secure-sum trust model: the server sees only the sum of the messages",
    "central": "Central trust model: the server is trusted with the data",
}
FORMULA = re.compile(r"(\$\$.+?\$\$|\$.+?\$)")
NAME = re.compile(r"``([a-z0-9-]+)``")
MISSING = "The registry entry of this mechanism does not say."


def write(folder: Path) -> None:
    """Write the pages with their figures, and the list of mechanisms."""
    names = list(REGISTRY)
    numbers = stored("mechanisms", lambda: _computed(names))
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name in names:
        if numbers[name]["by_epsilon"]:
            with print_style():
                drawn = svg_text(draw_errors(numbers[name], EPSILON, mechanism_mark(name)), name)
            (folder / "figures" / f"{name}.svg").write_text(drawn, encoding="utf-8")
    pages = {name: page(REGISTRY[name], numbers[name]) for name in names}
    markup.write_pages(folder, {**pages, "index": _index()})


def _computed(names: list[str]) -> dict[str, Any]:
    """Return the numbers of all pages; the slowest entries are not the last to start."""
    workers = min(2, os.cpu_count() or 1)
    results = Parallel(n_jobs=workers, batch_size=1)(delayed(page_numbers)(name) for name in names)
    return dict(zip(names, results, strict=True))


def _index() -> str:
    parts = [
        markup.heading("Mechanisms"),
        "Each mechanism has a page that is made from its registry entry, the source of ``quietbits mechanisms NAME``.\n",
    ]
    for model, title in TRUST_MODELS.items():
        entries = [entry for entry in REGISTRY.values() if entry.trust_model == model]
        rows = [(f":doc:`{entry.name}`", entry.listed()[2], markup.text(entry.title)) for entry in entries]
        parts += [markup.heading(title, "-"), markup.table(("name", "clients hold", "what it does"), rows, "30 20 50")]
    return "\n".join([*parts, markup.toctree(REGISTRY)])


def page(entry: Entry, numbers: dict[str, Any]) -> str:
    """Return the page of one mechanism."""
    return "\n".join(
        [
            markup.heading(entry.name),
            f"*{markup.text(entry.title)}.*\n",
            markup.heading("When to use it", "-"),
            f"{_linked(entry.use) if entry.use else MISSING}\n",
            *([f".. warning::\n\n   {markup.text(REAL_NUMBERS[0].upper() + REAL_NUMBERS[1:])}.\n"] if entry.on_real_numbers else []),
            markup.heading("Formula", "-"),
            formula(entry.formula) if entry.formula else f"{MISSING}\n",
            markup.heading("At a glance", "-"),
            _facts(entry, numbers),
            markup.heading("Error against epsilon and bits", "-"),
            _figure(entry, numbers),
            markup.heading("Options", "-"),
            options_table(entry.options),
            markup.heading("Accounts", "-"),
            _accounts(entry, numbers),
            markup.heading("Commands and calls", "-"),
            _calls(entry, numbers),
        ]
    )


def formula(written: str) -> str:
    """Return sentences with LaTeX between dollar signs as reStructuredText."""
    pieces = list[str]()
    for part in FORMULA.split(written):
        if part.startswith("$$"):
            pieces.append(f"\n\n.. math::\n\n   {part[2:-2].strip()}\n\n")
        elif part.startswith("$"):
            pieces.append(f":math:`{part[1:-1]}`")
        else:
            # A role may touch a letter only behind an escaped space.
            joint = "\\ " if pieces and part[:1].isalnum() else ""
            pieces.append(joint + markup.text(part))
    # After a displayed formula, a sentence starts in the first column.
    return "\n".join(line if line.startswith("   ") else line.strip() for line in "".join(pieces).splitlines()) + "\n"


def _linked(written: str) -> str:
    """Return sentences as reStructuredText, with links from the names of mechanisms."""
    return NAME.sub(lambda name: f":doc:`{name[1]}`" if name[1] in REGISTRY else name[0], markup.text(written))


def _facts(entry: Entry, numbers: dict[str, Any]) -> str:
    provider = REGISTRY.provider(entry.name)
    rows = [
        ("source", markup.text(entry.paper)),
        *([("provided by", markup.text(provider))] if provider is not None else []),
        ("trust model", f"``{entry.trust_model}``"),
        ("clients hold", entry.listed()[2]),
        ("adjacency", ", ".join(f"``{adjacency}``" for adjacency in entry.adjacencies)),
        ("message", _message(numbers)),
    ]
    return markup.table(("property", "value"), rows, "22 78")


def _message(numbers: dict[str, Any]) -> str:
    bits = numbers["bits"]
    size = f"{bits:,.0f}" if bits == round(bits) else f"{bits:,.2f}" if bits < 100 else f"{bits:,.1f}"
    return f"{size} bit{'s' if bits != 1 else ''} from each client at epsilon {EPSILON:g} for the task below"


def _figure(entry: Entry, numbers: dict[str, Any]) -> str:
    task = f"The task: {markup.text(numbers['task'])}."
    if not numbers["by_epsilon"]:
        return f"{task} The mechanism is exact: its error is 0 at every epsilon.\n"
    reason = numbers["bound_reason"]
    bound = "" if reason is None else f" No bound is drawn: {markup.text(reason.partition(': ')[2] or reason)}."
    text = (
        f"{task} Left: the usual design against epsilon. Right: the designs that a plan tries at epsilon {EPSILON:g}, and the least error "
        "within a number of bits. Errors are predicted for the population that plans use; the worst case holds for every input of "
        f"the domain.{bound}"
    )
    picture = f".. figure:: figures/{entry.name}.svg\n   :alt: Error of {entry.name} against epsilon and against bits\n   :width: 100%\n"
    return f"{picture}\n   {text}\n"


def options_table(options: tuple[Option, ...]) -> str:
    """Return the design choices beside the task, with ranges and defaults."""
    if not options:
        return "It has no options beside the task.\n"
    rows = [(f"``{option.name}``", markup.text(option.help), _range(option), _default(option)) for option in options]
    text = "The command line writes underscores as dashes.\n\n"
    return text + markup.table(("option", "meaning", "range", "default"), rows, "20 46 20 14", "options")


def _range(option: Option) -> str:
    if option.choices:
        return ", ".join(f"``{choice}``" for choice in option.choices)
    if option.kind not in (int, float) or math.isinf(option.low) or math.isinf(option.high):
        return {bool: "``true``, ``false``", str: "text", Path: "path"}.get(option.kind, "number")
    return markup.text(f"{option.low:.4g} to {option.high:.4g}{f' {option.unit}' if option.unit else ''}")


def _default(option: Option) -> str:
    if option.required:
        return "required"
    return f"``{NONE if option.default is None else str(option.default).lower() if option.kind is bool else option.default}``"


def _accounts(entry: Entry, numbers: dict[str, Any]) -> str:
    rows = [
        (
            f"``{account['name']}``",
            f"``{account['adjacency']}``",
            "yes" if account["proven"] else "no",
            "nothing" if account["assumes"] is None else markup.text(account["assumes"]),
            _epsilon(account),
        )
        for account in numbers["accounts"]
    ]
    text = (
        f"The accounts of one message of the task above, built for epsilon {EPSILON:g}, at delta = {numbers['account_delta']:g}. "
        "The guarantee is the least account that is proven and assumes nothing.\n\n"
    )
    table = markup.table(("account", "adjacency", "proven", "assumes", "epsilon"), rows, "18 22 10 32 18")
    named = {account["name"] for account in numbers["accounts"]}
    others = [name for name in entry.accounts if name not in named]
    more = f"\n``quietbits account {entry.name}`` also has {', '.join(f'``{name}``' for name in others)}.\n" if others else ""
    return text + table + more


def _epsilon(account: dict[str, Any]) -> str:
    if account["epsilon"] is None:
        return markup.text(f"none: {account['reason']}" if account["reason"] else "none")
    # Upper bounds are shown rounded up.
    scale = 10 ** (4 - math.ceil(math.log10(max(account["epsilon"], 1e-12))))
    return f"{math.ceil(account['epsilon'] * scale * (1 - 1e-12)) / scale:.4g}"


def _calls(entry: Entry, numbers: dict[str, Any]) -> str:
    kind = numbers["class"][1]
    made = f":py:class:`quietbits.{kind}`" if kind in public_names() else f"``{kind}``"
    does = {"account": "states the privacy of given parameters", "calibrate": "finds parameters for a budget"}
    does |= {"simulate": "runs rounds and compares errors", "audit": "tries to refute the guarantee"}
    if not calibrates(entry.name):
        del does["calibrate"]
    rows = [(f":doc:`quietbits {command} {entry.name} <../commands/{command}>`", purpose) for command, purpose in does.items()]
    return (
        markup.table(("command", "what it does"), rows, "50 50")
        + f"\n``quietbits.build_mechanism({entry.name!r}, task, options)`` builds the mechanism in Python, a {made} for the task above.\n"
    )
