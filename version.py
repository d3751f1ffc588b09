"""Version of the running quietbits."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("quietbits")
except PackageNotFoundError:
    # A checkout on the path has no version of its own.
    __version__ = "not installed"
