"""A stuck source of words makes every sampler of every mechanism stop with an error."""

from fractions import Fraction

import numpy as np
import pytest
from built_in_trials import one_adjacency

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.conformance.mechanism_cases import CLIENTS, Case, released
from quietbits.arrays import WordArray
from quietbits.design.noise.binomial_noise import sample_binomial
from quietbits.design.noise.discrete_gaussian import sample_discrete_gaussian
from quietbits.design.noise.discrete_laplace import sample_discrete_laplace
from quietbits.design.noise.random_words import WordSource
from quietbits.design.noise.redraws import Redraws
from quietbits.design.noise.skellam_noise import sample_poisson, sample_skellam

STUCK = {"ones": 2**64 - 1, "zeros": 0}


class Stuck(WordSource):
    """Source that repeats a word, up to more words than any sampler needs."""

    def __init__(self, word: int) -> None:
        self.word, self.left = word, 10**8

    def __call__(self, count: int) -> WordArray:
        self.left -= count + 1
        assert self.left > 0, "a sampler does not stop"
        return np.full(count, self.word, dtype=np.uint64)


@pytest.mark.parametrize("word", STUCK.values(), ids=STUCK)
@pytest.mark.parametrize("case", [case for name, entry in REGISTRY.items() if name != "mvu" for case in one_adjacency(entry)], ids=str)
def test_every_mechanism_stops(case: Case, word: int) -> None:
    mechanism, inputs = released(case.mechanism), case.inputs(CLIENTS)
    try:
        messages = mechanism.encode(inputs, Stuck(word))
    except ValueError as error:
        assert "words must be random" in str(error)  # noqa: PT017 - either of both is right
    else:
        assert len(messages) > 0


@pytest.mark.parametrize("word", STUCK.values(), ids=STUCK)
@pytest.mark.parametrize(
    "sample",
    [
        lambda words: sample_discrete_gaussian(3.5, 10, words),
        lambda words: sample_discrete_laplace(Fraction(7, 2), 10, words),
        lambda words: sample_poisson(7.5, 10, words),
        lambda words: sample_skellam(20.0, 10, words),
        lambda words: sample_binomial(1000, 0.3, 10, words),
        lambda words: words.permutation(10),
        lambda words: words.integers(3 * 2**61, 10),
        lambda words: words.integers(6, 10),
    ],
)
def test_every_sampler_stops(sample: object, word: int) -> None:
    assert callable(sample)
    try:
        drawn = sample(Stuck(word))
    except ValueError as error:
        assert "words must be random" in str(error)  # noqa: PT017 - either of both is right
    else:
        assert len(drawn) == 10


def test_a_permutation_of_equal_words_is_refused() -> None:
    with pytest.raises(ValueError, match="words must be random, got a source that a sampler refused 200 times in a row"):
        Stuck(7).permutation(2)


def test_as_many_turns_as_are_allowed_are_allowed() -> None:
    redraws = Redraws(3)
    for _ in range(3):
        redraws.another()
    with pytest.raises(ValueError, match="refused 3 times in a row"):
        redraws.another()
