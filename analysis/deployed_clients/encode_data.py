"""A deployment's clients in Python, with the inputs of a file: the reference for clients in other languages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import WordArray
from ...design.contracts.norm_ball import NormBall
from ...design.deployment.deployment import Deployment
from ...design.deployment.public_words import public_words
from ...design.deployment.python_client import SourceOfWords, client_fields
from ...design.deployment.wire_format import Bytes, pack_fields
from ...design.noise.random_words import WordSource, secure_words
from ...errors import DataError
from ...files import shown_path
from ...progress import OnStep, silent
from ..study.column_data import read_column
from ..study.column_file import MOST_BYTES
from ..study.item_column import load_items

# Number of clients that encode between two steps of progress.
CLIENTS_AT_A_TIME = 2**12


def read_inputs(
    deployment: Deployment, data: Path, column: str | None, domain: Path | None = None, most_bytes: int = MOST_BYTES
) -> NDArray[Any]:
    """Return the clients' inputs of a file, in the order of its rows.

    Numbers are read from a column, as by `read_column`. Vectors are the rows of a two-dimensional npy array. Items are a column of whole
    numbers from 0, or texts of a public list in a text file (`domain`).

    Raises
    ------
    DataError
        If the file cannot be read, or a row is no input of the deployment.
    """
    kind, size = deployment.input_kind, deployment.mechanism.domain
    if domain is not None:
        if kind != "item":
            raise ValueError(f"domain must be left out for clients that hold a {kind}, got {shown_path(domain)}")
        items = load_items(data, column, domain, most_bytes=most_bytes)
        return _items(deployment, items.items, data)
    if isinstance(size, NormBall):
        return _vectors(data, column, size.dimension)
    values = read_column(data, column, most_bytes)
    return _items(deployment, values, data) if kind == "item" else values


def _items(deployment: Deployment, values: NDArray[Any], data: Path) -> NDArray[np.int64]:
    categories = deployment.description().categories or 0
    wrong = (values != np.floor(values)) | (values < 0) | (values >= categories)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{shown_path(data)}: row {row + 1} must hold an item, a whole number from 0 to {categories - 1}, got {values[row]:g}; "
            "name a public list of texts with --domain"
        )
    return values.astype(np.int64)


def _vectors(data: Path, column: str | None, dimension: int) -> NDArray[np.float64]:
    if column is not None or data.suffix != ".npy":
        raise ValueError(f"data must be a npy file of vectors, without a column, got {shown_path(data)}")
    try:
        array = np.load(data, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"{shown_path(data)}: the file is not an npy array of numbers: {str(error)[:200]}") from None
    if array.ndim != 2 or array.shape[1] != dimension or array.dtype.kind not in "iuf" or not len(array):
        raise DataError(f"{shown_path(data)}: the array must have the shape (clients, {dimension}), got {array.shape} of {array.dtype}")
    return np.array(array, dtype=float)


def encode_inputs(
    deployment: Deployment,
    inputs: NDArray[Any],
    round_number: int = 0,
    first_client: int = 0,
    random_words: WordSource = secure_words,
    on_step: OnStep = silent,
) -> Iterator[tuple[Bytes, WordArray | None]]:
    """Yield the messages of clients, chunk by chunk, with their indices if the deployment has public words.

    Clients have consecutive indices. Messages of the shuffled trust model come in a random order, as from a shuffler.

    Parameters
    ----------
    deployment : Deployment
        The deployment.
    inputs : ndarray, shape (clients,) or (clients, dimension)
        Inputs, as from `read_inputs`.
    round_number, first_client : int
        Number of the round, and index of the first client.
    random_words : WordSource
        Source of randomness; secure words for releases.
    on_step : callable
        Progress, in clients.
    """
    if not np.isfinite(inputs).all():
        raise ValueError("inputs must be finite numbers, got others")
    program, source = deployment.program, SourceOfWords(random_words)
    if deployment.mechanism.guarantee.trust_model == "shuffled":
        inputs = inputs[random_words.permutation(len(inputs))]
    for start in range(0, len(inputs), CLIENTS_AT_A_TIME):
        part = inputs[start : start + CLIENTS_AT_A_TIME]
        clients = np.arange(first_client + start, first_client + start + len(part), dtype=np.uint64)
        public = public_words(bytes.fromhex(deployment.hash), round_number, clients, program.public_words)
        fields = client_fields(program, part.tolist(), source, public)
        yield pack_fields(fields, program.field_bits), clients if deployment.carries_index else None
        on_step(start + len(part), len(inputs), "encoding")
