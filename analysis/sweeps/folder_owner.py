"""The process that uses a sweep's folder, which a lock file names while it lives."""

import json
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl

OWNER_NAME = "in-use.json"


class FolderInUseError(ValueError):
    """Another process uses the folder."""

    def __init__(self, folder: Path, user: str) -> None:
        super().__init__(f"output must be a folder that no other sweep uses, got {folder}, used by {user}")


class FolderOwner:
    """The claim of this process to be the only one that uses a folder.

    Parameters
    ----------
    folder : Path
        The folder.

    Attributes
    ----------
    alone : bool
        Whether other processes are excluded; False on file systems without locks.

    Raises
    ------
    FolderInUseError
        If another running process uses the folder.
    OSError
        If the file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / OWNER_NAME
        self.alone = False
        self._file = self._taken()
        self._file.truncate(0)
        self._file.write(json.dumps({"process": os.getpid(), "host": platform.node()}).encode())
        self._file.flush()

    def leave(self) -> None:
        """Release the folder."""
        # The file must be removed before the lock, since afterwards it may be another process's file.
        self._path.unlink(missing_ok=True)
        self._file.close()

    def name(self) -> str:
        """Return the process named in the file, which is this process if locks have an effect."""
        return _named_in(self._path)

    def _taken(self) -> IO[bytes]:
        while True:
            file = self._path.open("ab+")
            try:
                self.alone = _lock(file)
            except BlockingIOError:
                file.close()
                raise FolderInUseError(self._path.parent, _named_in(self._path)) from None
            with suppress(FileNotFoundError):
                if os.path.samestat(self._path.stat(), os.fstat(file.fileno())):
                    return file
            # The previous process has removed the file meanwhile.
            file.close()


def _lock(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; return False on a file system without locks.

    Raises BlockingIOError if another process holds the lock.
    """
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _named_in(path: Path) -> str:
    try:
        owner = json.loads(path.read_bytes())
        return f"process {owner['process']} on {owner['host']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"
