"""Deployments whose clients tests run in other languages, with known answers and exact laws of their messages."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import MappingProxyType

import numpy as np
from scipy import stats

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.deployment.client_program import ClientProgram
from quietbits.design.deployment.clients.kinds import (
    LARGEST_WORD,
    Cells,
    Count,
    Fields,
    Flag,
    Number,
    Numbers,
    Source,
    Word,
    Words,
    floor,
    new_cells,
    new_fields,
    select,
    sqrt,
)
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.known_answers import known_answers
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords, client_fields
from quietbits.design.deployment.translation.client_description import ClientDescription
from quietbits.design.deployment.wire_format import pack_fields, unpack_fields
from quietbits.design.frequencies.hadamard_response import hadamard_response, recursive_hadamard_response
from quietbits.design.frequencies.projective_geometry_response import projective_geometry_response
from quietbits.design.frequencies.randomised_response import FrequencyRandomisedResponse
from quietbits.design.frequencies.subset_selection import subset_selection
from quietbits.design.frequencies.unary_encoding import UnaryEncoding
from quietbits.design.local.cldp import CLDPMechanism, vector_cldp_mechanism
from quietbits.design.local.sqkr import sqkr_mechanism
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism
from quietbits.tests.oracles.deployed_clients import RandomRows
from quietbits.tests.oracles.frequency_laws import law

FALSE_ALARM = 1e-9
ITEMS, FEW_ITEMS, DIMENSION, CLIP_NORM = 37, 5, 12, 0.4
# Round and client index of public words in draws and refusals.
ROUND, CLIENT = 3, 2**63 + 5
MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "letter": TableMeanMechanism(generalised_randomised_response(1.0, 3)),
        # 16384 weights: more than the code of a Java class may write.
        "large-table": TableMeanMechanism(generalised_randomised_response(4.0, 7)),
        "sign": CLDPMechanism(1.0),
        "sum-ball": vector_cldp_mechanism(2.0, NormBall(DIMENSION, 1.0, CLIP_NORM)),
        "ball": vector_cldp_mechanism(2.0, NormBall(DIMENSION, 2.0, CLIP_NORM)),
        "cube": vector_cldp_mechanism(2.0, NormBall(DIMENSION, math.inf, CLIP_NORM)),
        "table-of-sum-ball": VectorTableMechanism(generalised_randomised_response(3.0, 3), NormBall(DIMENSION, 1.0, CLIP_NORM)),
        "table-of-ball": VectorTableMechanism(generalised_randomised_response(3.0, 3), NormBall(DIMENSION, 2.0, CLIP_NORM)),
        "table-of-cube": VectorTableMechanism(generalised_randomised_response(3.0, 3), NormBall(DIMENSION, math.inf, CLIP_NORM)),
        "frame": sqkr_mechanism(2.0, NormBall(DIMENSION, 2.0, CLIP_NORM)),
        "random-rows": RandomRows(2.0, 3, NormBall(DIMENSION, 2.0, CLIP_NORM)),
        "point": vector_cldp_mechanism(2.0, NormBall(DIMENSION, 2.0, CLIP_NORM), draws=3),
        "rejecting": VectorTableMechanism(
            generalised_randomised_response(3.0, 5), NormBall(DIMENSION, 2.0, CLIP_NORM), dithering="rejection"
        ),
        "simplex": RotatingSimplexMechanism(2.0, 2, NormBall(DIMENSION, 2.0, CLIP_NORM)),
        "random-item": FrequencyRandomisedResponse(1.0, ITEMS),
        "unary": UnaryEncoding(1.0, ITEMS),
        "hadamard": hadamard_response(3.0, ITEMS),
        "recursive": recursive_hadamard_response(4.0, ITEMS),
        "points": projective_geometry_response(3.0, ITEMS),
        "subset": subset_selection(1.0, ITEMS),
        "large-subset": subset_selection(1.0, 3 * ITEMS),
        "few-unary": UnaryEncoding(1.0, FEW_ITEMS),
        "few-hadamard": hadamard_response(3.0, FEW_ITEMS),
        "few-recursive": recursive_hadamard_response(1.0, FEW_ITEMS),
        "few-points": projective_geometry_response(1.0, FEW_ITEMS),
        "few-subset": subset_selection(0.5, FEW_ITEMS),
        # A class of Java and a keyword of both languages.
        "long": CLDPMechanism(2.0),
        "new": FrequencyRandomisedResponse(2.0, FEW_ITEMS),
    }
)
SUMS = ("distributed-discrete-gaussian", "distributed-skellam")
SECURE_SUMS = MappingProxyType({"epsilon": 2.0, "delta": 1e-6, "clients": 100, "dimension": DIMENSION, "clip": 0.5})
OPERATIONS = "operations"


@dataclass(frozen=True)
class Answer:
    """A client's input and random words, and the message that Python's client makes from them."""

    name: str
    input: str
    round_number: str
    client: str
    words: Sequence[str]
    message: str


@dataclass(frozen=True)
class Draws:
    """Number of draws of a client's messages about an input."""

    name: str
    input: str
    count: int


