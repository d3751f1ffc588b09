"""A masked sum between clients that exchange only letters.

Requirements: the sum is right for the survivors, and everything else is secret.

Any `threshold` shares recover a secret; fewer shares are consistent with every secret.
"""

import hashlib
import itertools
import json
import secrets
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from quietbits.design.secure_sum.masked_sum import (
    PRIME,
    SHARE_BYTES,
    MaskingClient,
    MaskingServer,
    Revealed,
    agreed_key,
    commitment,
    from_hexadecimal,
    in_hexadecimal,
    join_shares,
    keyed_mask,
    new_key,
    public_key,
    seal,
    share_commitment,
    split_secret,
    unseal,
)
from quietbits.errors import InfeasibleError

MODULUS = 1009
# Node numbers have 64 bits.
NUMBERS = (3, 2**64 - 1, 17, 2**63)


def opened(numbers: tuple[int, ...] = NUMBERS) -> tuple[MaskingServer, dict[int, MaskingClient]]:
    clients = {number: MaskingClient.start(number, "round 1") for number in numbers}
    server = MaskingServer("round 1", keys={number: client.public_keys for number, client in clients.items()})
    server.letters = {number: client.share(server.keys) for number, client in clients.items()}
    return server, clients


def masked(server: MaskingServer, clients: dict[int, MaskingClient], values: np.ndarray) -> dict[int, np.ndarray]:
    return {number: clients[number].mask(row, MODULUS, server.letters_to(number)) for number, row in zip(clients, values, strict=True)}


@pytest.mark.parametrize("stayed", [some for count in (3, 4) for some in itertools.combinations(NUMBERS, count)])
def test_the_sum_is_that_of_those_who_stayed(stayed: tuple[int, ...]) -> None:
    server, clients = opened()
    values = np.random.default_rng(0).integers(MODULUS, size=(4, 5))
    messages = {number: message for number, message in masked(server, clients, values).items() if number in stayed}
    revealed = {number: clients[number].reveal(stayed) for number in stayed}
    expected = values[[number in stayed for number in NUMBERS]].sum(axis=0) % MODULUS
    np.testing.assert_array_equal(server.total(messages, revealed, MODULUS), expected)


def test_one_may_leave_before_the_letters_one_before_the_messages_and_one_before_the_shares() -> None:
    numbers = tuple(range(7))
    clients = {number: MaskingClient.start(number, "round 1") for number in numbers}
    server = MaskingServer("round 1", keys={number: client.public_keys for number, client in clients.items()})
    server.letters = {number: clients[number].share(server.keys) for number in numbers[:6]}
    values = np.arange(30).reshape(6, 5)
    messages = {number: clients[number].mask(values[number], MODULUS, server.letters_to(number)) for number in numbers[:5]}
    revealed = {number: clients[number].reveal(messages) for number in numbers[:4]}
    np.testing.assert_array_equal(server.total(messages, revealed, MODULUS), values[:5].sum(axis=0))


def test_a_client_may_be_kept_as_a_document_between_its_steps() -> None:
    server, clients = opened((1, 2))
    clients = {number: MaskingClient.from_document(client.document()) for number, client in clients.items()}
    messages = masked(server, clients, np.array([[5], [1000]]))
    clients = {number: MaskingClient.from_document(client.document()) for number, client in clients.items()}
    revealed = {number: client.reveal([1, 2]) for number, client in clients.items()}
    assert server.total(messages, revealed, MODULUS).tolist() == [1005]


def test_masks_of_a_key_are_uniform_and_the_same_at_both_ends() -> None:
    first, other = new_key(), new_key()
    keys = agreed_key(first, public_key(other), b"mask"), agreed_key(other, public_key(first), b"mask")
    assert keys[0] == keys[1] != agreed_key(first, public_key(other), b"seal")
    counts = np.bincount(keyed_mask(bytes(range(32)), 60_000, 6).astype(int), minlength=6)
    # Chi-square with 5 degrees of freedom is below 25.7 with probability 0.9999; the key is fixed.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 25.7
    np.testing.assert_array_equal(keyed_mask(keys[0], 100, 2**62), keyed_mask(keys[1], 100, 2**62))


def test_the_sum_of_masked_messages_alone_says_nothing() -> None:
    server, clients = opened()
    total = sum(masked(server, clients, np.zeros((4, 2000), dtype=int)).values()) % MODULUS
    # Self masks remain: of 2000 uniform residues, fewer than 100 are below 20 with probability 1 - 1e-12.
    assert np.count_nonzero(total < 20) < 100


