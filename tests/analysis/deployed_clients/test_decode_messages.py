from pathlib import Path

import numpy as np
import pytest
from deployments import WITH_INDEX, deployment_of_name, inputs_of, messages_of

from quietbits.analysis.deployed_clients.decode_messages import decode_messages, message_paths
from quietbits.design.deployment.decoder import REPEATED
from quietbits.design.deployment.message_files import write_messages
from quietbits.errors import DataError


def test_files_of_a_folder_are_one_estimate(tmp_path: Path) -> None:
    deployment = deployment_of_name(WITH_INDEX)
    messages, clients = messages_of(deployment, inputs_of(deployment, 60))
    assert clients is not None
    for name, part in (("a.qbm", slice(0, 20)), ("b.parquet", slice(10, 60))):
        write_messages(deployment, tmp_path / name, [(messages[part], clients[part])])
    (tmp_path / "notes.txt").write_text("no messages")
    estimate = decode_messages(deployment, [tmp_path, tmp_path / "a.qbm"])
    assert np.array_equal(estimate.mean, deployment.decoder().add(messages, clients).estimate().mean)
    assert (estimate.accepted, estimate.refused) == (60, {REPEATED: 10})


def test_workers_give_the_estimate_of_one_process(tmp_path: Path) -> None:
    for name in (WITH_INDEX, "table"):
        deployment, folder = deployment_of_name(name), tmp_path / name
        folder.mkdir()
        messages, clients = messages_of(deployment, inputs_of(deployment, 60))
        for file, part in (("a.qbm", slice(0, 20)), ("b.parquet", slice(20, 45)), ("c.qbm", slice(45, 60))):
            write_messages(deployment, folder / file, [(messages[part], None if clients is None else clients[part])])
        steps: list[tuple[int, int]] = []
        alone, together = (decode_messages(deployment, [folder], workers=workers) for workers in (1, 2))
        decode_messages(deployment, [folder], workers=2, on_step=lambda done, total, _, steps=steps: steps.append((done, total)))
        assert np.array_equal(alone.mean, together.mean)
        assert (alone.accepted, alone.refused) == (together.accepted, together.refused) == (60, {})
        assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_workers_cannot_choose_between_two_messages_of_a_client(tmp_path: Path) -> None:
    deployment = deployment_of_name(WITH_INDEX)
    messages, clients = messages_of(deployment, inputs_of(deployment, 10))
    for file in ("a.qbm", "b.qbm"):
        write_messages(deployment, tmp_path / file, [(messages, clients)])
    with pytest.raises(DataError, match="clients must have sent to one decoder only, got 10 that have sent to both"):
        decode_messages(deployment, [tmp_path], workers=2)


def test_a_bad_file_is_named_with_workers_too(tmp_path: Path) -> None:
    (tmp_path / "a.qbm").write_bytes(b"no messages at all")
    with pytest.raises(DataError, match=r"a\.qbm: messages must begin with QBM"):
        decode_messages(deployment_of_name("table"), [tmp_path], workers=2)
    with pytest.raises(ValueError, match="workers must be a whole number from 1"):
        decode_messages(deployment_of_name("table"), [tmp_path], workers=0)


def test_folders_without_messages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the folder must have a file of messages"):
        message_paths([tmp_path])


def test_clients_are_stated_for_sums_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="clients must be left out for messages, which are counted, got 5"):
        decode_messages(deployment_of_name("table"), [tmp_path], clients=5)
