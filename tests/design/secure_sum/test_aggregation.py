"""Secure sums: exact after any drop-outs, with uniform messages.

Chi-square tests have a false-alarm chance of 1e-6.

Costs of masks agree with the masks that a sum really expands, and with the paper's rule.
"""

import hashlib
import itertools
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import quietbits
from quietbits.design.secure_sum.aggregation import MaskGraph, MaskSource, SecureSum, mask_cost, rate_at_equal_cost
from quietbits.design.secure_sum.modular_arithmetic import (
    LARGEST_MODULUS,
    centred_representatives,
    modular_add,
    modular_subtract,
    modular_sum,
    residues,
    summed_messages,
)
from quietbits.errors import InfeasibleError

FALSE_ALARM = 1e-6
MODULI = [2, 3, 10, 2**16, 2**31 - 1, 2**61 - 1, 2**62 - 57, 2**62]


def uniform_values(rng: np.random.Generator, clients: int, length: int, modulus: int) -> np.ndarray:
    return rng.integers(modulus, size=(clients, length), dtype=np.uint64)


def assert_uniform(cells: np.ndarray, count: int) -> None:
    counts = np.bincount(cells.ravel(), minlength=count)
    assert len(counts) == count
    assert scipy.stats.chisquare(counts).pvalue > FALSE_ALARM