def test_each_step_is_taken_once() -> None:
    server, clients = opened()
    masked(server, clients, np.zeros((4, 1), dtype=int))
    clients[3].reveal(NUMBERS)
    with pytest.raises(ValueError, match="step must be 'over' in round round 1, got 'reveal'"):
        clients[3].reveal(NUMBERS[:3])
    with pytest.raises(ValueError, match="each is taken once"):
        clients[17].mask([0], MODULUS, {})


def test_too_few_survivors_are_refused_by_client_and_server() -> None:
    server, clients = opened()
    messages = masked(server, clients, np.zeros((4, 1), dtype=int))
    with pytest.raises(InfeasibleError, match="clients must be at least 3 of 4 to recover masks, got 2 that remain"):
        clients[3].reveal(NUMBERS[:2])
    revealed = {number: clients[number].reveal(NUMBERS) for number in NUMBERS[1:3]}
    with pytest.raises(InfeasibleError, match="clients must be at least 3 of 4 to recover masks, got 2 that gave their shares"):
        server.total(messages, revealed, MODULUS)


def test_a_letter_that_was_changed_or_sent_on_is_refused() -> None:
    server, clients = opened()
    letters = server.letters_to(3)
    with pytest.raises(ValueError, match="this one was changed, or is for someone else"):
        clients[3].mask([0], MODULUS, {**letters, 17: server.letters[17][2**63]})
    key = new_key()
    sealed = seal(key, b"content", b"purpose")
    assert unseal(key, sealed, b"purpose") == b"content"
    with pytest.raises(ValueError, match="sealed letter"):
        unseal(key, sealed[:-1] + bytes([sealed[-1] ^ 1]), b"purpose")


def test_keys_that_are_not_the_clients_own_or_come_twice_are_refused() -> None:
    client, other = MaskingClient.start(1, "round 1"), MaskingClient.start(2, "round 1")
    with pytest.raises(ValueError, match="keys must have those of client 1 as it made them"):
        client.share({1: other.public_keys, 2: other.public_keys})
    with pytest.raises(ValueError, match="at least 2 different clients, got 2"):
        other.share({1: other.public_keys, 2: other.public_keys})


