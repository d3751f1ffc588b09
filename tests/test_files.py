"""Files are written whole or not at all, through links and into devices, and are read up to a stated size."""

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from quietbits.errors import DataError
from quietbits.files import atomic_file, check_output, decode_text, read_limited, read_toml, shown_path, write_atomically

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
    fifo, found = tmp_path / "fifo", list[bytes]()
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    write_atomically(fifo, b"content")
    reader.join(timeout=20)
    assert found == [b"content"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert list(tmp_path.iterdir()) == [fifo]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no such device")
def test_a_full_device_is_named_and_stays_a_device(tmp_path: Path) -> None:
    # By a link, so that a fault of ours could not destroy the device itself.
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
