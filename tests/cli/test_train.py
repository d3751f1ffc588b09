"""`quietbits train` on the command line.

Points under test: the example works, the command shows a table and a self-contained page, and errors have one line.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from quietbits.analysis.training.spec import parse_training
from quietbits.analysis.training.summary import summarise_training

Run = Callable[..., Result]
Fault = Callable[..., str]
SMALL = """
clients = 100
clients_per_round = 50
rounds = 4
delta = 1e-5
adjacency = "replace-one"
seed = [1, 2]
checkpoint_every = 2

[[mechanism]]
name = "none"
server_rate = [0.5, 1.0]

[[mechanism]]
name = "sign-gaussian"
noise_multiplier = 0.5
"""


def test_the_example_is_a_file_that_works(run: Run, folder: Path) -> None:
    printed = run("train", "--example")
    assert printed.exit_code == 0
    spec = parse_training(tomllib.loads(printed.stdout))
    assert [mechanism.name for mechanism, _ in spec.runs] == ["none", "dp-fedavg", "distributed-skellam", "mvu"]
    # The test runs only the mechanism without privacy, as other mechanisms take some seconds.
    head, _, rest = printed.stdout.partition("[[mechanism]]")
    (folder / "example.toml").write_text(f"{head}[[mechanism]]{rest.partition('# A trusted')[0]}")
    assert run("train", "example.toml", "--output", "trained").exit_code == 0
    assert pd.read_parquet("trained/results.parquet")["accuracy"].iloc[-1] > 0.9


def test_what_a_training_leaves_and_prints(run: Run, folder: Path) -> None:
    (folder / "small.toml").write_text(SMALL)
    result = run("train", "small.toml", "--output", "trained")
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet("trained/results.parquet")
    assert len(frame) == 6 * 4
    assert len(list(Path("trained/models").glob("*.npy"))) == 6
    names = ["models", "report.html", "results.parquet", "summary.csv", "tasks.sqlite"]
    assert sorted(path.name for path in Path("trained").iterdir()) == names
    for text in ("Accuracy after the last round", "server rate", "sign-gaussian", "replace-one, local", "Results: trained/results.parquet"):
        assert text in result.stdout
    # Rows without privacy carry a flag.
    assert "WARNING: Without a finite epsilon, and so only references: none." in result.stdout
    assert "none: not private, or not proven to be." in result.stdout
    assert [line.count("no finite ε") for line in result.stdout.splitlines() if line.startswith("│ none")] == [1, 1]
    summary = summarise_training(frame)
    assert summary["repetitions"].tolist() == [2, 2, 2]
    last = frame[(frame["round"] == 4) & (frame["mechanism"] == "sign-gaussian")]
    assert summary["accuracy"].iloc[2] == pytest.approx(last["accuracy"].mean())
    assert summary["megabytes_up"].tolist() == pytest.approx([4 * 50 * 2600 / 1e6] * 2 + [4 * 50 * 82 / 1e6])
    again = run("train", "small.toml", "--output", "trained", "--seed", 1)
    assert again.exit_code == 0
    pd.testing.assert_frame_equal(pd.read_parquet("trained/results.parquet"), frame[frame["seed"] == 1].reset_index(drop=True))


def test_the_page_needs_no_network_and_shows_every_series(run: Run, folder: Path) -> None:
    (folder / "small.toml").write_text(SMALL.replace("rounds = 4", "rounds = 2"))
    assert run("train", "small.toml", "--output", "trained").exit_code == 0
    page = Path("trained/report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"(?:src|href)=[\"']((?!#)[^\"']*)", page)) == {"summary.csv", "results.parquet"}
    drawn = set(re.findall(r"<!-- (.*?) -->", page))
    assert {"none, server rate 0.5", "none, server rate 1", "sign-gaussian (noise_multiplier 0.5)", "accuracy", "round"} <= drawn
    assert not [text for text in drawn if "$" in text]
    for text in (
        "Trainings: accuracy",
        "replace-one",
        "local trust model",
        "ε, amplified",
        "quietbits",
        "clients per round 50",
    ):
        assert text in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("clients = 100", "client = 100"), "small.toml: client is not a key of a training: it has data, "),
        (("clients = 100", ""), "small.toml: [[mechanism]] number 1: clients is missing: a training must have "),
        (("rounds = 4", "rounds = 0"), "small.toml: [[mechanism]] number 1: rounds must be a whole number from 1 to "),
        (("rounds = 4", "rounds = []"), "small.toml: [[mechanism]] number 1: rounds must have at least one value, got none"),
        (("seed = [1, 2]", "seed = [1, 1]"), "small.toml: seed must not have the same value twice, got 1 twice"),
        (('name = "none"', 'name = "nothing"'), "small.toml: [[mechanism]] number 1: mechanism must be one of none, quantised, "),
        (("noise_multiplier = 0.5", "bits = 3"), "small.toml: [[mechanism]] number 2: bits is not a parameter of sign-gaussian"),
        (("noise_multiplier = 0.5", "cache = 3"), "small.toml: [[mechanism]] number 2: cache must be left out: the training knows it"),
        (("clients = 100", 'clients = 100\nserver = "adagrad"'), "small.toml: [[mechanism]] number 1: server must be one of sgd, "),
        (("clients = 100", 'clients = "many"'), "small.toml: [[mechanism]] number 1: clients must be a whole number from 1 to "),
        (("clients = 100", "clients = 100\nprecision = 16"), "small.toml: [[mechanism]] number 1: precision must be 32 or 64, got 16"),
        (("clients = 100", "clients = 100\nmodel = 3"), "small.toml: [[mechanism]] number 1: model must be softmax, mlp-WIDTH-..., "),
        (
            ("clients = 100", 'clients = 100\ndata = "mnist"'),
            "small.toml: [[mechanism]] number 1: folder must be where the files of mnist are",
        ),
        (
            ("noise_multiplier = 0.5", ""),
            "small.toml: [[mechanism]] number 2: epsilon is missing: sign-gaussian needs it, or round_epsilon",
        ),
        (
            ("noise_multiplier = 0.5", "noise_multiplier = 0.5\nepsilon = 3"),
            "small.toml: [[mechanism]] number 2: epsilon must be left out, or 'none', for sign-gaussian with a noise_multiplier, got 3",
        ),
        (
            ("noise_multiplier = 0.5", 'epsilon = 3\nclipping = "adaptive"'),
            "small.toml: [[mechanism]] number 2: clipping must be flat or per-layer with sign-gaussian, got 'adaptive'",
        ),
        (
            ("noise_multiplier = 0.5", "epsilon = 1e-5\ndelta = 1e-300"),
            "2 of 6 tasks failed, the others are saved: sign-gaussian trains softmax for 4 rounds (2 repetitions): ",
        ),
    ],
)
def test_faults_take_one_line(change: tuple[str, str], message: str, run: Run, folder: Path) -> None:
    (folder / "small.toml").write_text(SMALL.replace(*change))
    result = run("train", "small.toml", "--output", "trained")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"quietbits: {message}"), result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_and_a_folder_are_needed(run: Run) -> None:
    assert run("train").exit_code == 2
    assert run("train", "none.toml", "--output", "trained").stderr == "quietbits: none.toml: No such file or directory\n"
