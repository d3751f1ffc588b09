"""Tasks reuse freed memory.

Counts of page faults show the reuse, also under a Dask nanny's setting.
"""

import os
import platform
import subprocess
import sys

import pytest

PAGES = 512
# The program makes, fills and frees arrays of 2 MiB, the size of a chunk of clients.
ROUNDS = """
import resource
import numpy as np
from quietbits.analysis.sweeps.calls import reuse_memory

if {reused}:
    reuse_memory()

def rounds(count):
    for _ in range(count):
        arrays = [np.ones(2**18) for _ in range(4)]

rounds(2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
rounds(20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(reused: bool) -> int:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", ROUNDS.format(reused=reused)]
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's memory that is set")
def test_arrays_of_a_chunk_are_made_in_memory_that_others_have_left() -> None:
    assert faults(reused=True) < PAGES
    # Without reuse, every array takes new memory.
    assert faults(reused=False) > 20 * PAGES
