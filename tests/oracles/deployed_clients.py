"""Deployments of every mechanism with a client, cases with the messages of the Python client, and exact laws of messages."""

import itertools
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import chi2

from quietbits.arrays import FloatArray, WordArray
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.known_answers import known_answers
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords
from quietbits.design.deployment.wire_format import pack_fields, unpack_fields
from quietbits.design.frequencies.hadamard_response import hadamard_response, recursive_hadamard_response
from quietbits.design.frequencies.projective_geometry_response import projective_geometry_response
from quietbits.design.frequencies.randomised_response import FrequencyRandomisedResponse
from quietbits.design.frequencies.subset_selection import subset_selection
from quietbits.design.frequencies.unary_encoding import UnaryEncoding
from quietbits.design.local.cldp import CLDPMechanism, vector_cldp_mechanism
from quietbits.design.local.sqkr import SQKRMechanism
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism
from quietbits.design.transforms.kashin import KashinFrame

LARGEST, WORDS = 2**64 - 1, 2**64
ITEMS, DIMENSION, LARGE, CLIP_NORM = 37, 5, 1025, 0.4
ROUNDS = 3
# Number of random cases of each client, beside its known answers and its cases at thresholds.
RANDOM_CASES = 300
# Share of words in random cases that lie at the ends of ranges and at thresholds.
SPECIAL = 0.3
# Error probability of a comparison of frequencies with probabilities.
ERROR_PROBABILITY = 1e-9
DRAWS = 400_000

DELTA = 1e-5
BALL = NormBall(DIMENSION, 2.0, CLIP_NORM)


class RandomRows(SQKRMechanism):
    """SQKR with random rows also in few dimensions."""

    frame = property(lambda self: KashinFrame(self.ball.dimension, self.seed))


MECHANISMS: Mapping[str, Callable[[], Mechanism]] = {
    "response": lambda: FrequencyRandomisedResponse(1.0, ITEMS),
    "unary": lambda: UnaryEncoding(1.0, ITEMS),
    "hadamard": lambda: hadamard_response(3.0, ITEMS),
    "recursive": lambda: recursive_hadamard_response(4.0, ITEMS),
    "projective": lambda: projective_geometry_response(1.0, ITEMS),
    "subset": lambda: subset_selection(1.0, ITEMS),
    "large-subset": lambda: subset_selection(2.0, 150),
    "table": lambda: TableMeanMechanism(generalised_randomised_response(1.0, 3)),
    "bitwise-table": lambda: TableMeanMechanism(bitwise_randomised_response(2.0, 4, interval=(-3.0, 0.1))),
    "sign": lambda: CLDPMechanism(1.0),
    **{
        f"signs-{norm}": lambda norm=norm: vector_cldp_mechanism(2.0, NormBall(DIMENSION, norm, CLIP_NORM)) for norm in (1.0, 2.0, math.inf)
    },
    **{
        f"letters-{norm}": lambda norm=norm: VectorTableMechanism(
            generalised_randomised_response(2.0, 3), NormBall(DIMENSION, norm, CLIP_NORM)
        )
        for norm in (1.0, 2.0, math.inf)
    },
    "kashin": lambda: SQKRMechanism(3.0, 3, BALL),
    "kashin-of-random-rows": lambda: RandomRows(3.0, 3, BALL),
    "signs-of-a-point": lambda: vector_cldp_mechanism(2.0, BALL, draws=3),
    **{
        f"rejecting-{norm}": lambda norm=norm: VectorTableMechanism(
            generalised_randomised_response(3.0, 5), NormBall(DIMENSION, norm, CLIP_NORM), dithering="rejection"
        )
        for norm in (1.0, 2.0)
    },
    "simplex": lambda: RotatingSimplexMechanism(2.0, 2, BALL),
    "gaussian-sum": lambda: DistributedDiscreteGaussianMechanism(BALL, 100, 16, 0.01, 0.5, DELTA),
    "skellam-sum": lambda: DistributedSkellamMechanism(BALL, 100, 16, 0.01, 0.3, DELTA),
}


@cache
def deployments() -> dict[str, Deployment]:
    """Return a deployment of every mechanism, by name."""
    return {
        name: Deployment(
            mechanism(), "mechanism", ROUNDS, delta=DELTA if name.endswith("sum") else 0.0, name=name.replace(".0", "").replace(".", "-")
        )
        for name, mechanism in MECHANISMS.items()
    }


