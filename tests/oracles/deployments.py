"""Small deployments of every kind of client, for tests."""

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, cast

import numpy as np

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import GivenWords, SourceOfWords, client_fields
from quietbits.design.deployment.wire_format import Bytes, pack_fields
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

# Arguments of `deploy` beside the budget, by a name of this module.
ITEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "randomised-response": ("frequency-randomised-response", {"categories": 5}),
    "unary": ("unary-encoding", {"categories": 4}),
    "subsets": ("subset-selection", {"categories": 6}),
    "hadamard": ("hadamard-response", {"categories": 6}),
    "recursive-hadamard": ("recursive-hadamard-response", {"categories": 6}),
    "projective": ("projective-geometry-response", {"categories": 6}),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "number": ("cldp", {"low": -1.0, "high": 3.0}),
    "cube": ("cldp", {"dimension": 3, "norm": math.inf}),
    "ball": ("cldp", {"dimension": 3, "norm": 2.0}),
    "cross-polytope": ("cldp", {"dimension": 3, "norm": 1.0}),
}
NAMES = ("table", *ITEMS, *OTHERS)
WITH_INDEX = "recursive-hadamard"


@cache
def deployment_of_name(name: str, rounds: int = 1, epsilon: float = 1.5) -> Deployment:
    """Return a deployment: a table of 3 bits, or a mechanism of the registry."""
    if name == "table":
        table = generalised_randomised_response(epsilon, 3, interval=(-1.0, 3.0))
        return Deployment(TableMeanMechanism(table), table.mechanism, rounds, name="table")
    mechanism, options = (ITEMS | OTHERS)[name]
    return deploy(mechanism, epsilon=epsilon * rounds, rounds=rounds, name=name, **options)


def inputs_of(deployment: Deployment, clients: int, seed: int = 0) -> list[Any]:
    """Return random inputs of clients."""
    rng, description = np.random.default_rng(seed), deployment.description()
    if description.input == "item":
        return rng.integers(0, description.categories or 1, clients).tolist()
    if description.input == "vector":
        vectors = rng.normal(size=(clients, description.dimension or 1))
        return (0.7 * vectors / np.abs(vectors).sum(axis=1, keepdims=True)).tolist()
    low, high = deployment.mechanism.domain.low, deployment.mechanism.domain.high  # type: ignore[union-attr]
    return rng.uniform(low, high, clients).tolist()


def messages_of(
    deployment: Deployment, inputs: list[Any], seed: int = 0, round_number: int = 0, first: int = 0
) -> tuple[Bytes, np.ndarray | None]:
    """Return messages of clients with consecutive indices, and the indices if the deployment carries them."""
    program = deployment.program
    clients = np.arange(first, first + len(inputs), dtype=np.uint64)
    public = public_words(bytes.fromhex(deployment.hash), round_number, clients, program.public_words)
    fields = client_fields(program, inputs, SourceOfWords(seeded_words(np.random.default_rng(seed))), public)
    return pack_fields(fields, program.field_bits), clients if deployment.carries_index else None


def leaves(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a JSON document that holds no other values, as its container and key."""
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        if isinstance(document[key], dict | list) and document[key]:
            yield from leaves(document[key])
        else:
            yield document, key


def law_of_messages(deployment: Deployment, value: Any, public: list[int]) -> dict[bytes, Fraction]:
    """Return the exact probability of each message of a client with an input, by running the client on every choice of its words.

    A word decides a coin, with a threshold, or a uniform number below a count. One word stands for all that decide alike.
    """
    program = deployment.program
    law: dict[bytes, Fraction] = defaultdict(Fraction)
    for words in product(*_choices(deployment, value)):
        fields = [0] * program.fields
        sources = [GivenWords(np.array([word for word, _ in words], dtype=np.uint64))]
        if program.public_words:
            sources.append(GivenWords(np.array(public, dtype=np.uint64)))
        program.client(value, *sources, fields, **program.constants)
        assert sources[0].used == len(words)
        message = pack_fields(np.array([fields], dtype=np.int64), program.field_bits).tobytes()
        law[message] += math.prod((probability for _, probability in words), start=Fraction(1))
    return dict(law)


def _choices(deployment: Deployment, value: Any) -> list[list[tuple[int, Fraction]]]:
    """Return for each word that a client draws its decisions, as a word and the probability of all words that decide alike."""
    constants: Any = deployment.program.constants

    def coin(threshold: int) -> list[tuple[int, Fraction]]:
        return [(0, Fraction(threshold, 2**64)), (2**64 - 1, 1 - Fraction(threshold, 2**64))]

    def below(count: int) -> list[tuple[int, Fraction]]:
        return [(number, Fraction(1, count)) for number in range(count)]

    def uniform(bound: float) -> list[tuple[int, Fraction]]:
        return coin(math.ceil(Fraction(bound) * 2**53) << 11)

    match deployment.program.client.__name__:
        case "randomised_item":
            return [coin(constants["kept"]), below(constants["categories"])]
        case "unary_bits":
            return [coin(2**63 if place == value else constants["other"]) for place in range(constants["categories"])]
        case "hadamard_output":
            return [coin(constants["lie"]), below(constants["outputs"]), below(constants["block_outputs"])]
        case "recursive_hadamard_symbol":
            return [coin(constants["lie"]), below(constants["symbols"])]
        case "projective_point":
            return [coin(constants["lie"]), below(constants["outputs"]), below(constants["set_outputs"])]
        case "subset_rank":
            return [coin(constants["denial"]), *(below(unseen) for unseen in range(constants["categories"] - 1, 0, -1))]
        case "sign_of_number":
            return [uniform((value - constants["low"]) / constants["width"]), coin(constants["flip"])]
        case client:
            raise AssertionError(f"no choices are listed for {client}")


def sign_law(deployment: Deployment, entries: list[float]) -> dict[bytes, Fraction]:
    """Return the exact law of the sign of a random entry, for a vector of CLDP whose entries are exact."""
    flip = Fraction(cast("int", deployment.program.constants["flip"]), 2**64)
    law = {}
    for place, entry in enumerate(entries):
        up = (Fraction(entry) + 1) / 2
        one = (up * (1 - flip) + (1 - up) * flip) / len(entries)
        for bit, share in ((1, one), (0, Fraction(1, len(entries)) - one)):
            law[pack_fields(np.array([[2 * place + bit]]), deployment.program.field_bits).tobytes()] = share
    return law
