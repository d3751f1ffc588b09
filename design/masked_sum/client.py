"""A client's part in a masked sum: public keys, secret shares, a masked message, help to unmask."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from ...arrays import WordArray
from ...errors import InfeasibleError
from ..secure_sum.modular_arithmetic import check_residues, modular_add, modular_subtract
from .key_agreement import agreed_key, commitment, keyed_mask, new_key, public_key, seal, unseal
from .secret_sharing import SHARE_BYTES, split_secret


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
    """A client's sealed shares of its two secrets for a receiver, with commitments to both shares.

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
    """Shares that a client gives the server, by the client whose secret they belong to.

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
    """A client in a round of Bonawitz et al. 2017, *Practical Secure Aggregation*, with a curious server.

    `start` makes a client; call `share`, `mask` and `reveal` once each, in this order. Between the calls the client may be kept as
    `document`.

    The server relays all keys: a server that hands out its own keys in other clients' names can unmask. Signatures that the server cannot
    make would prevent this attack, and are not included. Nothing proves that a message is honest: a client can add anything to the sum.

    The kept document ensures that a client takes each step only once. A client that is set back to an earlier document can be asked to
    `reveal` again with other survivors; the difference of the two sums is the message of the client left out of one of them.

    Attributes
    ----------
    number : int
        Number of the client among the clients of the round.
    round_name : str
        Different in every round: keys of one round are of no use in another.
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

        The client reveals only once: by asking again with other survivors, a server would get both secrets of a client, and with them its
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
