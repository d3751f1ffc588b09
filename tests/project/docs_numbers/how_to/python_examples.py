"""Numbers of the examples in Python."""

from functools import cache

import quietbits


@cache
def over_central(dimension: int, adjacency: str) -> float:
    """Return the worst error of a secure sum over that of a trusted server's Gaussian noise.

    The sum has 1000 clients with 16 bits per coordinate.
    """
    ball = quietbits.NormBall(dimension=dimension, norm=2.0, clip_norm=1.0)
    task = quietbits.Task(ball, clients=1000, epsilon=1.0, delta=1e-5, adjacency=adjacency)
    error = quietbits.build_mechanism("distributed-discrete-gaussian", task, {"bits": 16}).error()
    return error.of_mean(1000) / quietbits.central_gaussian_error(ball, 1000, 1.0, 1e-5, adjacency)


@cache
def dp_rec_epsilon(account: str) -> float:
    """Return epsilon of README's training with DP-REC by one of the accounts."""
    clients = {"population": 3500, "clients_per_round": 100, "index_bits": 28}
    calibrated = quietbits.calibrate("dp-rec", epsilon=1.0, delta=1e-4, rounds=4000, method="any-bits", **clients)
    report = quietbits.account("dp-rec", clip_ratio=calibrated["clip_ratio"], delta=1e-4, rounds=4000, **clients)
    return report.epsilon_by(account)
