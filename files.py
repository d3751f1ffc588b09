"""Files that are there whole or not at all."""

import os
import secrets
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name in the same folder, and rename it when it is complete.

    Parameters
    ----------
    path : path
        Where the file is to be; a file that is there is replaced.
    content : bytes
        The whole file.

    Raises
    ------
    OSError
        If the file cannot be written; what was at `path` before is then still there.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
