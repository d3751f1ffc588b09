"""The server's part in a masked sum: it relays keys and sealed letters, and takes off what is left of the masks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...arrays import WordArray
from ...errors import InfeasibleError
from ..secure_sum.modular_arithmetic import modular_add, modular_subtract, modular_sum
from .client import PublicKeys, Revealed, mask_purpose, shares_needed
from .key_agreement import agreed_key, keyed_mask, public_key
from .secret_sharing import join_shares


@dataclass
class MaskingServer:
    """One round, against drop-outs at any point: `keys` and `letters` are filled in as they arrive.

    Attributes
    ----------
    round_name : str
        That of the clients.
    keys : dict
        Public keys, by client.
    letters : dict
        Letters by sender, and by receiver.

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
    letters: dict[int, dict[int, bytes]] = field(default_factory=dict)

    @property
    def shares_needed(self) -> int:
        """How many clients it takes to recover a secret."""
        return shares_needed(len(self.keys))

    def check_enough(self, clients: int, what: str) -> None:
        """Raise InfeasibleError if fewer clients than that are left."""
        needed = max(2, self.shares_needed)
        if clients < needed:
            raise InfeasibleError(f"{clients} of {len(self.keys)} clients {what}, and it takes {needed} to recover masks")

    def letters_to(self, receiver: int) -> dict[int, bytes]:
        """Return the letters to a client from all others who have sent theirs."""
        return {sender: letters[receiver] for sender, letters in self.letters.items() if sender != receiver}

    def total(self, messages: Mapping[int, WordArray], revealed: Mapping[int, Revealed], modulus: int) -> WordArray:
        """Return the sum modulo M of the values of the clients whose masked messages have arrived.

        Raises
        ------
        InfeasibleError
            If too few clients helped to take off the masks.
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
            seed = self._joined({helper: shares.self_seeds[client] for helper, shares in revealed.items()})
            total = modular_subtract(total, keyed_mask(seed, length, modulus), modulus)
        for gone in self.letters.keys() - messages.keys():
            private = self._joined({helper: shares.masking_keys[gone] for helper, shares in revealed.items()})
            if public_key(private) != self.keys[gone].masking:
                raise ValueError(f"shares of client {gone}'s masking key must give the key back: some are false")
            for client in messages:
                mask = keyed_mask(agreed_key(private, self.keys[client].masking, mask_purpose(self.round_name)), length, modulus)
                # The client's message holds the mask with the client's sign.
                total = (modular_subtract if client < gone else modular_add)(total, mask, modulus)
        return total

    def _joined(self, shares: Mapping[int, bytes]) -> bytes:
        places = {client: place for place, client in enumerate(sorted(self.keys), start=1)}
        chosen = list(shares.items())[: self.shares_needed]
        return join_shares({places[helper]: share for helper, share in chosen})
