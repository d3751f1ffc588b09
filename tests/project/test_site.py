"""The site has a page for each mechanism, command and public name.

It loads nothing from another host.
"""

import re
import sys
from pathlib import Path

import pytest
import typer

import quietbits
from quietbits.analysis.catalogue.accounts import calibrates
from quietbits.analysis.catalogue.registry import BUILT_IN, accounted_names
from quietbits.cli.main import app

DOCS = Path(quietbits.__file__).parent / "docs"
sys.path.insert(0, str(DOCS))

from generators import command_pages, explorer_page, markup, mechanism_pages, name_pages, offline  # noqa: E402 - needs the path above

NUMBERS = {
    "task": "three clients",
    "class": ["quietbits.design.local.cldp", "CLDPMechanism"],
    "bits": 1.0,
    "choices": {},
    "accounts": [{"name": "pure", "adjacency": "replace-one", "proven": True, "assumes": None, "epsilon": 2.00001, "reason": None}],
    "account_delta": 1e-5,
    "bound": None,
    "bound_reason": "no proven bound: for the test",
    "central": None,
    "by_epsilon": [{"epsilon": 2.0}],
    "by_bits": [],
}
SECTIONS = ("When to use it", "Formula", "At a glance", "Error against epsilon and bits", "Options", "Accounts", "Commands and calls")

# Commands of formulas that the site shows.
COMMANDS = {
    *("Delta", "Phi", "Pr", "alpha", "approx", "bar", "binom", "bmod", "cdot", "chi", "delta", "equiv", "eta", "exp"),
    *("frac", "gamma", "ge", "hat", "infty", "lVert", "lambda", "langle", "ldots", "le", "left", "lfloor", "mathbb", "mathcal"),
    *("mathrm", "min", "mu", "odot", "pm", "pmod", "propto", "qquad", "quad", "rVert", "rangle", "rfloor", "right", "sigma"),
    *("sim", "sqrt", "sum", "sup", "tau", "text", "theta", "top", "varepsilon"),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_mechanism_has_a_page_from_its_entry(name: str) -> None:
    entry = BUILT_IN[name]
    page = mechanism_pages.page(entry, NUMBERS)
    assert [section for section in SECTIONS if f"{section}\n{'-' * len(section)}\n" not in page] == []
    assert mechanism_pages.MISSING not in page
    assert all(f"``{option.name}``" in page for option in entry.options)
    # Upper bounds are rounded up.
    assert " - 2.001\n" in page
    assert max(len(sentence.split()) for sentence in re.split(r"(?<=[.:]) ", entry.use)) <= 30
    # Dollar signs and braces come in pairs.
    assert entry.formula.replace("$$", "").count("$") % 2 == entry.formula.count("$$") % 2 == 0
    assert entry.formula.count("{") == entry.formula.count("}")
    # The site's converter refuses commands that it does not know: `make docs` shows whether it knows a new one.
    assert set(re.findall(r"\\([a-zA-Z]+)", entry.formula)) <= COMMANDS


def test_an_entry_without_use_and_formula_says_so() -> None:
    from dataclasses import replace

    page = mechanism_pages.page(replace(BUILT_IN["cldp"], use="", formula=""), NUMBERS)
    assert page.count(mechanism_pages.MISSING) == 2


def test_formulas_become_roles_and_displays() -> None:
    written = r"A bit $b$s with $$\frac12$$ Then *stars*."
    assert mechanism_pages.formula(written) == "A bit :math:`b`\\ s with\n\n.. math::\n\n   \\frac12\n\nThen \\*stars\\*.\n"


def test_every_command_has_a_page_with_its_options() -> None:
    commands = {command.name: command for command in command_pages.commands()}
    root = typer.main.get_command(app)
    assert set(commands) == {f"quietbits {name}" for name in root.list_commands(None)}
    for group, names in {
        "account": set(accounted_names()),
        "calibrate": {name for name in accounted_names() if calibrates(name)},
        "simulate": set(quietbits.REGISTRY),
    }.items():
        described = {child.name.rpartition(" ")[2] for child in commands[f"quietbits {group}"].subcommands}
        assert names <= described, group
    verify = commands["quietbits verify"]
    assert verify.usage.startswith("quietbits verify FILE")
    assert "--json" in {parameter.spelling for parameter in verify.parameters}
    assert all(command.help for command in commands.values())
    assert all(
        parameter.help for command in commands.values() for child in (command, *command.subcommands) for parameter in child.parameters
    )


def test_common_options_are_listed_once() -> None:
    (account,) = (command for command in command_pages.commands() if command.name == "quietbits account")
    page = command_pages._page(account)
    assert page.count("``--rounds INTEGER``") == 1
    assert page.count("``--noise-multiplier FLOAT``") > 1


def test_every_public_name_is_in_a_group(tmp_path: Path) -> None:
    assert set(name_pages.public_names()) == set(dir(quietbits)) - {"__version__"}
    name_pages.write(tmp_path)
    listed = set(re.findall(r"^   (\w+)$", (tmp_path / "index.rst").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert listed == set(name_pages.public_names())


def test_special_characters_are_escaped_outside_of_code() -> None:
    assert markup.text("a * b of `x | y` and |z|") == "a \\* b of ``x | y`` and \\|z\\|"


def test_the_page_on_explorers_shows_the_live_explorer() -> None:
    page = (DOCS / "how-to" / "explore-tables.md").read_text(encoding="utf-8")
    assert page.count(f'"../{explorer_page.PAGE}"') == 2


def test_pages_that_are_gone_are_removed(tmp_path: Path) -> None:
    markup.write_pages(tmp_path, {"first": "1", "second": "2"})
    markup.write_pages(tmp_path, {"second": "2"})
    assert [path.name for path in tmp_path.iterdir()] == ["second.rst"]


def test_templates_and_styles_name_no_other_host() -> None:
    sources = [DOCS / "conf.py", *(path for folder in ("_static", "_templates", "generators") for path in (DOCS / folder).rglob("*"))]
    named = {
        path.name: re.findall(r"https?://\w[^\s\"')]*", path.read_text(encoding="utf-8"))
        for path in sources
        if path.suffix in (".py", ".css", ".rst", ".html")
    }
    assert {name: hosts for name, hosts in named.items() if hosts} == {}


def test_requests_to_other_hosts_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<a href="https://a.example">a</a><script src="own.js"></script><img src="https://b.example/c.png">'
    )
    (tmp_path / "own.css").write_text("@font-face { src: url(fonts/own.woff2) } body { background: url('//d.example/e.png') }")
    requests = list(offline.requests(tmp_path))
    assert [line.partition(":")[0] for line in requests] == ["own.css", "page.html"]
