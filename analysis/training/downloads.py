"""Bytes that the server sends: the model, or the messages that a client has missed where these are shorter."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from ...design.federated.history_package import full_model_bytes, history_package_bytes


@dataclass
class Downloads:
    """Who has which model, round after round.

    By history, a client that comes back gets the messages of all rounds since the model that it has, or the model with the optimiser's
    memory; lengths are those of the packages of `model_history`. The first model is public, from a seed. Memory grows with the clients that
    have taken part.

    Attributes
    ----------
    by_history : bool
        Whether messages are sent in place of models.
    model_bytes, state_bytes : int
        Of the parameters, and with the optimiser's memory.
    message_bytes : int
        Of one message.
    """

    by_history: bool
    model_bytes: int
    state_bytes: int
    message_bytes: int
    _messages: list[int] = field(default_factory=lambda: [0])
    _models: dict[int, int] = field(default_factory=dict)

    def send(self, clients: IntegerArray, messages: int) -> int:
        """Return the bytes down of the next round, for the clients that take part in it, each once, and note how many messages it has."""
        number = len(self._messages) - 1
        self._messages.append(self._messages[-1] + messages)
        if not self.by_history:
            return len(clients) * self.model_bytes
        total, whole = 0, full_model_bytes(self.state_bytes)
        for client in clients.tolist():
            known = self._models.get(client, 0)
            missed = self._messages[number] - self._messages[known]
            total += min(whole, history_package_bytes(number - known, missed, self.message_bytes))
            self._models[client] = number
        return total

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return what `restore` needs."""
        pairs = sorted(self._models.items())
        return {"messages": np.array(self._messages, dtype=np.int64), "models": np.array(pairs, dtype=np.int64).reshape(-1, 2)}

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """Take up where another object was."""
        self._messages = arrays["messages"].tolist()
        self._models = dict(arrays["models"].tolist())
