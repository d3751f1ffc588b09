"""Masking one client's message, for lengths and numbers of neighbours, beside AES-256 in counter mode for as many bytes of masks."""

import time
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.mask_cost import mask_cost, rate_at_equal_cost

CLIENTS, BITS = 1000, 16
LENGTHS = (2**14, 2**16, 2**18, 2**20)
NEIGHBOURS = (10, 20, 40)
WORD_BYTES = 8
REPETITIONS = 3


def seconds(run: Callable[[], object]) -> float:
    """Return the shortest of several runs."""
    durations = []
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        run()
        durations.append(time.perf_counter() - started)
    return min(durations)


def main() -> None:
    """Print seconds of a client, nanoseconds of a coordinate of a mask, and ratios to the keystream of the same and of packed length."""
    rng = np.random.default_rng(0)
    keystream = keystream_seconds()
    print(f"AES-256-CTR: {1e-9 / keystream:.2f} GB/s; numpy's Philox: {philox_rate():.2f} GB/s")
    for length in LENGTHS:
        message = rng.integers(0, 1 << BITS, size=(1, length))
        for neighbours in NEIGHBOURS:
            session = SecureSum(CLIENTS, length, 1 << BITS, neighbours=neighbours).session(np.random.default_rng(1))
            # Each client masks once.
            clients = iter(range(CLIENTS))
            taken = seconds(lambda: session.mask(next(clients), message))  # noqa: B023 - called at once
            coordinates = mask_cost(CLIENTS, length, neighbours).client
            words, packed = (keystream * coordinates * size for size in (WORD_BYTES, BITS / 8))
            print(
                f"m = 2**{length.bit_length() - 1}, {neighbours} neighbours: {taken:6.3f} s a client, {1e9 * taken / coordinates:5.2f} ns "
                f"for a coordinate of a mask; {taken / words:4.1f} x AES for words, {taken / packed:4.1f} x for {BITS} bits"
            )
    print(f"rate at which 1000 clients cost what 100 do: {rate_at_equal_cost(1000, 100):.1f}")


def keystream_seconds() -> float:
    """Return seconds for a byte of AES-256-CTR, in a buffer that stays in the processor's cache: what secret masks cost at least."""
    block, places = bytes(2**16), bytearray(2**16 + 16)
    encryptor = Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor()
    return seconds(lambda: [encryptor.update_into(block, places) for _ in range(1000)]) / (1000 * len(block))


def philox_rate() -> float:
    """Return bytes of random words a nanosecond, by the generator that expands masks."""
    generator = np.random.Generator(np.random.Philox(key=1))
    return 1e-9 * 2**20 * WORD_BYTES / seconds(lambda: generator.integers(2**62, size=2**20, dtype=np.uint64))


if __name__ == "__main__":
    main()
