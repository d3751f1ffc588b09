"""Clients that replay a history have exactly the server's model.

After a loss or damage, clients have the model, too, or detect that they do not.
"""

import hashlib
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.federated.history_package import (
    FullModelPackage,
    HistoryPackage,
    full_model_bytes,
    history_package_bytes,
    read_package,
)
from quietbits.design.federated.model_history import (
    ModelHistory,
    add_round,
    apply_package,
    catch_up_package,
    synchronise,
)
from quietbits.design.federated.model_state import ModelState
from quietbits.design.federated.server_optimiser import FedAdam, ServerOptimiser, ServerSGD
from quietbits.errors import DataError

DIMENSION = 30
MESSAGE_BYTES = 3
OPTIMISERS: list[ServerOptimiser] = [ServerSGD(0.3), ServerSGD(0.3, momentum=0.9), FedAdam(0.03)]


def decode(message: bytes) -> np.ndarray:
    """Return numbers that depend on every bit of the message, as a stand-in for a coder."""
    return np.frombuffer(hashlib.shake_128(message).digest(4 * DIMENSION), dtype="<i4") / 2.0**31


def start(optimiser: ServerOptimiser = OPTIMISERS[0], **options: Any) -> ModelHistory:
    return ModelHistory(optimiser.start(np.linspace(-1, 1, DIMENSION, dtype=np.float32)), MESSAGE_BYTES, **options)


def message(number: int) -> bytes:
    return number.to_bytes(MESSAGE_BYTES, "big")


def after(rounds: int, optimiser: ServerOptimiser = OPTIMISERS[0], **options: Any) -> ModelHistory:
    history = start(optimiser, **options)
    for number in range(rounds):
        history = add_round(history, [message(2 * number), message(2 * number + 1)], decode, optimiser)
    return history


def same(item: ModelState, other: ModelState) -> bool:
    return (item.rounds, item.to_bytes(), len(item.moments)) == (other.rounds, other.to_bytes(), len(other.moments))


# A channel delivers a package whole, loses it, cuts it short, or flips a bit.
FATES = st.one_of(
    st.just(("whole", 0)), st.just(("whole", 0)), st.just(("lost", 0)), st.tuples(st.sampled_from(["cut", "flip"]), st.integers(0, 10**6))
)


class Channel:
    """Channel that damages the packages of one client by a list of fates."""

    def __init__(self, *fates: tuple[str, int]) -> None:
        self.fates = list(fates)
        self.sent: list[bytes] = []

    def __call__(self, content: bytes) -> bytes:
        self.sent.append(content)
        fate, place = self.fates.pop(0) if self.fates else ("whole", 0)
        if fate == "lost":
            return b""
        if fate == "cut":
            return content[: place % len(content)]
        if fate == "flip":
            byte, bit = divmod(place % (8 * len(content)), 8)
            return content[:byte] + bytes([content[byte] ^ (1 << bit)]) + content[byte + 1 :]
        return content


CLIENTS = 4
# Each round has its messages, and for each client its participation and the fates of its first and second package.
ROUNDS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 2 ** (8 * MESSAGE_BYTES) - 1), max_size=5),
        st.lists(st.one_of(st.none(), st.tuples(FATES, FATES)), min_size=CLIENTS, max_size=CLIENTS),
    ),
    max_size=12,
)


@given(rounds=ROUNDS, optimiser=st.sampled_from(OPTIMISERS), public=st.booleans(), retain=st.one_of(st.none(), st.integers(0, 4)))
def test_whatever_happens_a_client_has_the_servers_model_or_keeps_its_own(
    rounds: list[Any], optimiser: ServerOptimiser, public: bool, retain: int | None
) -> None:
    history = start(optimiser, retain=retain)
    clients: list[ModelState | None] = [history.state if public else None] * CLIENTS
    for numbers, fates in rounds:
        for client, fate in enumerate(fates):
            if fate is None:
                continue
            channel, before = Channel(*fate), clients[client]
            kinds = [kind for kind, _ in fate]
            try:
                result = synchronise(history, before, decode, optimiser, channel)
            except DataError:
                # If both packages were damaged, the client keeps its previous state.
                assert "whole" not in kinds
                continue
            assert same(result.state, history.state)
            # A flipped bit is harmless in the message length of a package without messages; the test below flips all bits of packages with
            # messages.
            assert {"whole", "flip"} & {kinds[len(channel.sent) - 1]}
            assert result.resent == (len(channel.sent) == 2)
            assert result.resent == (kinds[0] != "whole") or kinds[0] == "flip"
            assert result.bytes_down == sum(map(len, channel.sent))
            assert result.full_model == isinstance(read_package(channel.sent[-1]), FullModelPackage)
            # No shorter package would suffice.
            whole = full_model_bytes(history.state.state_bytes)
            missed = history.state.rounds - before.rounds if before else None
            if missed is None or missed > len(history.rounds):
                assert len(channel.sent[0]) == whole
            else:
                kept = history.rounds[len(history.rounds) - missed :]
                shorter = history_package_bytes(missed, sum(map(len, kept)), MESSAGE_BYTES)
                assert len(channel.sent[0]) == min(whole, shorter)
            clients[client] = result.state
        history = add_round(history, [message(number) for number in numbers], decode, optimiser)
        assert len(history.rounds) <= (history.state.rounds if retain is None else retain)
    assert history.state.rounds == len(rounds)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["sgd", "momentum", "fedadam"])
