"""Known answers: inputs with random words, and the message that every language's client makes from them."""

import hashlib
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import IntegerArray, WordArray
from ...progress import counted
from ..contracts.domains import Categories, Interval
from ..contracts.norm_ball import NormBall
from .public_words import public_words
from .translation.typed_program import cell_lengths, typed_program
from .wire_format import pack_fields

if TYPE_CHECKING:
    from .deployment import Deployment

FORMAT = "quietbits-vectors/1"
VECTORS = 1000
# Number of random and public words, and numbers in a client's memory, of all vectors together, above which there are fewer vectors, and the
# least number of them.
MOST_WORDS, FEWEST_VECTORS = 2**21, 8
# Number of words made at a time, and the number of coordinates or items up to which the decoded value is stated.
WORDS_AT_A_TIME, MOST_DECODED = 64, 32
LARGEST = 2**64 - 1


class _RecordedWords:
    """Words with a record of those that were taken."""

    def __init__(self, words: Iterator[int]) -> None:
        self.taken: list[int] = []
        self._words = words

    def next(self) -> int:
        self.taken.append(next(self._words))
        return self.taken[-1]


def _words_of(edge: tuple[int, ...], streams: list[list[list[int]]], key: bytes, number: int) -> Iterator[int]:
    """Yield edge words, then the words of a vector's own stream; `streams` keeps those of all vectors, block by block."""
    yield from edge
    block = 0
    while True:
        if block == len(streams):
            numbers = np.arange(len(streams[0]), dtype=np.uint64)
            streams.append(public_words(key, block, numbers, WORDS_AT_A_TIME).tolist())
        yield from streams[block][number]
        block += 1


