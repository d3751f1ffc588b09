"""Parts of the variance of messages: their sum, and their values in runs of single steps of a client."""

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.design.contracts.error import VarianceParts
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.sqkr import SQKRMechanism
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.transforms.kashin import kashin_representation

VECTOR = np.array([[0.6, -0.2, 0.1, 0.3, -0.5, 0.4, 0.2, -0.1]])
BALL = NormBall(8, 2.0)
RUNS = 20_000


def squares(estimates: FloatArray, centre: FloatArray) -> float:
    """Return the mean squared distance of rows from a vector."""
    return float(np.square(estimates - centre).sum(axis=1).mean())


def parts_of(mechanism: Mechanism) -> dict[str, float]:
    parts = mechanism.variance_parts(VECTOR)
    return {name: float(getattr(parts, name)[0]) for name in ("compression", "rounding", "noise", "unsplit")}


def test_the_remainder_is_noise() -> None:
    parts = VarianceParts.split([4.0, 5.0], compression=[1.0, 0.5], rounding=2.0)
    assert parts.noise.tolist() == [1.0, 2.5]
    assert parts.scaled(2.0).total.tolist() == [8.0, 10.0]
    assert parts.unsplit.tolist() == [0.0, 0.0]


def test_a_secure_sum_without_noise_has_the_variance_of_rounding() -> None:
    mechanism = DistributedDiscreteGaussianMechanism(BALL, 10, 12, 0.3, 0.5, 1e-5)
    parts, rng = parts_of(mechanism), np.random.default_rng(0)
    rounded = mechanism.rounded_steps(np.repeat(VECTOR, RUNS, axis=0), rng)
    decoded = np.array([mechanism.mean_of_steps(row, 1) for row in rounded[:4000]])
    assert squares(decoded, VECTOR) == pytest.approx(parts["rounding"], rel=0.05)
    noise = np.array([mechanism.mean_of_steps(row, 1) for row in mechanism.noise_steps(4000, rng)])
    assert squares(noise, np.zeros(8)) == pytest.approx(parts["noise"], rel=0.05)


def test_sampled_and_rounded_coefficients_have_their_parts() -> None:
    mechanism = SQKRMechanism(1.0, 2, BALL)
    parts, rng, size = parts_of(mechanism), np.random.default_rng(0), mechanism.frame.size
    coefficients = kashin_representation(VECTOR, mechanism.frame, mechanism.level).coefficients[0]
    columns = mechanism.frame.synthesis(np.eye(size))
    chosen = rng.integers(size, size=(RUNS, 2))
    sampled = size / 2 * np.einsum("rb,rbd->rd", coefficients[chosen], columns[chosen])
    assert squares(sampled, VECTOR) == pytest.approx(parts["compression"], rel=0.05)
    signs = np.where(rng.random(chosen.shape) < 0.5 + coefficients[chosen] / (2 * mechanism.level), 1.0, -1.0)
    rounded = size / 2 * mechanism.level * np.einsum("rb,rbd->rd", signs, columns[chosen])
    assert squares(rounded, VECTOR) == pytest.approx(parts["compression"] + parts["rounding"], rel=0.05)


def test_expectations_for_given_simplices_vary_by_the_part_of_compression() -> None:
    unit = VECTOR / np.linalg.norm(VECTOR)
    mechanism = RotatingSimplexMechanism(3.0, 3, BALL)
    parts = mechanism.variance_parts(unit)
    assert parts.rounding[0] == 0.0
    expected = []
    for seed in range(500):
        messages = np.column_stack([np.full(8, seed), np.arange(8)]).astype(np.uint64)
        corners = np.array([mechanism.decode(mechanism.aggregate(message[None]), 1) for message in messages])
        expected.append(mechanism.number_probabilities(unit[0], seed) @ corners)
    assert squares(np.array(expected), unit) == pytest.approx(parts.compression[0], rel=0.05)


def test_dithered_vectors_have_the_part_of_rounding() -> None:
    table = design_mvu(2.0, 2, 1, metric="l2", starts=1)
    mechanism = VectorTableMechanism(table, BALL, 1e-5)
    rows = mechanism._dithered_rows(np.repeat(VECTOR, RUNS, axis=0), seeded_words(np.random.default_rng(0)))
    units = mechanism._grid.step / mechanism.shrinkage
    assert float(rows.var(axis=0).sum()) * units**2 == pytest.approx(parts_of(mechanism)["rounding"], rel=0.05)
