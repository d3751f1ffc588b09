"""Numbers of docs/explanations/adjacency.md."""

from functools import cache

import quietbits


@cache
def worst(adjacency: str) -> float:
    """Return the worst squared error that the page's command prints."""
    task = quietbits.Task(quietbits.NormBall(64, 2.0), clients=500, epsilon=1.0, delta=1e-5, adjacency=adjacency)
    return quietbits.build_mechanism("distributed-discrete-gaussian", task, {}).error().of_mean(500)
