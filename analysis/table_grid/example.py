"""A grid of tables that can be printed without loading what designs them."""

from importlib.resources import files


def example_grid() -> str:
    """Return a commented grid of tables, as TOML, that can be run as it is."""
    return (files(__package__) / "example.toml").read_text(encoding="utf-8")