@given(st.sampled_from(MODULI), st.data())
@settings(max_examples=200, deadline=None)
def test_residues_are_those_of_python(modulus: int, data: st.DataObject) -> None:
    word = st.integers(-(2**63), 2**63 - 1)
    left, right = data.draw(word), data.draw(word)
    residue = residues([left, right], modulus)
    assert residue.tolist() == [left % modulus, right % modulus]
    assert modular_add(residue[:1], residue[1:], modulus).tolist() == [(left + right) % modulus]
    assert modular_subtract(residue[:1], residue[1:], modulus).tolist() == [(left - right) % modulus]
    representatives = centred_representatives(residue, modulus)
    np.testing.assert_array_equal(residues(representatives, modulus), residue)
    assert -(modulus // 2) <= representatives.min()
    assert representatives.max() <= (modulus - 1) // 2


def test_unsigned_words_are_reduced_without_a_sign() -> None:
    assert residues(np.array([2**64 - 1], dtype=np.uint64), 10).tolist() == [5]
    assert residues(np.array([-3], dtype=np.int8), 2**62).tolist() == [2**62 - 3]


@pytest.mark.parametrize("modulus", MODULI)
def test_modular_sums_are_those_of_python_integers(modulus: int) -> None:
    values = uniform_values(np.random.default_rng(1), 23, 5, modulus)
    # All values at the largest residue overflow words of 64 bits first.
    for array in (values, np.full((23, 5), modulus - 1, dtype=np.uint64)):
        expected = [sum(column) % modulus for column in array.T.tolist()]
        assert modular_sum(array, modulus).tolist() == expected
        parts = [modular_sum(part, modulus) for part in np.array_split(array, 4)]
        assert modular_sum(parts, modulus).tolist() == expected
    assert modular_sum(np.zeros((0, 3), dtype=int), modulus).tolist() == [0, 0, 0]


@pytest.mark.parametrize("modulus", [2, 10, 2**61 - 1, 2**62])
@pytest.mark.parametrize(("clients", "neighbours"), [(2, None), (9, None), (10, 3), (20, 6), (21, 4)])
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_the_total_is_the_modular_sum(modulus: int, clients: int, neighbours: int | None, chunk: int) -> None:
    rng = np.random.default_rng(clients)
    values = uniform_values(rng, clients, 4, modulus)
    chunks = [values[start : start + chunk] for start in range(0, clients, chunk)]
    total = SecureSum(clients, 4, modulus, neighbours).total(chunks, rng)
    np.testing.assert_array_equal(total, modular_sum(values, modulus))


@pytest.mark.parametrize(("neighbours", "threshold"), [(None, None), (4, None), (4, 1), (11, 3)])
def test_every_set_of_drop_outs_is_recovered_or_refused(neighbours: int | None, threshold: int | None) -> None:
    clients, modulus = 12, 2**62 - 57
    rng = np.random.default_rng(5)
    values = uniform_values(rng, clients, 3, modulus)
    secure_sum = SecureSum(clients, 3, modulus, neighbours, threshold)
    recovered = 0
    for count in (1, 2, 5, 6):
        for dropped in itertools.islice(itertools.combinations(range(clients), count), 0, None, 101):
            kept = np.setdiff1d(np.arange(clients), dropped)
            try:
                total = secure_sum.total([values[:5], values[5:]], rng, dropped)
            except InfeasibleError:
                # A client loses too many neighbours, or the graph falls apart, only if at least this many clients drop out.
                assert count > secure_sum.degree - secure_sum.shares_needed
                continue
            recovered += 1
            np.testing.assert_array_equal(total, modular_sum(values[kept], modulus))
    assert recovered > (0 if (neighbours, threshold) == (4, None) else 5)


def test_drop_outs_spoil_the_sum_that_is_not_unmasked() -> None:
    rng = np.random.default_rng(6)
    values = uniform_values(rng, 5, 2, 1000)
    messages = SecureSum(5, 2, 1000).session(rng).mask(0, values)
    assert modular_sum(messages[1:], 1000).tolist() != modular_sum(values[1:], 1000).tolist()
    # Pair masks alone cancel when all clients stay; self masks do not.
    assert modular_sum(messages, 1000).tolist() != modular_sum(values, 1000).tolist()


def test_memory_is_that_of_a_chunk() -> None:
    clients, length, chunk = 200, 2000, 4
    size = chunk * length * 8
    chunks = (np.ones((chunk, length), dtype=np.uint64) for _ in range(clients // chunk))
    secure_sum = SecureSum(clients, length, 2**40, neighbours=4, threshold=2)
    tracemalloc.start()
    total = secure_sum.total(chunks, np.random.default_rng(0), dropped=[3])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(total.tolist()) == {clients - 1}
    # All vectors together are 50 chunks.
    assert peak < 8 * size


@pytest.mark.parametrize("values", [[0, 0, 0], [4, 1, 2]])
def test_each_message_is_uniform_whatever_the_values(values: list[int]) -> None:
    rng = np.random.default_rng(7)
    secure_sum = SecureSum(3, 40, 5)
    vectors = np.repeat(np.array(values)[:, None], 40, axis=1)
    messages = np.array([secure_sum.session(rng).mask(0, vectors) for _ in range(150)])
    for client in range(3):
        assert_uniform(messages[:, client].astype(int), 5)
    # All three messages together are uniform, too: self masks are independent.
    assert_uniform(messages.transpose(1, 0, 2).reshape(3, -1).T.astype(int) @ [25, 5, 1], 125)


@pytest.mark.parametrize("values", [[0, 0, 0], [2, 2, 2], [1, 2, 0]])
def test_after_unmasking_the_server_learns_the_sum_and_nothing_else(values: list[int]) -> None:
    """Given survivors' self masks, messages of 3 clients are uniform on triples with their sum."""
    rng = np.random.default_rng(8)
    vectors = np.repeat(np.array(values)[:, None], 40, axis=1)
    seen = []
    for _ in range(100):
        session = SecureSum(3, 40, 3).session(rng)
        messages = session.mask(0, vectors)
        seen.append([modular_subtract(messages[client], session.masks.self_mask(client), 3) for client in range(3)])
    view = np.array(seen).transpose(1, 0, 2).reshape(3, -1).astype(int)
    assert set(view.sum(axis=0) % 3) == {0}
    assert_uniform(view[:2].T @ [3, 1], 9)


@pytest.mark.parametrize("values", [[0, 0, 0], [1, 2, 2]])
def test_a_message_that_comes_late_stays_masked(values: list[int]) -> None:
    """After unmasking without client 2, its late message is still masked."""
    rng = np.random.default_rng(9)
    vectors = np.repeat(np.array(values)[:, None], 40, axis=1)
    late, others = [], []
    for _ in range(100):
        session = SecureSum(3, 40, 3, threshold=1).session(rng)
        messages = session.mask(0, vectors)
        for client in range(2):
            # The client with the higher number subtracts the pair mask, and the client with the lower number adds it.
            pair = session.masks.pair_mask(client, 2)
            messages[2] = modular_add(messages[2], pair, 3)
            messages[client] = modular_subtract(messages[client], pair, 3)
            messages[client] = modular_subtract(messages[client], session.masks.self_mask(client), 3)
        late.append(messages[2])
        others.append(messages[0])
        np.testing.assert_array_equal(modular_add(messages[0], messages[1], 3), np.full(40, (values[0] + values[1]) % 3))
    assert_uniform(np.array(late).astype(int) * 3 + np.array(others).astype(int), 9)


def test_a_mask_has_a_seed_of_128_bits_of_its_key_its_purpose_and_both_clients() -> None:
    key = bytes(range(32))
    for purpose, clients, mask in ((b"pair", (3, 2**40), "pair_mask"), (b"self", (7, 7), "self_mask")):
        numbers = np.array(clients, dtype="<u8").tobytes()
        low, high = np.frombuffer(hashlib.blake2b(numbers, digest_size=16, key=key, person=purpose).digest(), dtype="<u8")
        expected = np.random.Generator(np.random.Philox(key=np.array([low, high]))).integers(2**62, size=5, dtype=np.uint64)
        masks = MaskSource(key, 5, 2**62)
        np.testing.assert_array_equal(getattr(masks, mask)(*clients[: 1 if mask == "self_mask" else 2]), expected)


@pytest.mark.parametrize("modulus", [6, 2**62])
def test_masks_are_uniform_symmetric_and_differ(modulus: int) -> None:
    masks = MaskSource(bytes(range(32)), 6000, modulus)
    cells = (masks.pair_mask(3, 8).astype(float) / modulus * 6).astype(int)
    assert_uniform(cells, 6)
    np.testing.assert_array_equal(masks.pair_mask(3, 8), masks.pair_mask(8, 3))
    every = [
        masks.pair_mask(3, 8),
        masks.pair_mask(3, 9),
        masks.pair_mask(2, 8),
        masks.self_mask(3),
        masks.self_mask(8),
        masks.pair_mask(3, 3),
    ]
    every.append(MaskSource(bytes(32), 6000, modulus).pair_mask(3, 8))
    for left, right in itertools.combinations(every, 2):
        # Independent uniform masks agree in 1 of 6 places, 1000 of 6000, with a standard deviation of 29; the margin is 5 sigma.
        assert np.count_nonzero(left == right) < 1000 + 5 * 29


@pytest.mark.parametrize(("clients", "neighbours"), [(2, 1), (3, 2), (8, 3), (8, 7), (9, 4), (9, 8), (50, 6)])
def test_graphs_are_regular_mutual_and_connected(clients: int, neighbours: int) -> None:
    graph = MaskGraph(np.random.default_rng(clients).permutation(clients), neighbours)
    adjacency = np.zeros((clients, clients), dtype=int)
    for client in range(clients):
        adjacency[client, graph.neighbours_of(client)] = 1
    np.testing.assert_array_equal(adjacency.sum(axis=1), neighbours)
    np.testing.assert_array_equal(adjacency, adjacency.T)
    assert np.trace(adjacency) == 0
    assert (np.linalg.matrix_power(adjacency + np.eye(clients, dtype=int), min(clients, 12)) > 0).all()
    first, second = graph.edges()
    listed = np.zeros((clients, clients), dtype=int)
    np.add.at(listed, (first, second), 1)
    np.testing.assert_array_equal(listed + listed.T, adjacency)


def test_wrap_around_is_silent_and_by_whole_moduli() -> None:
    values = np.array([[60, -60], [60, -10]])
    modulus = 128
    total = SecureSum(2, 2, modulus).total([residues(values, modulus)], np.random.default_rng(0))
    np.testing.assert_array_equal(centred_representatives(total, modulus), [120 - 128, -70 + 128])
    wide = SecureSum(2, 2, 256).total([residues(values, 256)], np.random.default_rng(0))
    np.testing.assert_array_equal(centred_representatives(wide, 256), [120, -70])


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "explanations" / "secure-sum.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    assert "dropped=[3, 14]" in example
    exec(example, {})  # noqa: S102 - the example is the project's own


def test_bits_are_those_of_the_modulus() -> None:
    assert SecureSum(4, 10, 2**16).bits_per_client == 160
    assert SecureSum(4, 10, 3).bits_per_client == pytest.approx(15.849625007211561)


def test_too_few_survivors_are_refused() -> None:
    secure_sum = SecureSum(10, 2, 7)
    values = np.zeros((10, 2), dtype=int)
    with pytest.raises(
        InfeasibleError, match=r"5 of 10 clients remain: client 5 has 4 of its 9 neighbours left, fewer than the threshold 5"
    ):
        secure_sum.total([values], np.random.default_rng(0), dropped=range(5))
    with pytest.raises(InfeasibleError, match="0 of 10 clients remain"):
        secure_sum.total([values], np.random.default_rng(0), dropped=range(10))
    # The sum of a single remaining client would reveal its value.
    with pytest.raises(InfeasibleError, match="1 of 10 clients remain"):
        SecureSum(10, 2, 7, threshold=1).total([values], np.random.default_rng(0), dropped=range(9))


def test_survivors_in_groups_that_share_no_masks_are_refused() -> None:
    rng = np.random.default_rng(0)
    session = SecureSum(8, 1, 7, neighbours=2, threshold=1).session(rng)
    ring, values = session.graph.order, rng.integers(7, size=(8, 1))
    messages = session.mask(0, values)
    first = np.delete(ring, [0, 4])
    session.receive(first, messages[first])
    with pytest.raises(InfeasibleError, match="the 6 clients that remain fall apart into 2 groups"):
        session.unmask()
    # The refusal revealed nothing, and a late message still counts.
    session.receive(ring[[0]], messages[ring[[0]]])
    kept = np.delete(ring, 4)
    np.testing.assert_array_equal(session.unmask(), modular_sum(values[kept], 7))


def test_neighbours_that_are_missing_together_leave_one_group() -> None:
    rng = np.random.default_rng(0)
    session = SecureSum(8, 1, 7, neighbours=2, threshold=1).session(rng)
    values, kept = rng.integers(7, size=(8, 1)), np.delete(session.graph.order, [3, 4, 5])
    # The session between these two sessions has left no masks behind.
    session.receive(kept, session.mask(0, values)[kept])
    np.testing.assert_array_equal(session.unmask(), modular_sum(values[kept], 7))


def test_a_session_unmasks_once() -> None:
    # With another set of survivors, the difference of the sums would be one client's vector.
    session = SecureSum(6, 2, 1000, threshold=2).session(np.random.default_rng(1))
    values = np.arange(12).reshape(6, 2)
    messages = session.mask(0, values)
    session.receive(range(5), messages[:5])
    assert session.unmask().tolist() == values[:5].sum(axis=0).tolist()
    for call in (session.unmask, lambda: session.receive([5], messages[5:])):
        with pytest.raises(ValueError, match="unmask must be called once, at the end of a session"):
            call()


@pytest.mark.parametrize(
    ("senders", "message"),
    [
        ([0, 1, 1], "senders must each send one message, got another one of client 1"),
        ([0, 1, 3], "senders must each send one message, got another one of client 3"),
        ([0, 1], "senders must be 3 whole numbers, one for each message"),
        ([0, 1, 6], "senders must be a whole number from 0 to 5, got 6"),
        ([0, 1, -1], "senders must be a whole number from 0 to 5, got -1"),
        ([0.0, 1.0, 2.0], "senders must be 3 whole numbers, one for each message"),
    ],
)
def test_what_a_server_can_detect_is_refused_and_spoils_nothing(senders: list[float], message: str) -> None:
    session = SecureSum(6, 2, 1000).session(np.random.default_rng(1))
    values = np.arange(12).reshape(6, 2)
    messages = session.mask(0, values)
    session.receive([3], messages[[3]])
    with pytest.raises(ValueError, match=message):
        session.receive(senders, messages[:3])
    with pytest.raises(ValueError, match="messages must be from 0 to 999, got 1000"):
        session.receive([0], [[1000, 0]])
    rest = [0, 1, 2, 4, 5]
    session.receive(rest, messages[rest])
    assert session.unmask().tolist() == values.sum(axis=0).tolist()


def test_masks_do_not_serve_twice() -> None:
    session = SecureSum(6, 2, 1000).session(np.random.default_rng(1))
    session.mask(0, np.zeros((3, 2), dtype=int))
    with pytest.raises(ValueError, match="each client masks once, got client 2 again"):
        session.mask(2, np.zeros((2, 2), dtype=int))
    assert session.mask(3, np.zeros((3, 2), dtype=int)).shape == (3, 2)


VALUES = np.zeros((3, 2), dtype=int)
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "one client": (lambda: SecureSum(1, 2, 7), "clients must be a whole number from 2"),
    "no length": (lambda: SecureSum(3, 0, 7), "length must be a whole number from 1"),
    "modulus too small": (lambda: SecureSum(3, 2, 1), "modulus must be a whole number from 2 to 4611686018427387904, got 1"),
    "modulus too large": (lambda: SecureSum(3, 2, LARGEST_MODULUS + 1), "modulus must be a whole number"),
    "too many neighbours": (lambda: SecureSum(3, 2, 7, neighbours=3), "neighbours must be a whole number from 2 to 2, got 3"),
    "one neighbour": (lambda: SecureSum(6, 2, 7, neighbours=1), "neighbours must be a whole number from 2 to 5, got 1"),
    "odd": (lambda: SecureSum(7, 2, 7, neighbours=3), "neighbours must be even for 7 clients, an odd number, got 3"),
    "threshold": (lambda: SecureSum(6, 2, 7, 3, threshold=4), "threshold must be a whole number from 1 to 3, got 4"),
    "value too large": (lambda: run([[[0, 0], [7, 1], [9, 2]]]), r"values must be from 0 to 6, got 7 \(2 such values\)"),
    "value below zero": (lambda: run([[[0, 0], [-1, 1], [5, 2]]]), r"values must be from 0 to 6, got -1 \(1 such values\)"),
    "fractions": (lambda: run([VALUES + 0.5]), "values must be whole numbers of at most 64 bits, got an array of float64"),
    "shape": (lambda: run([VALUES[:, :1]]), r"values must have the shape \(clients, 2\), got \(3, 1\)"),
    "three axes": (lambda: run([VALUES[:, :, None]]), r"values must have the shape \(clients, 2\), got \(3, 2, 1\)"),
    "too few clients": (lambda: run([VALUES[:2]]), "chunks must hold the vectors of 3 clients, got 2"),
    "too many clients": (lambda: run([VALUES, VALUES[:1]]), "first_client must be a whole number from 0 to 2, got 3"),
    "a chunk too long": (lambda: run([np.zeros((4, 2), dtype=int)]), "values must hold the vectors of at most 3 clients, got 4"),
    "dropped": (lambda: SecureSum(3, 2, 7).total([VALUES], np.random.default_rng(0), [3]), "dropped must be a whole number from 0 to 2"),
    "messages": (lambda: session().receive([0], [[7, 0]]), "messages must be from 0 to 6, got 7"),
    "nobody": (lambda: session().unmask(), "0 of 3 clients remain: client 0 has 0 of its 2 neighbours left"),
    "a single number": (lambda: modular_sum(3, 7), "values must have a first axis"),
    "order": (lambda: MaskGraph(np.array([0, 0, 1]), 2), "order must hold each of the numbers 0 to 2 once"),
    "no such client": (lambda: session().graph.neighbours_of(3), "client must be a whole number from 0 to 2, got 3"),
    "key": (lambda: MaskSource(b"short", 2, 7), "key must have 32 bytes, got 5"),
}


def session() -> object:
    return SecureSum(3, 2, 7).session(np.random.default_rng(0))


def run(chunks: list[object]) -> np.ndarray:
    return SecureSum(3, 2, 7).total(chunks, np.random.default_rng(0))


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_are_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("place", range(4))
def test_clients_that_are_gone_join_no_groups_whatever_their_numbers(place: int) -> None:
    # The two dropped clients are opposite each other on a ring of eight, and leave two groups of three.
    session = SecureSum(8, 1, 7, neighbours=2, threshold=1).session(np.random.default_rng(0))
    messages = session.mask(0, np.zeros((8, 1), dtype=int))
    remaining = np.delete(session.graph.order, [place, place + 4])
    session.receive(remaining, messages[remaining])
    with pytest.raises(InfeasibleError, match="the 6 clients that remain fall apart into 2 groups"):
        session.unmask()


@pytest.mark.parametrize("first", [0, 2])
def test_the_client_that_would_mask_again_is_named(first: int) -> None:
    session = SecureSum(6, 1, 7).session(np.random.default_rng(0))
    session.mask(3, np.zeros((1, 1), dtype=int))
    with pytest.raises(ValueError, match="got client 3 again"):
        session.mask(first, np.zeros((3 + 1 - first + 1, 1), dtype=int))


@pytest.mark.parametrize("neighbours", [2, 3, 4])
def test_two_pairs_of_survivors_are_one_group_only_if_they_share_masks(neighbours: int) -> None:
    # With an odd number of neighbours, a dropped client has neighbours on both sides of the ring, and no longer joins them.
    secure_sum, values = SecureSum(12, 1, 7, neighbours, threshold=1), np.arange(12)[:, None] % 7
    groups = set()
    for second in range(1, 12):
        session = secure_sum.session(np.random.default_rng(second))
        pair, other = ({int(session.graph.order[(place + step) % 12]) for step in (0, 1)} for place in (0, second))
        kept = sorted(pair | other)
        session.receive(kept, session.mask(0, values)[kept])
        joined = bool(pair & other) or any(not other.isdisjoint(session.graph.neighbours_of(client).tolist()) for client in pair)
        groups.add(joined)
        if joined:
            np.testing.assert_array_equal(session.unmask(), modular_sum(values[kept], 7))
        else:
            with pytest.raises(InfeasibleError, match="the 4 clients that remain fall apart into 2 groups"):
                session.unmask()
    assert groups == {True, False}


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 3), ()])
def test_messages_have_one_row_for_each_client(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 3\)"):
        summed_messages(np.zeros(shape, dtype=np.uint64), 3, 7)


