"""A new mechanism needs only a class and an entry.

Points under test: the conformance suite tests the new mechanism, and detects faults of bad mechanisms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from quietbits.analysis.catalogue.accounts import account, calibrate
from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.analysis.conformance.mechanism_cases import Case, cases_of
from quietbits.analysis.conformance.mechanism_suite import MechanismSuite
from quietbits.arguments import MOST_CLIENTS, check_integer
from quietbits.arrays import FloatArray
from quietbits.design.contracts.accounts import pure_privacy
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.mechanism import Mechanism, ScalarMechanism
from quietbits.design.contracts.privacy import Privacy
from quietbits.design.contracts.registry import Entry, Values
from quietbits.design.contracts.task import Task
from quietbits.design.noise.random_words import WordsLike, word_source


@dataclass(frozen=True)
class OneBit(ScalarMechanism):
    """Mechanism that rounds a number to an end, and flips it with a known probability."""

    epsilon: float
    interval: tuple[float, float]
    delta = 0.0

    @property
    def bits_per_client(self) -> float:
        return 1.0

    @property
    def contrast(self) -> float:
        return math.tanh(self.epsilon / 2)

    @property
    def variance_bound(self) -> float:
        low, high = self.interval
        return ((high - low) / self.contrast) ** 2 / 4

    def encode(self, inputs: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:
        random_words = word_source(random_words)
        probabilities = 0.5 + (self._shares(inputs) - 0.5) * self.contrast
        return (random_words.uniforms(probabilities.shape) < probabilities).astype(np.uint8)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        return np.array([messages.sum()], dtype=np.int64)

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        low, high = self.interval
        share = float(aggregate[0]) / check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return low + (high - low) * (0.5 + (share - 0.5) / self.contrast)

    def variance(self, inputs: ArrayLike) -> FloatArray:
        low, high = self.interval
        return np.asarray(self.variance_bound - (high - low) ** 2 * (self._shares(inputs) - 0.5) ** 2)

    def privacy(self) -> Privacy:
        return pure_privacy(self.epsilon)

    def _shares(self, inputs: ArrayLike) -> FloatArray:
        low, high = self.interval
        return (self.domain.clip(inputs) - low) / (high - low)


def calibrated(made: Callable[[float, tuple[float, float]], Mechanism]) -> Callable[[Task, Values], Mechanism]:
    def build(task: Task, _: Values) -> Mechanism:
        return made(task.epsilon / task.rounds, task.interval("one-bit"))

    return build


def entry_of(made: Callable[[float, tuple[float, float]], Mechanism]) -> Entry:
    return Entry(
        name="one-bit",
        title="One bit, by randomised response",
        paper="Warner 1965, Randomized response",
        domains=(Interval,),
        trust_model="local",
        adjacencies=("replace-one",),
        accounts=("pure", "rdp", "pld"),
        options=(),
        build=calibrated(made),
    )


TOY = entry_of(OneBit)


class TestToy(MechanismSuite):
    entries = (TOY,)


def test_it_is_there_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "one-bit", TOY)
    task = Task(Interval(0.0, 1.0), 100, 2.0, 1e-5, "replace-one", rounds=2)
    assert build_mechanism("one-bit", task) == OneBit(1.0, (0.0, 1.0))
    assert account("one-bit", epsilon=1.0, rounds=3).epsilon == 3.0
    result = calibrate("one-bit", epsilon=2.0, delta=1e-5, rounds=2)
    assert result["epsilon_per_round"] == 1.0
    assert result.document()["epsilon_per_round"] == 1.0
    assert 0 < result.epsilon <= result.document()["target_epsilon"] == 2.0
    with pytest.raises(ValueError, match="account must be one of pure, rdp, pld, got 'exact'"):
        calibrate("one-bit", epsilon=2.0, delta=1e-5, method="exact")


# The following classes have faults that the suite must detect.


@dataclass(frozen=True)
class LessPrivate(OneBit):
    """Faulty mechanism that states two thirds of its epsilon."""

    def privacy(self) -> Privacy:
        return pure_privacy(self.epsilon / 1.5)


@dataclass(frozen=True)
class OverBudget(OneBit):
    """Faulty mechanism that states more than the allowed epsilon."""

    def privacy(self) -> Privacy:
        return pure_privacy(self.epsilon * 1.01)


@dataclass(frozen=True)
class Biased(OneBit):
    """Faulty mechanism whose estimate is off by a tenth of the interval."""

    def decode(self, aggregate: NDArray[Any], clients: int) -> float:
        return super().decode(aggregate, clients) + 0.1 * (self.interval[1] - self.interval[0])


@dataclass(frozen=True)
class Noisier(OneBit):
    """Faulty mechanism with more variance than it states."""

    def variance(self, inputs: ArrayLike) -> FloatArray:
        return 0.8 * super().variance(inputs)


@dataclass(frozen=True)
class WorseThanWorst(OneBit):
    """Faulty mechanism that states less than its largest variance."""

    @property
    def variance_bound(self) -> float:
        return 0.9 * super().variance_bound

    def variance(self, inputs: ArrayLike) -> FloatArray:
        return super().variance(inputs) / 0.9 + 1.0


@dataclass(frozen=True)
class HalfABit(OneBit):
    """Faulty mechanism that counts fewer bits than it sends."""

    @property
    def bits_per_client(self) -> float:
        return 0.5


@dataclass(frozen=True)
class OneSeed(OneBit):
    """Faulty mechanism that draws from its own generator."""

    def encode(self, inputs: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:  # noqa: ARG002 - that is what is wrong
        return super().encode(inputs, np.random.default_rng(0))


@dataclass(frozen=True)
class LastChunk(OneBit):
    """Faulty mechanism that forgets all chunks but the last."""

    def combine(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002 - that is what is wrong
        return second


@dataclass(frozen=True)
class TakesAnything(OneBit):
    """Faulty mechanism that treats NaN as the middle of the interval."""

    def encode(self, inputs: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:
        return super().encode(np.nan_to_num(inputs), random_words)


def only_case(made: Callable[[float, tuple[float, float]], Mechanism]) -> Case:
    (case,) = cases_of(entry_of(made))
    return case


SUITE = MechanismSuite()


@pytest.mark.parametrize(
    ("made", "test"),
    [
        (LessPrivate, SUITE.test_an_audit_finds_much_of_the_guarantee_and_does_not_refute_it),
        (OverBudget, lambda case: SUITE.test_the_budget_is_kept(case, 1)),
        (Biased, SUITE.test_the_estimate_is_off_by_its_bias_at_most),
        (Noisier, SUITE.test_the_error_is_as_predicted),
        (WorseThanWorst, SUITE.test_no_input_has_more_than_the_worst_error),
        (HalfABit, SUITE.test_messages_take_the_stated_bits),
        (OneSeed, SUITE.test_secure_words_make_messages_of_the_same_kind),
        (LastChunk, SUITE.test_chunks_add_up),
        (lambda epsilon, interval: OneBit(1 / epsilon, interval), SUITE.test_a_larger_budget_is_never_worse),
    ],
)
def test_the_suite_fails_for_a_mechanism_that_is_wrong(
    made: Callable[[float, tuple[float, float]], Mechanism], test: Callable[[Case], None]
) -> None:
    with pytest.raises(AssertionError):
        test(only_case(made))


def test_the_suite_fails_where_nothing_is_refused() -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        SUITE.test_bad_inputs_are_refused(only_case(TakesAnything))
