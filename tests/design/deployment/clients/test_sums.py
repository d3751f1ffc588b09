"""Tests of the deployed clients of secure sums: exact noise, rounding under the bound, and the decoded sum."""

import numpy as np
import pytest
import scipy

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.design.deployment.client_program import ClientProgram
from quietbits.design.deployment.clients.sums import draw_noise, transform
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.python_client import SourceOfWords, client_fields
from quietbits.design.deployment.secure_sums import decode_sum, sum_of_messages
from quietbits.design.deployment.wire_format import pack_fields
from quietbits.design.noise.random_words import seeded_words
from quietbits.errors import DataError, InfeasibleError
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

NAMES = ("distributed-discrete-gaussian", "distributed-skellam")
NO_WORDS = np.zeros((0, 0), dtype=np.uint64)


def deployed(name: str, clients: int = 100, dimension: int = 6) -> Deployment:
    return deploy(name, epsilon=2.0, delta=1e-6, clients=clients, dimension=dimension, clip=0.5)


def encoded(program: ClientProgram, vectors: np.ndarray, seed: int) -> np.ndarray:
    public = np.zeros((len(vectors), 0), dtype=np.uint64)
    return client_fields(program, vectors.tolist(), SourceOfWords(seeded_words(np.random.default_rng(seed))), public)


@pytest.mark.parametrize("name", NAMES)
def test_the_sum_estimates_the_mean_within_its_error(name: str) -> None:
    """The mean square of 12 z-scores of 6 coordinates is below 2.2 except with probability 1e-7."""
    deployment = deployed(name)
    vectors = np.random.default_rng(1).normal(size=(100, 6)) * 0.2
    true = deployment.mechanism.domain.clip(vectors).mean(axis=0)
    squares = []
    for seed in range(12):
        messages = pack_fields(encoded(deployment.program, vectors, seed), deployment.program.field_bits)
        estimate = decode_sum(deployment, sum_of_messages(deployment, [messages[:40], messages[40:]]), 100)
        squares.append(float(np.sum((estimate.mean - true) ** 2)) / float(estimate.standard_error) ** 2)
    assert 0.3 < np.mean(squares) < 2.2


@pytest.mark.parametrize("name", NAMES)
def test_noise_has_the_mechanism_s_law(name: str) -> None:
    """The chi-square test fails with probability 1e-6 by chance; the seed is fixed."""
    deployment = deployed(name)
    constants = deployment.program.constants
    source = SourceOfWords(seeded_words(np.random.default_rng(5)))
    words = [draw_noise(source, constants["points"], constants["upper"], constants["lower"]) for _ in range(20_000)]
    noise = np.array(words, dtype=np.uint64).astype(np.int64)
    sigma = np.sqrt(deployment.mechanism._step_noise_variance)
    edges = np.unique(np.rint(np.linspace(-2.5, 2.5, 12) * sigma)).astype(int)
    law = deployment.mechanism._noise_curve()
    points = np.arange(-int(12 * sigma), int(12 * sigma) + 1)
    weights = law.approximate(points)
    cells = np.searchsorted(edges, points)
    expected = np.bincount(cells, weights=weights) / weights.sum() * len(noise)
    counted = np.bincount(np.searchsorted(edges, noise), minlength=len(expected))
    assert ((counted - expected) ** 2 / expected).sum() < scipy.stats.chi2.isf(1e-6, len(expected) - 1)


def test_rounded_vectors_keep_the_bound_on_their_norm() -> None:
    """Without noise, the sum of squares of every message is at most the bound that the guarantee rests on."""
    deployment = deployed(NAMES[0])
    constants = {**deployment.program.constants, "upper": (2**64 - 1,), "lower": (2**63 - 1,), "points": 1}
    program = ClientProgram(deployment.program.client, constants, deployment.program.field_bits, deployment.program.fields)
    directions = np.random.default_rng(2).normal(size=(200, 6))
    vectors = 3 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    fields = encoded(program, vectors, 3)
    modulus = deployment.mechanism.modulus
    steps = np.where(fields >= modulus // 2, fields - modulus, fields)
    squares = (steps**2).sum(axis=1)
    assert squares.max() <= constants["largest"]
    radius = deployment.mechanism.ball.clip_norm / deployment.mechanism.granularity
    assert squares.min() > radius**2 / 2


def test_the_transform_is_that_of_walsh_and_hadamard() -> None:
    values = np.random.default_rng(0).normal(size=24)
    cells = values.tolist()
    transform(cells, 8, 16)
    assert np.allclose(cells[8:], walsh_hadamard(values[8:][None])[0])
    assert cells[:8] == values[:8].tolist()


def test_fewer_clients_have_less_privacy() -> None:
    deployment = deployed(NAMES[0])
    residues = np.zeros(deployment.program.fields, dtype=np.uint64)
    assert "epsilon = 2, " in decode_sum(deployment, residues, 100).guarantee
    assert "epsilon = 2.4" in decode_sum(deployment, residues, 70).guarantee


def test_planned_drop_outs_keep_the_budget() -> None:
    deployment = deploy(NAMES[1], epsilon=2.0, delta=1e-6, clients=100, dimension=6, dropout=0.3)
    residues = np.zeros(deployment.program.fields, dtype=np.uint64)
    for clients in (70, 85, 100):
        assert decode_sum(deployment, residues, clients).guarantee.startswith("epsilon = 2, ")


@pytest.mark.parametrize("residues", [np.zeros(3, dtype=int), np.full(8, 2**40), np.full(8, -1), np.zeros(8)])
def test_sums_of_another_form_are_refused(residues: np.ndarray) -> None:
    with pytest.raises(DataError, match="residues must be"):
        decode_sum(deployed(NAMES[0]), residues, 100)


def test_the_distance_of_the_noise_costs_delta() -> None:
    """Noise at a distance from its law raises epsilon at the same delta; too large a distance is refused."""
    deployment = deployed(NAMES[0])
    exact = deployment.privacy.report(deployment.delta, deployment.mechanism.adjacency, 1).epsilon
    assert deployment.epsilon >= exact
    assert 0 < deployment.program.distance < 1e-25
    small = deploy(NAMES[0], epsilon=2.0, delta=1e-6, clients=100, dimension=6, clip=0.5)
    object.__setattr__(small.program, "distance", type(small.program.distance)(1, 10**8))
    assert small.epsilon_after(1) > exact
    object.__setattr__(small.program, "distance", type(small.program.distance)(1, 10**6))
    with pytest.raises(InfeasibleError, match="delta must be at least"):
        small.epsilon_after(1)


def test_other_rotations_have_no_client() -> None:
    with pytest.raises(InfeasibleError, match="rotation must be hadamard"):
        deploy(NAMES[0], epsilon=2.0, delta=1e-6, clients=100, dimension=6, rotation="fourier")
