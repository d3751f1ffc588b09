"""Files are written completely or not at all, and are read up to a stated size.

Writing also goes through links and into devices.
"""

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quietbits.errors import DataError
from quietbits.files import atomic_file, check_folder, check_output, decode_text, read_limited, read_toml, shown_path, write_atomically

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="devices, FIFOs and descriptors are those of POSIX")


def test_a_symbolic_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    real, link = folder / "real", tmp_path / "link"
    link.symlink_to(real)
    for content in (b"first", b"second"):
        write_atomically(link, content)
        assert (link.is_symlink(), real.read_bytes()) == (True, content)
    assert sorted(tmp_path.rglob("*")) == sorted([folder, real, link])


@posix_only
def test_a_fifo_is_written_into_and_stays(tmp_path: Path) -> None:
    fifo, result = tmp_path / "fifo", list[bytes]()
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: result.append(fifo.read_bytes()))
    reader.start()
    write_atomically(fifo, b"content")
    reader.join(timeout=20)
    assert result == [b"content"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert list(tmp_path.iterdir()) == [fifo]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no such device")
def test_a_full_device_is_named_and_stays_a_device(tmp_path: Path) -> None:
    # The test writes through a link, so that a fault of quietbits cannot destroy the device itself.
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as fault:
        write_atomically(link, b"content")
    assert fault.value.filename == str(link)
    assert link.is_char_device()


@posix_only
def test_a_descriptor_is_written_on_and_its_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as log:
        log.write(b"before ")
        log.flush()
        write_atomically(f"/dev/fd/{log.fileno()}", b"content")
        assert os.fstat(log.fileno()).st_ino == path.stat().st_ino
    assert path.read_bytes() == b"before content"


def test_a_dash_is_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically("-", b"\x00content")
    assert capfdbinary.readouterr().out == b"\x00content"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for refused, kind in ((tmp_path, IsADirectoryError), (tmp_path / "none" / "file", FileNotFoundError)):
        with pytest.raises(kind):
            check_output(refused)
        with pytest.raises(kind):
            write_atomically(refused, b"content")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays_where_writing_fails_and_the_fault_names_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match="nothing was written") as fault, atomic_file(path) as temporary:
        raise OSError(5, "nothing was written", str(temporary))
    assert fault.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_library_that_names_the_temporary_file_names_the_one_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(OSError, match="Permission denied") as fault, atomic_file(path) as temporary:
        raise OSError(errno.EACCES, f"Failed to open local file '{temporary}'")
    assert (fault.value.filename, ".part" in str(fault.value)) == (str(path), False)


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127])
def test_a_name_may_be_as_long_as_the_file_system_allows(name: str, tmp_path: Path) -> None:
    write_atomically(tmp_path / name, b"content")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(OSError, match="File name too long"):
        check_output(tmp_path / f"{name}xx")


WRITE = """
import sys
from pathlib import Path
from quietbits.files import atomic_file

with atomic_file(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    print(temporary, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def writer(tmp_path: Path) -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """Another process that is writing a file, and its temporary file."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITE, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().rstrip())
        process.kill()


@posix_only
def test_what_a_killed_process_left_is_removed_and_what_a_running_one_writes_is_not(
    writer: "tuple[subprocess.Popen[str], Path]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, temporary = writer
    other = tmp_path / ".own.0badcafe.part"
    other.touch()
    # Each process clears a folder of old temporary files once.
    monkeypatch.setattr("quietbits.files._CLEARED", set())
    write_atomically(tmp_path / "file", b"first")
    assert temporary.read_bytes() == b"half"
    process.kill()
    process.wait()
    monkeypatch.setattr("quietbits.files._CLEARED", set())
    write_atomically(tmp_path / "another", b"second")
    assert sorted(tmp_path.iterdir()) == [other, tmp_path / "another", tmp_path / "file"]


@posix_only
def test_a_file_that_is_taken_for_left_over_before_it_is_locked_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    lock, removed = fcntl.flock, list[Path]()

    def late(file: object, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        lock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomically(tmp_path / "file", b"content")
    assert len(removed) == 1
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"content")]


@pytest.fixture
def no_files(tmp_path: Path) -> Iterator[Path]:
    """Folder that takes no files: read-only, or for root a folder of the kernel."""
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    place = closed if not os.access(closed, os.W_OK) else Path("/sys")
    if not place.is_dir():
        pytest.skip("root may write everywhere here")
    yield place
    closed.chmod(0o755)


def test_a_folder_that_takes_no_files_is_found_out_by_trying(no_files: Path) -> None:
    for check in (check_output, lambda path: write_atomically(path, b"content")):
        with pytest.raises(PermissionError) as fault:
            check(no_files / "file")
        assert fault.value.filename == str(no_files / "file")
    with pytest.raises(PermissionError) as fault:
        check_folder(no_files / "new" / "folder")
    assert fault.value.filename == str(no_files)


def test_trying_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    check_output(tmp_path / "file")
    check_output(tmp_path / "new")
    check_folder(tmp_path / "new" / "folder")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"before")]


def test_a_file_is_read_up_to_the_size_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert len(read_limited(path, 1000)) == 1000
    with pytest.raises(DataError, match=r"more than the 0\.000999 megabytes that are allowed"):
        read_limited(path, 999)


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there is no such device")
def test_reading_ends_where_a_file_does_not() -> None:
    with pytest.raises(DataError, match="more than the 1 megabytes"):
        read_limited("/dev/zero", 10**6)


def test_a_byte_order_mark_is_no_part_of_a_toml_document(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_bytes(b"\xef\xbb\xbfepsilon = 1\n")
    assert read_toml(path, dict) == {"epsilon": 1}
    for content, message in (
        ("epsilon = 1\n".encode("utf-16"), "the file is UTF-16 or UTF-32: save it in UTF-8"),
        (b"epsilon = 1\n# caf\xe9\n", "line 2 is not UTF-8 text: save the file in UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"^{path}: {message}"):
            read_toml(path, dict)
    assert decode_text(b"\xef\xbb\xbfa") == "a"


def test_a_name_that_is_not_utf8_is_shown_with_escapes() -> None:
    path = Path(os.fsdecode(b"caf\xe9 \xc3\xa9.csv"))
    assert shown_path(path) == "caf\\xe9 \u00e9.csv"
    assert shown_path("plain.csv") == "plain.csv"
