import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.deployment import wire_format
from quietbits.design.deployment.wire_format import HEADER_BYTES, Header, pack_fields, unpack_fields
from quietbits.errors import DataError


@st.composite
def messages(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Draw fields of messages, and their number of bits."""
    bits, count, clients = draw(st.integers(1, 62)), draw(st.integers(1, 12)), draw(st.integers(0, 5))
    rows = draw(st.lists(st.lists(st.integers(0, 2**bits - 1), min_size=count, max_size=count), min_size=clients, max_size=clients))
    return np.array(rows, dtype=np.int64).reshape(clients, count), bits


@given(messages())
def test_fields_survive_packing(drawn: tuple[np.ndarray, int]) -> None:
    fields, bits = drawn
    packed = pack_fields(fields, bits)
    unpacked, filled = unpack_fields(packed, bits, fields.shape[1])
    assert (unpacked == fields).all()
    assert filled.all()
    for row, message in zip(fields.tolist(), packed, strict=True):
        # The message is the text of all bits, filled up with zeros.
        text = "".join(f"{field:0{bits}b}" for field in row)
        text += "0" * (-len(text) % 8)
        assert bytes(message) == int(text, 2).to_bytes(len(text) // 8, "big")


@pytest.mark.parametrize(
    ("fields", "bits", "expected"),
    [
        ([0b101], 3, "a0"),
        ([1], 1, "80"),
        ([5, 1, 7], 3, "a780"),
        ([0x123456789ABCDEF], 57, "91a2b3c4d5e6f780"),
        ([255, 0], 8, "ff00"),
        ([1, 0, 1], 1, "a0"),
    ],
)
def test_golden_bytes(fields: list[int], bits: int, expected: str) -> None:
    assert pack_fields(np.array([fields]), bits).tobytes().hex() == expected


def test_every_filling_bit_is_seen() -> None:
    message = pack_fields(np.array([[5]]), 3)
    for bit in range(5):
        changed = message | np.uint8(1 << bit)
        fields, filled = unpack_fields(changed, 3, 1)
        assert (fields.tolist(), filled.tolist()) == ([[5]], [False])


def test_pieces_are_packed_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = np.random.default_rng(0).integers(0, 8, (50, 3))
    whole = pack_fields(fields, 3)
    monkeypatch.setattr(wire_format, "CHUNK_BITS", 60)
    assert (pack_fields(fields, 3) == whole).all()
    assert (unpack_fields(whole, 3, 3)[0] == fields).all()


def test_golden_header() -> None:
    header = Header(bytes(range(8)), 0x01020304)
    assert header.to_bytes().hex() == "51424d01" + "0001020304050607" + "01020304"
    assert Header.from_bytes(header.to_bytes() + b"more") == header


@given(st.binary(min_size=8, max_size=8), st.integers(0, 2**32 - 1))
def test_headers_survive(start: bytes, number: int) -> None:
    assert Header.from_bytes(Header(start, number).to_bytes()) == Header(start, number)


@given(st.binary(max_size=40))
def test_other_bytes_are_no_header(content: bytes) -> None:
    if content[:4] == b"QBM\x01" and len(content) >= HEADER_BYTES:
        return
    with pytest.raises(DataError, match=r"^messages must (begin with|have version)"):
        Header.from_bytes(content)


def test_faults_of_headers() -> None:
    whole = Header(bytes(8), 0).to_bytes()
    for content, message in (
        (whole[:-1], "must begin with a header of 16 bytes, got 15 bytes"),
        (b"PAR1" + whole[4:], "must begin with QBM, got b'PAR': this is no file of messages"),
        (b"QBM\x02" + whole[4:], "must have version 1, got 2: a newer quietbits may read them"),
    ):
        with pytest.raises(DataError, match=message):
            Header.from_bytes(content)