def known_answers(deployment: "Deployment") -> bytes:
    """Return the file of known answers of a deployment, as JSON whose numbers are texts.

    The inputs and words are derived from the deployment's hash, so that the same deployment has the same file. Each vector has the
    ``input``, the ``round`` and ``client`` of the public words, all random ``words`` in the order in which the client takes them, the
    ``fields`` and the ``message`` in hexadecimal digits, and the ``decoded`` value of the message alone, for tables as a fraction. There
    are 1000 vectors, and fewer for messages that take thousands of words or numbers.
    """
    program = deployment.program
    cells = sum(cell_lengths(typed_program(program.client)[-1], program.constants).values())
    vectors = min(VECTORS, max(FEWEST_VECTORS, MOST_WORDS // (3 * program.fields + program.public_words + cells)))
    key = hashlib.sha256(f"known answers of {deployment.hash}".encode("ascii")).digest()
    inputs, edges = _inputs(deployment, vectors, key), _edges(deployment)
    streams = [public_words(key, 0, np.arange(vectors, dtype=np.uint64), WORDS_AT_A_TIME).tolist()]
    decoded: dict[bytes, Any] = {}
    rounds = np.arange(vectors) % deployment.rounds
    clients = np.array([number * 2**52 // 7 if number % 2 else number for number in range(vectors)], dtype=np.uint64)
    every_public = public_words(bytes.fromhex(deployment.hash), rounds, clients, program.public_words)
    rows = []
    for number in counted(range(vectors), "known answers"):
        round_number, client = int(rounds[number]), int(clients[number])
        edge = edges[number % len(edges)] if number % 3 else ()
        words = _RecordedWords(_words_of(edge, streams, key, number))
        public = every_public[number : number + 1]
        fields = [0] * program.fields
        sources = (words, _RecordedWords(iter(public[0].tolist()))) if program.public_words else (words,)
        program.client(inputs[number], *sources, fields, **program.constants)
        array = np.array([fields], dtype=np.int64)
        row: dict[str, Any] = {"input": _texts(inputs[number])}
        if program.public_words:
            row |= {"round": str(round_number), "client": str(client)}
        row |= {"words": _texts(words.taken), "fields": _texts(fields), "message": pack_fields(array, program.field_bits).tobytes().hex()}
        if _size(deployment) <= MOST_DECODED:
            kind = array.tobytes() + public.tobytes()
            if kind not in decoded:
                decoded[kind] = _decoded(deployment, array, public)
            row["decoded"] = decoded[kind]
        rows.append(row)
    head = {"format": FORMAT, "deployment": deployment.hash}
    # One vector a line, so that differences are readable.
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return (json.dumps(head)[:-1] + ', "vectors": [\n' + lines + "\n]}\n").encode("ascii")


def _size(deployment: "Deployment") -> int:
    domain = deployment.mechanism.domain
    return domain.size if isinstance(domain, Categories) else domain.dimension


def _decoded(deployment: "Deployment", fields: IntegerArray, public: WordArray) -> Any:
    mechanism, table = deployment.mechanism, deployment.table
    if table is not None and isinstance(mechanism.domain, Interval):
        low, high = map(Fraction, table.interval)
        value = low + (high - low) * table.alphabet[int(fields[0, 0])]
        return f"{value.numerator}/{value.denominator}"
    one = mechanism if mechanism.joint_clients is None else mechanism.for_clients(1)
    return _texts(np.asarray(one.decode(deployment.aggregate(fields, public), 1)).tolist())


def _texts(value: Any) -> Any:
    return [_texts(item) for item in value] if isinstance(value, list | tuple) else repr(value)


def _edges(deployment: "Deployment") -> list[tuple[int, ...]]:
    """Return first words that lie at the ends and at every threshold, in the first, second and third place."""
    program = deployment.program
    thresholds: set[int] = set()
    for name, value in program.constants.items():
        if name == "cumulative" and isinstance(value, tuple):
            shift = program.constants["shift"]
            assert isinstance(shift, int)  # noqa: S101 - a table's shift
            thresholds |= {int(weight) << shift for weight in value}
        elif isinstance(value, int) and value >= 2**40:
            thresholds.add(value)
    words = sorted({word for edge in {0, LARGEST, *thresholds} for word in (edge - 1, edge, edge + 1) if 0 <= word <= LARGEST})
    middle = 2**63
    return [(middle,) * place + (word,) for word in words for place in range(3)]


def _inputs(deployment: "Deployment", count: int, key: bytes) -> list[Any]:
    """Return inputs at the edges of the domain, then random ones."""
    domain = deployment.mechanism.domain
    size = _size(deployment) if isinstance(domain, NormBall) else 1
    uniforms = public_words(key, LARGEST >> 32, np.arange(count, dtype=np.uint64), size) / 2.0**64
    if isinstance(domain, Categories):
        random = [int(share * domain.size) for share in uniforms[:, 0]]
        return [0, domain.size - 1, domain.size // 2, *random][:count]
    if isinstance(domain, Interval):
        low, high = domain.low, domain.high
        table = deployment.table
        grid = [] if table is None else [low + (high - low) * row / (len(table.weights) - 1) for row in range(len(table.weights))]
        edges = [low, high, math.nextafter(low, -math.inf), math.nextafter(high, math.inf), (low + high) / 2, -0.0, 5e-324, 1e308, -1e308]
        edges += [near for point in grid for near in (point, math.nextafter(point, math.inf), math.nextafter(point, -math.inf))]
        random = (low + (high - low) * (1.2 * uniforms[:, 0] - 0.1)).tolist()
        # Half of the vectors have random inputs, also for large tables.
        return [edges[place // 2 % len(edges)] if place % 2 else random[place] for place in range(count)]
    radius = domain.clip_norm
    axis = np.zeros(size)
    axis[-1] = radius
    special = [np.zeros(size), axis, -axis, np.full(size, radius), np.full(size, -3 * radius), np.full(size, 5e-324), axis * 1e-200]
    random_rows = radius * (2 * uniforms - 1) * np.where(np.arange(count) % 2, 1.0, 2.0 / size)[:, None]
    return [row.tolist() for row in (*special, *random_rows)][:count]
