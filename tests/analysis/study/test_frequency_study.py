"""Tests of private frequencies of a column of items: reading, estimates, and refusals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.study.frequency_study import study_frequencies
from quietbits.analysis.study.item_column import HASHED, LISTED, TAKEN, bucket_of, load_items
from quietbits.errors import DataError
from quietbits.figures.report.frequency_report import frequency_report_html
from quietbits.tests.project.docs_numbers.how_to.word_frequencies import description_words

WORDS = ["pear"] * 600 + ["apple"] * 300 + ["fig <b>"] * 100


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return path


def test_the_commonest_real_word_is_estimated_within_its_standard_error() -> None:
    study = study_frequencies(description_words(), "sketched-discrete-gaussian-frequencies", 1.0, 1e-5, top=5)
    assert study.items[0].item == "the"
    assert all(abs(item.frequency - item.true_frequency) < 5 * item.standard_error for item in study.items)
    assert study.squared_error == pytest.approx(study.predicted_squared_error, rel=0.1)
    assert np.isfinite(study.lower_bound or np.nan)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "txt"])
def test_columns_of_every_format_hold_the_same_items(tmp_path: Path, suffix: str) -> None:
    path, frame = tmp_path / f"data.{suffix}", pd.DataFrame({"fruit": WORDS, "other": 1})
    match suffix:
        case "csv":
            frame.to_csv(path, index=False)
        case "parquet":
            frame.to_parquet(path)
        case "txt":
            path.write_text("\n".join(WORDS), encoding="utf-8")
    column = load_items(path, None if suffix == "txt" else "fruit")
    assert (column.categories, column.numbering, column.is_public) == (3, TAKEN, False)
    assert [column.names[item] for item in column.items.tolist()] == WORDS


def test_a_study_reports_each_step(words: Path) -> None:
    steps: list[tuple[int, int]] = []
    study_frequencies(
        load_items(words, None),
        "sketched-discrete-gaussian-frequencies",
        1.0,
        1e-5,
        on_step=lambda done, total, _: steps.append((done, total)),
    )
    assert steps == [(done, 3) for done in range(4)]


def test_numbers_and_dates_are_items_too(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pd.DataFrame({"year": [1999, 2001, 1999]}).to_parquet(path)
    assert load_items(path, "year").names == {0: "1999", 1: "2001"}


def test_a_public_list_numbers_the_items(tmp_path: Path, words: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("kiwi\npear\nfig <b>\napple\n", encoding="utf-8")
    column = load_items(words, None, listed)
    assert (column.categories, column.numbering, column.is_public) == (4, LISTED, True)
    assert np.bincount(column.items).tolist() == [0, 600, 100, 300]


def test_hashed_items_fall_into_public_buckets(words: Path) -> None:
    column = load_items(words, None, buckets=2)
    assert (column.categories, column.numbering, column.is_public) == (2, HASHED, True)
    assert column.items.tolist() == [bucket_of(word, 2) for word in WORDS]
    # Three items share two buckets, so at least one name lists two items.
    assert any(" / " in name for name in column.names.values())


@pytest.mark.parametrize(
    ("text", "listed", "message"),
    [
        ("", None, "there are no rows"),
        ("a\n\nb", None, "row 2 has no item"),
        ("a\nz", "a\nb", "row 2 holds 'z', which is not on the list of 2 items"),
        ("a", "a\na", "the list has 1 items twice"),
    ],
)
def test_faulty_files_are_refused(tmp_path: Path, text: str, listed: str | None, message: str) -> None:
    data, domain = tmp_path / "data.txt", tmp_path / "list.txt"
    data.write_text(text, encoding="utf-8")
    domain.write_text(listed or "", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_items(data, None, domain if listed is not None else None)


def test_other_files_and_columns_are_refused(tmp_path: Path, words: Path) -> None:
    for path, column, message in (
        (tmp_path / "none.txt", None, "there is no such file"),
        (tmp_path / "data.xlsx", None, "must end in one of .csv, .parquet, .txt"),
        (words, "fruit", "a text file has no columns"),
    ):
        with pytest.raises(DataError, match=message):
            load_items(path, column)
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="the file is UTF-16 or UTF-32: save it in UTF-8"):
        load_items(binary, None)


def test_estimates_stand_beside_what_was_true(words: Path) -> None:
    study = study_frequencies(load_items(words, None), "frequency-randomised-response", 3.0, seed=1)
    assert [item.item for item in study.items] == ["pear", "apple", "fig <b>"]
    assert [item.true_frequency for item in study.items] == [0.6, 0.3, 0.1]
    # The draw has a fixed seed; the margin is five standard errors.
    for entry in study.items:
        assert abs(entry.frequency - entry.true_frequency) < 5 * entry.standard_error
    assert study.guarantee.epsilon == 3
    assert study.lower_bound is not None
    assert 0 < study.lower_bound <= study.predicted_squared_error
    assert study.unknown_domain_ratio is not None
    assert study.unknown_domain_ratio > 1
    again = study_frequencies(load_items(words, None), "frequency-randomised-response", 3.0, seed=1)
    assert again.document() == study.document()
    document = json.loads(json.dumps(study.document(), allow_nan=False))
    assert {"items", "epsilon", "bits_per_client", "lower_bound"} <= set(document)


def test_the_report_is_whole_and_escapes_what_it_prints(words: Path) -> None:
    page = frequency_report_html(study_frequencies(load_items(words, None), "subset-selection", 2.0), command="quietbits <x>")
    assert "The list of items was taken from the data, which is not private." in page
    assert "fig &lt;b&gt;" in page
    assert "fig <b>" not in page
    assert "quietbits &lt;x&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page
    hashed = frequency_report_html(study_frequencies(load_items(words, None, buckets=16), "hadamard-response", 2.0))
    assert "taken from the data, which is not private" not in hashed
    assert "hashed into public buckets" in hashed
    counted = study_frequencies(load_items(words, None), "sparse-discrete-gaussian-frequencies", 2.0, 1e-5, count_share=0.2)
    assert counted.count is not None
    assert f"counted\n{counted.count.distinct_items:.0f} different items, {counted.count.upper} at most" in frequency_report_html(counted)


def test_what_cannot_be_is_refused(words: Path) -> None:
    column = load_items(words, None)
    with pytest.raises(ValueError, match="mechanism must be one for items, got 'sqkr'"):
        study_frequencies(column, "sqkr", 1.0)
    with pytest.raises(ValueError, match="mechanism must be a name that"):
        study_frequencies(column, "none such", 1.0)
    with pytest.raises(ValueError, match="top must be a whole number from 1"):
        study_frequencies(column, "subset-selection", 1.0, top=0)
