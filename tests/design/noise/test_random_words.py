"""Sources of random words: draws follow their distributions, and no word is used twice.

Draws from secure words have no seed: each chi-square test fails by chance in one run of 10**9.
"""

import copy
import math
import os
import pickle
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from quietbits.arrays import WordArray
from quietbits.design.noise import random_words
from quietbits.design.noise.random_words import (
    BUFFER_WORDS,
    KeyStream,
    SecureWords,
    SeededWords,
    WordSource,
    secure_words,
    seeded_words,
    word_source,
)

FALSE_ALARM = 1e-9


class Script(WordSource):
    """Source of random words that returns a given list of words."""

    def __init__(self, *answers: list[int]) -> None:
        self.answers = list(answers)

    def __call__(self, count: int) -> WordArray:
        answer = self.answers.pop(0)
        assert len(answer) == count
        return np.array(answer, dtype=np.uint64)


# Tests of draws


@pytest.mark.parametrize("kind", [*random_words.GENERATORS_OF_WORDS, np.random.MT19937])
def test_seeded_words_are_those_of_any_generator(kind: type[np.random.BitGenerator]) -> None:
    words, rng = seeded_words(np.random.Generator(kind(1))), np.random.Generator(kind(1))
    # numpy's spare half word, kept for the next short draw, changes nothing.
    assert words.rng.integers(5, dtype=np.uint32) == rng.integers(5, dtype=np.uint32)
    for count in (0, 1, 1000):
        np.testing.assert_array_equal(words(count), rng.integers(0, 2**64, size=count, dtype=np.uint64))


def test_seeded_draws_are_those_of_the_generator() -> None:
    words, rng = seeded_words(np.random.default_rng(1)), np.random.default_rng(1)
    np.testing.assert_array_equal(words(5), rng.integers(0, 2**64, size=5, dtype=np.uint64))
    np.testing.assert_array_equal(words.uniforms((2, 3)), rng.random((2, 3)))
    filled = np.empty((2, 3))
    words.fill_uniforms(filled)
    np.testing.assert_array_equal(filled, rng.random((2, 3)))
    np.testing.assert_array_equal(words.normals(4), rng.standard_normal(4))
    np.testing.assert_array_equal(words.laplace(4), rng.laplace(0.0, 1.0, 4))
    np.testing.assert_array_equal(words.integers(10, (3, 2)), rng.integers(10, size=(3, 2)))
    np.testing.assert_array_equal(words.permutation(7), rng.permutation(7))
    assert words.random_bytes(11) == rng.bytes(11)
    assert words.uniforms(()) == rng.random()


def chi_square_p(draws: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray], cells: int = 200) -> float:
    """Return the p-value of draws in cells of equal probability."""
    counts = np.bincount(np.searchsorted(quantile(np.arange(1, cells) / cells), draws.ravel()), minlength=cells)
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize(
    ("draw", "law"), [("uniforms", stats.uniform), ("normals", stats.norm), ("laplace", stats.laplace)], ids=lambda value: str(value)[:8]
)
def test_secure_draws_follow_their_distributions(draw: str, law: Any) -> None:
    draws = getattr(secure_words, draw)((1000, 1000))
    assert draws.shape == (1000, 1000)
    assert draws.dtype == np.float64
    assert chi_square_p(draws, law.ppf) > FALSE_ALARM
    # The check includes the upper tail: of 10**6 draws, about 1000 are in this thousandth.
    tail = draws[draws > law.isf(1e-3)]
    assert stats.binomtest(len(tail), 10**6, 1e-3).pvalue > FALSE_ALARM
    assert chi_square_p(law.sf(tail) * 1e3, stats.uniform.ppf, cells=10) > FALSE_ALARM


@pytest.mark.parametrize("high", [1, 2, 7, 1000])
def test_secure_integers_are_uniform(high: int) -> None:
    draws = secure_words.integers(high, (500, 1000))
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    counts = np.bincount(draws.ravel(), minlength=high)
    assert len(counts) == high
    assert high == 1 or stats.chisquare(counts).pvalue > FALSE_ALARM


