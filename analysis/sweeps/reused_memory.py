"""Memory that tasks free is used again by the next ones, instead of being returned to the system and cleared anew."""

import ctypes
import sys
from functools import cache

# Parameters of mallopt in glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The largest that glibc takes; arrays of a chunk of clients are a few megabytes.
LARGEST_REUSED = 32 * 2**20
MOST_KEPT = 64 * 2**20


@cache
def reuse_memory() -> None:
    """Keep up to `MOST_KEPT` bytes of freed memory in this process, of arrays up to `LARGEST_REUSED`; does nothing without glibc.

    Otherwise each array of a chunk costs the page faults of all its memory: half of a task's time, and two thirds under the nanny of a
    Dask worker, which sets ``MALLOC_TRIM_THRESHOLD_``.
    """
    if not sys.platform.startswith("linux"):
        return
    # musl, for one, has no such function.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_REUSED)
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT)
