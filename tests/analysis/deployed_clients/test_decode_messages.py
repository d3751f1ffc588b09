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


def test_folders_without_messages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the folder must have a file of messages"):
        message_paths([tmp_path])


def test_clients_are_stated_for_sums_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="clients must be left out for messages, which are counted, got 5"):
        decode_messages(deployment_of_name("table"), [tmp_path], clients=5)
