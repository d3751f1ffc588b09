"""Numbers of docs/audit.md."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import quietbits
from quietbits.analysis.audits.mechanism_audit import audit


def power_rows(audits: int = 20) -> Iterator[list[str]]:
    """Return how many audits, each from a seed of its own, notice that a sum of two discrete Gaussians has too little noise."""
    for delta in (1e-2, 1e-3):
        ball = quietbits.NormBall(dimension=1, norm=2.0, clip_norm=1.0)
        task = quietbits.Task(ball, clients=2, epsilon=1.0, delta=delta, adjacency="add-or-remove-one")
        right = quietbits.build_mechanism("distributed-discrete-gaussian", task, {"bits": 12})
        claim = right.guarantee.epsilon
        for share in (0.8, 0.9):
            wrong = replace(right, local_sigma=share * right.local_sigma)
            refuted = [
                sum(audit(wrong, draws, np.random.default_rng(seed)).found.refutes(claim) for seed in range(audits))
                for draws in (10**5, 10**6)
            ]
            yield [f"{delta:.0e}".replace("e-0", "e-"), str(share), f"{wrong.guarantee.epsilon:.3f}", *map(str, refuted)]
