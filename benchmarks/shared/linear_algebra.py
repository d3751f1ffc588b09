"""The kernels that multiply matrices."""

from threadpoolctl import threadpool_info


def kernels() -> str:
    """Return OpenBLAS's kernels in use, or the library's name if it has only one kind."""
    names = {library.get("architecture", library["internal_api"]) for library in threadpool_info() if library["user_api"] == "blas"}
    return ", ".join(sorted(names))
