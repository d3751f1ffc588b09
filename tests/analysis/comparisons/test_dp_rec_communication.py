"""DP-REC's bytes in its paper's federations: sizes of models and messages, the table, and the picture."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import quietbits
from quietbits.analysis.comparisons.dp_rec_communication import FEDERATIONS, Federation, compare_communication
from quietbits.figures.dp_rec import communication as dprec_communication
from quietbits.figures.dp_rec.communication import MARKS, draw_bytes, draw_dprec_communication
from quietbits.figures.drawing.directed_rounding import rounded_down
from quietbits.figures.drawing.style import print_style

# Layer by layer: weights and biases.
PARAMETERS = {
    "MNIST": (25 * 20 + 20) + (25 * 20 * 50 + 50) + (800 * 500 + 500) + (500 * 10 + 10),
    "FEMNIST": (9 * 32 + 32) + (9 * 32 * 64 + 64) + (9216 * 128 + 128) + (128 * 62 + 62),
    "Shakespeare": 90 * 8 + 4 * 256 * (8 + 256 + 1) + 4 * 256 * (256 + 256 + 1) + (256 * 90 + 90),
    "StackOverflow": 10_004 * 96 + 4 * 670 * (96 + 670 + 1) + (670 * 96 + 96) + (96 * 10_004 + 10_004),
}
# As the literature states them: LeNet-5 of Caffe, and the baselines of Reddi et al. 2021.
STATED = {"MNIST": 431_080, "FEMNIST": 1_206_590, "Shakespeare": 820_522, "StackOverflow": 4_050_748}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return compare_communication(seed=11)


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    with print_style():
        figure = draw_bytes(frame)
        figure.draw_without_rendering()
    return figure


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
    assert set(frame["seed"]) == {11}
    assert frame["version_numpy"].notna().all()


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
    steps: list[tuple[int, int, str]] = []
    alone = compare_communication(FEDERATIONS[2:3], seed=11, on_step=lambda *step: steps.append(step))
    assert alone.equals(frame[frame["dataset"] == "Shakespeare"].reset_index(drop=True))
    assert steps == [(1, 1, "Shakespeare")]
    assert not alone.equals(compare_communication(FEDERATIONS[2:3], seed=12).assign(seed=11))


def test_every_number_of_the_table_is_drawn(frame: pd.DataFrame, picture: Figure) -> None:
    (axes,) = picture.axes
    points = {mark.colour: [] for mark in MARKS}
    for line in axes.lines:
        if line.get_marker() not in ("", "None"):
            points[line.get_color()].append(float(line.get_xdata()[0]))
    sent, public = (frame[frame["first_model"] == kind] for kind in ("sent", "public"))
    assert list(points.values()) == [public["bytes_up"].tolist(), public["bytes_down"].tolist(), sent["bytes_down"].tolist()]
    lines = [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]
    assert lines == public["uncompressed_bytes"].tolist()
    numbers = [float(text.get_text().removeprefix("\N{DIVISION SIGN} ").replace("\N{NARROW NO-BREAK SPACE}", "")) for text in axes.texts]
    factors = np.column_stack([public["compression_up"], public["compression_down"], sent["compression_down"]]).ravel()
    # Rounded down, to whole numbers or to one decimal.
    assert all(0 <= factor - number < (1 if factor >= 10 else 0.1) for number, factor in zip(numbers, factors, strict=True))


def test_the_documentation_says_what_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "dp-rec-history.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    exec(block, {})  # noqa: S102 - our own
    assert f"# {capsys.readouterr().out.strip()}\n" in block
    table = compare_communication(seed=0)
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


def test_the_figure_fits_a_page_and_can_be_read(picture: Figure, check_page: Callable[..., None]) -> None:
    check_page(picture, "add-or-remove-one adjacency, central trust model")
    # No number lies on another, or on the name of a training.
    (axes,) = picture.axes
    boxes = [text.get_window_extent() for text in (*axes.texts, *axes.get_yticklabels())]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_the_figure_writes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Federation("Shakespeare", "small", ((300, 100), (100,)), 2)
    monkeypatch.setattr(dprec_communication, "compare_communication", lambda **options: compare_communication([small], **options))
    draw_dprec_communication(tmp_path / "new", 7, lambda *_: None)
    names = [f"dprec-communication.{kind}" for kind in ("csv", "pdf", "png", "svg")]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == names
    table = pd.read_csv(tmp_path / "new" / names[0])
    assert set(table["seed"]) == {7}
    assert table["parameters"].tolist() == [30_100, 30_100]
