"""Shares of a secret: as many as the threshold give it back, in any choice; fewer are consistent with every secret."""

import itertools
import secrets

import pytest

from quietbits.design.masked_sum.secret_sharing import PRIME, join_shares, split_secret


def test_every_choice_of_enough_shares_gives_the_secret_back() -> None:
    secret = secrets.token_bytes(32)
    shares = dict(enumerate(split_secret(secret, shares=5, threshold=3), start=1))
    for places in itertools.combinations(shares, 3):
        assert join_shares({place: shares[place] for place in places}) == secret


def test_fewer_shares_than_the_threshold_fit_every_secret() -> None:
    shares = split_secret(bytes(32), shares=3, threshold=3)
    # A third share that makes two given ones belong to another secret: the line through them is bent by a multiple of (x - 1) (x - 2).
    other = 12345
    bend = other * pow(2, -1, PRIME)
    forged = (int.from_bytes(shares[2], "little") + bend * 2 * 1) % PRIME
    assert join_shares({1: shares[0], 2: shares[1], 3: forged.to_bytes(66, "little")}) == other.to_bytes(32, "little")


def test_shares_of_different_secrets_are_refused() -> None:
    one, other = (split_secret(secrets.token_bytes(32), shares=3, threshold=2) for _ in range(2))
    with pytest.raises(ValueError, match="shares must be of one secret"):
        join_shares({1: one[0], 2: other[1]})


def test_a_secret_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="secret must have 32 bytes, got 31"):
        split_secret(bytes(31), shares=3, threshold=2)
