"""The file format ``quietbits-table/2``: JSON with a schema and a checksum.

Only tables that verify are written, and files that were changed are refused. Files of ``quietbits-table/1`` are still read: their weights
are numbers, not strings, and they have no bound for a number of letters.
"""

import dataclasses
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
from .lookup_table import Certificate, DualCertificate, LettersProof, LookupTable
from .provenance import Provenance
from .verification import LARGEST_TOTAL_BITS, verify_table

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FORMAT, FIRST_FORMAT = "quietbits-table/2", "quietbits-table/1"
SCHEMAS = {FORMAT: "table.schema.json", FIRST_FORMAT: "table-1.schema.json"}
LETTERS_KEYS = ("letters_lower_bound", "letters_gap", "letters_proof")
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
    return read_table_and_format(path, most_bytes)[0]


def read_table_and_format(path: str | os.PathLike[str], most_bytes: int = MOST_BYTES) -> tuple[LookupTable, str]:
    """Return a verified table, as `read_table` does, and the format of its file."""
    try:
        return _verified(path, most_bytes)
    except TableError as error:
        # The error quotes text that an attacker may have chosen, so the text is shortened.
        raise TableError(error.check, textwrap.shorten(error.detail, LONGEST_DETAIL, placeholder=" ..."), shown_path(path)) from None


def _verified(path: str | os.PathLike[str], most_bytes: int) -> tuple[LookupTable, str]:
    try:
        content = read_limited(path, most_bytes)
    except DataError as error:
        raise TableError("size", str(error).removeprefix(f"{shown_path(path)}: ")) from None
    document = _parsed(content)
    stated_format = _check_schema(document)
    computed, stated = checksum(document), document["sha256"]
    if computed != stated:
        raise TableError("checksum", f"the file was changed: its contents have sha256 {computed}, it states {stated}")
    table = _table_from(document)
    verify_table(table)
    return (table if stated_format == FORMAT else with_letters_bound(table)), stated_format


def verify_file(path: str | os.PathLike[str]) -> Certificate:
    """Return the certificate of the table in a file, verified from the file alone.

    Raises `TableError` as `read_table` does.
    """
    return read_table(path).certificate


def table_document(table: LookupTable, table_format: str = FORMAT) -> dict[str, Any]:
    """Return a table's document in a format, checksum included, with the schema's keys, ready for JSON.

    The document omits the duration of the design, so that the same table has the same file.
    """
    certificate, provenance = table.certificate, table.provenance
    dual = certificate.dual
    document: dict[str, Any] = {
        "format": table_format,
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
            "letters_lower_bound": certificate.letters_lower_bound,
            "letters_gap": certificate.letters_gap,
            "letters_proof": certificate.letters_proof and dataclasses.asdict(certificate.letters_proof),
        },
        "alphabet": [f"{letter.numerator}/{letter.denominator}" for letter in table.alphabet],
        "total": table.total,
        "weights": [[str(weight) for weight in row] for row in table.weights.tolist()],
        "prior": None if table.prior is None else [float(weight) for weight in table.prior],
        "provenance": {
            "versions": dict(provenance.versions),
            "solver": provenance.solver,
            "seed": int(provenance.seed),
        },
    }
    if table_format == FIRST_FORMAT:
        document["weights"] = table.weights.tolist()
        for key in LETTERS_KEYS:
            del document["certificate"][key]
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
def _validator(schema: str) -> "Draft202012Validator":
    # The import is here because tables are written more often than read.
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((files(__package__) / schema).read_text(encoding="utf-8")))


def _check_schema(document: Any) -> str:
    """Compare a document with the schema of the format that it states, and return the format."""
    from jsonschema.exceptions import best_match

    stated = document.get("format") if isinstance(document, dict) else None
    if not isinstance(stated, str) or stated not in SCHEMAS:
        raise TableError("format", f"expected {' or '.join(map(repr, SCHEMAS))}, got {str(stated)[:LONGEST_MESSAGE]!r}")
    error = best_match(_validator(SCHEMAS[stated]).iter_errors(document))
    if error is not None:
        raise TableError("schema", f"{error.json_path}: {error.message[:LONGEST_MESSAGE]}")
    return stated


def _table_from(document: dict[str, Any]) -> LookupTable:
    """Build the table of a document that fits the schema."""
    lengths = sorted({len(row) for row in document["weights"]})
    if len(lengths) > 1:
        raise TableError("shape", f"rows of weights must have equal lengths, got from {lengths[0]} to {lengths[-1]}")
    # Weights are strings, in the first format numbers; JSON Schema accepts 2.0 as an integer: int() makes it an int.
    weights = [[int(weight) for weight in row] for row in document["weights"]]
    heaviest = max(map(max, weights))
    if heaviest > 2**LARGEST_TOTAL_BITS:
        raise TableError("schema", f"weights must be at most 2**{LARGEST_TOTAL_BITS}, got {heaviest}")
    stated, provenance, prior = document["certificate"], document["provenance"], document["prior"]
    proof = stated.get("letters_proof")
    dual = stated["dual"] and DualCertificate(**{kind: _floats(values) for kind, values in stated["dual"].items()})
    return LookupTable(
        mechanism=document["mechanism"],
        epsilon=float(document["epsilon"]),
        metric=document["metric"],
        bits_in=int(document["bits_in"]),
        bits_out=int(document["bits_out"]),
        interval=(float(document["interval"][0]), float(document["interval"][1])),
        alphabet=tuple(Fraction(letter) for letter in document["alphabet"]),
        total=int(document["total"]),
        weights=np.array(weights, dtype=np.int64),
        prior=None if prior is None else _floats(prior),
        certificate=Certificate(**{**stated, "dual": dual, "letters_proof": proof and LettersProof.from_document(proof)}),
        provenance=Provenance(tuple(provenance["versions"].items()), provenance["solver"], int(provenance["seed"]), duration=None),
        adjacency=document["adjacency"],
        trust_model=document["trust_model"],
    )


def _floats(values: list[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
