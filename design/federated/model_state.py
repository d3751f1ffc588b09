"""A model with its optimiser's memory and checksum, equal at server and clients."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer
from ...errors import NotFiniteError

StateArray = NDArray[np.floating[Any]]

MOST_STATE_ROUNDS = 2**32 - 1
CHECKSUM_BYTES = 16


@dataclass(frozen=True, eq=False)
class ModelState:
    """A model and its optimiser's memory, after a number of rounds.

    Attributes
    ----------
    rounds : int
        Number of rounds that the model includes, from 0 to 2**32 - 1.
    parameters : ndarray of float32 or float64, shape (dimension,)
        The model, finite; read-only.
    moments : tuple of ndarray, same type and shape
        The optimiser's memory: nothing, momentum, or first and second moments; read-only.

    Examples
    --------
    >>> state = ModelState(rounds=3, parameters=np.ones(2, dtype=np.float32))
    >>> state.dimension, state.state_bytes, len(state.checksum())
    (2, 8, 16)
    """

    rounds: int
    parameters: StateArray
    moments: tuple[StateArray, ...] = ()

    def __post_init__(self) -> None:
        """Check the arrays, and keep read-only copies."""
        check_integer("rounds", self.rounds, low=0, high=MOST_STATE_ROUNDS)
        arrays = (self.parameters, *self.moments)
        kind, shape = np.asarray(self.parameters).dtype, np.shape(self.parameters)
        if kind not in (np.float32, np.float64) or len(shape) != 1 or shape[0] == 0:
            raise ValueError(f"parameters must be float32 or float64 numbers, shape (dimension,), got {kind} and {shape}")
        for array in arrays[1:]:
            if np.asarray(array).dtype != kind or np.shape(array) != shape:
                raise ValueError(f"moments must be {kind}, shape {shape}, like the parameters, got {array.dtype} and {np.shape(array)}")
        for name, array in zip(("parameters", *("moments" for _ in self.moments)), arrays, strict=True):
            # Finiteness is tested in the array's own type: a cast of damaged numbers would warn of signalling NaNs.
            if not np.isfinite(array).all():
                raise NotFiniteError(f"{name} must hold finite numbers only, got {float(array[~np.isfinite(array)][0])!r}")
        kept = [np.array(array) for array in arrays]
        for array in kept:
            array.flags.writeable = False
        object.__setattr__(self, "parameters", kept[0])
        object.__setattr__(self, "moments", tuple(kept[1:]))

    @property
    def dimension(self) -> int:
        """Number of the model's parameters."""
        return len(self.parameters)

    @property
    def state_bytes(self) -> int:
        """Number of bytes of the parameters and the moments."""
        return self.parameters.nbytes * (1 + len(self.moments))

    def to_bytes(self) -> bytes:
        """Return the parameters, then the moments, little-endian: `state_bytes` bytes."""
        little_endian = self.parameters.dtype.newbyteorder("<")
        return b"".join(array.astype(little_endian).tobytes() for array in (self.parameters, *self.moments))

    def checksum(self) -> bytes:
        """Return a 16-byte digest (BLAKE2b) of the rounds, the arrays' type and all their bits.

        States that differ by accident have equal checksums with a probability of 2**-128.
        """
        head = f"{self.rounds} {self.parameters.dtype.name} {len(self.moments)} {self.dimension};".encode()
        return hashlib.blake2b(head + self.to_bytes(), digest_size=CHECKSUM_BYTES).digest()
