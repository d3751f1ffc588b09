"""Which kernels multiply matrices."""

from threadpoolctl import threadpool_info


def kernels() -> str:
    """Return the names of OpenBLAS's kernels in use, or of the library where it has one kind only."""
    names = {library.get("architecture", library["internal_api"]) for library in threadpool_info() if library["user_api"] == "blas"}
    return ", ".join(sorted(names))
