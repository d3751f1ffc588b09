"""A secure sum between processes, with public keys and secret shares.

A `MaskingClient` sends public keys, shares of its secrets and a masked message, and helps to remove the masks of other clients. The
`MaskingServer` relays keys and sealed letters, and removes the remaining masks. Two clients agree on keys through a server that learns none
of the keys, and derive masks and sealed letters from them. Shamir's scheme shares secrets: any `threshold` shares recover a secret, and
fewer shares reveal nothing about it.
"""

import hashlib
import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import ArrayLike

from ...arguments import check_integer
from ...arrays import WordArray
from ...errors import InfeasibleError
from ..noise.random_words import WordSource
from .modular_arithmetic import check_residues, modular_add, modular_subtract, modular_sum

# Mersenne prime, above every secret of 64 bytes, whose field Shamir's scheme uses (Shamir 1979, How to Share a Secret).
PRIME = 2**521 - 1
SHARE_BYTES = 66
SECRET_BYTES = 32
MOST_SHARES = 2**20

KEY_BYTES, COUNTER_BYTES, NONCE_BYTES = 32, 16, 12
WORD_BYTES = 8


@dataclass(frozen=True)
class PublicKeys:
    """Public values of a client: two public keys, and the commitment to its self seed.

    Other clients seal letters with the key `sealing`, and agree on masks with the key `masking`.
    """

    sealing: bytes
    masking: bytes
    self_seed: bytes


@dataclass(frozen=True)
class Letter:
    """A client's sealed shares of its two secrets for a receiver, with commitments.

    Attributes
    ----------
    sealed : bytes
        The two shares, which only the receiver can read; empty in a client's letter to itself.
    self_seed, masking_key : bytes
        Commitments to the share of the self seed and to the share of the masking key.
    """

    sealed: bytes
    self_seed: bytes
    masking_key: bytes


@dataclass(frozen=True)
class Revealed:
    """Shares that a client gives the server, keyed by the client whose secret is shared.

    Attributes
    ----------
    self_seeds : mapping
        Shares of the self seeds of clients whose messages have arrived.
    masking_keys : mapping
        Shares of the masking keys of clients whose messages have not arrived.
    """

    self_seeds: Mapping[int, bytes]
    masking_keys: Mapping[int, bytes]


def in_hexadecimal(values: Any) -> str:
    """Return public keys, letters or shares as JSON, with bytes in hexadecimal."""

    def written(value: Any) -> Any:
        return value.hex() if isinstance(value, bytes) else asdict(value)

    return json.dumps(values, default=written)


def from_hexadecimal(fields: Mapping[str, str]) -> dict[str, bytes]:
    """Return the byte fields of public keys or of a letter from their hexadecimal JSON."""
    return {name: bytes.fromhex(value) for name, value in fields.items()}


def shares_needed(clients: int) -> int:
    """Return the number of clients that can recover a secret: more than half.

    With more than half, no two disjoint sets of clients can reveal both secrets of a client.
    """
    return clients // 2 + 1


def mask_purpose(round_name: str) -> bytes:
    """Return the purpose of agreed keys that expand to masks."""
    return f"quietbits mask {round_name}".encode()


def seed_commitment(round_name: str, client: int, seed: bytes) -> bytes:
    """Return a client's commitment to its self seed."""
    return commitment(seed, f"quietbits self_seed {round_name} {client}".encode())


def share_commitment(round_name: str, kind: str, dealer: int, helper: int, share: bytes) -> bytes:
    """Return the dealer's commitment to a helper's share of a secret, by the secret's kind.

    The kind is ``"self_seed"`` or ``"masking_key"``.
    """
    return commitment(share, f"quietbits share {kind} {round_name} {dealer} {helper}".encode())


