"""Tests of the figures of trainings.

Points under test: figures name infeasible runs and show measured accuracies, and papers' settings run on a folder of data.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from quietbits.analysis.training.summary import summarise_training
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask
from quietbits.cli.main import app
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.errors import DataError, InfeasibleError
from quietbits.figures import registry
from quietbits.figures.drawing import save
from quietbits.figures.drawing.marks import PAPER_VALUE
from quietbits.figures.drawing.style import print_style
from quietbits.figures.entry import FigureEntry
from quietbits.figures.registry import FIGURES, reproduce
from quietbits.figures.training.dp_rec.settings import guarantees_in_words
from quietbits.figures.training.grids import grid_tasks

COMMON: dict[str, Any] = {"clients": 100, "clients_per_round": 50, "rounds": 2, "samples": 5, "sampling": "passes", "delta": 1e-3}
DDG, SKETCHED = "distributed-discrete-gaussian", "sketched-discrete-gaussian"
# No noise keeps epsilon 3 if 50 clients share 8 bits.
SUMS = {"name": DDG, "bits": [8, 16], "epsilon": 3.0}


def tasks_of(*blocks: dict[str, Any], **changed: Any) -> list[TrainingTask]:
    return grid_tasks(0, {**COMMON, "adjacency": "replace-one", **changed}, blocks)


def rows_of(tasks: Sequence[TrainingTask]) -> pd.DataFrame:
    return pd.DataFrame([row for task in tasks for row in task.run(task.prepare(None))])


def only(monkeypatch: pytest.MonkeyPatch, entry: FigureEntry) -> None:
    """Restrict the registry to one figure, and its drawing to one file format."""
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    monkeypatch.setattr(registry, "FIGURES", MappingProxyType({entry.name: entry}))


def with_few_inputs(mechanism: TrainedMechanism) -> TrainedMechanism:
    """Return a mechanism whose tables, if any, are designed at once."""
    return replace(mechanism, options=tuple((name, 4 if name == "bits_in" else value) for name, value in mechanism.options))


def test_what_is_infeasible_is_named_and_the_rest_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = FIGURES["price-training"]
    sketches = {"name": SKETCHED, "sketch_dimension": 165, "rows": 15, "bits": 16, "epsilon": 3.0}
    only(monkeypatch, replace(entry, tasks=lambda *_: tasks_of({"name": "none"}, SUMS, sketches)))
    reproduce(["price-training"], tmp_path)
    table = pd.read_csv(tmp_path / "price-training.csv", engine="python")
    assert table["infeasible"].notna().tolist() == [False, False, False, True]
    last = table.iloc[-1]
    assert (last["label"], last["target_epsilon"]) == (f"{DDG} (bits 8)", 3.0)
    assert "bits must be at least" in last["infeasible"]
    assert np.isnan(last["accuracy"])
    assert table["accuracy"].iloc[:3].between(0, 1).all()
    assert last["infeasible"] in (tmp_path / "price-training.md").read_text(encoding="utf-8")
    with print_style():
        drawn = entry.draw(table)
        without = entry.draw(table.iloc[:3].drop(columns="infeasible"))
    assert drawn.get_supxlabel() == without.get_supxlabel()
    (legend,) = drawn.legends
    assert legend.get_title().get_text().startswith(f"No result for {DDG} (bits 8), ε = 3: bits must be at least")
    assert len(drawn.axes[0].containers) == len(without.axes[0].containers) == 1
    # A second run computes nothing, and states the reason again.
    monkeypatch.setattr(TrainingTask, "prepare", lambda *_: pytest.fail("was done before"))
    before = (tmp_path / "price-training.csv").read_bytes()
    reproduce(["price-training"], tmp_path)
    assert (tmp_path / "price-training.csv").read_bytes() == before


def test_a_figure_without_any_feasible_mechanism_is_refused() -> None:
    rows = rows_of(tasks_of({"name": "none"}, {**SUMS, "bits": 8}))
    with pytest.raises(InfeasibleError, match="price-training: every setting is infeasible: bits must be at least"):
        FIGURES["price-training"].table(rows)


def test_a_training_outside_of_figures_still_fails_where_it_is_infeasible() -> None:
    (task,) = tasks_of({**SUMS, "bits": 8})
    with pytest.raises(InfeasibleError, match="bits must be at least"):
        replace(task, keeps_infeasible=False).prepare(None)


def test_the_heat_map_crosses_what_is_infeasible_and_frames_the_cheapest() -> None:
    sketches = {"name": SKETCHED, "sketch_dimension": 165, "rows": 15, "bits": [8, 16], "epsilon": 3.0}
    entry = FIGURES["price-training-heat-map"]
    table = entry.table(rows_of(tasks_of({"name": "none"}, SUMS, sketches)))
    with print_style():
        figure = entry.draw(table)
    axes, _ = figure.axes
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries[0].startswith("fewest bits a parameter, ")
    crossed, reported = "\N{MULTIPLICATION SIGN}: infeasible", "the paper's fewest, F-EMNIST, z = 0.5"
    assert entries[1:] == [crossed, reported, "± standard error: 355 test examples of one seed"]
    texts = {(round(text.get_position()[0]), round(text.get_position()[1])): text.get_text() for text in axes.texts}
    feasible = table[table["accuracy"].notna() & (table["mechanism"] != "none")]
    # With few coordinates, a message has room for more noise than with many.
    places = {(16.0, 1.0): (1, 0), (8.0, 650 / 165): (0, 1), (16.0, 650 / 165): (1, 1)}
    result = {places[row.bits, row.rate]: row.accuracy for row in feasible.itertuples()}
    # One seed has the standard error of the share of 355 test images.
    errors = {place: math.sqrt(value * (1 - value) / 355) for place, value in result.items()}
    shown = {place: f"{100 * value:.1f}\n± {100 * errors[place]:.1f}" for place, value in result.items()}
    assert texts == {(0, 0): "\N{MULTIPLICATION SIGN}"} | shown
    (frame,) = axes.patches
    lengths = {(1, 0): 16.0, (0, 1): 8 * 165 / 650, (1, 1): 16 * 165 / 650}
    within = [place for place, value in result.items() if 100 * value >= 100 * max(result.values()) - 4]
    assert (frame.get_x() + 0.5, frame.get_y() + 0.5) == min(within, key=lambda place: lengths[place])


def test_captions_name_the_data_on_which_the_published_account_says_nothing() -> None:
    shared = {"delta": 1e-5, "adjacency": "add-or-remove-one", "noise_multiplier": None, "target_epsilon": 1.0, "epsilon": 1.0}
    fedavg = {**shared, "mechanism": "dp-fedavg", "data": "femnist"}
    runs = [{**shared, "mechanism": "dp-rec-training", "account": "published", "data": data} for data in ("femnist", "stackoverflow-tags")]
    for silent, expected in (
        (math.inf, "not proven, and on StackOverflow tags the bits are too few for its account)"),
        (3.0, "not proven)"),
    ):
        frame = pd.DataFrame([fedavg, *({**run, "epsilon_published": value} for run, value in zip(runs, (3.0, silent), strict=True))])
        assert guarantees_in_words(frame).endswith(expected)


def test_no_pair_is_the_cheapest_where_noise_is_given_and_privacy_differs() -> None:
    entry, sketch = FIGURES["price-training-heat-map"], {"name": SKETCHED, "sketch_dimension": 165, "rows": 15, "noise_multiplier": 0.5}
    table = entry.table(rows_of(tasks_of({"name": "none"}, {**sketch, "bits": [8, 16]})).assign(data="femnist"))
    epsilons = table.loc[table["mechanism"] == SKETCHED, "epsilon"]
    assert epsilons.nunique() == 2
    assert not table["cheapest"].any()
    with print_style():
        assert not entry.draw(table).axes[0].patches


def test_each_of_the_papers_noise_multipliers_has_its_map() -> None:
    entry, sketch = FIGURES["price-training-heat-map"], {"name": SKETCHED, "sketch_dimension": 165, "rows": 15, "bits": [12, 16]}
    blocks = ({**sketch, "noise_multiplier": multiplier} for multiplier in (0.05, 0.25))
    table = entry.table(rows_of(tasks_of({"name": "none"}, *blocks)).assign(data="femnist"))
    with print_style():
        figure = entry.draw(table)
    *maps, _ = figure.axes
    assert [axes.get_title() for axes in maps] == ["z = 0.1", "z = 0.5"]
    for axes, noise in zip(maps, (0.1, 0.5), strict=True):
        own = table[table["paper_noise_multiplier"] == noise].sort_values("bits")
        assert [text.get_text().split("\n")[0] for text in axes.texts] == [f"{100 * value:.1f}" for value in own["accuracy"]]
        # The paper's cheapest pair has 12 bits at both noises.
        crosses = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == PAPER_VALUE.marker]
        assert [round(place - 0.4) for place in crosses] == [sorted(own["bits"].unique()).index(12)]


def test_bytes_and_accuracies_on_the_way_are_those_of_the_rounds() -> None:
    blocks = ({"name": "none"}, {"name": "dp-fedavg", "noise_multiplier": 1.0, "server_rate": [0.1, 1.0]})
    rows = rows_of(tasks_of(*blocks, rounds=6, evaluate_every=2))
    table = FIGURES["dprec-fig1"].table(rows)
    best = summarise_training(rows[rows["mechanism"] == "dp-fedavg"]).sort_values("accuracy").iloc[-1]
    own = rows[(rows["mechanism"] == "dp-fedavg") & (rows["server_rate"] == best["server_rate"])].set_index("round")
    result = table[table["mechanism"] == "dp-fedavg"].set_index("round")
    assert result.index.tolist() == [2, 4, 6]
    assert set(result["server_rate"]) == {best["server_rate"]}
    assert result["accuracy"].tolist() == own.loc[[2, 4, 6], "accuracy"].tolist()
    assert result["epsilon"].tolist() == own.loc[[2, 4, 6], "epsilon"].tolist()
    assert (result["megabytes"] * 1e6).tolist() == pytest.approx((own["bytes_up"] + own["bytes_down"]).cumsum().loc[[2, 4, 6]].tolist())


@pytest.mark.parametrize(("data", "rounds", "percent"), [("femnist", 1500, np.nan), ("femnist", 4000, 86.28), ("digits", 1500, 86.28)])
def test_the_papers_accuracy_of_floats_stands_beside_as_many_rounds(data: str, rounds: int, percent: float) -> None:
    rows = rows_of(tasks_of({"name": "none"}, {"name": "dp-fedavg", "epsilon": 3.0}, rounds=1))
    table = FIGURES["dprec-table1"].table(rows.assign(data=data, rounds=rounds)).set_index("mechanism")
    assert table.loc["none", "paper_percent"] == pytest.approx(percent, nan_ok=True)


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    rng, folder = np.random.default_rng(0), tmp_path / "data"
    folder.mkdir()
    for part, count in (("train", 60), ("t10k", 10)):
        images, labels = rng.bytes(count * 28 * 28), bytes(number % 10 for number in range(count))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", count, 28, 28) + images)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", count) + labels)
    return folder


def test_the_papers_grids_are_run_on_a_users_images(mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = FIGURES["mvu-fig4"]
    whole = entry.on_data(0, False, mnist)
    names = [task.mechanism.name for task in whole]
    assert [names.count(name) for name in ("none", "dp-fedavg", "gaussian", "sign-gaussian", "mvu")] == [6, 900, 900, 900, 4 * 630]
    assert {(task.training.data, task.training.folder, task.training.clients) for task in whole} == {("mnist", str(mnist), 60)}
    assert {task.training.model for task in FIGURES["mvu-fig6"].on_data(0, True, mnist)} == {"mvu-cnn"}

    def small(seed: int, quick: bool, folder: Path) -> list[TrainingTask]:
        # Tables of 3 bits take long to design.
        given = {"noise_multiplier": (2.5, 5), "table_epsilon": (5,), "bits_out": (1,)}
        kept = [
            task
            for task in entry.on_data(seed, quick, folder)
            if all(value in given[name] for name, value in task.mechanism.options if name in given)
        ]
        short = [replace(task, training=replace(task.training, model="softmax", rounds=2, evaluate_every=2)) for task in kept]
        return [replace(task, mechanism=with_few_inputs(task.mechanism)) for task in short]

    only(monkeypatch, replace(entry, on_data=small))
    reproduce(None, tmp_path / "figures", data=mnist, quick=True, cache=tmp_path / "tables")
    table = pd.read_csv(tmp_path / "figures" / "mvu-fig4.csv", engine="python")
    assert table.groupby("sampling")["mechanism"].unique().map(set).to_dict() == {
        key: {"none", "dp-fedavg", "gaussian", "sign-gaussian", "mvu"} for key in ("passes", "fixed")
    }
    assert set(table["dimension"]) == {7850}
    assert table["accuracy"].between(0, 1).all()
    # Both rounds use each of the 60 images, in turn or by draws, so sampling has no amplification. The paper's noise of 5 is half of the
    # distance of two gradients.
    gaussian = table[table["mechanism"] == "gaussian"].set_index("sampling")
    stated = gaussian_privacy(2.5).epsilon(1 / 61, rounds=2)
    assert gaussian["epsilon"].tolist() == pytest.approx([stated, stated], rel=1e-12)
    assert gaussian.loc["fixed", "epsilon_amplified"] == pytest.approx(stated, rel=1e-9)
    assert np.isnan(gaussian.loc["passes", "epsilon_amplified"])


def test_infinite_images_are_a_users_deformed(mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = FIGURES["cpsgd-fig2"]
    whole = entry.on_data(0, False, mnist)
    common = {(task.training.data, task.training.clients, task.training.clients_per_round, task.training.rounds) for task in whole}
    assert common == {("mnist", 25_000_000, 10_000, 2500)}
    assert {(task.training.model, task.training.delta, task.training.sampling) for task in whole} == {("mlp-60-60-60", 1e-9, "passes")}
    kinds = {(task.training.epsilon, dict(task.mechanism.options)["rotated"]) for task in whole if task.mechanism.name == "cpsgd"}
    assert kinds == {(epsilon, rotated) for epsilon in (4.0, 2.0) for rotated in (True, False)}
    # The setting has 25 million clients, each with its own image, and draws no client twice.
    assert whole[0].training.federated_data(0).cohort([0, 24_999_999]).examples.inputs.shape == (2, 784)

    def small(seed: int, quick: bool, folder: Path) -> list[TrainingTask]:
        changed = {"model": "softmax", "clients": 600, "clients_per_round": 300, "rounds": 2, "evaluate_every": 2}
        kept = [task for task in entry.on_data(seed, quick, folder) if task.training.epsilon != 2.0]
        return [replace(task, training=replace(task.training, **changed)) for task in kept]

    only(monkeypatch, replace(entry, on_data=small))
    reproduce(None, tmp_path / "figures", data=mnist, quick=True, cache=tmp_path / "tables")
    table = pd.read_csv(tmp_path / "figures" / "cpsgd-fig2.csv", engine="python")
    assert table["mechanism"].tolist() == ["none", "none", "dp-fedavg", "cpsgd", "cpsgd"]
    assert table["accuracy"].between(0, 1).all()
    private = table[table["mechanism"] != "none"]
    assert (private["epsilon"] <= private["target_epsilon"]).all()


def test_data_are_refused_where_none_are_taken_or_files_are_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data must be left out for mvu-fig1, got nowhere: it is for mvu-fig4, "):
        reproduce(["mvu-fig1"], tmp_path / "out", data=Path("nowhere"))
    with pytest.raises(DataError, match=r"there is no file, in it or in a folder of it, train-labels-idx1-ubyte, of mnist, from https"):
        reproduce(["mvu-fig6"], tmp_path / "out", data=tmp_path)
    with pytest.raises(DataError, match=r"train/\*\.json with images, of femnist, from https"):
        reproduce(["dprec-table1"], tmp_path / "out", data=tmp_path)
    assert not (tmp_path / "out").exists()
    result = CliRunner().invoke(app, ["reproduce", "mvu-fig6", "--data", str(tmp_path), "--output", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "there is no file, in it or in a folder of it, train-labels-idx1-ubyte" in result.stderr
