"""Tests of the deployed clients of vectors by themselves: tables, SQKR, and the rotating simplex."""

import math

import numpy as np
import pytest
from deployed_clients import RandomRows

from quietbits.design.contracts.mechanism import VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.deployment.clients.kashin import analyse, approach, largest_size
from quietbits.design.deployment.clients.simplex import next_coordinate, write_direction
from quietbits.design.deployment.clients.sums import transform
from quietbits.design.deployment.clients.tables import letters_of_ball
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords, SourceOfWords, client_fields
from quietbits.design.deployment.wire_format import pack_fields
from quietbits.design.local.cldp import vector_cldp_mechanism
from quietbits.design.local.sqkr import KerdockFrame, SQKRMechanism, sqkr_mechanism
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism, closest_letters, corner_projections
from quietbits.design.local.unit_vectors.shared_frames import reflected_vectors
from quietbits.design.local.unit_vectors.shared_normals import normal_quantiles
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.errors import InfeasibleError

DIMENSION = 5


def table(norm: float, **options: str) -> VectorTableMechanism:
    return VectorTableMechanism(generalised_randomised_response(3.0, 3), NormBall(DIMENSION, norm, 0.4), **options)


def rejecting(norm: float) -> VectorTableMechanism:
    return VectorTableMechanism(generalised_randomised_response(3.0, 5), NormBall(DIMENSION, norm, 0.4), dithering="rejection")


MECHANISMS: dict[str, VectorMechanism] = {
    "table l1": table(1.0),
    "table l2": table(2.0),
    "table linf": table(math.inf),
    "sqkr": sqkr_mechanism(2.0, NormBall(DIMENSION, 2.0, 0.4)),
    "sqkr of random rows": RandomRows(2.0, 2, NormBall(DIMENSION, 2.0, 0.4), kashin_constant=3.0),
    "cldp of several draws": vector_cldp_mechanism(2.0, NormBall(DIMENSION, 2.0, 0.4), draws=3),
    "table l1, rejecting": rejecting(1.0),
    "table l2, rejecting": rejecting(2.0),
    "simplex": RotatingSimplexMechanism(2.0, 2, NormBall(DIMENSION, 2.0, 0.4)),
}