@dataclass
class MaskingClient:
    """A client of the protocol of Bonawitz et al. 2017, *Practical Secure Aggregation*.

    The protocol is the version against a curious server.

    `start` makes a client; call `share`, `mask` and `reveal` once each, in this order. Between the calls the client may be kept as
    `document`.

    The server relays all keys, so a server that distributes its own keys in other clients' names can unmask messages. Signatures that the
    server cannot make would prevent this attack, and are not included. The protocol does not prove that a message is honest: a client can
    add anything to the sum.

    The kept document ensures that a client takes each step only once. A client that is reset to an earlier document may `reveal` again with
    other survivors; the difference of the two sums is then the message of the client that one of the sums omits.

    Attributes
    ----------
    number : int
        Number of the client among the clients of the round.
    round_name : str
        Name of the round, different in every round, so that the keys of a round are useless in other rounds.
    sealing_key, masking_key, self_seed : bytes
        Secrets of the client, new in every round.
    """

    number: int
    round_name: str
    sealing_key: bytes
    masking_key: bytes
    self_seed: bytes
    step: str = "share"
    keys: dict[int, PublicKeys] = field(default_factory=dict)
    shares: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def start(cls, number: int, round_name: str) -> "MaskingClient":
        """Return a client with new secrets for a round."""
        return cls(number, round_name, new_key(), new_key(), new_key())

    @property
    def public_keys(self) -> PublicKeys:
        """The client's public keys and the commitment to its self seed."""
        committed = seed_commitment(self.round_name, self.number, self.self_seed)
        return PublicKeys(public_key(self.sealing_key), public_key(self.masking_key), committed)

    def share(self, keys: Mapping[int, PublicKeys]) -> dict[int, Letter]:
        """Return a letter to every client, itself included, with shares of this client's secrets.

        `keys` are the public keys of all clients.
        """
        self._take_step("share", "mask")
        self.keys = dict(sorted(keys.items()))
        if self.keys.get(self.number) != self.public_keys:
            raise ValueError(f"keys must have those of client {self.number} as it made them")
        if len(keys) < 2 or len({key for public in keys.values() for key in (public.sealing, public.masking)}) < 2 * len(keys):
            raise ValueError(f"keys must be those of at least 2 different clients, got {len(keys)}")
        needed = shares_needed(len(keys))
        of_seed = split_secret(self.self_seed, len(keys), needed)
        of_key = split_secret(self.masking_key, len(keys), needed)
        letters = {}
        for other, seed_share, key_share in zip(self.keys, of_seed, of_key, strict=True):
            sealed = b""
            if other == self.number:
                self.shares[other] = seed_share + key_share
            else:
                sealed = seal(self._sealing(other), seed_share + key_share, self._address(self.number, other))
            letters[other] = Letter(sealed, *self._commitments(self.number, other, seed_share + key_share))
        return letters

    def mask(self, values: ArrayLike, modulus: int, letters: Mapping[int, Letter]) -> WordArray:
        """Return residues modulo M under the client's own mask and all shared masks."""
        self._take_step("mask", "reveal")
        unknown = set(letters) - (set(self.keys) - {self.number})
        if unknown:
            raise ValueError(f"letters must be from clients whose keys are known, got {sorted(unknown)}")
        self._check_enough(len(letters) + 1)
        for other, letter in letters.items():
            shares = unseal(self._sealing(other), letter.sealed, self._address(other, self.number))
            if self._commitments(other, self.number, shares) != (letter.self_seed, letter.masking_key):
                raise ValueError(f"letters must hold the shares that their senders committed to, got another share from client {other}")
            self.shares[other] = shares
        message = check_residues("values", values, modulus)
        message = modular_add(message, keyed_mask(self.self_seed, len(message), modulus), modulus)
        for other in letters:
            key = agreed_key(self.masking_key, self.keys[other].masking, mask_purpose(self.round_name))
            combine = modular_add if self.number < other else modular_subtract
            message = combine(message, keyed_mask(key, len(message), modulus), modulus)
        return message

    def reveal(self, survivors: Collection[int]) -> Revealed:
        """Return shares of survivors' self seeds, and of the masking keys of drop-outs.

        The client reveals only once, since a second call with other survivors would give a server both secrets of a client, and so its
        message.
        """
        self._take_step("reveal", "over")
        stayed = set(survivors)
        if not stayed <= set(self.shares) or self.number not in stayed:
            raise ValueError(f"survivors must be among those who masked, with client {self.number}, got {sorted(stayed)}")
        self._check_enough(len(stayed))
        return Revealed(
            {other: share[:SHARE_BYTES] for other, share in self.shares.items() if other in stayed},
            {other: share[SHARE_BYTES:] for other, share in self.shares.items() if other not in stayed},
        )

    def document(self) -> bytes:
        """Return the client's state until the next message, as JSON with its secrets."""
        return json.dumps(asdict(self), default=bytes.hex).encode()

    @classmethod
    def from_document(cls, document: bytes) -> "MaskingClient":
        """Return the client that a document kept."""
        kept: dict[str, Any] = json.loads(document)
        secret = {name: bytes.fromhex(kept[name]) for name in ("sealing_key", "masking_key", "self_seed")}
        keys = {int(client): PublicKeys(**from_hexadecimal(key)) for client, key in kept["keys"].items()}
        shares = {int(client): bytes.fromhex(share) for client, share in kept["shares"].items()}
        return cls(**{**kept, **secret, "keys": keys, "shares": shares})

    def _take_step(self, step: str, following: str) -> None:
        if self.step != step:
            raise ValueError(f"step must be {self.step!r} in round {self.round_name}, got {step!r}: each is taken once, in order")
        self.step = following

    def _check_enough(self, clients: int) -> None:
        needed = shares_needed(len(self.keys))
        if clients < needed:
            raise InfeasibleError(f"clients must be at least {needed} of {len(self.keys)} to recover masks, got {clients} that remain")

    def _commitments(self, dealer: int, helper: int, shares: bytes) -> tuple[bytes, bytes]:
        parts = (("self_seed", shares[:SHARE_BYTES]), ("masking_key", shares[SHARE_BYTES:]))
        seed, key = (share_commitment(self.round_name, kind, dealer, helper, share) for kind, share in parts)
        return seed, key

    def _sealing(self, other: int) -> bytes:
        return agreed_key(self.sealing_key, self.keys[other].sealing, f"quietbits seal {self.round_name}".encode())

    def _address(self, sender: int, receiver: int) -> bytes:
        return f"{self.round_name} {sender} {receiver}".encode()


