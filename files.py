"""Files: atomic writing, and reading up to a stated size."""

import codecs
import errno
import os
import secrets
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from .arguments import check_integer
from .errors import DataError

if sys.platform != "win32":
    import fcntl

Parsed = TypeVar("Parsed")

# This name of an output stands for standard output.
STANDARD_OUTPUT = Path("-")
MEGABYTE = 10**6
# Byte order marks of 16-bit and 32-bit characters.
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
# Prefixes of paths to open descriptors of this process: a file there may be in use, so it is written into, not replaced.
DESCRIPTORS = ("/dev/std", "/dev/fd/", "/proc/")
# Temporary names: ``.NAME.quietbits-<8 digits>.part``. NAME is cut because file systems allow 255 bytes.
MARK, ENDING, NAME_CHARACTERS = ".quietbits-", ".part", 50
# Folders in which this process has already removed the temporary files of killed processes.
_CLEARED: set[Path] = set()


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name in the same folder, and rename it when it is complete.

    A symbolic link is followed, a device or FIFO is written into, and ``-`` is standard output. If the file cannot be written, an
    ``OSError`` gives the name that was passed, and the previous file at `path` stays.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name for a file, and rename the file if the block ends without an error.

    Temporary files that killed processes left in the folder are removed; those of running processes are locked, and stay.
    """
    _check_place(path)
    target = Path(path)
    if is_stream(target):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "content"
            yield temporary
            with _named(path, temporary):
                _write_into(target, temporary.read_bytes())
        return
    # The file behind a symbolic link is replaced, and not the link.
    target = Path(os.path.realpath(target))
    _remove_left_over(target.parent)
    with _begun(target, path) as (temporary, file), _named(path, temporary):
        yield temporary
        os.fsync(file.fileno())
        if sys.platform == "win32":
            file.close()
        temporary.replace(target)


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` if a file cannot be written at a path.

    The path may be a folder, or its folder may be missing or read-only.
    """
    _check_place(path)
    target = Path(path)
    if is_stream(target):
        if target != STANDARD_OUTPUT and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    with _begun(Path(os.path.realpath(target)), path):
        pass


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` if a folder neither exists nor can be made.

    The path may be a file or below one, or its parent may be read-only.
    """
    target = Path(path).absolute()
    there = next(place for place in (target, *target.parents) if place.exists())
    name = str(path) if there == target else str(there)
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "this is a file: name a folder", name)
    with _begun(there / "folder", name):
        pass


def is_stream(path: Path) -> bool:
    """Return whether an output is written into and never replaced.

    Such outputs are standard output, devices, FIFOs and other descriptors.
    """
    if path == STANDARD_OUTPUT or str(path).startswith(DESCRIPTORS):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def read_limited(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return a file's content; a ``DataError`` refuses a file that exceeds the limit."""
    most = check_integer("most_bytes", most_bytes, low=1, high=2**62)
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DataError(f"{shown_path(path)}: the file has more than the {most / MEGABYTE:g} megabytes that are allowed")
    return content


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a file's name as printable text: escapes replace bytes that are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def check_encoding_mark(path: str | os.PathLike[str], file: IO[bytes]) -> None:
    """Move a newly opened file past a UTF-8 byte order mark.

    A ``DataError`` refuses UTF-16 and UTF-32.
    """
    beginning = file.read(len(codecs.BOM_UTF32_LE))
    if beginning.startswith(WIDE_MARKS):
        raise DataError(f"{shown_path(path)}: the file is UTF-16 or UTF-32: save it in UTF-8")
    file.seek(len(codecs.BOM_UTF8) if beginning.startswith(codecs.BOM_UTF8) else 0)


def decode_text(content: bytes) -> str:
    """Return UTF-8 text without its byte order mark.

    A ``ValueError`` names the first line that is not UTF-8.
    """
    if content.startswith(WIDE_MARKS):
        raise ValueError("the file is UTF-16 or UTF-32: save it in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8 text: save the file in UTF-8") from None


def read_toml(path: str | os.PathLike[str], parse: Callable[[dict[str, Any]], Parsed], most_bytes: int = MEGABYTE) -> Parsed:
    """Parse a TOML file and return the result of `parse`.

    A ``DataError`` names the file and the fault that TOML or `parse` reports.
    """
    content = read_limited(path, most_bytes)
    try:
        return parse(tomllib.loads(decode_text(content)))
    except RecursionError:
        raise DataError(f"{shown_path(path)}: the file nests too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{shown_path(path)}: the file is not TOML: {error}") from error
    except ValueError as error:
        # A UnicodeDecodeError is a ValueError, too.
        raise DataError(f"{shown_path(path)}: {error}") from error


def check_size(path: Path, most_bytes: int) -> None:
    """Raise ``DataError`` if a file that is read in parts exceeds the size limit."""
    size, most = path.stat().st_size, check_integer("most_bytes", most_bytes, low=1, high=2**62)
    if size > most:
        raise DataError(f"{shown_path(path)}: the file has {size / MEGABYTE:g} megabytes, {most / MEGABYTE:g} are allowed")


def _check_place(path: str | os.PathLike[str]) -> None:
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder: name a file", str(path))
    if not is_stream(target) and not Path(os.path.realpath(target)).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))


@contextmanager
def _begun(target: Path, name: str | os.PathLike[str]) -> Iterator[tuple[Path, IO[bytes]]]:
    """Create a temporary file beside a target, locked until it is renamed or removed.

    Errors give the file the name that was passed. Only an attempt shows whether a folder accepts files: its permissions say nothing about a
    read-only file system, nor do they bind root.
    """
    temporary = target.with_name(f".{target.name[:NAME_CHARACTERS]}{MARK}{secrets.token_hex(4)}{ENDING}")
    with _named(name, temporary):
        file = temporary.open("xb+")
    try:
        if sys.platform != "win32":
            # A file system without locks keeps left-over files instead.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            # Another process took the file for a left-over file, in the moment before it was locked.
            if os.fstat(file.fileno()).st_nlink == 0:
                with _begun(target, name) as again:
                    yield again
                return
        yield temporary, file
    finally:
        file.close()
        with suppress(OSError):
            temporary.unlink()


def _remove_left_over(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder, once per process."""
    if sys.platform == "win32" or folder in _CLEARED:
        return
    _CLEARED.add(folder)
    for temporary in folder.glob(f".*{MARK}*{ENDING}"):
        # Another process's lock raises an error, as do files of other users.
        with suppress(OSError), temporary.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()


def _write_into(target: Path, content: bytes) -> None:
    if target == STANDARD_OUTPUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    # Append, because another program may have written to the descriptor's file already.
    descriptor = os.open(target, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@contextmanager
def _named(path: str | os.PathLike[str], temporary: Path) -> Iterator[None]:
    """Name the requested file in an ``OSError``, instead of the temporary file or none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename in (None, str(temporary)) and error.errno is not None:
            # Some libraries write the file's name into the message.
            fault = os.strerror(error.errno) if temporary.name in str(error.strerror) else error.strerror
            raise OSError(error.errno, fault, str(path)) from error
        raise
