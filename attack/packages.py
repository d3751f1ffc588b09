"""Changed packages for absent clients: accepted packages are intact, and no step back."""

import hashlib
import random
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..design.federated.history_package import FullModelPackage, HistoryPackage, read_package
from ..design.federated.model_history import ModelHistory, add_round, apply_package, catch_up_package
from ..design.federated.model_state import ModelState, StateArray
from ..design.federated.server_optimiser import FedAdam, ServerOptimiser, ServerSGD
from ..errors import DataError
from .cases import Arguments, Attack, refusal
from .damage import damaged

DIMENSION, MESSAGE_BYTES, ROUNDS = 30, 3, 4
OPTIMISERS: tuple[ServerOptimiser, ...] = (ServerSGD(0.3), ServerSGD(0.3, momentum=0.9), FedAdam(0.03))


def decode(message: bytes) -> FloatArray:
    """Return numbers that depend on every bit of the message, in place of a coder."""
    return np.frombuffer(hashlib.shake_128(message).digest(4 * DIMENSION), dtype="<i4") / 2.0**31


@cache
def _histories(optimiser: int) -> tuple[ModelHistory, ...]:
    """Return the server's history after 0, 1, ... rounds."""
    server = OPTIMISERS[optimiser]
    histories = [ModelHistory(server.start(np.linspace(-1, 1, DIMENSION, dtype=np.float32)), MESSAGE_BYTES)]
    for number in range(ROUNDS):
        histories.append(add_round(histories[-1], [bytes([number, sender, 7]) for sender in range(2)], decode, server))
    return tuple(histories)


def draw(rng: random.Random) -> Arguments:
    """Draw a client, and the bytes that arrive there: mostly its server's package."""
    optimiser, kind = rng.randrange(len(OPTIMISERS)), rng.random()
    if kind < 0.7:
        return {**_sent(rng, optimiser), "optimiser": optimiser, "sound": True}
    client = rng.choice((None, *range(ROUNDS + 1)))
    history = _histories(rng.choice((optimiser, optimiser, rng.randrange(len(OPTIMISERS)))))[rng.randrange(ROUNDS + 1)]
    package = catch_up_package(history, rng.choice((None, *range(history.state.rounds + 1))))
    content = rng.choice((_as_it_is, _other_head, _other_messages, _other_model))(rng, package)
    return {"content": damaged(rng, content) if kind < 0.82 else content, "optimiser": optimiser, "client": client, "sound": False}


def _sent(rng: random.Random, optimiser: int) -> dict[str, Any]:
    """Continue a server from a client's round with any messages, and draw a package of it.

    The package is for this client, or for a client that is further behind.
    """
    client = rng.choice((None, *range(ROUNDS + 1)))
    history = _histories(optimiser)[client or 0]
    for _ in range(rng.randrange(4)):
        messages = [rng.randbytes(MESSAGE_BYTES) for _ in range(rng.choice((0, 1, 2, 5)))]
        history = add_round(history, messages, decode, OPTIMISERS[optimiser])
    last = None if client is None or rng.random() < 0.2 else rng.randint(0, client)
    return {"content": catch_up_package(history, last).to_bytes(), "client": client}


def _as_it_is(_: random.Random, package: HistoryPackage | FullModelPackage) -> bytes:
    return package.to_bytes()


def _other_head(rng: random.Random, package: HistoryPackage | FullModelPackage) -> bytes:
    """State another number in the head."""
    content = bytearray(package.to_bytes())
    struct.pack_into("<I", content, rng.choice((1, 5, 9)), rng.choice((0, 1, 2, 255, 2**31, 2**32 - 1)))
    return bytes(content)


def _other_messages(rng: random.Random, package: HistoryPackage | FullModelPackage) -> bytes:
    """Change, repeat or drop messages of a history, whose form stays sound."""
    if isinstance(package, FullModelPackage):
        return package.to_bytes()
    rounds = [list(messages) for messages in package.rounds]
    for messages in rounds:
        change = rng.choice(("none", "change", "repeat", "drop"))
        if messages and change == "change":
            messages[0] = rng.randbytes(MESSAGE_BYTES)
        elif messages and change != "none":
            messages[:] = [*messages, messages[0]] if change == "repeat" else messages[1:]
    if rounds and rng.random() < 0.3:
        rounds.pop(rng.randrange(len(rounds)))
    return HistoryPackage(package.start_round, tuple(map(tuple, rounds)), MESSAGE_BYTES, package.checksum).to_bytes()


def _other_model(rng: random.Random, _: HistoryPackage | FullModelPackage) -> bytes:
    """Send a sound model of another size, type or age."""
    kind = rng.choice((np.float32, np.float64))
    dimension, moments = rng.choice((0, 1, DIMENSION)), rng.choice((0, 1, 2))
    numbers: StateArray = np.full(max(1, dimension), rng.choice((0.0, 1.0, 1e30))).astype(kind)
    return FullModelPackage(ModelState(rng.choice((0, 1, ROUNDS, 2**31)), numbers, (numbers,) * moments)).to_bytes()


def check(folder: Path, content: bytes, optimiser: int, client: int | None, sound: bool) -> None:  # noqa: ARG001 - nothing is written
    """Apply the package, which must be accepted if sound, and otherwise refused or consistent.

    A refusal has a reason, and an accepted package leads to the state that it states.
    """
    before = None if client is None else _histories(optimiser)[client].state
    kept = None if before is None else before.to_bytes()
    try:
        after = apply_package(content, before, decode, OPTIMISERS[optimiser])
    except DataError as error:
        assert not sound, "the server's own package is refused"
        raise refusal(error) from error
    finally:
        assert before is None or before.to_bytes() == kept, "the client's state was changed"
    package = read_package(content)
    stated = package.checksum if isinstance(package, HistoryPackage) else package.state.checksum()
    assert after.checksum() == stated
    assert package.to_bytes() == content
    assert np.all(np.isfinite(after.parameters))
    if before is not None:
        assert after.rounds >= before.rounds
        assert _form(after) == _form(before)


def _form(state: ModelState) -> tuple[object, ...]:
    return state.dimension, state.parameters.dtype, len(state.moments)


ATTACK = Attack("packages", draw, check)
