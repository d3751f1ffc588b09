"""A federation that learns digits over DP-REC's messages: clients compute on what they have replayed, bytes are those of packages."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.history_training import (
    DIMENSION,
    TRAINING_EXAMPLES,
    LocalTraining,
    digit_clients,
    digits_mechanism,
    train_by_history,
)
from quietbits.analysis.simulation.two_way_compression import simulate_participation
from quietbits.design.federated.model_history import ModelHistory, add_round, catch_up_package
from quietbits.design.federated.server_optimiser import FedAdam, ServerSGD
from quietbits.design.relative_entropy.dp_rec import dp_rec_account

ROUNDS = 25


@pytest.fixture(scope="module")
def private() -> pd.DataFrame:
    return train_by_history(digits_mechanism(1.0, 2.0), FedAdam(0.03, adaptivity=0.1), LocalTraining(), rounds=ROUNDS, seed=3)


@pytest.fixture(scope="module")
def plain() -> pd.DataFrame:
    return train_by_history(None, ServerSGD(1.0), LocalTraining(), rounds=10, seed=3)


def test_every_client_has_the_servers_model_to_the_last_bit(private: pd.DataFrame, plain: pd.DataFrame) -> None:
    for frame in (private, plain):
        assert frame["exact_clients"].tolist() == frame["clients"].tolist()
        assert frame["clients"].between(5, 10).all()


@pytest.mark.parametrize(("kind", "message_bytes", "moments"), [("private", 17, 2), ("plain", 4 * DIMENSION, 0)])
def test_bytes_are_those_that_participation_alone_foretells(
    kind: str, message_bytes: int, moments: int, request: pytest.FixtureRequest
) -> None:
    frame = request.getfixturevalue(kind)
    model = 4 * DIMENSION
    rng = named_stream(3, "digits by history, participation")
    foretold = simulate_participation(100, 10, len(frame), model, message_bytes, rng, public_start=True, state_bytes=model * (1 + moments))
    for column in ("round", "clients", "bytes_up", "bytes_down", "full_models", "uncompressed_bytes"):
        assert frame[column].tolist() == foretold[column].tolist()


def test_the_model_is_learnt(private: pd.DataFrame, plain: pd.DataFrame) -> None:
    # Guessing is right one time in ten; the seed is fixed.
    assert private["accuracy"].iloc[0] < 0.5
    assert private["accuracy"].iloc[-5:].mean() > 0.7
    assert plain["accuracy"].iloc[-1] > 0.9
    # Small messages pay for it.
    assert private["bytes_up"].sum() < private["uncompressed_bytes"].sum() / 100
    assert private["bytes_down"].sum() < private["uncompressed_bytes"].sum()


def test_epsilon_is_the_accountants(private: pd.DataFrame, plain: pd.DataFrame) -> None:
    assert set(private["delta"]) == {100**-1.1}
    for number in (1, 17, ROUNDS):
        account = dp_rec_account(2.0, 100, 10, number, 70, 100**-1.1)
        row = private.iloc[number - 1]
        assert row["published_epsilon"] == account.epsilon_by("published")
        assert (row["adjacency"], row["trust_model"]) == (account.privacy.account("published").adjacency, account.privacy.trust_model)
    assert (private["published_epsilon"].diff().dropna() > 0).all()
    assert (plain["published_epsilon"] == math.inf).all()
    few_bits = train_by_history(digits_mechanism(1.0, 2.0, bits=1), ServerSGD(1.0), LocalTraining(), population=5, rounds=1)
    assert few_bits["published_epsilon"].tolist() == [math.inf]


def test_the_seed_decides_everything(private: pd.DataFrame) -> None:
    def again(seed: int) -> pd.DataFrame:
        optimiser = FedAdam(0.03, adaptivity=0.1)
        return train_by_history(digits_mechanism(1.0, 2.0), optimiser, LocalTraining(), rounds=3, seed=seed)

    assert again(3).equals(private.iloc[:3])
    assert not again(4)["accuracy"].equals(private["accuracy"].iloc[:3])


def test_another_process_replays_the_coders_messages_to_the_same_bytes() -> None:
    mechanism, optimiser = digits_mechanism(1.0, 2.0), FedAdam(0.03)
    first = optimiser.start(np.zeros(DIMENSION, dtype=np.float32))
    history, rng = ModelHistory(first, 17), np.random.default_rng(5)
    for _ in range(4):
        messages = [row.tobytes() for row in mechanism.encode(rng.normal(size=(3, DIMENSION)), rng)]
        history = add_round(history, messages, lambda message: mechanism.aggregate(np.frombuffer(message, dtype=np.uint8)[None]), optimiser)
    program = (
        "import sys\n"
        "import numpy as np\n"
        "from quietbits.design.relative_entropy.dp_rec import DpRecMechanism\n"
        "from quietbits.design.relative_entropy.group_layout import uniform_layout\n"
        "from quietbits.design.federated.model_history import apply_package\n"
        "from quietbits.design.contracts.norm_ball import NormBall\n"
        "from quietbits.design.federated.server_optimiser import FedAdam\n"
        "mechanism, optimiser = DpRecMechanism(NormBall(650, 2.0), 2.0, uniform_layout(650, 10, 7)), FedAdam(0.03)\n"
        "def decode(message):\n"
        "    return mechanism.aggregate(np.frombuffer(message, dtype=np.uint8)[None])\n"
        "first = optimiser.start(np.zeros(650, dtype=np.float32))\n"
        "print(apply_package(bytes.fromhex(sys.stdin.read()), first, decode, optimiser).to_bytes().hex())\n"
    )
    content = catch_up_package(history, 0).to_bytes()
    assert len(content) == 29 + 4 * (4 + 3 * 17)
    done = subprocess.run([sys.executable, "-c", program], input=content.hex(), capture_output=True, text=True, check=True)
    assert bytes.fromhex(done.stdout) == history.state.to_bytes() != first.to_bytes()


def test_digits_are_divided_without_remainder() -> None:
    clients = digit_clients(100, np.random.default_rng(1))
    sizes = [len(labels) for labels in clients.labels]
    assert sum(sizes) == TRAINING_EXAMPLES
    assert set(sizes) == {14, 15}
    everything = np.concatenate([*clients.features, clients.test_features])
    assert everything.shape == (1797, 65)
    assert (everything.min(), everything.max()) == (0.0, 1.0)
    assert np.bincount(np.concatenate([*clients.labels, clients.test_labels])).tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]
    other = digit_clients(100, np.random.default_rng(2))
    assert not np.array_equal(other.test_labels, clients.test_labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population": 0}, "population must be a whole number from 1 to 1437, got 0"),
        ({"population": 1438}, "population must be a whole number from 1 to 1437, got 1438"),
        ({"clients_per_round": 0}, "clients_per_round must be a whole number from 1 to 1437, got 0"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 10000, got 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_by_history(None, ServerSGD(1.0), LocalTraining(), **change)


def test_bad_local_training_is_refused() -> None:
    with pytest.raises(ValueError, match="steps must be a whole number from 1 to 1000, got 0"):
        LocalTraining(steps=0)
    with pytest.raises(ValueError, match="learning_rate must be a number from 1e-06 to 1000, got 0"):
        LocalTraining(learning_rate=0.0)