@pytest.mark.parametrize("last_round", [0, 3, None], ids=["history", "short history", "model"])
def test_every_flipped_bit_and_every_cut_is_found(optimiser: ServerOptimiser, last_round: int | None) -> None:
    history = after(4, optimiser)
    client = None if last_round is None else after(last_round, optimiser).state
    content = catch_up_package(history, last_round).to_bytes()
    assert same(apply_package(content, client, decode, optimiser), history.state)
    damaged = [content[:length] for length in range(len(content))] + [content + b"\0", content + content]
    damaged += [Channel(("flip", place))(content) for place in range(8 * len(content))]
    for item in damaged:
        with pytest.raises(DataError, match="package: "):
            apply_package(item, client, decode, optimiser)


def test_a_lost_message_in_the_middle_is_found() -> None:
    history = after(4)
    package = catch_up_package(history, 0)
    assert isinstance(package, HistoryPackage)
    others = [replace(package, rounds=package.rounds[:place] + package.rounds[place + 1 :]) for place in range(4)]
    others += [
        replace(package, rounds=(*package.rounds[:place], package.rounds[place][1:], *package.rounds[place + 1 :])) for place in range(4)
    ]
    others.append(replace(package, rounds=package.rounds[::-1]))
    for item in others:
        with pytest.raises(DataError, match=r"package: replayed, the model has the checksum [0-9a-f]{32}, the server's has [0-9a-f]{32}"):
            apply_package(item.to_bytes(), start().state, decode, OPTIMISERS[0])


def test_a_client_whose_own_model_was_damaged_finds_out() -> None:
    history, client = after(4), after(2).state
    numbers = client.parameters.copy()
    numbers[7] += 1e-3
    damaged = ModelState(client.rounds, numbers)
    with pytest.raises(DataError, match="package: replayed, the model has the checksum"):
        apply_package(catch_up_package(history, 2).to_bytes(), damaged, decode, OPTIMISERS[0])
    result = synchronise(history, damaged, decode, OPTIMISERS[0])
    assert (result.resent, result.full_model, same(result.state, history.state)) == (True, True, True)


def test_a_server_may_believe_a_client_to_be_further_behind_than_it_is() -> None:
    history = after(5)
    content = catch_up_package(history, 1).to_bytes()
    for rounds in range(1, 6):
        assert same(apply_package(content, after(rounds).state, decode, OPTIMISERS[0]), history.state)
    for rounds in (0, 6):
        with pytest.raises(DataError, match=f"package: leads from round 1 to 5, the client's model has been through {rounds} rounds"):
            apply_package(content, after(rounds).state, decode, OPTIMISERS[0])


def test_after_a_lost_package_a_client_gets_what_it_has_missed_since_its_own_last_round() -> None:
    history, client = after(2), start().state
    with pytest.raises(DataError, match="package: starts with b''"):
        synchronise(history, client, decode, OPTIMISERS[0], lambda _: b"")
    later = after(4)
    result = synchronise(later, client, decode, OPTIMISERS[0])
    assert same(result.state, later.state)
    assert result.bytes_down == history_package_bytes(4, 8, MESSAGE_BYTES) < full_model_bytes(4 * DIMENSION)


def test_neither_the_order_of_arrival_nor_the_senders_show() -> None:
    rng = np.random.default_rng(4)
    messages = [rng.bytes(MESSAGE_BYTES) for _ in range(20)]
    histories = [add_round(start(), [messages[place] for place in rng.permutation(20)], decode, OPTIMISERS[0]) for _ in range(5)]
    assert len({history.checksum for history in histories}) == 1
    assert len({history.rounds for history in histories}) == 1
    # The order matters, because sums in floating point depend on it.
    totals = [sum(decode(messages[place]) / 3 for place in rng.permutation(20)) for _ in range(20)]
    assert len({total.tobytes() for total in totals}) > 1


