"""FEMNIST and Shakespeare from LEAF's JSON files: a client for each writer or role."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.datasets.leaf import CHARACTER_NUMBERS, CHARACTERS, femnist_data, shakespeare_data
from quietbits.analysis.datasets.named_data import named_data
from quietbits.errors import DataError

RNG = np.random.default_rng(0)


def user(count: int) -> dict[str, Any]:
    return {"x": (RNG.integers(0, 256, (count, 784)) / 255).tolist(), "y": RNG.integers(0, 62, count).tolist()}


USERS = {"f0001_41": user(3), "f0000_14": user(2), "f0003_00": user(1)}


def leaf(users: dict[str, Any]) -> dict[str, Any]:
    return {"users": list(users), "num_samples": [len(one["y"]) for one in users.values()], "user_data": users}


def write(folder: Path, *files: dict[str, Any]) -> Path:
    for part in ("train", "test"):
        (folder / part).mkdir(exist_ok=True)
        for place, file in enumerate(files):
            (folder / part / f"all_data_{place}.json").write_text(json.dumps(file))
    return folder


def test_a_client_is_a_writer(tmp_path: Path) -> None:
    names = list(USERS)
    data = femnist_data(write(tmp_path, leaf({name: USERS[name] for name in names[:2]}), leaf({names[2]: USERS[names[2]]})))
    assert (data.clients, data.features, data.classes, data.image_shape) == (3, 784, 62, (28, 28, 1))
    for client, name in enumerate(names):
        examples = data.client_examples(client)
        assert (examples.inputs == np.array(USERS[name]["x"])).all()
        assert examples.labels.tolist() == USERS[name]["y"]
    assert len(data.test) == 6


def test_there_are_as_many_clients_as_writers(tmp_path: Path) -> None:
    write(tmp_path, leaf(USERS))
    assert {named_data("femnist", clients, 0, folder=tmp_path, split="writer").clients for clients in (None, 3)} == {3}
    with pytest.raises(ValueError, match="clients must be 3, the number of writers of femnist, got 4"):
        named_data("femnist", 4, 0, folder=tmp_path, split="writer")


def changed(**values: Any) -> dict[str, Any]:
    return leaf(USERS) | values


def with_user(**values: Any) -> dict[str, Any]:
    return leaf({"f0001_41": USERS["f0001_41"] | values})


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (changed(num_samples=[2**31, 2, 1]), "'f0001_41' should have 2147483648 examples, it has 3 images and 3 labels"),
        (changed(users=["f0001_41"]), r"is not a file of LEAF, ValueError: zip\(\)"),
        (changed(users=["a", "b", "c"]), "is not a file of LEAF, KeyError: 'a'"),
        ([1, 2], "is not a file of LEAF, TypeError"),
        (with_user(x=np.zeros((3, 783)).tolist()), "images must have 784 pixels, those of 'f0001_41' have 783"),
        (with_user(x=np.full((3, 784), 2).tolist()), "pixels must be from 0 to 1, those of 'f0001_41' are from 2 to 2"),
        (with_user(x=[[0.0] * 784, [0.0], [0.0]]), "is not a file of LEAF, ValueError"),
        (with_user(y=[1, 2, 62]), "labels must be whole numbers from 0 to 61, those of 'f0001_41' are not"),
        (with_user(y=[1, 2, "3"]), "labels must be whole numbers from 0 to 61, those of 'f0001_41' are not"),
        (leaf({}), "test|train: the files have no examples"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, file: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        femnist_data(write(tmp_path, file))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, leaf(USERS))
    path = tmp_path / "train" / "all_data_0.json"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"all_data_0\.json: is not a file of LEAF, JSONDecodeError"):
        femnist_data(tmp_path)
    path.write_text("[" * 10**5)
    with pytest.raises(DataError, match=r"all_data_0\.json: is not a file of LEAF, RecursionError"):
        femnist_data(tmp_path)


def test_absent_files_are_named_with_their_source(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train: there are no json files; make them with https://github\.com/TalwalkarLab/leaf"):
        femnist_data(tmp_path)


def role(*lines: str) -> dict[str, Any]:
    """Return what LEAF writes of a role: every 80 characters of its lines, and the one that follows."""
    pairs = [(line[start : start + 80], line[start + 80]) for line in lines for start in range(len(line) - 80)]
    return {"x": [text for text, _ in pairs], "y": [character for _, character in pairs], "raw": "".join(lines)}


LINE = "To be, or not to be: that is the question: Whether 'tis nobler in the mind to suffer"
ROLES = {"HAMLET": role(LINE), "CHORUS": role("}" + "\u2014" + LINE[:79])}


def test_characters_become_numbers_that_say_what_follows(tmp_path: Path) -> None:
    data = shakespeare_data(write(tmp_path, leaf(ROLES)), test_examples=3)
    assert (data.clients, data.features, data.classes, data.image_shape) == (2, 80, 90, None)
    examples = data.client_examples(0)
    assert len(examples) == len(LINE) - 80
    assert examples.inputs.dtype == float
    read = ["".join(CHARACTERS[int(number) - 1] for number in numbers) for numbers in examples.inputs]
    assert read == ROLES["HAMLET"]["x"]
    assert [CHARACTERS[number - 1] for number in examples.labels] == ROLES["HAMLET"]["y"]
    # A brace and a dash are other characters.
    assert data.client_examples(1).inputs[0, :3].tolist() == [87, 87, 1 + CHARACTERS.index("T")]
    # The first of the test's five examples, the third and the last.
    assert data.test.labels.tolist() == [examples.labels[0], examples.labels[2], data.client_examples(1).labels[0]]
    assert len(shakespeare_data(tmp_path).test) == 5


def test_there_are_86_different_characters_and_four_numbers_more() -> None:
    assert len(set(CHARACTERS)) == len(CHARACTERS) == CHARACTER_NUMBERS - 4 == 86


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": ["a" * 80]}, "'HAMLET' should have 4 examples, it has 1 lines and 4 labels"),
        ({"x": ["a" * 79] * 4}, "'HAMLET' must have texts of 80 characters, one is 'aaa"),
        ({"x": [[0.5] * 80] * 4}, r"'HAMLET' must have texts of 80 characters, one is \[0.5"),
        ({"y": ["a", "b", "c", "de"]}, "'HAMLET' must have texts of 1 characters, one is 'de'"),
        ({"y": None}, "is not a file of LEAF, TypeError"),
    ],
)
def test_roles_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = leaf({"HAMLET": ROLES["HAMLET"]}) | {"user_data": {"HAMLET": ROLES["HAMLET"] | change}}
    with pytest.raises(DataError, match=message):
        shakespeare_data(write(tmp_path, file))
