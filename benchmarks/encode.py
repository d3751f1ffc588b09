"""Encoding a million values, against Laplace noise from NumPy and from OpenDP, on one core."""

from functools import partial

import numpy as np
from shared.growth import exponent
from shared.opendp_noise import laplace, load_opendp
from shared.physical_limit import beside_limit, drawing_and_copying
from shared.processor_time import seconds

from quietbits.design.noise.random_words import secure_words, seeded_words
from quietbits.design.tables.randomised_response import generalised_randomised_response

CLIENTS, OTHER_CLIENTS = 10**6, 10**4
SIZES = (10**4, 10**5, 10**6)


def main() -> None:
    """Print nanoseconds per value, and ratios to Laplace noise and to the physical limit.

    The limit is the words drawn, and the values copied. Seeded words are compared with NumPy's seeded generator, and secure words with
    OpenDP, whose randomness is secure.
    """
    rng = np.random.default_rng(0)
    values = rng.random(CLIENTS)
    numpy_laplace = seconds(lambda: values + rng.laplace(size=CLIENTS)) / CLIENTS
    print(f"{'numpy Laplace noise, seeded':<32} {1e9 * numpy_laplace:8.2f} ns a value")
    references = {"seeded": ("numpy's Laplace", numpy_laplace)}
    dp = load_opendp()
    if dp is not None:
        opendp_laplace = seconds(laplace(dp, 1.0, OTHER_CLIENTS)) / OTHER_CLIENTS
        print(f"{'OpenDP Laplace noise, secure':<32} {1e9 * opendp_laplace:8.2f} ns a value")
        references["secure"] = ("OpenDP's Laplace", opendp_laplace)
    for bits in (1, 3, 5, 9):
        table = generalised_randomised_response(1.0, bits)
        for name, words in (("seeded", seeded_words(rng)), ("secure", secure_words)):
            duration = seconds(partial(table.encode, values, words))
            line = f"{f'{name} words, {bits} bits':<32} {1e9 * duration / CLIENTS:8.2f} ns a value"
            if name in references:
                other, reference = references[name]
                line += f", {duration / reference / CLIENTS:.3g} x {other} time"
            limit = drawing_and_copying(partial(table.encode, values), words, values)
            power = exponent(lambda clients, table=table, words=words: partial(table.encode, values[:clients], words), SIZES)
            print(f"{line}, {beside_limit(duration, limit, power)}")


if __name__ == "__main__":
    main()
