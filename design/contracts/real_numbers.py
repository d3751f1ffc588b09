"""Mechanisms with floating-point noise: references, released only on request."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .mechanism import Mechanism
from .privacy import Privacy

if TYPE_CHECKING:
    from ..noise.random_words import WordsLike, WordSource

REASON = "the low bits of noise in floating-point numbers reveal more than the guarantee says"


@dataclass(frozen=True)
class RealNumberMechanism(Mechanism):
    """A mechanism with a guarantee for real numbers and messages in floating-point numbers.

    The low bits of a message may tell two inputs apart (Mironov 2012, *On significance of the least significant bits for differential
    privacy*). So `encode` takes seeded words, as experiments do, and refuses all others. A mechanism derives from this class and, after it,
    from the class of its domain. Its `encode` draws from `checked_words`, and its `privacy` returns `stated`.

    Attributes
    ----------
    allow_real_numbers : bool
        Whether to allow words for releases nevertheless; the guarantee then states the permission.
    """

    allow_real_numbers: bool = field(default=False, kw_only=True, repr=False)

    def checked_words(self, random_words: "WordsLike") -> "WordSource":
        """Return the source of randomness, or raise ValueError for a forbidden release."""
        return experiment_words(random_words, type(self).__name__, allow_real_numbers=self.allow_real_numbers)

    def stated(self, privacy: Privacy) -> Privacy:
        """Return the privacy, with the permission in its guarantees."""
        return replace(privacy, allow_real_numbers=True) if self.allow_real_numbers else privacy


def experiment_words(random_words: "WordsLike", name: str, *, allow_real_numbers: bool) -> "WordSource":
    """Return the source of floating-point noise: seeded words, unless releases are allowed."""
    from ..noise.random_words import SeededWords, word_source

    source = word_source(random_words)
    if not allow_real_numbers and not isinstance(source, SeededWords):
        raise ValueError(
            f"words must be a numpy.random.Generator, or seeded_words of one, for {name}, got {type(source).__name__}: {REASON}; "
            "allow_real_numbers=True releases it nevertheless"
        )
    return source
