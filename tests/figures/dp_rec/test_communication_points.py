"""DP-REC's bytes in its paper's federations.

Points under test: sizes of models and messages, published totals, and real packages.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import quietbits
from quietbits.figures.dp_rec.communication import COUNTED, FEDERATIONS, GIB, PACKAGES, CommunicationPoint, Federation, counted_bytes

# Each model's size adds weights and biases layer by layer.
PARAMETERS = {
    "MNIST": (25 * 32 + 32) + (25 * 32 * 64 + 64) + (1024 * 512 + 512) + (512 * 10 + 10),
    "FEMNIST": (9 * 32 + 32) + (9 * 32 * 64 + 64) + (1600 * 128 + 128) + (128 * 62 + 62),
    "Shakespeare": 90 * 8 + 4 * 256 * (8 + 256 + 1) + 4 * 256 * (256 + 256 + 1) + (256 * 90 + 90),
    "StackOverflow": 10_000 * 500 + 500,
}
# The published totals determine these sizes; Shakespeare's size is that of Reddi et al. 2021.
STATED = {"MNIST": 582_026, "FEMNIST": 231_742, "Shakespeare": 820_522, "StackOverflow": 5_000_500}


def communication(federations: tuple[Federation, ...], seed: int) -> pd.DataFrame:
    points = [
        CommunicationPoint(seed=seed, federation=federation, scheme=scheme) for federation in federations for scheme in federation.schemes
    ]
    return pd.DataFrame([row for point in points for row in point.run()])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return communication(FEDERATIONS, seed=0)


@pytest.fixture(scope="module")
def packages(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["scheme"].isin(PACKAGES)]


def test_models_have_the_parameters_that_the_totals_imply() -> None:
    assert {federation.dataset: federation.parameters for federation in FEDERATIONS} == PARAMETERS == STATED


def test_federations_are_the_papers() -> None:
    result = [(str(federation), federation.population, federation.clients_per_round, federation.rounds) for federation in FEDERATIONS]
    assert result == [
        ("MNIST", 100, 10, 1000),
        ("FEMNIST", 3500, 100, 4000),
        ("FEMNIST, 1500 rounds", 3500, 100, 1500),
        ("FEMNIST, groups of 64", 3500, 100, 4000),
        ("Shakespeare", 660, 66, 200),
        ("StackOverflow", 342_477, 60, 1500),
    ]
    # Messages have seven bits for each of 8, 8, 8, 3622, 9 and 6 groups, after 32 seed bits, or after 64 seed bits and padded to bytes.
    assert FEDERATIONS[3].groups == 5 + 1 + 288 + 1 + 3200 + 2 + 124 + 1 == 3622
    assert [federation.counted_bits for federation in FEDERATIONS] == [88, 88, 88, 25_386, 95, 74]
    assert [federation.message_bytes for federation in FEDERATIONS] == [15, 15, 15, 3178, 16, 14]


def test_the_published_totals_are_met_to_rounding(frame: pd.DataFrame) -> None:
    result = {
        (row["federation"], row["scheme"]): (row["total_gib"], row["paper_gib"]) for _, row in frame.dropna(subset="paper_gib").iterrows()
    }
    assert len(result) == 12
    # The tolerance is half of the last printed digit. Two totals differ by more, but by less than a thousandth.
    places = {43.0: 0.5, 0.01: 0.005, 690.6: 0.05, 14.2: 0.05, 259.0: 0.5, 194.0: 0.5, 178.0: 0.5, 332.2: 0.06, 81.0: 0.5, 0.1: 0.05}
    places |= {3356.0: 3.0, 32.0: 0.5}
    for (federation, scheme), (ours, paper) in result.items():
        assert abs(ours - paper) <= places[paper], (federation, scheme, ours)


def test_what_the_paper_counts_is_what_participants_get() -> None:
    federation = replace(FEDERATIONS[1], rounds_instead=60)
    message, model = federation.counted_bits / 8, federation.model_bytes
    rng = np.random.default_rng(5)
    runs = []
    for _ in range(20):
        last, down = np.zeros(3500, dtype=int), 0.0
        for moment in range(60):
            for client in np.unique(rng.integers(0, 3500, 100)):
                down += min((moment - last[client]) * 100 * message, model)
                last[client] = moment
        runs.append(down)
    result = counted_bytes(federation)
    assert result.up == 60 * 100 * message
    assert result.down == pytest.approx(np.mean(runs), abs=4 * np.std(runs) / np.sqrt(20))
    assert np.std(runs) / np.sqrt(20) < 0.005 * result.down


def test_a_model_that_is_shorter_replaces_the_history() -> None:
    # With a message per coordinate, no history is shorter than the model.
    federation = replace(FEDERATIONS[0], groups=10**6)
    result = counted_bytes(federation)
    newcomers_at_once = 100 * (1 - 0.99**10)
    assert result.down / federation.model_bytes == pytest.approx(999 * newcomers_at_once)


def test_the_table_adds_up(frame: pd.DataFrame, packages: pd.DataFrame) -> None:
    assert frame["total_gib"].tolist() == ((frame["bytes_up"] + frame["bytes_down"]) / GIB).tolist()
    draws = frame["rounds"] * frame["clients_per_round"]
    assert frame["bytes_up"].tolist() == pytest.approx((draws * frame["message_bits"] / 8).tolist(), rel=1e-12)
    assert (frame["uncompressed_bytes"] == 4 * frame["parameters"] * draws).all()
    for direction in ("up", "down"):
        assert (frame[f"compression_{direction}"] == frame["uncompressed_bytes"] / frame[f"bytes_{direction}"]).all()
    assert packages["bytes_down"].tolist() == pytest.approx(packages["expected_bytes_down"].tolist(), rel=0.01)
    # Real packages have headers and longer seeds.
    public = packages[packages["scheme"] == "DP-REC, first model public"].set_index("federation")
    counted = frame[frame["scheme"] == COUNTED].set_index("federation")
    assert (public["bytes_up"] > counted["bytes_up"]).all()
    histories = public["full_models"] == 0
    assert (public["bytes_down"] > counted["bytes_down"])[histories].all()
    assert histories.sum() == 4


def test_a_model_is_sent_to_each_client_once_or_never(packages: pd.DataFrame) -> None:
    sent = packages[packages["scheme"] == "DP-REC, first model sent"].set_index("federation")
    public = packages[packages["scheme"] == "DP-REC, first model public"].set_index("federation")
    # With a few groups, a history is always shorter than the model.
    few = ["MNIST", "FEMNIST", "Shakespeare"]
    assert (public.loc[[*few, "StackOverflow"], "full_models"] == 0).all()
    assert sent.loc[few, "full_models"].tolist() == [100, 3500, 660]
    assert sent.loc["StackOverflow", "full_models"] < 90_000
    assert (sent["bytes_down"] > public["bytes_down"]).all()


def test_a_training_does_not_depend_on_the_others(frame: pd.DataFrame) -> None:
    alone = communication(FEDERATIONS[4:5], seed=0)
    assert alone.equals(frame[frame["dataset"] == "Shakespeare"].reset_index(drop=True))
    assert not alone.equals(communication(FEDERATIONS[4:5], seed=12))


def test_another_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scheme must be one of uncompressed, DP-REC, as the paper counts, .*, got 'none'"):
        CommunicationPoint(seed=0, federation=FEDERATIONS[0], scheme="none").run()


def test_the_documented_session_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "explanations" / "dp-rec-history.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    exec(block, {})  # noqa: S102 - our own
    assert f"# {capsys.readouterr().out.strip()}\n" in block
