"""Numbers of docs/papers/linear-compression.md."""

from functools import cache

from quietbits.design.federated.model_layers import MODELS
from quietbits.figures.training.price_heat_map import modular_clip_probability
from quietbits.tests.project.docs_numbers.explanations.published_training import published_report

__all__ = ["MODELS", "modular_clip_probability"]


@cache
def poisson_epsilons(noise_multiplier: float) -> dict[str, float]:
    """Return epsilon of the paper's training with Poisson sampling, by account."""
    return {account.name: account.bound.epsilon for account in published_report(noise_multiplier, "Poisson", 1.0).accounts}
