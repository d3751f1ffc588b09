"""A page for each public name of the package, grouped by the module that defines it."""

import ast
from pathlib import Path

import quietbits

from . import markup

STUB = Path(quietbits.__file__).with_suffix(".pyi")
# Titles of the groups, by the beginning of the module; the longest beginning that fits is taken.
GROUPS = {
    "analysis.audits": "Audits",
    "analysis.catalogue": "Registry, accounts and calibration",
    "analysis.composition": "Registry, accounts and calibration",
    "analysis.deployed_clients": "Deployments",
    "analysis.federation": "Federations over Flower",
    "analysis.plan_grid": "Plans",
    "analysis.planner": "Plans",
    "analysis.simulation": "Simulation",
    "analysis.study": "Studies of one column",
    "analysis.sweeps": "Sweeps",
    "analysis.table_grid": "Tables in bulk",
    "analysis.training": "Training",
    "design.contracts": "Contracts: tasks, domains, guarantees, mechanisms",
    "design.deployment": "Deployments",
    "design.federated": "Federated models",
    "design.local": "Mechanisms of the local trust model",
    "design.noise": "Noise and random words",
    "design.relative_entropy": "DP-REC",
    "design.secure_sum": "Secure sums",
    "design.tables": "Lookup tables",
    "design.transforms": "Sketches",
    "errors": "Errors",
    "figures": "Reports",
    "solvers": "Accounting, decoders and limits",
}


def public_names() -> dict[str, str]:
    """Return the public names with the module that defines each, as the package's stub lists them; the version is no name of its own."""
    imports = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names if not alias.name.startswith("_")}


def group_of(module: str) -> str:
    """Return the title of the group of a module."""
    return GROUPS[max((start for start in GROUPS if f"{module}.".startswith(f"{start}.")), key=len)]


def write(folder: Path) -> None:
    """Write the list of public names; autosummary writes a page for each."""
    names = public_names()
    groups: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for name, module in names.items():
        groups[group_of(module)].append(name)
    parts = [
        markup.heading("Public names"),
        "``import quietbits`` has these names, and ``__version__``. Each is imported from its module at its first use.\n",
    ]
    for title in sorted(groups):
        listed = "\n".join(f"   {name}" for name in sorted(groups[title], key=str.casefold))
        parts += [
            markup.heading(title, "-"),
            ".. currentmodule:: quietbits\n",
            f".. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}\n",
        ]
    markup.write_pages(folder, {"index": "\n".join(parts)})
