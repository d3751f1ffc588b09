"""Damaged folders of deployments and files of messages: refused in one line, or read as what they state."""

import io
import json
import random
from functools import cache
from pathlib import Path

import numpy as np

from ..analysis.deployed_clients.deploy import deploy
from ..design.deployment.deployment import TABLE_FILE, Deployment, deployment_of
from ..design.deployment.folder import DEPLOYMENT_FILE, deployment_files, verify_deployment
from ..design.deployment.message_files import decode_file, write_messages
from ..design.tables.randomised_response import generalised_randomised_response
from ..design.tables.table_mean import TableMeanMechanism
from ..errors import DataError
from .cases import Arguments, Attack, Refused, refusal
from .damage import damaged, odd_value, paths

MESSAGES = 200
KINDS = ("messages.qbm", "messages.parquet", "messages.arrow")


@cache
def _deployments() -> tuple[Deployment, ...]:
    table = generalised_randomised_response(1.0, 3)
    return (
        Deployment(TableMeanMechanism(table), table.mechanism, rounds=2, name="table"),
        deploy("recursive-hadamard-response", epsilon=1.0, categories=9, name="rows"),
        deploy("subset-selection", epsilon=1.0, categories=8, name="subsets"),
        deploy("cldp", epsilon=1.0, dimension=5, name="signs"),
    )


@cache
def _folders() -> tuple[dict[str, bytes], ...]:
    return tuple(deployment_files(deployment, ["c"]) for deployment in _deployments())


@cache
def _messages(number: int, name: str) -> bytes:
    """Return a file of messages whose bytes are all that clients may send."""
    import tempfile

    deployment = _deployments()[number]
    rows = np.zeros((MESSAGES, deployment.program.message_bytes), dtype=np.uint8)
    indices = np.arange(MESSAGES, dtype=np.uint64) if deployment.carries_index else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if path.suffix != ".arrow":
            write_messages(deployment, path, [(rows, indices)])
            return path.read_bytes()
        import pyarrow as pa
        import pyarrow.parquet as pq

        write_messages(deployment, path.with_suffix(".parquet"), [(rows, indices)])
        table, buffer = pq.read_table(path.with_suffix(".parquet")), io.BytesIO()
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table, max_chunksize=MESSAGES // 3)
        return buffer.getvalue()


def prepare() -> None:
    """Build all folders and files, which every case needs."""
    for number, _ in enumerate(_folders()):
        for name in KINDS:
            _messages(number, name)


def draw(rng: random.Random) -> Arguments:
    """Draw a file of messages or of a folder, and damage to it."""
    number = rng.randrange(4)
    name = rng.choice((*KINDS, *KINDS, DEPLOYMENT_FILE, DEPLOYMENT_FILE, DEPLOYMENT_FILE, "any"))
    return {"number": number, "name": name, "seed": rng.randrange(2**32)}


def check(folder: Path, number: int, name: str, seed: int) -> None:
    """Damage a file, and read it."""
    rng = random.Random(seed)
    if name in KINDS:
        _check_messages(folder / name, number, rng)
    elif name == DEPLOYMENT_FILE and rng.random() < 0.7:
        _check_document(number, rng)
    else:
        _check_folder(folder, number, rng)


def _check_messages(path: Path, number: int, rng: random.Random) -> None:
    content = _messages(number, path.name)
    path.write_bytes(damaged(rng, content))
    decoder = _deployments()[number].decoder(rng.randrange(_deployments()[number].rounds))
    try:
        decode_file(decoder, path)
        estimate = decoder.estimate()
    except DataError as error:
        _one_line(error)
        raise refusal(error) from None
    counted = estimate.accepted + sum(estimate.refused.values())
    assert np.isfinite(estimate.mean).all()
    assert np.isfinite(estimate.standard_error).all()
    if path.suffix == ".qbm":
        # Every record counts once, and the rest of a record once.
        size = decoder.deployment.record_bytes
        assert counted == -(-(path.stat().st_size - 16) // size)


def _check_document(number: int, rng: random.Random) -> None:
    """Change values of a document, which still states its own hash."""
    deployment = _deployments()[number]
    document = json.loads(_folders()[number][DEPLOYMENT_FILE])
    for _ in range(rng.choice((1, 1, 2, 4))):
        container, key = rng.choice(paths(document))
        container[key] = odd_value(rng, container[key])
    try:
        accepted = deployment_of(document, deployment.table)
    except ValueError as error:
        _one_line(error)
        raise refusal(error) from None
    assert accepted.document() == document
    assert accepted.hash == deployment.hash


def _check_folder(folder: Path, number: int, rng: random.Random) -> None:
    files = _folders()[number]
    changed = rng.choice([path for path in files if path != TABLE_FILE or rng.random() < 0.5])
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(damaged(rng, content) if path == changed else content)
    if (folder / changed).read_bytes() == files[changed]:
        raise Refused("the damage changed nothing")
    try:
        verify_deployment(folder)
    except ValueError as error:
        _one_line(error)
        raise refusal(error) from None
    raise AssertionError(f"{changed} was changed, and verified")


def _one_line(error: Exception) -> None:
    assert "\n" not in str(error), f"more than a line: {error}"
    assert len(str(error)) < 1000, f"a long line: {error}"


ATTACK = Attack("deployments", draw, check, prepare=prepare)
