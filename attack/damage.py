"""Damage to files and documents: flipped bits, cuts, and odd values."""

import random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, "", "x", "nan", "1e400", [], {}, 0, 1, -1, 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308),
    *(2**31, 2**63, 2**64, 10**400, -(2**63), float("nan"), float("inf"), "1/0", "0/1", "1" * 400 + "/1", [[]] * 3),
)


def damaged(rng: random.Random, content: bytes) -> bytes:
    """Return bytes with a few bits flipped, or a piece cut out, doubled or overwritten."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not changed:
            break
        start = rng.randrange(len(changed))
        end = min(len(changed), start + rng.choice((1, 1, 4, 100, len(changed))))
        kind = rng.choice(("flip", "flip", "flip", "cut", "double", "zero", "noise"))
        if kind == "flip":
            changed[start] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del changed[start:end]
        elif kind == "double":
            changed[start:start] = changed[start:end]
        else:
            changed[start:end] = bytes(end - start) if kind == "zero" else rng.randbytes(end - start)
    return bytes(changed)


def odd_value(rng: random.Random, value: Any) -> Any:
    """Return a value of another kind than the given value, or slightly different."""
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice((-1, 1, value, -2 * value))
    if type(value) is float and rng.random() < 0.5:
        return value * rng.choice((-1.0, 0.5, 1 + 1e-12, 2.0))
    return rng.choice(ODD)


def paths(document: Any) -> list[tuple[Any, Any]]:
    """Return every place of a JSON document, as its container and the key or index there."""
    places: list[tuple[Any, Any]] = []
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            places += [(document, key), *paths(document[key])]
    return places
