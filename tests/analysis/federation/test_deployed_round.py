"""Federations of deployed clients: Node, Rust and Python encode, and the server decodes the wire format.

The programs are those of docs/how-to/federate-deployed-clients.md.
"""

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import FedAvg

import quietbits
from quietbits import NormBall, Task
from quietbits.analysis.deployed_clients.encoder import Encoder, process_encoder, python_encoder
from quietbits.analysis.federation.client_mod import PrivateUpdateMod
from quietbits.analysis.federation.deployed_round import DeployedRound
from quietbits.analysis.federation.privacy_ledger import PrivacyLedger
from quietbits.analysis.federation.strategy import PrivateMeanStrategy
from quietbits.design.deployment.decoder import FILLING, ROUND
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.folder import write_deployment
from quietbits.design.deployment.secure_sums import decode_sum, sum_of_messages
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

from .conftest import LEDGER, Loop

PAGE = (Path(quietbits.__file__).parent / "docs" / "how-to" / "federate-deployed-clients.md").read_text(encoding="utf-8")
DIMENSION, ROUNDS, DELTA = 8, 5, 1e-5
STEPS = {node: (0.6, -0.3, 0.1 * node, 0.45) for node in range(1, 7)}
LANGUAGE_OF = {1: "node", 2: "node", 3: "rust", 4: "rust", 5: "python", 6: "python"}
# An epsilon of a coordinate at which other letters than the two beside the input are as rare as the test states.
CLEAR = 20.0
BALL = NormBall(DIMENSION, 2.0, 2.0)
MECHANISMS = {
    "table": lambda: VectorTableMechanism(generalised_randomised_response(CLEAR, 5), NormBall(DIMENSION, math.inf, 1.0)),
    "simplex": lambda: RotatingSimplexMechanism(4.0, 3, BALL),
    "sum": lambda: DistributedDiscreteGaussianMechanism(BALL, 6, 16, 0.01, 0.5, DELTA, survivors=5),
}
JS_WORDS = 'const words = readFileSync(process.argv[2], "utf8").split(" ").map(BigInt).values();\n'
RUST_WORDS = """struct Given(std::vec::IntoIter<u64>);

impl digits_client::Words for Given {
    fn next(&mut self) -> u64 {
        self.0.next().unwrap()
    }
}

fn given() -> Given {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    Given(text.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>().into_iter())
}

"""


def block(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    return match.group(1)


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def words_of(node: int) -> np.ndarray:
    return np.random.default_rng(node).integers(2**64, size=2**12, dtype=np.uint64)


@pytest.fixture(scope="module", params=list(MECHANISMS))
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Deployment, Path]:
    """Return a deployment, and a folder with its folder and the programs of the page, with system and with given words."""
    delta = DELTA if request.param == "sum" else 0.0
    deployment = Deployment(MECHANISMS[request.param](), request.param, ROUNDS, delta, name="digits")
    folder = tmp_path_factory.mktemp(request.param)
    write_deployment(deployment, folder / "deployed", ["typescript", "rust"])
    script, program = block("js"), block("rust")
    if not deployment.carries_index:
        program = replaced(program, "encode(&vector, round, client)", "encode(&vector)")
    (folder / "driver.mjs").write_text(script, encoding="utf-8")
    script = replaced(script, "import { encode }", "import { encodeWith }")
    script = replaced(script, "encode(numbers.map(Number), ", "encodeWith(numbers.map(Number), { next: () => words.next().value }, ")
    script = replaced(script, "const message", JS_WORDS + "const message")
    (folder / "given.mjs").write_text(script, encoding="utf-8")
    own = "&vector, round, client" if deployment.carries_index else "&vector"
    given = RUST_WORDS + replaced(program, f"::encode({own})", f"::encode_with({own}, &mut given())")
    for path, text in (("Cargo.toml", block("toml")), ("src/main.rs", program), ("src/bin/given.rs", given)):
        (folder / "driver" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "driver" / path).write_text(text, encoding="utf-8")
    for node in STEPS:
        (folder / f"words-{node}").write_text(" ".join(map(str, words_of(node).tolist())), encoding="ascii")
    return deployment, folder


def need_toolchains() -> None:
    if shutil.which("node") is None:
        pytest.skip("node is missing, which runs the driver in JavaScript")
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing, which builds the driver in Rust")


def programs(folder: Path, *, given: bool) -> Callable[[str, int], Encoder | None]:
    """Return a function of a language and a node that returns the node's encoder."""
    ended = subprocess.run(["cargo", "build", "--offline", "--quiet"], cwd=folder / "driver", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:3000]
    built = folder / "driver" / "target" / "debug"

    def encoder(language: str, node: int) -> Encoder | None:
        arguments = [str(folder / f"words-{node}")] if given else []
        if language == "node":
            return process_encoder(["node", str(folder / ("given.mjs" if given else "driver.mjs")), *arguments])
        if language == "rust":
            return process_encoder([str(built / ("given" if given else "driver")), *arguments])
        return given_encoder(folder, node) if given else None

    return encoder


