"""Example specifications, printed without loading the modules that run them."""

from importlib.resources import files


def example_specification(folder: str) -> str:
    """Return a commented TOML file: ``"sweeps"``, ``"plan_grid"``, ``"training"``, ``"table_grid"`` or ``"composition"``."""
    return (files(__package__.rpartition(".")[0]) / folder / "example.toml").read_text(encoding="utf-8")
