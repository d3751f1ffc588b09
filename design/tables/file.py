"""The file format ``quietbits-table/1``: JSON with a schema and a checksum.

Writing refuses tables that do not verify, and reading refuses changed files.
"""

import hashlib
import json
import math
import os
import sys
import textwrap
from collections import Counter
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import DataError, TableError
from ...files import MEGABYTE, decode_text, read_limited, shown_path, write_atomically
from .certificate import with_letters_bound
from .lookup_table import Certificate, DualCertificate, LookupTable
from .provenance import Provenance
from .verification import verify_table

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FORMAT = "quietbits-table/1"
LONGEST_MESSAGE, LONGEST_DETAIL = 200, 300
# Largest size of a file; the largest table, of 512 rows and letters, takes some six megabytes.
MOST_BYTES = 64 * MEGABYTE


def write_table(table: LookupTable, path: str | os.PathLike[str]) -> None:
    """Write a table to a file, replacing it if it exists.

    Raises
    ------
    TableError
        If the table does not verify; nothing is written then.
    """
    verify_table(table)
    write_atomically(path, table_json(table))


def table_json(table: LookupTable) -> bytes:
    """Return the contents of a table's file, without verifying the table."""
    lines = (f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in table_document(table).items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")


def read_table(path: str | os.PathLike[str], most_bytes: int = MOST_BYTES) -> LookupTable:
    """Read a table from a file of at most `most_bytes` bytes, and verify it fully.

    Raises
    ------
    TableError
        If a check fails: ``size``, ``json``, ``format``, ``schema``, ``checksum``, or a check of `verify_table`. The message is one line
        for the first failed check, and begins with the file's name.
    """
    try:
        return _verified(path, most_bytes)
    except TableError as error:
        # The error quotes text that an attacker may have chosen, so the text is shortened.
        raise TableError(error.check, textwrap.shorten(error.detail, LONGEST_DETAIL, placeholder=" ..."), shown_path(path)) from None


def _verified(path: str | os.PathLike[str], most_bytes: int) -> LookupTable:
    try:
        content = read_limited(path, most_bytes)
    except DataError as error:
        raise TableError("size", str(error).removeprefix(f"{shown_path(path)}: ")) from None
    document = _parsed(content)
    _check_schema(document)
    computed, stated = checksum(document), document["sha256"]
    if computed != stated:
        raise TableError("checksum", f"the file was changed: its contents have sha256 {computed}, it states {stated}")
    table = _table_from(document)
    verify_table(table)
    return with_letters_bound(table)


def verify_file(path: str | os.PathLike[str]) -> Certificate:
    """Return the certificate of the table in a file, verified from the file alone.

    Raises `TableError` as `read_table` does.
    """
    return read_table(path).certificate


def table_document(table: LookupTable) -> dict[str, Any]:
    """Return a table's document, checksum included, with the schema's keys, ready for JSON.

    The document omits the duration of the design, so that the same table has the same file.
    """
    certificate, provenance = table.certificate, table.provenance
    dual = certificate.dual
    document: dict[str, Any] = {
        "format": FORMAT,
        "mechanism": table.mechanism,
        "epsilon": float(table.epsilon),
        "metric": table.metric,
        "bits_in": table.bits_in,
        "bits_out": table.bits_out,
        "adjacency": table.adjacency,
        "trust_model": table.trust_model,
        "interval": list(table.interval),
        "certificate": {
            "realised_epsilon": certificate.realised_epsilon,
            "max_bias": certificate.max_bias,
            "mean_variance": certificate.mean_variance,
            "worst_variance": certificate.worst_variance,
            "lower_bound": certificate.lower_bound,
            "optimality_gap": certificate.optimality_gap,
            "objective": certificate.objective,
            "dual": dual
            and {
                "normalisation": [float(price) for price in dual.normalisation],
                "unbiasedness": [float(price) for price in dual.unbiasedness],
                "input_weights": [float(weight) for weight in dual.input_weights],
            },
        },
        "alphabet": [f"{letter.numerator}/{letter.denominator}" for letter in table.alphabet],
        "total": table.total,
        "weights": table.weights.tolist(),
        "prior": None if table.prior is None else [float(weight) for weight in table.prior],
        "provenance": {
            "versions": dict(provenance.versions),
            "solver": provenance.solver,
            "seed": int(provenance.seed),
        },
    }
    return {**document, "sha256": checksum(document)}


def checksum(document: dict[str, Any]) -> str:
    """Return the SHA-256 checksum, in hexadecimal, of a table's document.

    The checksum covers everything except the key ``sha256``, as JSON with sorted keys and no spaces, in ASCII.
    """
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")).hexdigest()


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(
            decode_text(content),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
            object_pairs_hook=_without_duplicates,
        )
    except RecursionError:
        raise TableError("json", "the file nests deeper than any table") from None
    except ValueError as error:
        raise TableError("json", f"the file is not JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return value


def _bounded(text: str) -> int:
    value = int(text)
    if abs(value) > sys.float_info.max:
        raise ValueError(f"{text[:20]}..., of {len(text)} digits, is too large")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        again = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {again[:LONGEST_MESSAGE]!r} occurs twice")
    return members


@cache
def _validator() -> "Draft202012Validator":
    # The import is local because tables are written more often than read.
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((files(__package__) / "table.schema.json").read_text(encoding="utf-8")))


def _check_schema(document: Any) -> None:
    from jsonschema.exceptions import best_match

    stated = document.get("format") if isinstance(document, dict) else None
    if stated != FORMAT:
        raise TableError("format", f"expected {FORMAT!r}, got {str(stated)[:LONGEST_MESSAGE]!r}")
    error = best_match(_validator().iter_errors(document))
    if error is not None:
        raise TableError("schema", f"{error.json_path}: {error.message[:LONGEST_MESSAGE]}")


def _table_from(document: dict[str, Any]) -> LookupTable:
    """Build the table of a document that fits the schema."""
    lengths = sorted({len(row) for row in document["weights"]})
    if len(lengths) > 1:
        raise TableError("shape", f"rows of weights must have equal lengths, got from {lengths[0]} to {lengths[-1]}")
    stated, provenance, prior = document["certificate"], document["provenance"], document["prior"]
    dual = stated["dual"] and DualCertificate(**{kind: _floats(values) for kind, values in stated["dual"].items()})
    # JSON Schema accepts 2.0 as an integer, which int() converts.
    return LookupTable(
        mechanism=document["mechanism"],
        epsilon=float(document["epsilon"]),
        metric=document["metric"],
        bits_in=int(document["bits_in"]),
        bits_out=int(document["bits_out"]),
        interval=(float(document["interval"][0]), float(document["interval"][1])),
        alphabet=tuple(Fraction(letter) for letter in document["alphabet"]),
        total=int(document["total"]),
        weights=np.array([[int(weight) for weight in row] for row in document["weights"]], dtype=np.int64),
        prior=None if prior is None else _floats(prior),
        certificate=Certificate(**{**stated, "dual": dual}),
        provenance=Provenance(tuple(provenance["versions"].items()), provenance["solver"], int(provenance["seed"]), duration=None),
        adjacency=document["adjacency"],
        trust_model=document["trust_model"],
    )


def _floats(values: list[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