def test_the_update_is_the_mean_of_the_decoded_messages() -> None:
    history = after(1)
    expected = start().state.parameters + 0.3 * (decode(message(0)) + decode(message(1))) / 2
    assert history.state.parameters == pytest.approx(expected, rel=1e-6)
    # A repeated message counts twice, and a round without messages leaves the model as it is.
    twice = add_round(start(), [message(1), message(1), message(2)], decode, OPTIMISERS[0])
    assert twice.rounds == ((message(1), message(1), message(2)),)
    none = add_round(history, [], decode, OPTIMISERS[0])
    assert none.state.rounds == 2
    assert none.state.parameters.tobytes() == history.state.parameters.tobytes()


def test_rounds_that_nobody_needs_are_dropped() -> None:
    # A history of n rounds of two messages has 29 + 10 n bytes, the model 31 + 120.
    limit = full_model_bytes(4 * DIMENSION)
    useful = max(rounds for rounds in range(100) if history_package_bytes(rounds, 2 * rounds, MESSAGE_BYTES) < limit)
    assert useful == 12
    history = after(50)
    assert (len(history.rounds), history.first_round) == (useful, 50 - useful)
    assert isinstance(catch_up_package(history, history.first_round), HistoryPackage)
    assert isinstance(catch_up_package(history, history.first_round - 1), FullModelPackage)
    assert len(after(useful).rounds) == useful
    assert [len(after(50, retain=retain).rounds) for retain in (0, 1, useful, useful + 1)] == [0, 1, useful, useful]
    assert isinstance(catch_up_package(after(50, retain=1), 48), FullModelPackage)
    assert isinstance(catch_up_package(after(50, retain=1), 49), HistoryPackage)
    # The optimiser's memory is part of the model, so a history stays shorter for more rounds.
    assert len(after(50, FedAdam(0.03)).rounds) > 2 * useful


def test_a_client_that_is_up_to_date_gets_a_checksum() -> None:
    history = after(3)
    package = catch_up_package(history, 3)
    assert package == HistoryPackage(3, (), MESSAGE_BYTES, history.checksum)
    assert len(package.to_bytes()) == history_package_bytes(0, 0, MESSAGE_BYTES) == 29
    assert same(apply_package(package.to_bytes(), history.state, decode, OPTIMISERS[0]), history.state)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["sgd", "momentum", "fedadam"])
def test_models_of_either_type_come_back(optimiser: ServerOptimiser, kind: type) -> None:
    state = optimiser.step(optimiser.start(np.linspace(-1, 1, DIMENSION).astype(kind)), decode(b"abc"))
    content = FullModelPackage(state).to_bytes()
    package = read_package(content)
    assert len(content) == full_model_bytes(state.state_bytes) == 31 + np.dtype(kind).itemsize * DIMENSION * (1 + len(state.moments))
    assert isinstance(package, FullModelPackage)
    assert same(package.state, state)
    assert package.state.parameters.dtype == kind


