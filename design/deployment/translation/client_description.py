"""What the templates of all languages say about a client."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..client_program import ClientProgram


@dataclass(frozen=True, eq=False)
class ClientDescription:
    """A client's program with the names and facts that its source code states.

    Attributes
    ----------
    name, identifier : str
        Name of the deployment, and the same as an identifier: small letters, digits and underscores.
    title, guarantee : str
        The mechanism and its guarantee, each in a line.
    mechanism : str
        Name of the mechanism.
    hash : str
        The deployment's hash, 64 hexadecimal digits.
    version : str
        Version of quietbits.
    input : str
        ``"number"``, ``"vector"`` or ``"item"``.
    dimension, categories : int or None
        Length of a vector, and number of items.
    program : ClientProgram
        The program.
    """

    name: str
    identifier: str
    title: str
    guarantee: str
    mechanism: str
    hash: str
    version: str
    input: str
    dimension: int | None
    categories: int | None
    program: ClientProgram

    @property
    def key_words(self) -> list[int]:
        """The hash as eight little-endian words of 32 bits, the key of the public words."""
        return [int(word) for word in np.frombuffer(bytes.fromhex(self.hash), dtype="<u4")]

    def facts(self) -> dict[str, Any]:
        """Return what templates name."""
        program = self.program
        stated = {name: getattr(self, name) for name in ("name", "title", "guarantee", "mechanism", "hash", "version", "input")}
        return {
            **stated,
            "dimension": self.dimension,
            "categories": self.categories,
            "key_words": self.key_words,
            "fields": program.fields,
            "field_bits": program.field_bits,
            "message_bytes": program.message_bytes,
            "public": program.public_words > 0,
        }
