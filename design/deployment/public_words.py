"""Public words of a deployment's clients, which client and server derive from its hash, a round and a client's index."""

import numpy as np
from numpy.typing import NDArray

from ...arrays import WordArray

# Number of blocks that are made at a time: they stay in the processor's cache.
BLOCKS_AT_A_TIME = 2**12
# Words of a ChaCha20 block; the constants of RFC 8439, section 2.3.
BLOCK_WORDS = 8
CHACHA_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4")
QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def public_words(key: bytes, round_number: int | NDArray[np.integer], clients: WordArray, count: int) -> WordArray:
    """Return the first public words of each client in a round, or in a round for each, shape (clients, count).

    They are the little-endian words of the ChaCha20 blocks 0, 1, ... (RFC 8439, section 2.3) whose key is the deployment's hash, and
    whose nonce is the round, of 4 bytes, and the client's index, of 8 bytes, both little-endian.

    Examples
    --------
    >>> words = public_words(bytes(32), 0, np.array([0], dtype=np.uint64), 2)
    >>> words.tolist() == [[0x903DF1A0ADE0B876, 0x28BD8653E56A5D40]]
    True
    """
    blocks, rounds = -(-count // BLOCK_WORDS), np.broadcast_to(round_number, len(clients))
    step = max(1, BLOCKS_AT_A_TIME // max(1, blocks))
    words = np.empty((len(clients), count), dtype=np.uint64)
    for start in range(0, len(clients) if count else 0, step):
        part = slice(start, start + step)
        words[part] = _blocks(key, rounds[part], clients[part], blocks)[:, :count]
    return words


def _blocks(key: bytes, rounds: NDArray[np.integer], clients: WordArray, blocks: int) -> WordArray:
    """Return the words of the first blocks of each client, shape (clients, words)."""
    state = np.empty((16, len(clients), blocks), dtype=np.uint32)
    state[:4] = CHACHA_CONSTANTS[:, None, None]
    state[4:12] = np.frombuffer(key, dtype="<u4")[:, None, None]
    state[12] = np.arange(blocks, dtype=np.uint32)
    state[13] = rounds[:, None]
    state[14] = (clients & np.uint64(0xFFFFFFFF)).astype(np.uint32)[:, None]
    state[15] = (clients >> np.uint64(32)).astype(np.uint32)[:, None]
    mixed = state.copy()
    for _ in range(10):
        for quarter in QUARTERS:
            _mix(mixed, *quarter)
    mixed += state
    words = np.ascontiguousarray(mixed.transpose(1, 2, 0), dtype="<u4").view("<u8").astype(np.uint64)
    return words.reshape(len(clients), -1)


def _mix(block: NDArray[np.uint32], a: int, b: int, c: int, d: int) -> None:
    """Apply a quarter round of ChaCha to four words of every block."""
    for first, second, third, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        block[first] += block[second]
        changed = block[third] ^ block[first]
        np.left_shift(changed, np.uint32(bits), out=block[third])
        np.right_shift(changed, np.uint32(32 - bits), out=changed)
        block[third] |= changed
