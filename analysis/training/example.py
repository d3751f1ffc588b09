"""Trainings that can be printed without loading what runs them."""

from importlib.resources import files


def example_training() -> str:
    """Return a commented file that works, in less than a minute: four mechanisms train a model of scikit-learn's digits."""
    return (files(__package__) / "example.toml").read_text(encoding="utf-8")
