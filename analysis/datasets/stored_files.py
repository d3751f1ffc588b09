"""Files that a user has downloaded: found, or an error that says where they come from; read no further than is expected."""

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from ...errors import DataError
from ...files import shown_path

# The largest of these data in one piece, EMNIST's training images, have 5.5e8 bytes.
MOST_BYTES = 2**30
PIECE = 2**20


def found_file(folder: Path, names: Sequence[str], source: str) -> Path:
    """Return the first of the names that is a file of the folder; a `DataError` names them, and `source`, where to get them."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{shown_path(folder)}: there is no file {' or '.join(names)}; download it from {source} into this folder")


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return a file's bytes, decompressed if its name ends in .gz; a `DataError` if it is damaged, or they are more than `most`.

    They are read piece by piece: memory grows with what there is, not with what a header says.
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