def given_encoder(folder: Path, node: int) -> Encoder:
    from quietbits.design.deployment.folder import load_deployment

    return python_encoder(load_deployment(folder / "deployed"), lambda count: words_of(node)[:count])


def federation(folder: Path, **settings: object) -> PrivateMeanStrategy:
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=2, min_available_nodes=2)
    return PrivateMeanStrategy(inner, deployment=folder / "deployed", **settings)


def loop_of(folder: Path, encoders: dict[int, Encoder | None], **settings: object) -> Loop:
    mods = {node: PrivateUpdateMod(deployment=folder / "deployed", encoder=encoder) for node, encoder in encoders.items()}
    return Loop({node: STEPS[node] for node in encoders}, mods=mods, **settings)


def arrays(record: ArrayRecord) -> np.ndarray:
    return np.concatenate([array.ravel() for array in record.to_numpy_ndarrays()])


def sent_by(loop: Loop) -> list[bytes]:
    return sorted(content["quietbits.message"]["message"].numpy().tobytes() for content in loop.contents if "quietbits.message" in content)


def test_clients_of_all_languages_give_the_sum_of_pythons(deployed: tuple[Deployment, Path], model: ArrayRecord) -> None:
    deployment, folder = deployed
    need_toolchains()
    encoder = programs(folder, given=True)
    mixed = loop_of(folder, {node: encoder(language, node) for node, language in LANGUAGE_OF.items()})
    python = loop_of(folder, {node: given_encoder(folder, node) for node in STEPS})
    results = [federation(folder, first_round=2).start(loop, model, num_rounds=1) for loop in (mixed, python)]
    assert (mixed.errors, python.errors) == ([], [])
    np.testing.assert_array_equal(*(arrays(result.arrays) for result in results))
    messages = [given_encoder(folder, node)(np.resize(step, DIMENSION), 2, node) for node, step in STEPS.items()]
    packed = np.frombuffer(b"".join(messages), dtype=np.uint8).reshape(len(STEPS), -1)
    if deployment.mechanism.guarantee.trust_model == "secure-sum":
        # Masks are new in each run, and the sum is not.
        assert sent_by(mixed) != sent_by(python)
        estimate = decode_sum(deployment, sum_of_messages(deployment, [packed]), len(STEPS), 2)
    else:
        assert sent_by(mixed) == sent_by(python)
        indices = np.array(list(STEPS), dtype=np.uint64) if deployment.carries_index else None
        estimate = deployment.decoder(2).add(packed, indices).estimate()
    np.testing.assert_allclose(arrays(results[0].arrays), estimate.mean, rtol=1e-12)


@pytest.mark.parametrize("deployed", ["table", "sum"], indirect=True)
def test_the_mean_with_system_randomness_is_within_its_error(deployed: tuple[Deployment, Path], model: ArrayRecord) -> None:
    deployment, folder = deployed
    need_toolchains()
    encoder = programs(folder, given=False)
    loop = loop_of(folder, {node: encoder(language, node) for node, language in LANGUAGE_OF.items()})
    server = federation(folder, largest_epsilon=1000.0)
    result = server.start(loop, model, num_rounds=ROUNDS)
    assert loop.errors == []
    assert [report.stayed for report in server.reports] == [len(STEPS)] * ROUNDS
    messages = ROUNDS * len(STEPS)
    error = arrays(result.arrays) / ROUNDS - np.resize(np.mean(list(STEPS.values()), axis=0), DIMENSION)
    mechanism = deployment.mechanism
    if isinstance(mechanism, DistributedDiscreteGaussianMechanism):
        # The noise of eight coordinates exceeds eight times its stated squared error with probability 1e-10.
        assert 0 < np.sum(error**2) < 8 * mechanism.error().of_mean(messages)
    else:
        # Another letter than the two beside the input has probability at most 30 exp(-20), or 2e-5 for any of 240 letters. Otherwise a
        # letter's range is a step, and Hoeffding's bound fails for one of 8 coordinates with probability 1e-9.
        assert isinstance(mechanism, VectorTableMechanism)
        step = 2 * float(np.max(np.diff(np.sort(np.array(mechanism.table.alphabet, dtype=float)))))
        assert np.max(np.abs(error)) < step * math.sqrt(math.log(2 * DIMENSION / 1e-9) / (2 * messages))