def test_a_missing_client_needs_as_many_neighbours_as_one_that_remains() -> None:
    session = SecureSum(12, 1, 7, neighbours=4, threshold=2).session(np.random.default_rng(0))
    ring, messages = session.graph.order, session.mask(0, np.zeros((12, 1), dtype=int))
    # The five missing clients are neighbours on the ring. The outer two clients have two neighbours left, the next two have one, and the
    # middle client has none.
    session.receive(ring[5:], messages[ring[5:]])
    fewest = min(ring[[1, 3]].tolist())
    with pytest.raises(InfeasibleError, match=f"7 of 12 clients remain: client {fewest} has 1 of its 4 neighbours left"):
        session.unmask()


@pytest.mark.parametrize(("clients", "neighbours", "dropped"), [(12, 4, []), (12, 4, [3]), (9, 8, [0, 5]), (6, 3, [])])
def test_as_many_masks_are_expanded(monkeypatch: pytest.MonkeyPatch, clients: int, neighbours: int, dropped: list[int]) -> None:
    length, expanded = 7, []
    expand = MaskSource._expand

    def counted(self: MaskSource, *arguments: object) -> np.ndarray:
        expanded.append(self.length)
        return expand(self, *arguments)

    monkeypatch.setattr(MaskSource, "_expand", counted)
    secure_sum = SecureSum(clients, length, 2**16, neighbours=neighbours, threshold=1)
    secure_sum.total([np.ones((clients, length), dtype=int)], np.random.default_rng(0), dropped=dropped)
    cost = mask_cost(clients, length, neighbours, len(dropped))
    # Pair masks between two missing clients are in no message, so the server's cost is then a bound.
    assert clients * cost.client <= sum(expanded) <= cost.total
    if len(dropped) < 2:
        assert sum(expanded) == cost.total
    assert cost.total == clients * cost.client + cost.server


