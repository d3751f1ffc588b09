"""A sweep that can be printed without loading what runs it."""

from importlib.resources import files


def example_sweep() -> str:
    """Return a commented sweep, as TOML, that can be run as it is."""
    return (files(__package__) / "example.toml").read_text(encoding="utf-8")
