"""Numbers of docs/papers/mvu.md."""

import math
from functools import cache

import numpy as np

import quietbits
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.populations import population_chunks
from quietbits.arrays import FloatArray
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.tables.table_privacy import table_privacy
from quietbits.figures.training_settings import training_settings

CLIENTS, DIMENSION, DELTA, PAPER_DELTA = 10_000, 128, 1e-5, 1 / 10_001
POPULATIONS = {1.0: "uniform-l1", 2.0: "positive-sphere"}


@cache
def vectors(norm: float) -> FloatArray:
    """Return the vectors of section 5.1 in the ball of a norm."""
    rng = named_stream(0, "vectors of section 5.1")
    return np.concatenate(list(population_chunks(POPULATIONS[norm], CLIENTS, DIMENSION, rng)))


@cache
def error(name: str, epsilon: float, norm: float, delta: float = 0.0, **options: int) -> float:
    """Return a mechanism's predicted squared error of the mean of section 5.1's vectors."""
    task = quietbits.Task(quietbits.NormBall(DIMENSION, norm), CLIENTS, epsilon, delta, "replace-one")
    return quietbits.build_mechanism(name, task, options).error(vectors(norm)).of_mean(CLIENTS)


def skellam(epsilon: float, delta: float = DELTA) -> float:
    """Return the error of Skellam noise with 16 bits for a coordinate."""
    return error("skellam", epsilon, 2.0, delta, bits=16)


def cldp_over_laplace(epsilon: float, factor: float = 1.0) -> float:
    """Return CLDP's error over Laplace noise's on the L1 ball at the paper's epsilons."""
    return error("cldp", epsilon, 1.0) / error("laplace", factor * epsilon, 1.0)


def skellam_over_laplace(epsilon: float, factor: float = 1.0) -> float:
    """Return Skellam noise's error over Laplace noise's on the L1 ball; the paper adds a delta."""
    return skellam(epsilon, DELTA if factor == 1 else PAPER_DELTA) / error("laplace", factor * epsilon, 1.0)


def cldp_over_table(epsilon: float, by_paper: bool = False) -> float:
    """Return the error of CLDP with d draws over the error of the table that keeps epsilon."""
    return error("cldp", paper_epsilon(epsilon) if by_paper else epsilon, 2.0, draws=DIMENSION) / table_error(epsilon)


def cnn_parameters() -> int:
    """Return the parameters of table 2: two convolutions and two dense layers."""
    return 16 * (8 * 8 + 1) + 32 * (16 * 4 * 4 + 1) + 32 * (32 * 4 * 4 + 1) + 10 * (32 + 1)


def runs(data: str, noise: str) -> int:
    """Return the number of runs of tables 3 and 4, by the key of the noise."""
    settings = training_settings("mvu", data)
    return math.prod(len(settings.value(name)) for name in ("iterations", "step", "clip_norm", noise))


@cache
def table(epsilon: float) -> VectorTableMechanism:
    """Return the L1-metric table that keeps epsilon for any two vectors of the L2 ball."""
    ball = quietbits.NormBall(DIMENSION, 2.0)
    return quietbits.calibrate_vector_table(epsilon, DELTA, ball, bits_in=5, bits_out=3, metric="l1")


@cache
def table_error(epsilon: float) -> float:
    """Return the table's predicted squared error of the mean."""
    return table(epsilon).error(vectors(2.0)).of_mean(CLIENTS)


def paper_epsilon(epsilon: float) -> float:
    """Return the table's epsilon by the paper's convention, at delta = 1/(n + 1)."""
    return half_and_whole(table(epsilon))[0]


def half_and_whole(mechanism: VectorTableMechanism) -> tuple[float, ...]:
    """Return a table's epsilon at half the distance and for any two vectors, with dithering."""
    radii = (mechanism.input_distance / 2, mechanism.input_distance)
    return tuple(
        table_privacy(mechanism.table, dimension=DIMENSION, norm=2.0, radius=radius).epsilon(PAPER_DELTA, "replace-one") for radius in radii
    )


@cache
def designed_for_half(epsilon: float, bits_in: int = 5) -> tuple[float, ...]:
    """Return both epsilons of an L1-metric table for half the epsilon (appendix B.3)."""
    designed = quietbits.design_mvu(epsilon / 2, bits_in=bits_in, bits_out=3, metric="l1")
    return half_and_whole(VectorTableMechanism(designed, quietbits.NormBall(DIMENSION, 2.0), delta=DELTA))