def flipped(content: bytes, bit: int) -> bytes:
    return bytes(byte ^ (1 << bit % 8 if place == bit // 8 else 0) for place, byte in enumerate(content))


@pytest.mark.parametrize("bit", range(0, 8 * SHARE_BYTES, 11))
@pytest.mark.parametrize(("kind", "dealer"), [("self_seeds", 2**63), ("masking_keys", 17)])
def test_a_false_share_is_replaced_by_that_of_another_client_and_its_sender_named(kind: str, dealer: int, bit: int) -> None:
    # Any three of the five clients recover a secret; client 17 leaves.
    server, clients = opened((*NUMBERS, 5))
    messages = masked(server, clients, np.arange(5)[:, None])
    del messages[17]
    revealed = {number: clients[number].reveal(messages) for number in messages}
    shares = getattr(revealed[3], kind)
    shares[dealer] = flipped(shares[dealer], bit)
    assert server.total(messages, revealed, MODULUS).tolist() == [0 + 1 + 3 + 4]
    assert server.false_shares == {3: {dealer}}


@pytest.mark.parametrize(("kind", "words"), [("self_seeds", "self seed"), ("masking_keys", "masking key")])
def test_a_false_share_without_a_spare_client_is_refused_with_its_senders_name(kind: str, words: str) -> None:
    server, clients = opened()
    messages = masked(server, clients, np.zeros((4, 1), dtype=int))
    del messages[17]
    revealed = {number: clients[number].reveal(messages) for number in messages}
    dealer = 2**63 if kind == "self_seeds" else 17
    getattr(revealed[3], kind)[dealer] = getattr(revealed[2**63], kind)[dealer]
    refused = rf"shares of client {dealer}'s {words} must come from at least 3 clients, got 2 right ones, and false ones from \[3\]"
    with pytest.raises(InfeasibleError, match=refused):
        server.total(messages, revealed, MODULUS)


def test_every_other_client_may_be_replaced() -> None:
    # Three of the seven clients give only false shares, and four shares suffice.
    server, clients = opened(tuple(range(7)))
    messages = masked(server, clients, np.arange(7)[:, None])
    revealed = {number: clients[number].reveal(messages) for number in messages}
    for liar in (0, 1, 5):
        revealed[liar] = Revealed({dealer: secrets.token_bytes(SHARE_BYTES) for dealer in messages}, {})
    assert server.total(messages, revealed, MODULUS).tolist() == [21]
    assert server.false_shares == {liar: set(range(7)) for liar in (0, 1, 5)}


@pytest.mark.parametrize("kind", ["self_seed", "masking_key"])
@pytest.mark.parametrize("consistent", [True, False])
def test_a_dealer_whose_shares_give_another_secret_is_named(kind: str, consistent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = {number: MaskingClient.start(number, "round 1") for number in NUMBERS}
    server = MaskingServer("round 1", keys={number: client.public_keys for number, client in clients.items()})
    for number, client in clients.items():
        with monkeypatch.context() as patch:
            if number == 17:
                # The lying client deals shares of another secret, or of no secret, and commits to these shares.
                def dealt(secret: bytes, shares: int, threshold: int, kind: str = kind, liar: MaskingClient = client) -> list[bytes]:
                    if secret != getattr(liar, kind):
                        return split_secret(secret, shares, threshold)
                    return (
                        split_secret(bytes(32), shares, threshold)
                        if consistent
                        else [bytes([place] * SHARE_BYTES) for place in range(shares)]
                    )

                patch.setattr("quietbits.design.secure_sum.masked_sum.split_secret", dealt)
            server.letters[number] = client.share(server.keys)
    messages = masked(server, clients, np.zeros((4, 1), dtype=int))
    if kind == "masking_key":
        del messages[17]
    revealed = {number: clients[number].reveal(messages) for number in messages}
    with pytest.raises(InfeasibleError, match=rf"client 17 must deal shares of the {kind.replace('_', ' ')} that it committed to"):
        server.total(messages, revealed, MODULUS)


@pytest.mark.parametrize("kind", ["self_seed", "masking_key"])
def test_a_letter_with_another_share_than_its_sender_committed_to_is_refused(kind: str) -> None:
    server, clients = opened()
    letters = server.letters_to(3)
    letters[17] = replace(letters[17], **{kind: flipped(getattr(letters[17], kind), 0)})
    with pytest.raises(ValueError, match="got another share from client 17"):
        clients[3].mask([0], MODULUS, letters)


def test_a_client_that_is_set_back_reveals_the_difference_of_two_sums() -> None:
    # In this attack, which the documentation describes, a copy of a client reveals again, with other survivors.
    server, clients = opened((1, 2, 3, 4, 5))
    values = np.array([[7], [1], [2], [3], [4]])
    messages = masked(server, clients, values)
    documents = {number: client.document() for number, client in clients.items()}
    everyone = server.total(messages, {number: client.reveal(messages) for number, client in clients.items()}, MODULUS)
    del messages[1]
    set_back = {number: MaskingClient.from_document(documents[number]) for number in messages}
    others = server.total(messages, {number: client.reveal(messages) for number, client in set_back.items()}, MODULUS)
    assert (everyone - others).tolist() == [7]


def test_commitments_depend_on_who_dealt_which_share_to_whom_in_which_round() -> None:
    share = bytes(SHARE_BYTES)
    purposes = [
        ("round 1", "self_seed", 1, 2),
        ("round 1", "masking_key", 1, 2),
        ("round 1", "self_seed", 2, 1),
        ("round 2", "self_seed", 1, 2),
    ]
    assert len({share_commitment(*purpose, share) for purpose in purposes}) == 4
    assert share_commitment(*purposes[0], share) == share_commitment(*purposes[0], share)


def test_every_choice_of_enough_shares_gives_the_secret_back() -> None:
    secret = secrets.token_bytes(32)
    shares = dict(enumerate(split_secret(secret, shares=5, threshold=3), start=1))
    for places in itertools.combinations(shares, 3):
        assert join_shares({place: shares[place] for place in places}) == secret


def test_fewer_shares_than_the_threshold_fit_every_secret() -> None:
    shares = split_secret(bytes(32), shares=3, threshold=3)
    # A third share turns two given shares into another secret, as a multiple of (x - 1) (x - 2) bends the line through them.
    other = 12345
    bend = other * pow(2, -1, PRIME)
    forged = (int.from_bytes(shares[2], "little") + bend * 2 * 1) % PRIME
    assert join_shares({1: shares[0], 2: shares[1], 3: forged.to_bytes(66, "little")}) == other.to_bytes(32, "little")


def test_shares_of_different_secrets_are_refused() -> None:
    first, other = (split_secret(secrets.token_bytes(32), shares=3, threshold=2) for _ in range(2))
    with pytest.raises(ValueError, match="shares must be of one secret"):
        join_shares({1: first[0], 2: other[1]})


def test_a_secret_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="secret must have 32 bytes, got 31"):
        split_secret(bytes(31), shares=3, threshold=2)


def test_a_client_without_others_is_refused() -> None:
    client = MaskingClient.start(1, "round 1")
    with pytest.raises(ValueError, match="at least 2 different clients, got 1"):
        client.share({1: client.public_keys})
    with pytest.raises(InfeasibleError, match="clients must be at least 2 of 1"):
        MaskingServer("round 1", keys={1: client.public_keys}).check_enough(1, "sent keys")


@pytest.mark.parametrize("shared", ["masking", "sealing"])
def test_a_key_in_the_names_of_two_clients_is_refused(shared: str) -> None:
    client, other = MaskingClient.start(1, "round 1"), MaskingClient.start(2, "round 1")
    with pytest.raises(ValueError, match="at least 2 different clients, got 2"):
        client.share({1: client.public_keys, 2: replace(other.public_keys, **{shared: client.public_keys.masking})})


def test_survivors_that_did_not_mask_are_refused() -> None:
    server, clients = opened()
    masked(server, clients, np.zeros((4, 1), dtype=int))
    with pytest.raises(ValueError, match="survivors must be among those who masked, with client 3"):
        clients[3].reveal([*NUMBERS, 5])
    # A client that counts as missing would reveal its own masking key.
    with pytest.raises(ValueError, match="survivors must be among those who masked, with client 17"):
        clients[17].reveal([number for number in NUMBERS if number != 17])


def test_letters_of_strangers_and_too_few_letters_are_refused() -> None:
    server, clients = opened()
    letters = server.letters_to(3)
    with pytest.raises(ValueError, match=r"letters must be from clients whose keys are known, got \[5\]"):
        clients[3].mask([0], MODULUS, {**letters, 5: letters[17]})
    with pytest.raises(ValueError, match=r"letters must be from clients whose keys are known, got \[17\]"):
        clients[17].mask([0], MODULUS, {**server.letters_to(17), 17: server.letters[17][17]})
    with pytest.raises(InfeasibleError, match="clients must be at least 3 of 4 to recover masks, got 2 that remain"):
        clients[2**63].mask([0], MODULUS, {17: server.letters[17][2**63]})


def test_messages_of_different_lengths_are_refused() -> None:
    server, clients = opened()
    messages = masked(server, clients, np.zeros((4, 2), dtype=int))
    revealed = {number: clients[number].reveal(NUMBERS) for number in NUMBERS}
    messages[3] = messages[3][:1]
    with pytest.raises(ValueError, match=r"messages must have one length, got \[1, 2\]"):
        server.total(messages, revealed, MODULUS)


def test_keys_letters_and_shares_travel_as_hexadecimal() -> None:
    server, clients = opened((1, 2))
    masked(server, clients, np.zeros((2, 1), dtype=int))
    letter, revealed = server.letters[1][2], clients[1].reveal([1, 2])
    for value in (clients[1].public_keys, letter):
        assert type(value)(**from_hexadecimal(json.loads(in_hexadecimal(value)))) == value
    of_json = from_hexadecimal(json.loads(in_hexadecimal(revealed.self_seeds)))
    assert of_json == {str(dealer): share for dealer, share in revealed.self_seeds.items()}


def test_sealed_content_and_commitments_are_in_the_stated_format() -> None:
    key = new_key()
    sealed = seal(key, b"content", b"purpose")
    # The letter has a nonce of 12 bytes, the length that AES-GCM specifies, the content, and a tag of 16 bytes.
    assert AESGCM(key).decrypt(sealed[:12], sealed[12:], b"purpose") == b"content"
    # The purpose's length comes first, so that no other purpose and secret have the same text.
    assert commitment(b"secret", b"purpose") == hashlib.sha256((7).to_bytes(8, "little") + b"purposesecret").digest()
    assert commitment(b"bc", b"a") != commitment(b"c", b"ab")


def test_shares_are_residues_of_521_bits() -> None:
    assert {len(share) for share in split_secret(bytes(32), shares=9, threshold=5)} == {66}
    # A share of threshold 1 is the secret itself; this share has 257 bits.
    with pytest.raises(ValueError, match="shares must be of one secret"):
        join_shares({1: (2**256).to_bytes(66, "little")})