def test_the_papers_rule() -> None:
    assert rate_at_equal_cost(1000, 100) == pytest.approx(15.0, rel=1e-12)
    assert rate_at_equal_cost(100, 1000) == pytest.approx(1 / 15, rel=1e-12)
    assert rate_at_equal_cost(50, 50) == 1.0


def test_the_rule_is_that_of_masks_with_log_n_neighbours() -> None:
    # Each client has 4 log2(n) neighbours, and its own mask, which the paper's rule omits.
    costs = []
    for clients in (128, 1024, 8192):
        length = round(2**20 / rate_at_equal_cost(clients, 128))
        costs.append(clients * mask_cost(clients, length, 4 * round(math.log2(clients))).client)
    assert costs == pytest.approx([costs[0]] * 3, rel=0.05)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"clients must be a whole number from 2 .*, got 0"):
        mask_cost(0, 10, 2)
    with pytest.raises(ValueError, match="neighbours must be a whole number from 1 to 9"):
        mask_cost(10, 10, 10)
    with pytest.raises(ValueError, match="neighbours must be even for 9 clients"):
        mask_cost(9, 10, 3)
    with pytest.raises(ValueError, match="dropped must be a whole number from 0 to 10"):
        mask_cost(10, 10, 2, dropped=11)
    with pytest.raises(ValueError, match="reference_clients must be a whole number from 2"):
        rate_at_equal_cost(10, 1)


@pytest.mark.parametrize("neighbours", [2, 4, 10, None])
def test_more_than_half_of_the_neighbours_are_needed_without_a_threshold(neighbours: int | None) -> None:
    # No two disjoint sets of neighbours may recover both secrets of a client.
    secure_sum = SecureSum(12, 1, 7, neighbours)
    assert 2 * secure_sum.shares_needed > secure_sum.degree >= secure_sum.shares_needed
