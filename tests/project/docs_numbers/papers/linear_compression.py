"""Numbers of docs/papers/linear-compression.md."""

from functools import cache

from quietbits.design.federated.model_layers import MODELS
from quietbits.figures.linear_compression.training_privacy import TrainingPrivacyPoint
from quietbits.figures.training.price_heat_map import modular_clip_probability

__all__ = ["MODELS", "modular_clip_probability"]


@cache
def poisson_epsilons(noise_multiplier: float) -> dict[str, float]:
    """Return epsilon of the paper's training with Poisson sampling, by account."""
    rows = TrainingPrivacyPoint(seed=0, noise_multiplier=noise_multiplier, sampling="poisson", sensitivity=1.0).run()
    return {row["account"]: row["epsilon"] for row in rows}
