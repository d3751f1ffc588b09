"""Decoding ten million messages, beside reading their file."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from shared.peak_memory import peak_mebibytes
from shared.processor_time import seconds

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.arrays import WordArray
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.message_files import decode_file, write_messages
from quietbits.design.deployment.wire_format import Bytes, pack_fields
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

MESSAGES, PIECE = 10**7, 2**20


def deployments() -> dict[str, Deployment]:
    """Return deployments whose messages a server decodes in different ways."""
    table = generalised_randomised_response(1.0, 3)
    return {
        "table, 3 bits": Deployment(TableMeanMechanism(table), table.mechanism),
        "items, 10 bits": deploy("hadamard-response", epsilon=1.0, categories=500),
        "items with indices, 1 bit": deploy("recursive-hadamard-response", epsilon=1.0, categories=2**10),
    }


def messages(deployment: Deployment) -> Iterator[tuple[Bytes, WordArray | None]]:
    """Yield random messages; their values do not matter for the speed."""
    rng, program = np.random.default_rng(0), deployment.program
    for start in range(0, MESSAGES, PIECE):
        count = min(PIECE, MESSAGES - start)
        fields = rng.integers(0, 2**program.field_bits, (count, program.fields))
        indices = np.arange(start, start + count, dtype=np.uint64) if deployment.carries_index else None
        yield pack_fields(fields, program.field_bits), indices


def read_records(path: Path) -> None:
    """Read a file of records, and do nothing else."""
    with path.open("rb") as file:
        while file.read(PIECE):
            pass


def read_parquet(path: Path) -> None:
    """Read a parquet file's batches, and do nothing else."""
    for _ in pq.ParquetFile(path).iter_batches(PIECE):
        pass


READERS: dict[str, Callable[[Path], None]] = {"m.qbm": read_records, "m.parquet": read_parquet}


def main() -> None:
    """Print nanoseconds per message, the share of the speed of reading the file from the system's cache, and the memory."""
    with tempfile.TemporaryDirectory() as folder:
        for name, deployment in deployments().items():
            for file, read in READERS.items():
                path = Path(folder) / file
                write_messages(deployment, path, messages(deployment))
                reading = seconds(lambda path=path, read=read: read(path))
                decoding = seconds(lambda path=path, deployment=deployment: decode_file(deployment.decoder(), path))
                print(
                    f"{name + ', ' + path.suffix:<40} {1e9 * decoding / MESSAGES:8.2f} ns a message, "
                    f"{reading / decoding:.2f} x the speed of reading"
                )
    print(f"largest memory {peak_mebibytes():.0f} MiB")


if __name__ == "__main__":
    main()
