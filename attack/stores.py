"""Damaged files of finished tasks: the sweep resumes, and leaves the same table."""

import logging
import random
from pathlib import Path

from ..analysis.sweeps.run import run_sweep
from ..analysis.sweeps.store import STORE_NAME
from .cases import Arguments, Attack
from .damage import damaged
from .toy_sweep import squares, whole


def draw(rng: random.Random) -> Arguments:
    """Draw the seed of a place and a kind of damage, because files differ between machines."""
    return {"seed": rng.randrange(2**32)}


def check(folder: Path, seed: int) -> None:
    """Damage the file, go on, and compare."""
    logging.disable()
    expected = whole()
    (folder / STORE_NAME).write_bytes(damaged(random.Random(seed), expected.store))
    results = run_sweep(squares(), folder)
    assert results.read_bytes() == expected.results
    # The file is sound after its damaged part was set aside: another run leaves the same table.
    assert run_sweep(squares(), folder).read_bytes() == expected.results
    assert not list(folder.rglob("*.part"))


ATTACK = Attack("stores", draw, check, prepare=whole)
