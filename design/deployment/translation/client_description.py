"""Description of a client, for the templates of all languages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..client_program import ClientProgram
from .printer import Constant
from .secret_flow import leaks_of
from .typed_program import Function, TranslationError, cell_lengths, typed_program

# Largest number of floating-point numbers that a client keeps on the stack: 64 KB, as threads of small systems have little more.
MOST_STACK_CELLS = 2**13


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

    @property
    def package(self) -> str:
        """Name of a package of the client."""
        return f"{self.identifier.replace('_', '-')}-client"

    @property
    def workspace(self) -> int:
        """Number of floating-point numbers that a caller provides in languages without a heap; 0 if the stack holds them."""
        cells = sum(cell_lengths(typed_program(self.program.client)[-1], self.program.constants).values())
        return cells if cells > MOST_STACK_CELLS else 0

    def functions_in_constant_time(self) -> tuple[list[Function], dict[str, Constant]]:
        """Return the functions and constants of the client together with those of its variant without branches, if there is one."""
        functions, constants = typed_program(self.program.client), dict(self.program.constants)
        if self.program.constant_time is not None:
            names = {function.name for function in functions}
            further = typed_program(self.program.constant_time.client)
            if leaks := leaks_of(further):
                raise TranslationError(f"{further[-1].name} must take the same steps for all inputs and words, got {leaks[0]}")
            functions += [function for function in further if function.name not in names]
            constants |= self.program.constant_time.constants
        return functions, constants

    def facts(self) -> dict[str, Any]:
        """Return the values that templates name."""
        program = self.program
        input_name, input_words = {
            "number": ("value", "a finite number; numbers outside the interval count as its nearer end"),
            "vector": ("vector", f"a vector of {self.dimension} finite numbers, which is clipped to the ball"),
            "item": ("item", f"an item, from 0 to {(self.categories or 1) - 1}"),
        }[self.input]
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
            "workspace": self.workspace,
            "package": self.package,
            "input_name": input_name,
            "input_words": input_words,
            "constant_time_function": None if program.constant_time is None else program.constant_time.client.__name__,
        }
