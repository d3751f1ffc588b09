import numpy as np
import pytest

from quietbits.analysis.random_streams import NumberedStreams, named_stream


@pytest.mark.parametrize("number", [0, 1, 2, 10**6])
def test_numbered_streams_are_numpys_jumps_of_the_one_of_their_name(number: int) -> None:
    jumped = np.random.Generator(named_stream(5, "name").bit_generator.jumped(number))
    assert np.array_equal(NumberedStreams(5, "name").at(number).standard_normal(100), jumped.standard_normal(100))


def test_a_stream_begins_anew_whatever_was_drawn_before() -> None:
    streams = NumberedStreams(5, "name")
    first = streams.at(3).integers(0, 2**32, size=3, dtype=np.uint32)
    streams.at(4).integers(0, 2**32, size=1, dtype=np.uint32)
    assert np.array_equal(streams.at(3).integers(0, 2**32, size=3, dtype=np.uint32), first)


def test_streams_of_other_numbers_names_and_seeds_are_others() -> None:
    streams = [(5, "name", 1), (5, "name", 2), (5, "other", 1), (6, "name", 1)]
    first = [int(NumberedStreams(seed, name).at(number).integers(2**62)) for seed, name, number in streams]
    assert len(set(first)) == len(first)
