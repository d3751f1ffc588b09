import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.deployment.seen_clients import SeenClients, identifier_keys


@given(st.lists(st.lists(st.integers(0, 30), max_size=10), max_size=5))
def test_a_key_is_new_once(chunks: list[list[int]]) -> None:
    for seen, keys_of in (
        (SeenClients("u8"), lambda chunk: np.array(chunk, dtype=np.uint64)),
        (SeenClients("S16"), lambda chunk: identifier_keys(chunk)),
    ):
        before: set[int] = set()
        for chunk in chunks:
            expected = []
            for key in chunk:
                expected.append(key not in before)
                before.add(key)
            assert seen.add(keys_of(chunk)).tolist() == expected
        assert len(seen.keys) == len(before)
        assert (np.sort(seen.keys) == seen.keys).all()


def test_keys_with_zeros_at_the_end_differ() -> None:
    keys = np.frombuffer(bytes(15) + b"\1" + bytes(16) + b"\1" + bytes(15), dtype="S16")
    assert SeenClients("S16").add(keys).all()
    assert SeenClients("S16").add(np.concatenate([keys, keys])).tolist() == [True] * 3 + [False] * 3


def test_common_keys() -> None:
    first, second = SeenClients("u8"), SeenClients("u8")
    first.add(np.array([3, 1, 2**64 - 1], dtype=np.uint64))
    second.add(np.array([2**64 - 1, 2, 3], dtype=np.uint64))
    assert first.common(second).tolist() == [3, 2**64 - 1]
