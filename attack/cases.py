"""What an attack is: cases drawn from a seed, and a check that each must pass."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Arguments = Mapping[str, Any]
"""Arguments of a check, by name: what `repr` writes as Python, so that a case can be written as a test."""


class Refused(Exception):  # noqa: N818 - not an error
    """The case was refused with a reason, as it may be, or is too large to check: nothing was tested beyond that."""


def refusal(error: Exception) -> Refused:
    """Return what to raise for a refusal, which must have a reason in words."""
    if not str(error).strip():
        raise AssertionError("refused without a reason") from error
    return Refused(str(error))


@dataclass(frozen=True)
class Attack:
    """One way of attacking.

    Attributes
    ----------
    name : str
        The module's.
    draw : callable
        Draws a case.
    check : callable
        Called with an empty folder and the case; raises what must not happen, or `Refused`.
    share : float
        Share of the minutes, beside those of the others.
    seconds : float
        After these a case is given up.
    prepare : callable
        Called once before the first case, for what all of them need: each case runs in a fork, which has it.
    """

    name: str
    draw: Callable[[random.Random], Arguments]
    check: Callable[..., None]
    share: float = 1.0
    seconds: float = 30.0
    prepare: Callable[[], object] = lambda: None

    def case(self, seed: int, number: int) -> Arguments:
        """Return a case: it depends on nothing but the seed and its number."""
        return self.draw(random.Random(f"{seed} {self.name} {number}"))

    def run(self, folder: Path, case: Arguments) -> None:
        """Check a case."""
        self.check(folder, **case)
