"""Forks that may crash or fill memory: silent, in a group of their own, with limited memory."""

import os
import resource
from pathlib import Path

MOST_MEMORY = 6 * 2**30


def isolate(folder: Path) -> None:
    """Make this process, which is a fork, the leader of its own group, limit its memory, silence it, and move it to a folder."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.chdir(folder)