@dataclass(frozen=True)
class Case:
    """An input with words, and the Python client's message.

    Attributes
    ----------
    client : str
        Name of the deployment.
    round_number, index : int
        Round, and the client's index.
    value : tuple
        Item, or numbers.
    words : tuple of int
        Words that the client takes.
    message : str
        Hexadecimal digits of the message.
    """

    client: str
    round_number: int
    index: int
    value: tuple[float, ...] | tuple[int, ...]
    words: tuple[int, ...]
    message: str

    def line(self, place: int) -> str:
        """Return the case as a line of hexadecimal words for a driver, which knows the client by its place."""
        return line_of(place, self.round_number, self.index, self.value, self.words)


def line_of(place: int, round_number: int, index: int, value: Sequence[float] | Sequence[int], words: Sequence[int]) -> str:
    """Return an input with words as a line of hexadecimal words."""
    bits = [item if isinstance(item, int) else struct.unpack("<Q", struct.pack("<d", item))[0] for item in value]
    return " ".join(f"{word:x}" for word in (place, round_number, index, len(bits), *bits, len(words), *words))


class _Taken:
    """Words with a record of those that were taken."""

    def __init__(self, words: Iterator[int]) -> None:
        self.words, self.taken = words, []  # type: ignore[var-annotated]

    def next(self) -> int:
        self.taken.append(next(self.words))
        return int(self.taken[-1])


@cache
def cases() -> list[Case]:
    """Return at least 1,000 cases of every deployment."""
    return [case for name in deployments() for case in (*_stored_cases(name), *_edge_cases(name))]


def _stored_cases(name: str) -> Iterator[Case]:
    import json

    deployment = deployments()[name]
    for row in json.loads(known_answers(deployment))["vectors"]:
        number = int if deployment.input_kind == "item" else float
        value = tuple(map(number, row["input"] if isinstance(row["input"], list) else [row["input"]]))
        words = tuple(map(int, row["words"]))
        yield Case(name, int(row.get("round", 0)), int(row.get("client", 0)), value, words, row["message"])


def _edge_cases(name: str) -> Iterator[Case]:
    deployment = deployments()[name]
    rng = np.random.default_rng(5)
    special = np.array(special_words(deployment), dtype=np.uint64)
    for number in range(RANDOM_CASES):
        value, first = _input(deployment, rng)
        index = int(rng.integers(2**63)) if number % 2 else LARGEST
        yield python_case(name, number % ROUNDS, index, value, _words(rng, special, first))


def _words(rng: np.random.Generator, special: WordArray, first: tuple[int, ...]) -> Iterator[int]:
    yield from first
    for _ in range(40):
        words = np.where(rng.random(64) < SPECIAL, rng.choice(special, 64), rng.integers(WORDS, size=64, dtype=np.uint64))
        yield from words.tolist()


def special_words(deployment: Deployment) -> list[int]:
    """Return words at both ends, at the thresholds of all constants, and at the first word that a draw below a number rejects."""
    edges = {0, LARGEST}
    shift = deployment.program.constants.get("shift", 0)
    assert isinstance(shift, int)
    for value in deployment.program.constants.values():
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and number > 0:
                edges |= {number, number << shift, WORDS - WORDS % number}
    return sorted({word for edge in edges for word in (edge - 1, edge, edge + 1) if 0 <= word <= LARGEST})


def _input(deployment: Deployment, rng: np.random.Generator) -> tuple[Any, tuple[int, ...]]:
    """Return an input, and first words that round it at its very threshold."""
    program = deployment.program
    constants: dict[str, Any] = dict(program.constants)
    if deployment.input_kind == "item":
        return (int(rng.integers(deployment.mechanism.domain.size)),), ()
    uniform = float(rng.random())
    if deployment.input_kind == "number":
        value = constants["low"] + uniform * constants["width"]
        position = (value - constants["low"]) / constants["width"] * constants.get("steps", 1.0)
        return (value,), (_threshold(position % 1.0, rng),)
    # A vector of the first axis is its own sum, norm and Walsh-Hadamard transform; the first word 0 chooses it.
    value = CLIP_NORM * (2 * uniform - 1)
    share = value / CLIP_NORM
    sign = "flip" in constants
    if not sign and "steps" not in constants:
        return tuple((CLIP_NORM * rng.uniform(-1, 1, DIMENSION)).tolist()), ()
    threshold = _threshold((share + 1.0) / 2.0 * constants.get("steps", 1.0) % 1.0, rng)
    return (value, *[0.0] * (DIMENSION - 1)), (0, threshold) if sign else (threshold,)