# Clients whose messages are drawn with the platform's words; more draws of quicker clients.
DRAWS = (
    Draws("letter", "0.3", 1_000_000),
    Draws("new", "3", 1_000_000),
    Draws("cube", ",".join(["0.1", "-0.25", "9.0", *["0.0"] * (DIMENSION - 3)]), 200_000),
    Draws("few-hadamard", "2", 200_000),
    Draws("few-recursive", "2", 200_000),
    Draws("few-points", "4", 100_000),
    Draws("few-unary", "1", 100_000),
    Draws("few-subset", "1", 100_000),
)


def chosen_number(flag: Flag, first: Number, second: Number) -> Number:
    """Choose between two numbers & call an operation: 1 < 2 > 0."""
    return -select(flag, first, second) if not flag else select(flag, first, second)


def fill_cells(cells: Cells, vector: Numbers, length: Count) -> None:
    """Write roots and whole parts."""
    for place in range(1, length):
        size = vector[place] if vector[place] >= 0.0 else -vector[place]
        cells[place] = sqrt(size) + floor(vector[place])
    if length == 0:
        return
    cells[0] = 0.5


def every_operation(
    vector: Numbers, words: Source, fields: Fields, *, large: Word, places: Count, shift: Count, scale: Number, table: Words, roots: Numbers
) -> None:
    """Use every operation of clients, on words of all 64 bits."""
    new = words.next()
    public_word = words.next()
    fields[0] = (new // large + new % large) >> 3
    fields[1] = Word(new < public_word) + Word(new <= large) * 2 + Word(new > large) * 4 + Word(new >= public_word) * 8
    fields[2] = Word(new == public_word) + Word(new != public_word) * 2 + Word(not new < large and public_word < large) * 4
    fields[3] = (new >> shift ^ public_word >> (shift + 1)) & LARGEST_WORD >> 2 | Word(shift)
    # Words become the nearest numbers, ties to even.
    rounded = Number(new) * scale
    cells = new_cells(places)
    fill_cells(cells, vector, places)
    total = 0.0
    for place in range(places):
        total = total + cells[place] * roots[place % 3]
    fields[4] = Word(total > 1.0 or rounded < total) + Word(rounded == floor(rounded)) * 2
    fields[5] = Word(Count(rounded / 1024.0)) << 3
    count = Count(rounded < total) + Count(Number(7) + 0.5) // 2 * 5 - places % 3
    count = (count << 2 | 1) ^ count >> 1 & 6
    fields[6] = Word(count)
    double = new_fields(2)
    double[1] = table[Count(new % 100)]
    while double[1] > large and count > 0:
        double[1] = double[1] // 3
        count = count - 1
    fields[7] = double[0] + double[1] >> 2
    flag = new < public_word
    fields[8] = Word(Count(floor(chosen_number(flag, total, -total) + 1000.0)))
    fields[9] = Word(Count(flag)) + Word(Number(flag) == 1.0) * 2 if public_word % 2 == 0 else 5


OPERATIONS_PROGRAM = ClientProgram(
    every_operation,
    {
        "large": 2**63 + 2**40 + 17,
        "places": DIMENSION,
        "shift": 5,
        "scale": 2.0**-53,
        "table": tuple(pow(3, power, 2**64) for power in range(100)),
        "roots": tuple(math.sqrt(number) - 2.0 for number in range(70)),
    },
    field_bits=62,
    fields=10,
)


@cache
def deployments() -> Mapping[str, Deployment]:
    """Return the deployments, by name."""
    local = {name: Deployment(mechanism, "mechanism", rounds=5, name=name) for name, mechanism in MECHANISMS.items()}
    return local | {name: deploy(name, name=name, **SECURE_SUMS) for name in SUMS}


def descriptions() -> list[ClientDescription]:
    """Return the descriptions of all clients, also of the client that uses every operation."""
    title, guarantee = "every operation", "No guarantee."
    program = OPERATIONS_PROGRAM
    own = ClientDescription(OPERATIONS, OPERATIONS, title, guarantee, "none", "00" * 32, "0", "vector", DIMENSION, None, program)
    return [*(deployment.description() for deployment in deployments().values()), own]


@cache
def answers() -> list[Answer]:
    """Return the known answers of all clients."""
    listed = []
    for name, deployment in deployments().items():
        for vector in json.loads(known_answers(deployment))["vectors"]:
            given = vector["input"]
            text = ",".join(given) if isinstance(given, list) else given
            listed.append(Answer(name, text, vector.get("round", "0"), vector.get("client", "0"), vector["words"], vector["message"]))
    random = np.random.default_rng(0)
    edges = [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 2**10, 2**63 + 2**10 + 1, 3 * 2**62, LARGEST_WORD - 1, LARGEST_WORD]
    pairs = [*itertools.product(edges, repeat=2), *random.integers(0, LARGEST_WORD, (1000, 2), dtype=np.uint64, endpoint=True).tolist()]
    for pair in pairs:
        row = (random.normal(size=DIMENSION) * 3).tolist()
        words = GivenWords(np.array(pair, dtype=np.uint64))
        fields = client_fields(OPERATIONS_PROGRAM, [row], words, np.zeros((1, 0), dtype=np.uint64))
        message = pack_fields(fields, OPERATIONS_PROGRAM.field_bits).tobytes().hex()
        listed.append(Answer(OPERATIONS, ",".join(map(repr, row)), "0", "0", [str(word) for word in pair], message))
    return listed


def assert_drawn_from_the_exact_law(draws: Draws, counts: Mapping[str, int]) -> None:
    """Test counts of messages, by hexadecimal digits, against exact probabilities; false alarms have probability `FALSE_ALARM`."""
    assert sum(counts.values()) == draws.count
    deployment = deployments()[draws.name]
    observed: dict[tuple[int, ...], int] = {}
    for digits, count in counts.items():
        message = _message(deployment, digits)
        observed[message] = observed.get(message, 0) + count
    expected = _law(deployment, draws.input)
    assert set(observed) <= set(expected)
    pairs = [(observed.get(message, 0), float(share) * draws.count) for message, share in expected.items()]
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in pairs)
    assert stats.chi2.sf(statistic, len(pairs) - 1) > FALSE_ALARM, draws.name


