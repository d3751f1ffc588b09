"""Shamir's secret sharing: `threshold` shares give a secret back, and fewer shares reveal nothing."""

import secrets
from collections.abc import Mapping

from ...arguments import check_integer

# Shamir 1979, How to Share a Secret, works over the field of this Mersenne prime, which is above every secret of 64 bytes.
PRIME = 2**521 - 1
SHARE_BYTES = 66
SECRET_BYTES = 32
MOST_SHARES = 2**20


def split_secret(secret: bytes, shares: int, threshold: int) -> list[bytes]:
    """Return shares of a 32-byte secret, for places 1, 2, ....

    A share is the value at its place of a random polynomial whose value at zero is the secret.

    Examples
    --------
    >>> shares = split_secret(bytes(range(32)), shares=5, threshold=3)
    >>> join_shares({place: shares[place - 1] for place in (1, 3, 4)}) == bytes(range(32))
    True
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"secret must have {SECRET_BYTES} bytes, got {len(secret)}")
    check_integer("shares", shares, low=1, high=MOST_SHARES)
    check_integer("threshold", threshold, low=1, high=shares)
    coefficients = [*(secrets.randbelow(PRIME) for _ in range(threshold - 1)), int.from_bytes(secret, "little")]
    values = []
    for place in range(1, shares + 1):
        value = 0
        for coefficient in coefficients:
            value = (value * place + coefficient) % PRIME
        values.append(value.to_bytes(SHARE_BYTES, "little"))
    return values


def join_shares(shares: Mapping[int, bytes]) -> bytes:
    """Return the secret from at least `threshold` shares by Lagrange interpolation at zero."""
    secret = 0
    for place, share in shares.items():
        above, below = 1, 1
        for other in shares:
            if other != place:
                above, below = above * other % PRIME, below * (other - place) % PRIME
        secret += int.from_bytes(share, "little") * above * pow(below, -1, PRIME)
    secret %= PRIME
    if secret >> (8 * SECRET_BYTES):
        raise ValueError(f"shares must be of one secret, as many as its threshold, got {len(shares)} that are not")
    return secret.to_bytes(SECRET_BYTES, "little")