def _threshold(share: float, rng: np.random.Generator) -> int:
    """Return a word whose uniform number equals a share, or is next to it."""
    number = math.ceil(share * 2**53) + int(rng.integers(-1, 2))
    return min(max(number, 0), 2**53 - 1) << 11


def python_case(name: str, round_number: int, index: int, value: Any, words: Iterable[int]) -> Case:
    return _case(name, deployments()[name], round_number, index, value, words)


def _case(name: str, deployment: Deployment, round_number: int, index: int, value: Any, words: Iterable[int]) -> Case:
    program, taken = deployment.program, _Taken(iter(words))
    public = public_words(bytes.fromhex(deployment.hash), round_number, np.array([index], dtype=np.uint64), program.public_words)
    sources = (taken, GivenWords(public[0])) if program.public_words else (taken,)
    fields = [0] * program.fields
    program.client(value if deployment.input_kind == "vector" else value[0], *sources, fields, **program.constants)
    message = pack_fields(np.array([fields]), program.field_bits).tobytes().hex()
    return Case(name, round_number, index, value, tuple(taken.taken), message)


def large_cases() -> tuple[Deployment, list[Case]]:
    """Return a deployment whose client needs more memory than a stack has, and messages of its Python client."""
    deployment = Deployment(SQKRMechanism(3.0, 3, NormBall(LARGE, 2.0, CLIP_NORM)), "mechanism", name="large")
    rng, cases = np.random.default_rng(11), []
    for index in range(2):
        vector = tuple((rng.normal(size=LARGE) / math.sqrt(LARGE)).tolist())
        cases.append(_case("large", deployment, 0, index, vector, rng.integers(WORDS, size=64, dtype=np.uint64).tolist()))
    return deployment, cases


def extreme_cases() -> list[Case]:
    """Return vectors whose sums overflow or underflow, with the messages of the Python clients."""
    extremes = [
        (1e308, 1e308, -1e308, 1e308, 1e308),
        (1e200, -1e200, 0.0, 5e-324, 1e-160),
        (5e-324, -5e-324, 1e-308, 0.0, -0.0),
        (math.nextafter(CLIP_NORM, 1), CLIP_NORM, 0.0, 0.0, 0.0),
    ]
    words = np.random.default_rng(7).integers(WORDS, size=2000, dtype=np.uint64).tolist()
    names = [name for name, deployment in deployments().items() if deployment.input_kind == "vector"]
    return [python_case(name, 0, 0, vector, words) for name in names for vector in extremes]


def bad_inputs(deployment: Deployment) -> list[tuple[Any, ...]]:
    """Return inputs outside the domain."""
    if deployment.input_kind == "item":
        return [(deployment.mechanism.domain.size,), (LARGEST,)]
    bad = [math.nan, math.inf, -math.inf]
    if deployment.input_kind == "number":
        return [(number,) for number in bad]
    return [(*[0.1] * place, number, *[0.1] * (DIMENSION - place - 1)) for number in bad for place in (0, DIMENSION - 1)]


# Clients whose messages are drawn with the system's words, and an input of each.
DRAWN: Mapping[str, tuple[Any, ...]] = {
    "response": (5,),
    "unary": (36,),
    "hadamard": (20,),
    "projective": (11,),
    "table": (0.3,),
    "sign": (0.7,),
    "signs-inf": (0.1, -0.4, 0.0, 0.25, -0.3),
    "gaussian-sum": (0.0,) * DIMENSION,
}


