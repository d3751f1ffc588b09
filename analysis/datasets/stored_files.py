"""Reading of downloaded files up to a size limit; errors name sources of missing files."""

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from ...errors import DataError
from ...files import shown_path

# Largest size of a file; the largest published file, EMNIST's training images, has 5.5e8 bytes.
MOST_BYTES = 2**30
PIECE = 2**20


def found_file(folder: Path, names: Sequence[str], source: str) -> Path:
    """Return the first of the named files that a folder contains, or raise `DataError`.

    The error lists the names, and `source`, from which users get the files.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{shown_path(folder)}: there is no file {' or '.join(names)}; download it from {source} into this folder")


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return a file's bytes, decompressed if its name ends in .gz, up to `most` bytes.

    A damaged or larger file raises a `DataError`. The function reads the bytes piece by piece, so that memory grows with the actual data,
    not with a header's claim.
    """
    pieces, length = [], 0
    try:
        with cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
            while piece := file.read(PIECE):
                pieces.append(piece)
                length += len(piece)
                if length > most:
                    raise DataError(f"{shown_path(path)}: has more than the {most} bytes that are allowed")
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{shown_path(path)}: cannot be read: {error}") from error
    return b"".join(pieces)
