"""Words of descriptions: all are there, and privately estimated frequencies are as far off as is stated."""

import numpy as np
import pytest

from quietbits.analysis.study.demo_words import description_words
from quietbits.analysis.study.frequency_study import study_frequencies
from quietbits.analysis.study.item_column import HASHED, bucket_of


def test_words_are_clients_of_public_buckets() -> None:
    column = description_words(512)
    assert column.numbering == HASHED
    assert column.is_public
    assert column.categories == 512
    assert {bucket_of(word, 512) for word in ("the", "data", "iris")} <= set(column.items.tolist())
    assert "iris" in column.names[bucket_of("iris", 512)].split(" / ")


def test_the_commonest_word_is_found_privately() -> None:
    study = study_frequencies(description_words(), "sketched-discrete-gaussian-frequencies", 1.0, 1e-5, top=5)
    assert study.items[0].item == "the"
    assert all(abs(one.frequency - one.true_frequency) < 5 * one.standard_error for one in study.items)
    assert study.squared_error == pytest.approx(study.predicted_squared_error, rel=0.1)
    assert np.isfinite(study.lower_bound or np.nan)