def check_frequencies(name: str, messages: bytes) -> None:
    """Compare frequencies of messages with their exact probabilities, with error probability `ERROR_PROBABILITY`."""
    program = deployments()[name].program
    packed = np.frombuffer(messages, dtype=np.uint8).reshape(-1, program.message_bytes)
    fields, filled = unpack_fields(packed, program.field_bits, program.fields)
    assert len(fields) == DRAWS
    assert filled.all()
    assert program.valid(fields).all()
    if name == "unary":
        # Bits are independent: the sum of their squared deviations has a degree of freedom each.
        chances = np.full(ITEMS, _share(program.constants["other"]))
        chances[DRAWN[name][0]] = 0.5
        statistic = np.sum((fields.sum(axis=0) - DRAWS * chances) ** 2 / (DRAWS * chances * (1 - chances)))
        freedom = ITEMS
    elif name == "gaussian-sum":
        # Messages about the zero vector are noise, whose values of probability 1e-4 or less are counted together on either side.
        noise = (fields + 2**15) % 2**16 - 2**15
        chances = _noise_chances(program.constants)
        most = len(chances) // 2
        expected = DRAWS * program.fields * chances
        counts = np.bincount((noise.clip(-most, most) + most).ravel(), minlength=len(chances))
        statistic, freedom = np.sum((counts - expected) ** 2 / expected), len(chances) - 1
    else:
        chances = _law(name)
        counts = np.bincount(fields[:, 0], minlength=len(chances))
        assert len(counts) == len(chances)
        assert abs(chances.sum() - 1) < 1e-12
        statistic, freedom = np.sum((counts - DRAWS * chances) ** 2 / (DRAWS * chances)), len(chances) - 1
    assert statistic < chi2.isf(ERROR_PROBABILITY, freedom), (name, statistic, freedom)


def _share(word: Any) -> float:
    return float(word) / 2.0**64


def _noise_chances(constants: Mapping[str, Any]) -> FloatArray:
    """Return the probabilities of noise from -most to most; the ends have those of all noise beyond them, too."""
    thresholds = [0] + [(upper << 63) + lower for upper, lower in zip(constants["upper"], constants["lower"], strict=True)] + [2**127]
    sizes = np.array([float(Fraction(high - low, 2**127)) for low, high in itertools.pairwise(thresholds)])
    most = int(np.sum(sizes > 1e-4))
    sides = np.append(sizes[1:most], sizes[most:].sum()) / 2
    return np.concatenate([sides[::-1], sizes[:1], sides])


def _law(name: str) -> FloatArray:
    """Return the probability of each message about the input of `DRAWN`."""
    constants: dict[str, Any] = dict(deployments()[name].program.constants)
    value = DRAWN[name]
    if name == "response":
        chances = np.full(ITEMS, (1 - _share(constants["kept"])) / ITEMS)
        chances[value[0]] += _share(constants["kept"])
        return chances
    if name in ("hadamard", "projective"):
        lie, outputs, size = _share(constants["lie"]), constants["outputs"], constants["block_outputs"]
        block, row = value[0] // constants["block_items"], value[0] % constants["block_items"]
        if name == "hadamard":
            wanted = [block * size + point for point in range(size) if (row + 1 & point).bit_count() % 2 == 0]
        else:
            points = projective_points(constants["prime"], constants["digits"])
            wanted = [block * size + place for place, point in enumerate(points) if np.dot(point, points[row]) % constants["prime"] == 0]
        chances = np.full(outputs, lie / outputs)
        chances[wanted] += (1 - lie) / len(wanted)
        return chances
    if name == "table":
        position = (value[0] - constants["low"]) / constants["width"] * constants["steps"]
        row = int(position)
        weights = np.diff(np.reshape(constants["cumulative"], (-1, constants["letters"])), prepend=0, axis=1)
        probabilities = weights / weights[0].sum()
        return np.asarray(probabilities[row] + (position - row) * (probabilities[row + 1] - probabilities[row]))
    flip = _share(constants["flip"])
    ups = value if name == "sign" else [(number / CLIP_NORM + 1) / 2 for number in value]
    signs = np.array([[1 - up, up] for up in ups]) @ np.array([[1 - flip, flip], [flip, 1 - flip]])
    return np.asarray(signs.ravel() / len(ups))


def projective_points(prime: int, digits: int) -> list[tuple[int, ...]]:
    """Return the points of the projective space, whose last digit other than 0 is 1, in the order of their codes."""
    codes = (tuple(code // prime**place % prime for place in range(digits)) for code in range(prime**digits))
    return [code for code in codes if any(code) and [digit for digit in code if digit][-1] == 1]