@pytest.fixture
def table(tmp_path: Path) -> tuple[Deployment, Path]:
    deployment = Deployment(VectorTableMechanism(generalised_randomised_response(1.0, 3), NormBall(DIMENSION, math.inf, 1.0)), "table", 2)
    write_deployment(deployment, tmp_path / "deployed", ["c"])
    return deployment, tmp_path


def test_a_client_refuses_another_deployment_and_a_mechanism_without_one(
    table: tuple[Deployment, Path], model: ArrayRecord, tmp_path: Path
) -> None:
    deployment, folder = table
    other = replace(deployment, name="other")
    write_deployment(other, tmp_path / "other" / "deployed", ["c"])
    loop = loop_of(folder, {1: None, 2: None})
    task = Task(BALL, 2, 8.0, 0.0, "replace-one")
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=2, min_available_nodes=2)
    for server in (federation(tmp_path / "other", on_refusal="skip"), PrivateMeanStrategy(inner, "sqkr", task, on_refusal="skip")):
        server.start(loop, model, num_rounds=1)
        assert server.reports[0].stayed == 0
    stated = f"deployment must be with the hash {deployment.hash}, as for this client, got one "
    assert [stated + f"with the hash {other.hash}" in error for error in loop.errors[:2]] == [True, True]
    assert [stated + "left out for a mechanism" in error for error in loop.errors[2:]] == [True, True]
    plain = Loop({1: 0.1, 2: 0.1})
    federation(folder, on_refusal="skip").start(plain, model, num_rounds=1)
    assert "deployment must be left out for a mechanism that clients build, as for this client" in plain.errors[-1]


def test_rounds_beyond_the_deployments_are_refused_by_server_and_client(table: tuple[Deployment, Path], model: ArrayRecord) -> None:
    deployment, folder = table
    server, loop = federation(folder, on_refusal="skip"), loop_of(folder, {1: None, 2: None})
    server.start(loop, model, num_rounds=3)
    assert [report.refusal is None for report in server.reports] == [True, True, False]
    assert "rounds must be more than 2" in str(server.reports[2].refusal)
    assert server.guarantee().epsilon == deployment.epsilon
    assert server.reports[0].guarantee.epsilon == deployment.epsilon_after(1)
    later = federation(folder, on_refusal="skip", first_round=1)
    later.start(loop_of(folder, {1: None, 2: None}), model, num_rounds=2)
    assert [report.refusal is None for report in later.reports] == [True, False]
    forgetful = federation(folder, on_refusal="skip")
    forgetful.start(loop, model, num_rounds=1)
    assert "this client has spent its budget" in loop.errors[-1]
    with pytest.raises(ValueError, match="round_number must be"):
        DeployedRound("", deployment, 2).check()


def test_a_deployment_is_paid_for_once_from_the_clients_ledger(table: tuple[Deployment, Path], model: ArrayRecord, tmp_path: Path) -> None:
    deployment, folder = table
    settings = {"deployment": folder / "deployed", "ledger": tmp_path / LEDGER}
    mod = PrivateUpdateMod(largest_epsilon=1.5 * deployment.epsilon, **settings)
    stayed = []
    for _ in range(2):
        server = federation(folder, on_refusal="skip")
        server.start(Loop({1: 0.1, 2: 0.1}, mod=mod), model, num_rounds=2)
        stayed += [report.stayed for report in server.reports]
    assert stayed == [2, 2, 0, 0]
    spent = PrivacyLedger(tmp_path / LEDGER.format_map({"partition-id": 1}), 1e3, 0.01, "replace-one").spent()
    assert [guarantee.epsilon for guarantee in spent] == [deployment.epsilon]


def test_the_sums_guarantee_is_that_of_the_clients_that_stayed(tmp_path: Path, model: ArrayRecord) -> None:
    deployment = Deployment(replace(MECHANISMS["sum"](), survivors=None), "sum", 2, DELTA)
    write_deployment(deployment, tmp_path / "deployed", ["c"])
    loop = loop_of(tmp_path, dict.fromkeys(STEPS), lost=lambda node, stage: (node, stage) == (2, "train"))
    server = federation(tmp_path, on_refusal="skip")
    server.start(loop, model, num_rounds=1)
    assert "with the noise of the 5 of 6 clients that stayed" in str(server.reports[0].refusal)
    server = federation(tmp_path, largest_epsilon=1000.0)
    server.start(loop, model, num_rounds=1)
    assert server.reports[0].guarantee.epsilon == deployment.with_clients(5).epsilon_after(1) > deployment.epsilon_after(1)
    assert server.guarantee() == server.reports[0].guarantee


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x00", "encoder must return the 3 bytes of a message"),
        ("000000", "encoder must return the 3 bytes of a message"),
        (b"\x00\x00\x00\x00", "got 4 bytes"),
    ],
)
def test_an_encoders_answer_must_be_a_message(answer: object, said: str, table: tuple[Deployment, Path], model: ArrayRecord) -> None:
    _, folder = table
    loop = loop_of(folder, {1: lambda *_: answer, 2: None})
    server = federation(folder)
    server.start(loop, model, num_rounds=1)
    assert server.reports[0].stayed == 1
    assert said in loop.errors[0]


