"""Small deployments of every kind of client, for tests."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.python_client import SourceOfWords, client_fields
from quietbits.design.deployment.wire_format import Bytes, pack_fields
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

# Mechanisms of items, with as many as fit the enumeration of all messages.
ITEMS = {
    "randomised-response": {"categories": 5},
    "unary-encoding": {"categories": 4},
    "subset-selection": {"categories": 6},
    "hadamard-response": {"categories": 6},
    "recursive-hadamard-response": {"categories": 6},
    "projective-geometry-response": {"categories": 6},
}
VECTORS = {"cldp-linf": {"dimension": 3}, "cldp-l2": {"dimension": 3}, "cldp-l1": {"dimension": 3}}
NAMES = ("table", "cldp", *ITEMS, *VECTORS)
WITH_INDEX = "recursive-hadamard-response"


@cache
def deployment_of_name(name: str, rounds: int = 1, epsilon: float = 1.5) -> Deployment:
    """Return a deployment: a table of 3 bits, or a mechanism of the registry."""
    if name == "table":
        table = generalised_randomised_response(epsilon, 3, interval=(-1.0, 3.0))
        return Deployment(TableMeanMechanism(table), table.mechanism, rounds, name="table")
    return deploy(name, epsilon=epsilon * rounds, rounds=rounds, name=name, **ITEMS.get(name, VECTORS.get(name, {})))


def inputs_of(deployment: Deployment, clients: int, seed: int = 0) -> list[object]:
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
    deployment: Deployment, inputs: list[object], seed: int = 0, round_number: int = 0, first: int = 0
) -> tuple[Bytes, np.ndarray | None]:
    """Return messages of clients with consecutive indices, and the indices if the deployment carries them."""
    program = deployment.program
    clients = np.arange(first, first + len(inputs), dtype=np.uint64)
    public = public_words(bytes.fromhex(deployment.hash), round_number, clients, program.public_words)
    fields = client_fields(program, inputs, SourceOfWords(seeded_words(np.random.default_rng(seed))), public)
    return pack_fields(fields, program.field_bits), clients if deployment.carries_index else None


def leaves(document: object) -> Iterator[tuple[object, object]]:
    """Yield every place of a JSON document that holds no other values, as its container and key."""
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        if isinstance(document[key], dict | list) and document[key]:  # type: ignore[index]
            yield from leaves(document[key])  # type: ignore[index]
        else:
            yield document, key
