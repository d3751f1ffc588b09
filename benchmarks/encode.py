"""Speed of encoding one million values, beside Laplace noise of the same size from NumPy and from OpenDP, on one core."""

from collections.abc import Callable
from functools import partial

import numpy as np
from shared.growth import exponent
from shared.opendp_noise import laplace, load_opendp
from shared.processor_time import seconds

from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.randomised_response import generalised_randomised_response

CLIENTS, OTHER_CLIENTS = 10**6, 10**4
SIZES = (10**4, 10**5, 10**6)


def encoding(table: LookupTable, words: WordSource) -> Callable[[int], Callable[[], object]]:
    """Return a function that makes a run for a number of clients."""
    values = np.random.default_rng(0).random(CLIENTS)
    return lambda clients: partial(table.encode, values[:clients], words)


def main() -> None:
    """Print values per second, ratios to Laplace noise, and the physical limit: two words drawn for each value, and the value copied.

    Seeded words are compared with NumPy's seeded generator, and secure ones with OpenDP, whose randomness is secure.
    """
    rng = np.random.default_rng(0)
    values = rng.random(CLIENTS)
    numpy_laplace = seconds(lambda: values + rng.laplace(size=CLIENTS)) / CLIENTS
    print(f"{'numpy Laplace noise, seeded':<32} {1e-6 / numpy_laplace:8.3f} million values/s")
    references = {"seeded": ("numpy's Laplace", numpy_laplace)}
    dp = load_opendp()
    if dp is not None:
        opendp_laplace = seconds(laplace(dp, 1.0, OTHER_CLIENTS)) / OTHER_CLIENTS
        print(f"{'OpenDP Laplace noise, secure':<32} {1e-6 / opendp_laplace:8.3f} million values/s")
        references["secure"] = ("OpenDP's Laplace", opendp_laplace)
    for bits in (1, 3, 5, 9):
        table = generalised_randomised_response(1.0, bits)
        for name, words in (("seeded", seeded_words(rng)), ("secure", secure_words)):
            run = encoding(table, words)
            duration, limit = seconds(run(CLIENTS)), seconds(partial(words, 2 * CLIENTS)) + seconds(values.copy)
            speeds = f"{CLIENTS / duration / 1e6:8.3f} million values/s"
            if name in references:
                other, reference = references[name]
                speeds += f", {CLIENTS * reference / duration:6.2f} x {other}"
            print(
                f"{f'{name} words, {bits} bits':<32} {speeds}; takes {duration / limit:4.1f} x as long as its words and a copy; "
                f"grows with the {exponent(run, SIZES):.2f}th power"
            )


if __name__ == "__main__":
    main()