def test_another_process_reconstructs_the_same_bytes() -> None:
    optimiser = FedAdam(0.03)
    history = after(6, optimiser)
    lines = [start(optimiser).state, catch_up_package(after(2, optimiser), 0), catch_up_package(history, 2)]
    sent = "\n".join([FullModelPackage(lines[0]).to_bytes().hex(), *(package.to_bytes().hex() for package in lines[1:])])
    program = (
        "import hashlib, sys\n"
        "import numpy as np\n"
        "from quietbits.design.federated.model_history import apply_package\n"
        "from quietbits.design.federated.server_optimiser import FedAdam\n"
        "state = None\n"
        "for line in sys.stdin.read().split():\n"
        "    state = apply_package(bytes.fromhex(line), state, lambda message: np.frombuffer("
        f"hashlib.shake_128(message).digest(4 * {DIMENSION}), dtype='<i4') / 2.0**31, FedAdam(0.03))\n"
        "print(state.rounds, state.to_bytes().hex())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, text=True, check=True)
    rounds, content = done.stdout.split()
    assert (int(rounds), bytes.fromhex(content)) == (6, history.state.to_bytes())


def test_messages_that_cannot_be_decoded_are_found() -> None:
    def choosy(content: bytes) -> np.ndarray:
        if content == message(5):
            raise ValueError("index must be a whole number from 0 to 4, got 5")
        return decode(content)

    content = catch_up_package(after(4), 0).to_bytes()
    with pytest.raises(DataError, match="package: index must be a whole number from 0 to 4, got 5"):
        apply_package(content, start().state, choosy, OPTIMISERS[0])
    with pytest.raises(DataError, match=r"package: decode must return vectors of shape \(30,\), got \(1,\)"):
        apply_package(content, start().state, lambda _: np.ones(1), OPTIMISERS[0])


def test_a_round_that_fails_leaves_the_history_as_it_was() -> None:
    history = after(2)
    before = history.checksum
    with pytest.raises(ValueError, match="messages must have 3 bytes each, got one of 4"):
        add_round(history, [b"abc", b"abcd"], decode, OPTIMISERS[0])
    with pytest.raises(ValueError, match="mean_update must hold finite numbers only"):
        add_round(history, [b"abc"], lambda _: np.full(DIMENSION, np.nan), OPTIMISERS[0])
    assert history.state.checksum() == before
    assert len(history.rounds) == 2


@pytest.mark.parametrize(
    ("content", "state", "complaint"),
    [
        (b"", None, "starts with b''"),
        (b"X", None, "starts with b'X', which is not a kind of package"),
        (b"H123", None, "cut short after 4 bytes"),
        (catch_up_package(after(2), 1).to_bytes(), None, "a history cannot be used without a model"),
        (catch_up_package(after(2), 1).to_bytes()[:-1], None, "a round has 2 messages of 3 bytes, and 5 bytes are left"),
        (catch_up_package(after(2), 1).to_bytes() + b"\0", None, "1 bytes too long for its 1 rounds"),
        (b"H" + bytes(28), None, "message_bytes must be a whole number from 1 to 1048576, got 0"),
        (catch_up_package(after(2), None).to_bytes()[:-1], None, "150 bytes cannot be a model of 30 parameters and 0 moments of 4 bytes"),
        (
            catch_up_package(after(2), None).to_bytes()[:-1] + b"\x7f",
            None,
            "the model has the checksum [0-9a-f]{32}, the package states [0-9a-f]{32}",
        ),
        (catch_up_package(after(2), None).to_bytes()[:-2] + b"\x80\x7f", None, "parameters must hold finite numbers only, got (inf|nan)"),
        (b"M" + bytes([0, 0, 0, 0, 4, 0]) + bytes(24), None, "parameters must be .* got float32 and \\(0,\\)"),
    ],
)
def test_bytes_that_are_not_a_package_are_refused(content: bytes, state: ModelState | None, complaint: str) -> None:
    with pytest.raises(DataError, match="package: .*" + complaint):
        apply_package(content, state, decode, OPTIMISERS[0])


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: start(retain=-1), "retain must be a whole number from 0 to 4294967295, got -1"),
        (lambda: ModelHistory(start().state, 0), "message_bytes must be a whole number from 1 to 1048576, got 0"),
        (lambda: ModelHistory(start().state, 3, ((b"abc",),)), "number of rounds must be a whole number from 0 to 0, got 1"),
        (lambda: catch_up_package(after(2), 3), "last_round must be a whole number from 0 to 2, got 3"),
        (lambda: synchronise(after(2), after(3).state, decode, OPTIMISERS[0]), "last_round must be a whole number from 0 to 2, got 3"),
        (lambda: HistoryPackage(0, (), 3, b"short"), "checksum must have 16 bytes, got 5"),
        (lambda: HistoryPackage(2**32 - 1, ((),), 3, bytes(16)), "start_round plus the number of rounds must be a whole number from 0 to"),
        (lambda: HistoryPackage(-1, (), 3, bytes(16)), "start_round must be a whole number from 0 to 4294967295, got -1"),
        (lambda: HistoryPackage(0, ((b"ab",),), 3, bytes(16)), "messages must have 3 bytes each, got one of 2"),
    ],
)
def test_bad_arguments_are_refused(make: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


def test_an_older_model_is_refused_unless_it_is_asked_for() -> None:
    old, client = FullModelPackage(after(2).state).to_bytes(), after(5).state
    with pytest.raises(DataError, match="been through 2 rounds, the client's through 5: rollback is refused"):
        apply_package(old, client, decode, OPTIMISERS[0])
    assert same(apply_package(old, client, decode, OPTIMISERS[0], rollback=True), after(2).state)
    # A full model of the same round repairs a damaged model.
    damaged = replace(client, parameters=client.parameters + np.float32(1))
    assert same(apply_package(FullModelPackage(client).to_bytes(), damaged, decode, OPTIMISERS[0]), client)


@pytest.mark.parametrize("change", ["dimension", "type", "moments"])
def test_a_model_of_another_shape_is_refused_unless_it_is_asked_for(change: str) -> None:
    client = after(2).state
    other = {
        "dimension": ModelState(9, np.zeros(client.dimension + 1, dtype=np.float32)),
        "type": ModelState(9, np.zeros(client.dimension, dtype=np.float64)),
        "moments": ModelState(9, np.zeros(client.dimension, dtype=np.float32), (np.zeros(client.dimension, dtype=np.float32),)),
    }[change]
    content = FullModelPackage(other).to_bytes()
    with pytest.raises(DataError, match=r"package: the model has \d+ parameters of .*, the client's has \d+ parameters of float32"):
        apply_package(content, client, decode, OPTIMISERS[0])
    assert same(apply_package(content, client, decode, OPTIMISERS[0], rollback=True), other)
    assert same(apply_package(content, None, decode, OPTIMISERS[0]), other)
