"""Proofs for a number of letters that come with the package, because a search for them takes minutes.

A proof is about all tables of a task, so that every new design of the task gets it. The command
``python -m quietbits.design.tables.stored_proofs FILE`` stores the proof of a table that `quietbits certify` has written.
"""

import gzip
import json
import sys
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path

from .certificate import with_letters_proof
from .lookup_table import LettersProof, LookupTable

FOLDER = "proofs"
# Significant digits of stored prices: fewer make files smaller, and any prices are allowed in a proof.
DIGITS = 8


def stored_proof(epsilon: float, bits_in: int, bits_out: int) -> LettersProof | None:
    """Return the stored proof for local privacy and the mean variance, or None if there is none."""
    file = files(__package__) / FOLDER / _name(epsilon, bits_in, bits_out)
    if not file.is_file():
        return None
    return LettersProof.from_document(json.loads(gzip.decompress(file.read_bytes())))


def store_proof(table: LookupTable, folder: Path) -> Path:
    """Write the proof of a table for local privacy and the mean variance, with rounded prices, and return the file.

    Raises
    ------
    ValueError
        If the table has no proof, is another task's, or the rounded proof does not prove its target.
    """
    proof = table.certificate.letters_proof
    if proof is None or table.metric is not None or table.certificate.objective != "mean":
        raise ValueError(f"table must be one of local privacy and the mean variance with a letters_proof, got {table.summary}")
    rounded = replace(proof, normalisation=_rounded(proof.normalisation), unbiasedness=_rounded(proof.unbiasedness))
    with_letters_proof(table, rounded)
    path = folder / _name(table.epsilon, table.bits_in, table.bits_out)
    path.write_bytes(gzip.compress(json.dumps(asdict(rounded), separators=(",", ":")).encode("ascii"), mtime=0))
    return path


def _name(epsilon: float, bits_in: int, bits_out: int) -> str:
    return f"epsilon_{float(epsilon)!r}_bits_{bits_in}_{bits_out}.json.gz"


def _rounded(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{value:.{DIGITS}g}") for value in row) for row in rows)


if __name__ == "__main__":
    from .file import read_table

    print(store_proof(read_table(sys.argv[1]), Path(__file__).parent / FOLDER))
