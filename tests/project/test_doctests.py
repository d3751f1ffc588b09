"""Every example in a docstring runs, and prints what it says."""

import doctest
import importlib
import linecache
import pkgutil

import pytest

import quietbits

# By module name: collected by path, the checkout's folder would be imported as a second package beside quietbits.
MODULES = ["quietbits", *sorted(module.name for module in pkgutil.walk_packages(quietbits.__path__, "quietbits."))]

NEED_TORCH = "quietbits.analysis.training.models.torch_"


def test_modules_of_every_floor_are_found() -> None:
    floors = {name.split(".")[1] for name in MODULES if name.count(".") > 1}
    assert floors == {"analysis", "attack", "cli", "design", "figures", "solvers"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name: str) -> None:
    if name.startswith(NEED_TORCH):
        pytest.importorskip("torch")
    # Its debugger looks after every file whose lines have been read, in this process, for each docstring.
    linecache.clearcache()
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
