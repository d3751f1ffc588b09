"""Print the lowest version of everything that pyproject.toml asks for, as requirements of pip.

Flower is left out: it asks for later versions of what quietbits needs than quietbits does, and so is tested with these alone.
"""

import re
import tomllib
from pathlib import Path

LEFT_OUT = {"flwr"}
# The extra that tests use, which names others.
EXTRA = "dev"

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
bounds = [*project["dependencies"], *project["optional-dependencies"][EXTRA]]
for bound in bounds:
    # pyproject.toml refers to other extras as quietbits[NAME,NAME].
    if extras := re.fullmatch(r"quietbits\[([\w,-]+)\]", bound):
        bounds += [other for extra in extras[1].split(",") for other in project["optional-dependencies"][extra]]
lowest = dict(match.groups() for bound in bounds if (match := re.match(r"([\w.-]+)>=([\w.]+)", bound)))
print(*(f"{name}=={version}" for name, version in lowest.items() if name not in LEFT_OUT), sep="\n")