@dataclass
class MaskingServer:
    """The server of one round with drop-outs; fill `keys` and `letters` as they arrive.

    Attributes
    ----------
    round_name : str
        Name of the clients' round.
    keys : dict
        Public keys, by client.
    letters : dict
        Letters by sender and receiver.
    false_shares : dict
        Clients with shares that did not match a dealer's commitment in `total`, and the dealers of these shares.

    Examples
    --------
    Client 3 masks, and its message is lost.

    >>> from quietbits.design.secure_sum.masked_sum import MaskingClient
    >>> clients = {number: MaskingClient.start(number, "round 1") for number in (1, 2, 3)}
    >>> server = MaskingServer("round 1", keys={number: client.public_keys for number, client in clients.items()})
    >>> server.letters = {number: client.share(server.keys) for number, client in clients.items()}
    >>> messages = {number: client.mask([number, 9], 10, server.letters_to(number)) for number, client in clients.items()}
    >>> del messages[3]
    >>> server.total(messages, {number: clients[number].reveal(messages) for number in messages}, 10).tolist()
    [3, 8]
    """

    round_name: str
    keys: dict[int, PublicKeys] = field(default_factory=dict)
    letters: dict[int, dict[int, Letter]] = field(default_factory=dict)
    false_shares: dict[int, set[int]] = field(default_factory=dict)

    @property
    def shares_needed(self) -> int:
        """Number of clients that can recover a secret."""
        return shares_needed(len(self.keys))

    def check_enough(self, clients: int, what: str) -> None:
        """Raise InfeasibleError if fewer than `shares_needed` clients remain."""
        needed = max(2, self.shares_needed)
        if clients < needed:
            raise InfeasibleError(f"clients must be at least {needed} of {len(self.keys)} to recover masks, got {clients} that {what}")

    def letters_to(self, receiver: int) -> dict[int, Letter]:
        """Return the letters to a client from all other clients that have sent letters."""
        return {sender: letters[receiver] for sender, letters in self.letters.items() if sender != receiver}

    def total(self, messages: Mapping[int, WordArray], revealed: Mapping[int, Revealed], modulus: int) -> WordArray:
        """Return the sum modulo M of the values of the clients whose masked messages have arrived.

        The method compares every share with its dealer's commitment. It omits false shares, and `false_shares` names their senders.

        Raises
        ------
        InfeasibleError
            If too few clients gave right shares, or a dealer's shares do not recover its secret.
        """
        self.check_enough(len(revealed), "gave their shares")
        lengths = {len(message) for message in messages.values()}
        if len(lengths) != 1:
            raise ValueError(f"messages must have one length, got {sorted(lengths)}")
        length = lengths.pop()
        total = np.zeros(length, dtype=np.uint64)
        for message in messages.values():
            total = modular_add(total, modular_sum(message[None], modulus), modulus)
        for client in messages:
            seed = self._recovered("self_seed", client, {helper: shares.self_seeds[client] for helper, shares in revealed.items()})
            total = modular_subtract(total, keyed_mask(seed, length, modulus), modulus)
        for gone in self.letters.keys() - messages.keys():
            private = self._recovered("masking_key", gone, {helper: shares.masking_keys[gone] for helper, shares in revealed.items()})
            for client in messages:
                mask = keyed_mask(agreed_key(private, self.keys[client].masking, mask_purpose(self.round_name)), length, modulus)
                # The client's message holds this mask with the sign of the client.
                total = (modular_subtract if client < gone else modular_add)(total, mask, modulus)
        return total

    def _recovered(self, kind: str, dealer: int, shares: Mapping[int, bytes]) -> bytes:
        """Return a secret from the shares that match their dealer's commitments."""
        right = {helper: share for helper, share in shares.items() if self._is_right(kind, dealer, helper, share)}
        false = sorted(shares.keys() - right.keys())
        for helper in false:
            self.false_shares.setdefault(helper, set()).add(dealer)
        secret = kind.replace("_", " ")
        if len(right) < self.shares_needed:
            raise InfeasibleError(
                f"shares of client {dealer}'s {secret} must come from at least {self.shares_needed} clients, got {len(right)} right ones, "
                f"and false ones from {false}"
            )
        places = {client: place for place, client in enumerate(sorted(self.keys), start=1)}
        refused = f"client {dealer} must deal shares of the {secret} that it committed to: those that it dealt do not give it back"
        try:
            joined = join_shares({places[helper]: share for helper, share in list(right.items())[: self.shares_needed]})
        except ValueError as error:
            raise InfeasibleError(refused) from error
        keys = self.keys[dealer]
        if kind == "self_seed":
            matches = seed_commitment(self.round_name, dealer, joined) == keys.self_seed
        else:
            matches = public_key(joined) == keys.masking
        if not matches:
            raise InfeasibleError(refused)
        return joined

    def _is_right(self, kind: str, dealer: int, helper: int, share: bytes) -> bool:
        letter = self.letters[dealer][helper]
        committed = letter.self_seed if kind == "self_seed" else letter.masking_key
        return share_commitment(self.round_name, kind, dealer, helper, share) == committed


