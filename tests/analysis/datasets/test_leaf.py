"""FEMNIST from LEAF's JSON files: a client for each writer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.datasets.leaf import femnist_data
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