def test_large_secure_integers_are_uniform() -> None:
    # A quarter of all words is redrawn, as the plain remainder would draw the first third half of the time.
    high = 3 * 2**61
    draws = secure_words.integers(high, 10**6)
    assert 0 <= draws.min() <= draws.max() < high
    assert stats.chisquare(np.bincount(draws // 2**58, minlength=24)).pvalue > FALSE_ALARM


def test_secure_permutations_and_bytes_are_uniform() -> None:
    orders = {order: number for number, order in enumerate(permutations(range(4)))}
    drawn = [orders[tuple(secure_words.permutation(4).tolist())] for _ in range(12_000)]
    assert stats.chisquare(np.bincount(drawn, minlength=24)).pvalue > FALSE_ALARM
    assert sorted(secure_words.permutation(1000).tolist()) == list(range(1000))
    numbers = np.frombuffer(secure_words.random_bytes(100_003), dtype=np.uint8)
    assert len(numbers) == 100_003
    assert stats.chisquare(np.bincount(numbers, minlength=256)).pvalue > FALSE_ALARM


def test_uniforms_are_the_upper_53_bits() -> None:
    words = [0, 2**11 - 1, 2**11, 2**63, 2**64 - 1]
    assert Script(words).uniforms(5).tolist() == [0.0, 0.0, 2.0**-53, 0.5, 1 - 2.0**-53]


def test_normals_are_quantiles_as_far_as_the_outermost_cells() -> None:
    # The lowest bit is the sign, the other bits count cells from the tail to the centre.
    cells = [0, 1, 2**20, 2**40, 2**62, 2**63 - 1]
    drawn = Script([2 * cell + sign for sign in (0, 1) for cell in cells]).normals((2, 6))
    np.testing.assert_array_equal(drawn[0], -drawn[1])
    with mpmath.workdps(40):
        for cell, number in zip(cells, drawn[0].tolist(), strict=True):
            exact = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * (cell + mpmath.mpf(0.5)) / 2**64)
            assert abs(number - exact) < 1e-14 * (1 + exact)
    assert drawn[0, 0] == pytest.approx(9.1553, abs=1e-4)
    assert drawn[0, 0] == -drawn[1, 0] == max(drawn.ravel())


def test_laplace_numbers_are_quantiles_as_far_as_the_outermost_cells() -> None:
    drawn = Script([0, 1, 2**63, 2**64 - 2, 2**64 - 1]).laplace(5)
    assert drawn[0] == -drawn[1] == pytest.approx(64 * math.log(2), rel=1e-15)
    assert drawn[2] == pytest.approx(math.log(2), rel=1e-15)
    assert drawn[3] == drawn[4] == 0.0


def test_surplus_words_are_drawn_again() -> None:
    # 2**64 leaves 1 on division by 3, so the last word is surplus. Powers of two have no surplus.
    words = Script([2**64 - 1, 4, 2**64 - 1], [2**64 - 1, 5], [7])
    assert words.integers(3, 3).tolist() == [1, 1, 2]
    assert words.answers == []
    assert Script([2**64 - 1]).integers(2**63, 1).tolist() == [2**63 - 1]
    assert Script([2**64 - 1]).integers(1, ()) == 0
    for high in (0, 2**63 + 1, 2.5):
        with pytest.raises(ValueError, match="high must be a whole number from 1 to 9223372036854775808, got"):
            secure_words.integers(high, 1)  # type: ignore[arg-type]


def test_words_that_tie_give_no_order() -> None:
    assert Script([3, 3, 1], [9, 2, 5]).permutation(3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("source", [secure_words, seeded_words(np.random.default_rng(0))], ids=["secure", "seeded"])
@pytest.mark.parametrize(("shape", "expected"), [(0, (0,)), (3, (3,)), ((), ()), ((2, 0), (2, 0)), ((2, 3, 4), (2, 3, 4))])
def test_draws_have_the_shape_that_was_asked_for(source: WordSource, shape: Any, expected: tuple[int, ...]) -> None:
    for drawn in (source.uniforms(shape), source.normals(shape), source.laplace(shape), source.integers(5, shape)):
        assert np.shape(drawn) == expected


# Tests of the single use of secure words


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Return the keys that are drawn from the operating system, as they are drawn."""
    drawn: list[bytes] = []
    original = secrets.token_bytes

    def watched(count: int) -> bytes:
        drawn.append(original(count))
        return drawn[-1]

    monkeypatch.setattr(secrets, "token_bytes", watched)
    yield drawn
    assert {len(key) for key in drawn} <= {32}


def encrypted_counters(key: bytes, count: int) -> WordArray:
    """Return AES in counter mode from its definition: block i encrypts the number i."""
    counters = b"".join(number.to_bytes(16, "big") for number in range(-(-count // 2)))
    return np.frombuffer(Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counters), dtype=np.uint64)[:count]  # noqa: S305


def test_the_stream_is_aes_in_counter_mode(keys: list[bytes]) -> None:
    stream = KeyStream()
    large, small, again, next_large, rest = (stream.take(count) for count in (2001, 5, 3, BUFFER_WORDS + 1, 1024))
    (key,) = keys
    blocks = np.concatenate([large, np.zeros(1, np.uint64)])
    expected = encrypted_counters(key, 2001 + BUFFER_WORDS + BUFFER_WORDS + 1 + 1)
    np.testing.assert_array_equal(blocks[:2001], expected[:2001])
    # A buffer, filled after the large call, serves small calls; the next large call starts after the whole buffer.
    np.testing.assert_array_equal(np.concatenate([small, again, rest]), expected[2001 : 2001 + 5 + 3 + 1024])
    np.testing.assert_array_equal(next_large, expected[2001 + BUFFER_WORDS : 2001 + 2 * BUFFER_WORDS + 1])


def test_keys_are_replaced_and_no_word_comes_twice(monkeypatch: pytest.MonkeyPatch, keys: list[bytes]) -> None:
    monkeypatch.setattr(random_words, "WORDS_PER_KEY", 4 * BUFFER_WORDS)
    stream = KeyStream()
    sizes = [1, 7, 1024, 1025, BUFFER_WORDS - 1, 5 * BUFFER_WORDS + 3, 2, 1000] * 4
    parts = [stream.take(size) for size in sizes]
    assert [len(part) for part in parts] == sizes
    words = np.concatenate(parts)
    # Two random words among these are equal with probability 2**-29.
    assert len(np.unique(words)) == len(words)
    assert len(set(keys)) == len(keys)
    assert len(words) <= len(keys) * 4 * BUFFER_WORDS
    assert len(keys) <= 3 * len(words) / (4 * BUFFER_WORDS)


def test_words_may_be_overwritten() -> None:
    for count in (4, 5000):
        first = secure_words(count)
        kept = first.copy()
        secure_words(count)[:] = 0
        np.testing.assert_array_equal(first, kept)


def test_threads_have_streams_of_their_own(keys: list[bytes]) -> None:
    source, drawn = SecureWords(), []
    for expected in (2, 3):
        drawn.append(source(10))
        thread = threading.Thread(target=lambda: drawn.extend([source(10), source(10)]))
        thread.start()
        thread.join()
        assert len(keys) == expected
    assert len(np.unique(np.concatenate(drawn))) == 60


def test_threads_at_once_draw_different_words() -> None:
    source, barrier, drawn = SecureWords(), threading.Barrier(4), []

    def draw() -> None:
        barrier.wait()
        drawn.extend(source(10) for _ in range(100))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(drawn))) == 4000


FORKS = """
import os
import numpy as np
from quietbits import secure_words

{numbers}

def forked(draw):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, draw())
        os._exit(0)
    os.wait()
    return os.read(reading, 2**14)

secure_words(1)  # a key, and a buffer with words to come
child = lambda: secure_words(100).tobytes() + forked(lambda: secure_words(100).tobytes())
drawn = forked(child) + forked(child) + secure_words(100).tobytes()
print(len(np.unique(np.frombuffer(drawn, dtype=np.uint64))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
@pytest.mark.parametrize("numbers", ["", "os.getpid = lambda: 1"], ids=["as they are", "all the same"])
def test_children_and_grandchildren_draw_other_words(numbers: str) -> None:
    # The test forks in a separate process with one thread: forking with several threads is deprecated.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", FORKS.format(numbers=numbers)], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout == "500\n"


def test_forks_are_seen_by_their_number_and_by_python(monkeypatch: pytest.MonkeyPatch, keys: list[bytes]) -> None:
    source = SecureWords()
    source(1), source(1)
    assert len(keys) == 1
    # The process is forked without Python's knowledge.
    monkeypatch.setattr(os, "getpid", lambda: 10**9)
    source(1), source(1)
    assert len(keys) == 2
    # Python forks the process, which gets the number of an ended process.
    monkeypatch.setattr(random_words, "_forks", random_words._forks + 1)
    source(1), source(1)
    assert len(keys) == 3


def test_a_call_within_a_call_gets_another_stream(monkeypatch: pytest.MonkeyPatch, keys: list[bytes]) -> None:
    # The nested call stands for a signal handler in the middle of another call.
    source, take, inner = SecureWords(), KeyStream.take, []
    source(1)

    def interrupted(stream: KeyStream, count: int) -> WordArray:
        monkeypatch.setattr(KeyStream, "take", take)
        inner.append(source(count))
        return take(stream, count)

    monkeypatch.setattr(KeyStream, "take", interrupted)
    outer = source(10)
    assert len(keys) == 2
    assert len(np.unique(np.concatenate([outer, *inner, source(10)]))) == 30


def test_what_was_drawn_while_the_process_forked_is_drawn_again(monkeypatch: pytest.MonkeyPatch, keys: list[bytes]) -> None:
    source, take, both_have = SecureWords(), KeyStream.take, []
    source(1)

    def forking(stream: KeyStream, count: int) -> WordArray:
        monkeypatch.setattr(KeyStream, "take", take)
        monkeypatch.setattr(random_words, "_forks", random_words._forks + 1)
        both_have.append(take(stream, count))
        return both_have[0]

    monkeypatch.setattr(KeyStream, "take", forking)
    drawn = source(10)
    assert len(keys) == 2
    assert len(np.unique(np.concatenate([drawn, *both_have]))) == 20


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda source: pickle.loads(pickle.dumps(source))])  # noqa: S301
def test_copies_of_secure_words_are_new_sources(copied: Callable[[SecureWords], SecureWords], keys: list[bytes]) -> None:
    source = SecureWords()
    source(1)
    other = copied(source)
    assert isinstance(other, SecureWords)
    assert len(np.unique(np.concatenate([source(100), other(100)]))) == 200
    assert len(keys) == 2


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_seeded_words_are_not_copied(copied: Callable[[SeededWords], object]) -> None:
    with pytest.raises(TypeError, match=r"copies of one generator draw the same numbers; derive a stream for each .*named_stream"):
        copied(seeded_words(np.random.default_rng(0)))


# Tests of refusals


@pytest.mark.parametrize(
    "bad", [0, None, "secure", np.random.RandomState(0), np.random.default_rng, lambda count: np.zeros(count), SecureWords]
)
def test_what_is_not_a_source_is_refused(bad: Any) -> None:
    with pytest.raises(
        ValueError, match=r"random_words must be quietbits\.secure_words, for releases, or a numpy\.random\.Generator .*, got "
    ):
        word_source(bad)


def test_sources_are_passed_on_and_generators_count_as_seeded() -> None:
    for source in (secure_words, Script(), seeded_words(np.random.default_rng(0))):
        assert word_source(source) is source
    counted = word_source(np.random.default_rng(5))
    assert isinstance(counted, SeededWords)
    np.testing.assert_array_equal(counted(3), seeded_words(np.random.default_rng(5))(3))


@pytest.mark.parametrize("bad", [-1, 2.5, 2**48 + 1, None])
def test_counts_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="count must be a whole number from 0 to 281474976710656, got"):
        secure_words(bad)