def rounds(mechanism: VectorMechanism, vectors: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """Return the estimate of one round, and its standard error."""
    deployment = Deployment(mechanism, "vectors")
    program, clients = deployment.program, np.arange(len(vectors), dtype=np.uint64) + np.uint64(seed * 2**20)
    public = public_words(bytes.fromhex(deployment.hash), 0, clients, program.public_words)
    fields = client_fields(program, vectors.tolist(), SourceOfWords(seeded_words(np.random.default_rng(seed))), public)
    assert program.valid(fields).all()
    decoder = deployment.decoder().add(pack_fields(fields, program.field_bits), clients if deployment.carries_index else None)
    estimate = decoder.estimate()
    return np.asarray(estimate.mean), float(estimate.standard_error)


@pytest.mark.parametrize("name", MECHANISMS)
def test_estimates_have_the_predicted_error_and_no_bias(name: str) -> None:
    """Squared errors average to the prediction, and the mean of all estimates is the mean, within 5 standard errors."""
    mechanism = MECHANISMS[name]
    vectors = np.random.default_rng(7).normal(size=(500, DIMENSION)) * 0.15 + 0.05
    true = mechanism.domain.clip(vectors).mean(axis=0)
    estimates, errors = zip(*(rounds(mechanism, vectors, seed) for seed in range(12)), strict=True)
    expected = mechanism.error(vectors).of_mean(len(vectors))
    ratio = np.mean([np.sum((estimate - true) ** 2) for estimate in estimates]) / expected
    # The mean square of about 60 normal numbers.
    assert 0.4 < ratio < 1.9
    assert np.sum((np.mean(estimates, axis=0) - true) ** 2) < 25 * expected / 12
    assert errors[0] ** 2 >= expected * (1 - 1e-9)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_rounded_vectors_keep_the_bound_on_their_norm(norm: float) -> None:
    """With letters that state their row, no vector is longer than the bound of the guarantee."""
    program = table(norm).client_program()
    # Each row has a single letter: all its weight stands on the letter of the row's own number.
    rows = 8
    cumulative = tuple(2**62 if letter >= row else 0 for row in range(rows) for letter in range(rows))
    constants = {**program.constants, "letters": rows, "shift": 2, "cumulative": cumulative}
    draws = np.random.default_rng(3).normal(size=(300, DIMENSION))
    draws[0] = [1.0, 0, 0, 0, 0]
    source = SourceOfWords(seeded_words(np.random.default_rng(4)))
    longest = 0
    for vector in draws:
        fields = [0] * DIMENSION
        letters_of_ball(vector.tolist(), source, fields, **constants)
        steps = np.array(fields) - program.constants["radius"]
        power = int((np.abs(steps) ** int(norm)).sum())
        longest = max(longest, power)
        assert power <= program.constants["largest"]
    assert longest >= program.constants["radius"] ** int(norm)


@pytest.mark.parametrize("dimension", [1, 16, 1100])
def test_coefficients_reach_the_level_and_stand_for_the_vector(dimension: int) -> None:
    """Axes and random vectors of both frames: after some steps all coefficients are within the level."""
    mechanism = sqkr_mechanism(2.0, NormBall(dimension, 2.0))
    frame, constants = mechanism.frame, mechanism.client_program().constants
    assert isinstance(frame, KerdockFrame) == (dimension == 16)
    shared = [constants[name] for name in ("dimension", "length", "bases")]
    for vector in [*np.eye(2, dimension)[:dimension], *np.random.default_rng(0).normal(size=(1 if dimension > 16 else 3, dimension))]:
        unit = (vector / np.linalg.norm(vector)).tolist()
        coefficients, moves, room = [0.0] * frame.size, [0.0] * frame.size, list(unit)
        analyse(room, coefficients, *shared, constants["scale"], constants["rows"], constants["signs"])
        assert np.allclose(coefficients, frame.analysis(np.array([unit]))[0])
        steps = 0
        while largest_size(coefficients, frame.size) > constants["limit"]:
            bits = [constants[name] for name in ("rows", "signs")]
            approach(coefficients, moves, room, *shared, frame.size, constants["scale"], constants["box"], *bits)
            steps += 1
            assert steps < 200
        assert np.allclose(frame.synthesis(np.array([coefficients]))[0], unit, atol=1e-12)


def test_a_vector_without_coefficients_within_the_level_is_scaled_down() -> None:
    """A small constant leaves a column of random rows unrepresented: signs then stand for a shorter vector, within the stated bias."""
    mechanism = SQKRMechanism(20.0, 8, NormBall(1030, 2.0), kashin_constant=1.2)
    program, frame = mechanism.client_program(), mechanism.frame
    column = frame.synthesis(np.eye(1, frame.size))
    vector = column / np.linalg.norm(column)
    public = public_words(bytes(32), 0, np.arange(2, dtype=np.uint64), program.public_words)
    fields = client_fields(program, [vector[0].tolist()] * 2, SourceOfWords(seeded_words(np.random.default_rng(2))), public)
    assert mechanism.scaled_down_count(vector) == 1
    assert program.valid(fields).all()


def test_sqkr_of_too_many_dimensions_has_no_client() -> None:
    with pytest.raises(InfeasibleError, match="dimension must be at most 262144"):
        sqkr_mechanism(2.0, NormBall(2**18 + 1, 2.0)).client_program()


@pytest.mark.parametrize(("dimension", "bits"), [(5, 2), (6, 1), (40, 5)])
def test_python_and_deployed_clients_have_the_same_corners_for_the_same_words(dimension: int, bits: int) -> None:
    """Coordinates have the same bits, so clients that always send a closest corner send the one of largest projection."""
    mechanism = RotatingSimplexMechanism(20.0, bits, NormBall(dimension, 2.0))
    program, corners = mechanism.client_program(), mechanism.corners
    public = public_words(bytes(32), 0, np.arange(30, dtype=np.uint64), program.public_words)
    vectors = np.random.default_rng(1).normal(size=(30, dimension))
    directions = np.array([_direction(vector) for vector in vectors])
    # Sums of a few clients, and of many, have the same order.
    coordinates = reflected_vectors(public, directions, corners - 1)
    few = [reflected_vectors(public[[row]], directions[[row]], corners - 1)[0] for row in range(30)]
    np.testing.assert_array_equal(coordinates, few)
    projections = corner_projections(np.concatenate([np.zeros((30, 1)), coordinates], axis=1))
    near = closest_letters(projections, mechanism.closest)
    for row, vector in enumerate(vectors):
        words, rest, normals = GivenWords(public[row]), directions[row].tolist(), [0.0] * dimension
        own = [next_coordinate(rest, normals, words, step, dimension, normal_quantiles()) for step in range(corners - 1)]
        assert own == coordinates[row].tolist()
        cells = [0.0, *own]
        transform(cells, 0, corners)
        assert cells == projections[row].tolist()
        fields = [0]
        words = GivenWords(np.array([0, 2**64 - 1, *[5] * 8], dtype=np.uint64))
        program.client(vector.tolist(), words, GivenWords(public[row]), fields, **program.constants)
        assert near[row, fields[0]]


def _direction(vector: np.ndarray) -> list[float]:
    direction = [0.0] * len(vector)
    write_direction(vector.tolist(), direction, GivenWords(np.zeros(1, dtype=np.uint64)), len(vector), 1.0)
    return direction


def test_the_simplex_has_the_same_corners_on_both_sides() -> None:
    """A client that always sends the closest corner sends the corner of largest inner product with its vector."""
    mechanism = RotatingSimplexMechanism(20.0, 2, NormBall(DIMENSION, 2.0))
    deployment = Deployment(mechanism, "simplex")
    program = deployment.program
    vector = np.array([0.3, -0.2, 0.6, 0.1, 0.7])
    vector /= np.linalg.norm(vector)
    for client in range(20):
        public = public_words(bytes.fromhex(deployment.hash), 0, np.array([client], dtype=np.uint64), program.public_words)
        corners = [deployment.aggregate(np.array([[corner]]), public) for corner in range(4)]
        assert np.allclose([np.linalg.norm(corner) for corner in corners], 1.0)
        assert np.allclose([corners[0] @ corner for corner in corners[1:]], -1 / 3)
        fields = [0]
        words = GivenWords(np.array([0, 2**63, 0, 0], dtype=np.uint64))
        program.client(vector.tolist(), words, GivenWords(public[0]), fields, **program.constants)
        products = np.array([corner @ vector for corner in corners])
        assert products[fields[0]] >= np.sort(products)[-mechanism.closest] - 1e-12
