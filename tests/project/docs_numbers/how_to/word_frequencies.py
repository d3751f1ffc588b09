"""Numbers of docs/how-to/word-frequencies.md."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from quietbits.analysis.study.frequency_study import FrequencyStudy, study_frequencies
from quietbits.analysis.study.item_column import ItemColumn, hashed_items

GAUSSIAN, DELTA = "sketched-discrete-gaussian-frequencies", 1e-5


@cache
def description_words() -> ItemColumn:
    """Return the words of scikit-learn's data set descriptions, a client for each word."""
    texts = sorted(entry.read_text(encoding="utf-8") for entry in files("sklearn.datasets.descr").iterdir() if entry.name.endswith(".rst"))
    words = [word for text in texts for word in re.findall(r"[a-z]+", text.lower())]
    return hashed_items(words, 2**14, "words", "sklearn/datasets/descr")


@cache
def words(mechanism: str, delta: float, message_bits: int | None = None) -> FrequencyStudy:
    """Return the study of the real words."""
    options = {} if message_bits is None else {"message_bits": message_bits}
    return study_frequencies(description_words(), mechanism, epsilon=1.0, delta=delta, options=options, top=8)


def word_rows() -> Iterator[list[str]]:
    """Return the most frequent words, with their estimated and their true frequencies."""
    for item in words(GAUSSIAN, DELTA).items:
        yield [item.item, f"{item.frequency:.4f}", f"{item.true_frequency:.4f}"]
