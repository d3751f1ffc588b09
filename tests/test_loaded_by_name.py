"""Tests of values that load with their file at their first use."""

import pytest

from quietbits.loaded_by_name import LoadedByName

FILES = {"low": ("one", "two"), "high": ("ten",)}
VALUES = {"low": (1, 2), "high": (10,)}


def numbers(loaded: list[str]) -> LoadedByName[int]:
    return LoadedByName(FILES, lambda file: loaded.append(file) or VALUES[file])


def test_a_file_is_loaded_once_and_when_one_of_its_values_is_asked_for() -> None:
    loaded: list[str] = []
    values = numbers(loaded)
    assert list(values) == ["one", "two", "ten"]
    assert len(values) == 3
    assert "two" in values
    assert loaded == []
    assert (values["two"], values["one"], values["two"]) == (2, 1, 2)
    assert loaded == ["low"]
    assert dict(values) == {"one": 1, "two": 2, "ten": 10}
    assert loaded == ["low", "high"]


def test_another_name_is_no_value_and_loads_nothing() -> None:
    loaded: list[str] = []
    values = numbers(loaded)
    assert "three" not in values
    with pytest.raises(KeyError):
        values["three"]
    assert loaded == []


def test_a_file_with_other_values_than_its_index_says_is_an_error() -> None:
    values: LoadedByName[int] = LoadedByName(FILES, lambda _: (1,))
    with pytest.raises(ValueError, match="shorter"):
        values["one"]
