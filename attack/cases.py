"""An attack: cases drawn from a seed, and a check that each case must pass."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Arguments = Mapping[str, Any]
"""Arguments of a check, by name; `repr` writes them as Python, so that a case can be written as a test."""
# Limit of the address space of a case.
MOST_MEMORY = 6 * 2**30


class Refused(Exception):  # noqa: N818 - not an error
    """The case was refused for a permitted reason, or is too large to check; nothing was tested."""


def refusal(error: Exception) -> Refused:
    """Return the exception to raise for a refusal, which must have a reason in words."""
    if not str(error).strip():
        raise AssertionError("refused without a reason") from error
    return Refused(str(error))


@dataclass(frozen=True)
class Attack:
    """A kind of attack.

    Attributes
    ----------
    name : str
        Name of the module.
    draw : callable
        Function that draws a case.
    check : callable
        Function of an empty folder and the case; it raises an error for a fault, or `Refused`.
    share : float
        Share of the minutes, relative to the shares of the other attacks.
    seconds : float
        Time limit of a case.
    most_memory : int
        Limit of a case's address space, in bytes.
    prepare : callable
        Function that is called once, before the first case, for the setup that all cases need: each case runs in a fork, which inherits it.
    """

    name: str
    draw: Callable[[random.Random], Arguments]
    check: Callable[..., None]
    share: float = 1.0
    seconds: float = 30.0
    most_memory: int = MOST_MEMORY
    prepare: Callable[[], object] = lambda: None

    def case(self, seed: int, number: int) -> Arguments:
        """Return a case, which depends only on the seed and its number."""
        return self.draw(random.Random(f"{seed} {self.name} {number}"))

    def run(self, folder: Path, case: Arguments) -> None:
        """Check a case."""
        self.check(folder, **case)
