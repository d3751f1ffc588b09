"""The server's part in a masked sum: relay keys and sealed letters, and take off the remaining masks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...arrays import WordArray
from ...errors import InfeasibleError
from ..secure_sum.modular_arithmetic import modular_add, modular_subtract, modular_sum
from .client import Letter, PublicKeys, Revealed, mask_purpose, seed_commitment, share_commitment, shares_needed
from .key_agreement import agreed_key, keyed_mask, public_key
from .secret_sharing import join_shares


@dataclass
class MaskingServer:
    """The server of one round, with drop-outs at any point; fill `keys` and `letters` as they arrive.

    Attributes
    ----------
    round_name : str
        Name of the clients' round.
    keys : dict
        Public keys, by client.
    letters : dict
        Letters by sender and receiver.
    false_shares : dict
        Clients whose share in `total` broke its dealer's commitment, with the dealers of their false shares.

    Examples
    --------
    Client 3 masks, and its message is lost.

    >>> from quietbits.design.masked_sum.client import MaskingClient
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
        """Raise InfeasibleError if fewer than `shares_needed` clients are left."""
        needed = max(2, self.shares_needed)
        if clients < needed:
            raise InfeasibleError(f"clients must be at least {needed} of {len(self.keys)} to recover masks, got {clients} that {what}")

    def letters_to(self, receiver: int) -> dict[int, Letter]:
        """Return the letters to a client from all other clients that have sent letters."""
        return {sender: letters[receiver] for sender, letters in self.letters.items() if sender != receiver}

    def total(self, messages: Mapping[int, WordArray], revealed: Mapping[int, Revealed], modulus: int) -> WordArray:
        """Return the sum modulo M of the values of the clients whose masked messages have arrived.

        Every share is compared with its dealer's commitment. False shares are left out, and `false_shares` names their senders.

        Raises
        ------
        InfeasibleError
            If too few clients gave right shares, or a dealer's shares do not give its secret back.
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
