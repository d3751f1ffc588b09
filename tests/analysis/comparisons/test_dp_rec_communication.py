"""DP-REC's bytes in its paper's federations: sizes of models and messages, and the table."""

import re
from pathlib import Path

import pandas as pd
import pytest

import quietbits
from quietbits.analysis.comparisons.dp_rec_communication import FEDERATIONS, FIRST_MODELS, CommunicationPoint, Federation
from quietbits.figures.drawing.directed_rounding import rounded_down

# Layer by layer: weights and biases.
PARAMETERS = {
    "MNIST": (25 * 20 + 20) + (25 * 20 * 50 + 50) + (800 * 500 + 500) + (500 * 10 + 10),
    "FEMNIST": (9 * 32 + 32) + (9 * 32 * 64 + 64) + (9216 * 128 + 128) + (128 * 62 + 62),
    "Shakespeare": 90 * 8 + 4 * 256 * (8 + 256 + 1) + 4 * 256 * (256 + 256 + 1) + (256 * 90 + 90),
    "StackOverflow": 10_004 * 96 + 4 * 670 * (96 + 670 + 1) + (670 * 96 + 96) + (96 * 10_004 + 10_004),
}
# As the literature states them: LeNet-5 of Caffe, and the baselines of Reddi et al. 2021.
STATED = {"MNIST": 431_080, "FEMNIST": 1_206_590, "Shakespeare": 820_522, "StackOverflow": 4_050_748}


def communication(federations: tuple[Federation, ...], seed: int) -> pd.DataFrame:
    points = [CommunicationPoint(seed=seed, federation=one, first_model=first) for one in federations for first in FIRST_MODELS]
    return pd.DataFrame([row for point in points for row in point.run()])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return communication(FEDERATIONS, seed=11)


def test_models_have_the_parameters_that_the_literature_says() -> None:
    assert {one.dataset: one.parameters for one in FEDERATIONS} == PARAMETERS == STATED


def test_federations_are_the_papers() -> None:
    found = [(one.dataset, one.population, one.clients_per_round, one.rounds) for one in FEDERATIONS]
    assert found == [
        ("MNIST", 100, 10, 1000),
        ("FEMNIST", 3500, 100, 4000),
        ("Shakespeare", 660, 66, 200),
        ("StackOverflow", 342_477, 60, 1500),
    ]
    # 64 bits of seed, and seven for each of 8, 8, 9 and 6 groups, filled up to bytes.
    assert [one.message_bytes for one in FEDERATIONS] == [15, 15, 16, 14]


def test_the_table_adds_up(frame: pd.DataFrame) -> None:
    assert len(frame) == 8
    assert (frame["bytes_up"] == frame["rounds"] * frame["clients_per_round"] * frame["message_bytes"]).all()
    assert (frame["uncompressed_bytes"] % (4 * frame["parameters"]) == 0).all()
    assert (frame["uncompressed_bytes"] <= 4 * frame["parameters"] * frame["rounds"] * frame["clients_per_round"]).all()
    for direction in ("up", "down"):
        assert (frame[f"compression_{direction}"] == frame["uncompressed_bytes"] / frame[f"bytes_{direction}"]).all()
    assert (frame["compression_down"] > 1).all()
    assert frame["bytes_down"].tolist() == pytest.approx(frame["expected_bytes_down"].tolist(), rel=0.01)


def test_a_model_is_sent_to_each_client_once_or_never(frame: pd.DataFrame) -> None:
    sent = frame[frame["first_model"] == "sent"].set_index("dataset")
    public = frame[frame["first_model"] == "public"].set_index("dataset")
    # In these trainings a history is always shorter than the model.
    assert (public["full_models"] == 0).all()
    assert sent.loc[["MNIST", "FEMNIST", "Shakespeare"], "full_models"].tolist() == [100, 3500, 660]
    assert sent.loc["StackOverflow", "full_models"] < 90_000
    assert (sent["uncompressed_bytes"] == public["uncompressed_bytes"]).all()
    assert (sent["bytes_down"] > public["bytes_down"]).all()


def test_a_training_does_not_depend_on_the_others(frame: pd.DataFrame) -> None:
    alone = communication(FEDERATIONS[2:3], seed=11)
    assert alone.equals(frame[frame["dataset"] == "Shakespeare"].reset_index(drop=True))
    assert not alone.equals(communication(FEDERATIONS[2:3], seed=12))


def test_another_first_model_is_refused() -> None:
    with pytest.raises(ValueError, match="first_model must be one of public, sent, got 'none'"):
        CommunicationPoint(seed=0, federation=FEDERATIONS[0], first_model="none").run()


def test_the_documentation_says_what_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "dp-rec-history.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    exec(block, {})  # noqa: S102 - our own
    assert f"# {capsys.readouterr().out.strip()}\n" in block
    table = communication(FEDERATIONS, seed=0)
    for dataset, rows in table.groupby("dataset"):
        public, sent = (rows[rows["first_model"] == kind].iloc[0] for kind in ("public", "sent"))
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {dataset} |")]
        cells = [cell.strip().replace(" ", "") for cell in line.strip("|").split("|")]
        assert cells[1].endswith(f",{public['parameters']}")
        assert cells[2] == f"{public['message_bytes']}bytes"
        factors = [public["compression_up"], public["compression_down"], sent["compression_down"]]
        assert cells[3:] == [rounded_down(factor, 2) if factor < 10 else str(int(factor)) for factor in factors]
        if dataset in ("FEMNIST", "StackOverflow"):
            packages = public["uncompressed_bytes"] / (4 * public["parameters"])
            assert f"{round(public['replayed_messages'] / packages, -1):,.0f}".replace(",", " ") in text
    newcomers = table.loc[table["dataset"] == "StackOverflow", "full_models"].max()
    assert f"{newcomers:,} of".replace(",", " ") in text