def new_key() -> bytes:
    """Return 32 random bytes of the operating system, as a private key or as the seed of a mask."""
    return secrets.token_bytes(KEY_BYTES)


def public_key(private: bytes) -> bytes:
    """Return the public half of a private key (X25519)."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agreed_key(private: bytes, public: bytes, purpose: bytes) -> bytes:
    """Return the key shared by two clients for a purpose (X25519, HKDF, SHA-256)."""
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=purpose).derive(shared)


def commitment(secret: bytes, purpose: bytes) -> bytes:
    """Return a commitment: the SHA-256 digest of a secret and its purpose.

    The digest fixes the secret and does not reveal it.

    The secret needs at least 256 bits of entropy: anyone who sees the digest can test guesses of the secret.
    """
    return hashlib.sha256(len(purpose).to_bytes(8, "little") + purpose + secret).digest()


def seal(key: bytes, content: bytes, purpose: bytes) -> bytes:
    """Encrypt and authenticate content with AES-256-GCM; the purpose is authenticated, too."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, purpose)


def unseal(key: bytes, sealed: bytes, purpose: bytes) -> bytes:
    """Return the sealed content, or raise ``ValueError`` if it was changed."""
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose)
    except InvalidTag:
        raise ValueError("sealed letter must be as its sender made it: this one was changed, or is for someone else") from None


@dataclass(eq=False)
class KeyedWords(WordSource):
    """The keystream of AES-256 in counter mode, which is the same for all holders of the key."""

    key: bytes

    def __post_init__(self) -> None:
        """Begin the stream; its counter may start at zero because a key serves only once."""
        self._encryptor = Cipher(algorithms.AES(self.key), modes.CTR(bytes(COUNTER_BYTES))).encryptor()

    def __call__(self, count: int) -> WordArray:
        """Return the next words."""
        return np.frombuffer(bytearray(self._encryptor.update(bytes(WORD_BYTES * count))), dtype="<u8").astype(np.uint64, copy=False)


def keyed_mask(key: bytes, length: int, modulus: int) -> WordArray:
    """Return the mask of a key, which is uniform to anyone without the key."""
    return KeyedWords(key).integers(modulus, length).astype(np.uint64)


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