def test_a_failing_program_sends_no_message_and_shows_no_input(
    table: tuple[Deployment, Path], model: ArrayRecord, capfd: pytest.CaptureFixture[str]
) -> None:
    _, folder = table
    loop = loop_of(folder, {1: process_encoder(["sh", "-c", "cat >&2; exit 3"]), 2: None})
    federation(folder).start(loop, model, num_rounds=1)
    assert loop.errors == ["quietbits: command must end with exit code 0, got 3 from 'sh'"]
    assert "0.45" in capfd.readouterr().err


def test_a_message_of_another_round_or_node_is_refused() -> None:
    deployment = Deployment(MECHANISMS["simplex"](), "simplex", ROUNDS)
    plan = DeployedRound("a", deployment, 1)
    fields = plan.encode(np.full(DIMENSION, 0.1), 1, 7, lambda count: words_of(7)[:count])
    message = plan.packed(fields, 7).message
    np.testing.assert_array_equal(plan.aggregate(message, 7), deployment.decoder(1).add_alone([message.tobytes()]).aggregate)
    with pytest.raises(ValueError, match="message must have the index of its node, 8, got another index"):
        plan.aggregate(message, 8)
    with pytest.raises(ValueError, match=ROUND):
        replace(plan, round_number=2).aggregate(message, 7)
    summed = replace(plan, deployment=Deployment(MECHANISMS["sum"](), "sum", ROUNDS, DELTA))
    residues = np.arange(DIMENSION)
    sent = summed.packed(residues, 7).message
    np.testing.assert_array_equal(summed.residues(sent), residues)
    with pytest.raises(ValueError, match=ROUND):
        replace(summed, round_number=2).residues(sent)


def test_a_message_whose_last_bits_are_not_0_is_refused() -> None:
    plan = DeployedRound("a", Deployment(MECHANISMS["simplex"](), "simplex", ROUNDS))
    message = plan.packed(np.array([7]), 1).message.copy()
    assert np.isfinite(plan.aggregate(message, 1)).all()
    message[-1] |= 1
    with pytest.raises(ValueError, match=f"message must be of the deployment's round 0, got {FILLING}"):
        plan.aggregate(message, 1)


def test_deployments_that_no_federation_carries_are_refused(tmp_path: Path) -> None:
    number = Deployment(TableMeanMechanism(generalised_randomised_response(1.0, 2)), "number")
    write_deployment(number, tmp_path / "deployed", ["c"])
    with pytest.raises(ValueError, match="deployment must be for vectors, which updates of models are, got one for a number"):
        federation(tmp_path)


def test_a_model_of_another_size_is_refused(table: tuple[Deployment, Path]) -> None:
    _, folder = table
    small = ArrayRecord({"a": Array(np.zeros(3))})
    with pytest.raises(ValueError, match="deployment must be for 3 coordinates, as many as the model has, got 8"):
        federation(folder).start(loop_of(folder, {1: None, 2: None}), small, num_rounds=1)
    with pytest.raises(ValueError, match="update must be 8 finite numbers, got 3 numbers"):
        DeployedRound("", table[0]).encode(np.zeros(3), 1, 1, lambda count: words_of(1)[:count])


def test_arguments_of_both_kinds_are_not_mixed(table: tuple[Deployment, Path]) -> None:
    _, folder = table
    with pytest.raises(ValueError, match="mechanism, task and options must be left out with a deployment"):
        PrivateMeanStrategy(FedAvg(), "sqkr", deployment=folder / "deployed")
    with pytest.raises(
        ValueError, match="mechanism must be a name of the registry, got None: give one with the task, or a deployment alone"
    ):
        PrivateMeanStrategy(FedAvg(), task=Task(BALL, 2, 8.0, 0.0, "replace-one"))
    with pytest.raises(ValueError, match="task must be a Task, got None"):
        PrivateMeanStrategy(FedAvg(), "sqkr")
    with pytest.raises(ValueError, match="first_round must be 0 without a deployment, got 2"):
        PrivateMeanStrategy(FedAvg(), "sqkr", Task(BALL, 2, 8.0, 0.0, "replace-one"), first_round=2)
    with pytest.raises(ValueError, match="encoder must be left out without a deployment"):
        PrivateUpdateMod(encoder=lambda *_: b"")
