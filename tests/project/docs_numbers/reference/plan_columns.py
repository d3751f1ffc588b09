"""Numbers of docs/reference/plan-columns.md."""

import math
from functools import cache

import quietbits
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism


@cache
def numbers_over_bound() -> list[float]:
    """Return the errors over the bound of shuffled and summed mechanisms for numbers, in order."""
    task = quietbits.Task(quietbits.Interval(), clients=10_000, epsilon=1.0, delta=1e-6, adjacency="replace-one")
    plan = quietbits.plan(task)
    return sorted(plan[plan.trust_model.isin(["shuffled", "secure-sum"])].ratio_to_bound.dropna())


def sqkr_bias(dimension: int) -> float:
    """Return the bound on the bias of SQKR for inputs that depend on the public seed."""
    task = quietbits.Task(quietbits.NormBall(dimension, 2.0), clients=1000, epsilon=2.0, delta=0.0, adjacency="replace-one")
    return float(quietbits.build_mechanism("sqkr", task, {}).seed_bias_bound)


def bias_constant() -> float:
    """Return 1 minus a Poisson-binomial sum's bias bound, times the root of the dimension."""
    task = quietbits.Task(quietbits.NormBall(200, 2.0), clients=1000, epsilon=2.0, delta=1e-5, adjacency="replace-one")
    bias = float(quietbits.build_mechanism("poisson-binomial", task, {}).seed_bias_bound)
    return (1 - bias) * math.sqrt(200)


def padded_bits() -> tuple[int, int]:
    """Return the bits per padded coordinate at 100 coordinates and 16 bits, and their number."""
    task = quietbits.Task(quietbits.NormBall(100, 2.0), clients=500, epsilon=1.0, delta=1e-5, adjacency="replace-one", bits=16)
    mechanism = quietbits.REGISTRY["distributed-discrete-gaussian"].design_for(task).mechanism
    assert isinstance(mechanism, DistributedDiscreteGaussianMechanism)
    return mechanism.bits, mechanism.padded_dimension