def _public(deployment: Deployment) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    indices = np.array([CLIENT], dtype=np.uint64)
    return public_words(bytes.fromhex(deployment.hash), ROUND, indices, deployment.program.public_words)


def _message(deployment: Deployment, digits: str) -> tuple[int, ...]:
    program = deployment.program
    assert len(digits) == 2 * program.message_bytes
    fields, filled = unpack_fields(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8)[None, :], program.field_bits, program.fields)
    assert filled.all()
    assert program.valid(fields).all()
    return tuple(np.ravel(program.messages(fields, _public(deployment))[0]).tolist())


def _law(deployment: Deployment, given: str) -> dict[tuple[int, ...], float]:
    """Return the probability of each message of a client with an input; of its public row, if it has a public row."""
    mechanism = deployment.mechanism
    if deployment.table is not None:
        weights = deployment.table.weights
        position = Fraction(given) * (len(weights) - 1)
        row = int(position)
        mixed = [
            (1 - (position - row)) * int(here) + (position - row) * int(above) for here, above in zip(*weights[row : row + 2], strict=True)
        ]
        return {(letter,): float(weight / sum(mixed)) for letter, weight in enumerate(mixed)}
    likelihood = math.exp(mechanism.guarantee.epsilon)
    if isinstance(mechanism, FrequencyRandomisedResponse):
        least = 1 / (likelihood + mechanism.categories - 1)
        return {(item,): least * (likelihood if item == int(given) else 1.0) for item in range(mechanism.categories)}
    if isinstance(mechanism.domain, NormBall):
        signs = {}
        for place, number in enumerate(map(float, given.split(","))):
            up = (min(max(number / CLIP_NORM, -1.0), 1.0) + 1) / 2
            kept = (up * likelihood + (1 - up)) / (likelihood + 1)
            signs |= {(2 * place + 1,): kept / DIMENSION, (2 * place,): (1 - kept) / DIMENSION}
        return signs
    exact = law(mechanism)
    probabilities = exact.probabilities[int(given)]
    shares = {tuple(np.ravel(message).tolist()): float(share) for message, share in zip(exact.messages, probabilities, strict=True)}
    if not deployment.program.public_words:
        return shares
    row = int(_public(deployment)[0, 0]) % (1 + max(message[0] for message in shares))
    of_row = {message: share for message, share in shares.items() if message[0] == row}
    return {message: share / sum(of_row.values()) for message, share in of_row.items()}
