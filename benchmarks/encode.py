"""Speed of encoding one million values, beside NumPy's Laplace noise of the same size, on one core."""

from functools import partial

import numpy as np
from shared.processor_time import seconds

from quietbits.design.noise.random_words import secure_words, seeded_words
from quietbits.design.tables.randomised_response import generalised_randomised_response

CLIENTS = 10**6


def main() -> None:
    """Print values per second, the ratio to Laplace noise, and the physical limit: drawing two words for each value."""
    rng = np.random.default_rng(0)
    values = rng.random(CLIENTS)
    laplace = seconds(lambda: values + rng.laplace(size=CLIENTS))
    print(f"{'numpy Laplace noise':<32} {CLIENTS / laplace / 1e6:7.1f} million values/s")
    for bits in (1, 3, 5, 9):
        table = generalised_randomised_response(1.0, bits)
        for name, words in (("seeded", seeded_words(rng)), ("secure", secure_words)):
            duration, drawing = seconds(partial(table.encode, values, words)), seconds(partial(words, 2 * CLIENTS))
            print(
                f"{f'{name} words, {bits} bits':<32} {CLIENTS / duration / 1e6:7.1f} million/s, {laplace / duration:5.2f} x Laplace; "
                f"takes {duration / drawing:4.1f} x as long as drawing its words"
            )


if __name__ == "__main__":
    main()
