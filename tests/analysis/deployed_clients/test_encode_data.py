from pathlib import Path

import numpy as np
import pytest
from deployments import NAMES, WITH_INDEX, deployment_of_name, inputs_of

from quietbits.analysis.deployed_clients import encode_data
from quietbits.analysis.deployed_clients.encode_data import encode_inputs, read_inputs
from quietbits.design.noise.random_words import seeded_words


@pytest.mark.parametrize("name", NAMES)
def test_messages_of_chunks_are_decoded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_data, "CLIENTS_AT_A_TIME", 7)
    deployment = deployment_of_name(name)
    decoder, words = deployment.decoder(), seeded_words(np.random.default_rng(0))
    indices = []
    for messages, clients in encode_inputs(deployment, np.array(inputs_of(deployment, 30)), first_client=5, random_words=words):
        decoder.add(messages, clients)
        indices += [] if clients is None else clients.tolist()
    assert (decoder.accepted, decoder.refused) == (30, {})
    assert indices == (list(range(5, 35)) if name == WITH_INDEX else [])


def test_inputs_of_files(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,item\n0.5,3\n2.5,1\n")
    assert read_inputs(deployment_of_name("table"), tmp_path / "d.csv", "x").tolist() == [0.5, 2.5]
    assert read_inputs(deployment_of_name("subsets"), tmp_path / "d.csv", "item").tolist() == [3, 1]
    np.save(tmp_path / "v.npy", np.eye(3))
    assert (read_inputs(deployment_of_name("ball"), tmp_path / "v.npy", None) == np.eye(3)).all()
    (tmp_path / "items.txt").write_text("a\nb\nc\nd\ne\nf\n")
    (tmp_path / "t.csv").write_text("name\nf\na\n")
    assert read_inputs(deployment_of_name("subsets"), tmp_path / "t.csv", "name", tmp_path / "items.txt").tolist() == [5, 0]


def test_wrong_inputs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x\n0.5\n6\n-1\n")
    np.save(tmp_path / "v.npy", np.eye(4))
    for name, data, column, message in (
        ("subsets", "d.csv", "x", "row 1 must hold an item, a whole number from 0 to 5, got 0.5"),
        ("ball", "v.npy", None, r"the array must have the shape \(clients, 3\), got \(4, 4\)"),
        ("ball", "d.csv", "x", "data must be a npy file of vectors"),
    ):
        with pytest.raises(ValueError, match=message):
            read_inputs(deployment_of_name(name), tmp_path / data, column)
    with pytest.raises(ValueError, match="domain must be left out for clients that hold a number"):
        read_inputs(deployment_of_name("table"), tmp_path / "d.csv", "x", tmp_path / "d.csv")
    with pytest.raises(ValueError, match="inputs must be finite numbers"):
        list(encode_inputs(deployment_of_name("table"), np.array([np.nan])))
