"""FEMNIST and Shakespeare from LEAF's JSON files, with a client for each writer or role."""

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
    return {"users": list(users), "num_samples": [len(item["y"]) for item in users.values()], "user_data": users}


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
        (changed(users=["f0001_41"]), r"has 1 users, 3 numbers of samples and data of 3 users"),
        (changed(num_samples=[3, 2]), "has 3 users, 2 numbers of samples and data of 3 users"),
        (changed(user_data={name: USERS[name] for name in list(USERS)[:2]}), "has 3 users, 3 numbers of samples and data of 2 users"),
        (changed(users=["f0001_41", "f0000_14", "f0001_41"]), "users must be different texts, some are not"),
        (changed(users=["a", "b", "c"]), "the data are not those of its users: 'a'"),
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


def test_a_user_is_one_client_and_never_two(tmp_path: Path) -> None:
    write(tmp_path, leaf(USERS), leaf({"f0000_14": user(1)}))
    with pytest.raises(DataError, match=r"all_data_1\.json: the user 'f0000_14' is in all_data_0\.json too: one user is one client"):
        femnist_data(tmp_path)
    write(tmp_path, leaf(USERS), leaf({"f0009_00": user(1)}))
    assert femnist_data(tmp_path).clients == 4
    # The file has two objects of the same user; Python's json reader drops the first object silently.
    path = tmp_path / "train" / "all_data_1.json"
    path.write_text(path.read_text().replace('"user_data": {', '"user_data": {"f0009_00": {"x": [], "y": []}, '))
    with pytest.raises(DataError, match=r"all_data_1\.json: is not a file of LEAF, ValueError: 1 keys of an object occur twice"):
        femnist_data(tmp_path)


def test_a_user_without_examples_is_a_client(tmp_path: Path) -> None:
    data = femnist_data(write(tmp_path, leaf({"f0001_41": user(2), "f0002_00": {"x": [], "y": []}, "f0003_00": user(1)})))
    assert [len(data.client_examples(client)) for client in range(data.clients)] == [2, 0, 1]
    assert data.cohort([1, 2, 1, 0]).sizes.tolist() == [0, 1, 0, 2]
    roles = shakespeare_data(write(tmp_path, leaf({"HAMLET": ROLES["HAMLET"], "GHOST": {"x": [], "y": []}})))
    assert [len(roles.client_examples(client)) for client in range(roles.clients)] == [4, 0]


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
    """Return LEAF's examples of a role: 80 characters and the following character."""
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
    # Characters outside the alphabet, such as a brace and a dash, share one code.
    assert data.client_examples(1).inputs[0, :3].tolist() == [87, 87, 1 + CHARACTERS.index("T")]
    # The test set keeps the first, third and last of the test's five examples.
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
