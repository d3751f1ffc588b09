import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.deployment.clients.draws import below, parity, uniform
from quietbits.design.deployment.python_client import GivenWords

WORDS = st.integers(0, 2**64 - 1)


@given(st.lists(WORDS, max_size=4), st.integers(1, 2**64 - 1))
def test_below_takes_words_of_whole_multiples_only(first: list[int], high: int) -> None:
    # Words from 0 to 2**64 - 2**64 % high - 1 are a whole number of rounds through the remainders.
    accepted = 2**64 - 2**64 % high
    words = [*first, high - 1]
    source = GivenWords(np.array(words, dtype=np.uint64))
    drawn = below(source, high)
    place = next(place for place, word in enumerate(words) if word < accepted)
    assert (drawn, source.used) == (words[place] % high, place + 1)


@pytest.mark.parametrize("high", [1, 2, 3, 2**63, 2**63 + 1, 2**64 - 1])
def test_below_at_the_last_accepted_word(high: int) -> None:
    last = 2**64 - 2**64 % high - 1
    assert below(GivenWords(np.array([last], dtype=np.uint64)), high) == high - 1
    if last < 2**64 - 1:
        source = GivenWords(np.array([last + 1, 0], dtype=np.uint64))
        assert (below(source, high), source.used) == (0, 2)


@given(WORDS)
def test_uniform_and_parity(word: int) -> None:
    assert uniform(word) == (word // 2**11) / 2**53 < 1
    assert parity(word) == word.bit_count() % 2
