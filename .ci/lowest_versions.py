"""Print the lowest version of everything that pyproject.toml asks for, as requirements of pip.

Flower is left out: it asks for later versions of what quietbits needs than quietbits does, and so is tested with these alone.
"""

import re
import tomllib
from pathlib import Path

LEFT_OUT = {"flwr"}
# The extras that tests use.
EXTRAS = ("dask", "dev", "hdf5")

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
bounds = [*project["dependencies"], *(bound for extra in EXTRAS for bound in project["optional-dependencies"][extra])]
lowest = dict(re.match(r"([\w.-]+)>=([\w.]+)", bound).groups() for bound in bounds)
print(*(f"{name}=={version}" for name, version in lowest.items() if name not in LEFT_OUT), sep="\n")
