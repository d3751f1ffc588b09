"""Masking a client's message, against AES-256 in counter mode."""

import numpy as np
from shared.growth import slope
from shared.physical_limit import WORD_BYTES, beside_limit, keystream_seconds
from shared.processor_time import seconds

from quietbits.design.secure_sum.aggregation import SecureSum, mask_cost, rate_at_equal_cost

CLIENTS, BITS = 1000, 16
LENGTHS = (2**14, 2**16, 2**18, 2**20)
NEIGHBOURS = (10, 20, 40)
REPETITIONS = 3


def main() -> None:
    """Print seconds per client, nanoseconds per coordinate, and ratios to the keystream.

    The keystreams have the masks' own length and their packed length.

    The physical limit of secret masks is the keystream for their words.
    """
    rng, keystream = np.random.default_rng(0), keystream_seconds()
    print(f"AES-256-CTR: {1e9 * keystream:.2f} ns a word; numpy's Philox: {1e9 * philox_seconds():.2f} ns a coordinate")
    times = {neighbours: [] for neighbours in NEIGHBOURS}
    for length in LENGTHS:
        message = rng.integers(0, 1 << BITS, size=(1, length))
        for neighbours in NEIGHBOURS:
            session = SecureSum(CLIENTS, length, 1 << BITS, neighbours=neighbours).session(np.random.default_rng(1))
            # Each client masks only once.
            clients = iter(range(CLIENTS))
            taken = seconds(lambda: session.mask(next(clients), message), REPETITIONS)  # noqa: B023 - called at once
            times[neighbours].append(taken)
            coordinates = mask_cost(CLIENTS, length, neighbours).client
            words = keystream * coordinates
            packed = words * BITS / 8 / WORD_BYTES
            print(
                f"m = 2**{length.bit_length() - 1}, {neighbours} neighbours: {taken:6.3f} s a client, {1e9 * taken / coordinates:5.2f} ns "
                f"for a coordinate of a mask; {beside_limit(taken, words)}, {taken / packed:4.1f} x AES for {BITS} bits"
            )
    for neighbours, durations in times.items():
        print(f"{neighbours} neighbours: time grows with the {slope(LENGTHS, durations):.2f}th power of the length")
    print(f"rate at which 1000 clients cost what 100 do: {rate_at_equal_cost(1000, 100):.1f}")


def philox_seconds() -> float:
    """Return the seconds per coordinate of a mask, by the call that expands masks."""
    generator = np.random.Generator(np.random.Philox(key=1))
    return seconds(lambda: generator.integers(1 << BITS, size=2**20, dtype=np.uint64)) / 2**20


if __name__ == "__main__":
    main()
