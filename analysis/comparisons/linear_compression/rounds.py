"""Averages over rounds of one and the same mean: an unbiased estimate gains by each round, the answer zero does not."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...random_streams import named_stream
from ..point import Point
from .sketched_sums import ADJACENCY, DELTA, SketchPoint

CHECKED = (1, 2, 5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True, kw_only=True)
class RoundsPoint(Point):
    """Rounds of a secure sum of sketches on the same vectors, each with a new sketch and new noise.

    Attributes
    ----------
    dimension, clients, bits, rate, rows, epsilon, mean_norm, repetition
        As in `SketchPoint`; epsilon is that of one round.
    rounds : int
        Number of rounds.
    """

    dimension: int
    clients: int
    rounds: int
    rate: float
    epsilon: float
    bits: int = 16
    rows: int = 15
    mean_norm: float = 0.1
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each number of rounds that is looked at: the error of the average so far, measured and predicted."""
        shared = {one.name: getattr(self, one.name) for one in fields(SketchPoint) if hasattr(self, one.name)}
        point = SketchPoint(**shared)
        mechanism, vectors = point.mechanism(), np.concatenate(list(point.chunks()))
        mean = mechanism.ball.clip(vectors).mean(axis=0)
        words = named_stream(self.seed, f"rounds: {self.name}")
        error, total, rows = mechanism.error(vectors), np.zeros(self.dimension), []
        for number in range(1, self.rounds + 1):
            renewed = mechanism.renewed(int(words.integers(2**63)))
            total += renewed.decode(renewed.aggregate(renewed.encode(vectors, words)), self.clients)
            if number not in CHECKED:
                continue
            rows.append(
                {
                    "dimension": self.dimension,
                    "clients": self.clients,
                    "rate": self.rate,
                    "epsilon": self.epsilon,
                    "mean_norm": self.mean_norm,
                    "repetition": self.repetition,
                    "rounds": number,
                    "squared_error": float(np.sum((total / number - mean) ** 2)),
                    "predicted_squared_error": (error.variance / self.clients + error.shared) / number,
                    "zero": float(np.sum(mean**2)),
                    "epsilon_of_all": mechanism.privacy().epsilon(DELTA, ADJACENCY, number),
                    "bits_per_coordinate": mechanism.bits_per_client / self.dimension,
                    "delta": DELTA,
                    "adjacency": ADJACENCY,
                    "trust_model": mechanism.guarantee.trust_model,
                }
            )
        return rows
