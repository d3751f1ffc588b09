"""Tests of dithering.

Points under test: a random word selects one of two neighbours, also when its first bits leave the choice open.
"""

import numpy as np
import pytest

from quietbits.design.transforms.dithering import dither


@pytest.mark.parametrize("steps", [1, 7, 511])
def test_all_bits_of_a_word_count(steps: int) -> None:
    rng = np.random.default_rng(1)
    positions = np.concatenate([rng.random(200) * steps, np.arange(steps + 1.0)])
    lower = np.floor(positions)
    limits = np.ceil((positions - lower) * 2.0**53).astype(np.uint64)
    shared = np.uint64(2**22 + 2**40)
    for uniforms in (limits, limits - (limits > 0), np.minimum(limits + shared, 2**53 - 1), np.zeros_like(limits)):
        uniforms = np.minimum(uniforms, 2**53 - 1).astype(np.uint64)
        expected = lower + (uniforms < limits)
        assert (dither(positions, uniforms << np.uint64(11), steps) == expected).all()
