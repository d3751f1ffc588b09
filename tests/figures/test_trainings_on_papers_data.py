"""Tests of figures of trainings on a user's folder, by small runs on tiny files."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quietbits.analysis.training.task import TrainedMechanism, TrainingTask
from quietbits.figures import registry
from quietbits.figures.drawing import save
from quietbits.figures.drawing.marks import PAPER_VALUE
from quietbits.figures.drawing.style import CAPTION_LINES, print_style, solve_layout
from quietbits.figures.registry import FIGURES, reproduce
from quietbits.figures.training_settings import training_settings

from .conftest import NAMES, WORDS

# The design of tables of 3 bits takes long, and they behave like tables of one bit in this test.
ONE_BIT = "mvu (table_epsilon 5.0, bits_in 9, bits_out 1, metric l1)"


def ran(monkeypatch: pytest.MonkeyPatch, name: str, tasks: Sequence[TrainingTask], output: Path) -> tuple[pd.DataFrame, Figure]:
    """Run a figure of these tasks; return its table and the figure."""
    # The other formats have the same drawing.
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    entry = replace(FIGURES[name], on_data=lambda *_: tasks)
    monkeypatch.setattr(registry, "FIGURES", MappingProxyType({name: entry}))
    reproduce([name], output, data=output, cache=output / "tables")
    table = pd.read_csv(output / f"{name}.csv", engine="python")
    with print_style():
        return table, entry.draw(table)


def shortened(task: TrainingTask, **changed: Any) -> TrainingTask:
    return replace(task, training=replace(task.training, rounds=1, evaluate_every=1, **changed))


def coarse(task: TrainingTask) -> TrainingTask:
    """Return a task with few candidates in DP-REC's messages, and few inputs in tables."""
    fewer = {"group_bits": 2, "bits_in": 4}
    options = tuple((name, fewer.get(name, value)) for name, value in task.mechanism.options)
    return replace(task, mechanism=TrainedMechanism(task.mechanism.name, options))


def fits(figure: Figure) -> bool:
    """Return whether the whole drawing is on the page."""
    solve_layout(figure)
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return bool(0 <= box.x0 < box.x1 <= width and 0 <= box.y0 < box.y1 <= height)


def axes_labels(figure: Figure) -> set[str]:
    return {label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]}


def caption(figure: Figure) -> str:
    """Return the caption, which has at most three lines."""
    assert len(figure.get_supxlabel().splitlines()) <= CAPTION_LINES
    return figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")


def entries(figure: Figure) -> set[str]:
    """Return the entries of the legend."""
    return {text.get_text() for text in figure.legends[0].get_texts()}


def crosses(axes: Axes) -> list[tuple[float, float]]:
    """Return the places of the paper's values in a panel."""
    lines = [line for line in axes.lines if line.get_marker() == PAPER_VALUE.marker]
    places = [place for line in lines for place in np.asarray(line.get_xydata(), dtype=float).tolist()]
    return [(x, y) for x, y in places if not math.isnan(y)]


# Some of the results of the linear compression paper, by data, clients of a round and rate.
REPORTED = {("femnist", 100, 1.0): 75.34, (WORDS, 1000, 10.0): 20.74}


def test_compression_is_drawn_for_each_data(data: Path) -> None:
    tasks = FIGURES["price-training"].on_data(0, True, data)
    rows = [
        {
            **task.training.columns(),
            **dict(task.mechanism.options),
            "mechanism": task.mechanism.name,
            "target_epsilon": task.training.epsilon,
            "paper_noise_multiplier": 2 * dict(task.mechanism.options).get("noise_multiplier", math.nan),
            "epsilon": 10.0 if task.training.epsilon else 12_345.0,
            "clients_per_round": cohort,
            "dimension": training_settings("linear-compression", task.training.data).value("parameters"),
            "rate": rate,
            "accuracy": 0.2,
            "standard_error": math.nan,
            "test_examples": 100,
            "paper_percent": REPORTED.get((task.training.data, cohort, rate), math.nan) if task.training.epsilon is None else math.nan,
            "repetitions": 1,
            "delta": task.training.delta,
            "adjacency": task.training.adjacency,
        }
        for task in tasks
        for cohort in (100, 1000)
        for rate in (1.0, 5.0, 10.0)
    ]
    with print_style():
        figure = FIGURES["price-training"].draw(pd.DataFrame(rows))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{name}, {cohort} clients a round" for name in ("FEMNIST", "StackOverflow words") for cohort in ("100", "1,000")]
    labels = axes_labels(figure)
    assert labels == {"no privacy", "ε = 10", "z = 0.5", "z = 0.5, table 1's bits"}
    assert "ε of at most 12,345 (z = 0.5)" in caption(figure)
    assert "16 or 18 bits" in caption(figure)
    # A paper's result is a cross beside the result of the same noise, clients and rate.
    first, *_, last = figure.axes
    assert set(crosses(first)) == {(1.0, 75.34)}
    assert set(crosses(last)) == {(10.0, 20.74)}
    assert fits(figure)


def drawn_rows(name: str, data: Path, epsilon: float) -> pd.DataFrame:
    """Return table rows of a figure's full runs on the papers' data, with made-up accuracies."""
    tasks = FIGURES[name].on_data(0, False, data)
    rows = []
    for task in tasks:
        options, paper = dict(task.mechanism.options), training_settings("linear-compression", task.training.data)
        dimension = paper.value("parameters")
        rows.append(
            {
                **task.training.columns(),
                **options,
                "mechanism": task.mechanism.name,
                "label": str(task.mechanism),
                "target_epsilon": math.nan,
                "paper_noise_multiplier": 2 * options.get("noise_multiplier", math.nan),
                "epsilon": epsilon,
                "dimension": dimension,
                "rate": dimension / options.get("sketch_dimension", dimension),
                "accuracy": 0.2 + 0.001 * len(rows) % 0.5,
                "standard_error": 0.01,
                "test_examples": 100,
                "repetitions": 3,
                "cheapest": False,
                "delta": task.training.delta,
                "adjacency": task.training.adjacency,
            }
        )
    return pd.DataFrame(rows)


def test_thresholds_are_drawn_for_each_data(data: Path) -> None:
    with print_style():
        figure = FIGURES["price-training-threshold"].draw(drawn_rows("price-training-threshold", data, 12_345.0))
    assert [axes.get_title() for axes in figure.axes] == ["FEMNIST, z = 0.05", "StackOverflow words, z = 0.05"]
    assert axes_labels(figure) == {
        *("no privacy", "a new sketch each round", "one sketch, all kept"),
        *("zeroed below 0.5 rms", "zeroed below 1 rms", "zeroed below 2 rms"),
    }
    assert "ε of at most 12,345 (z = 0.05)" in caption(figure)
    assert fits(figure)


def test_the_papers_maps_have_a_panel_for_each_noise(data: Path) -> None:
    rows = drawn_rows("price-training-heat-map", data, 12_345.0)
    with print_style():
        figure = FIGURES["price-training-heat-map"].draw(rows.drop_duplicates("label"))
    *maps, _ = figure.axes
    assert [axes.get_title() for axes in maps] == ["z = 0.1", "z = 0.3", "z = 0.5"]
    assert [tick.get_text() for tick in maps[-1].get_xticklabels()] == ["10", "12", "14", "16", "18", "20", "22"]
    assert [tick.get_text() for tick in maps[0].get_yticklabels()] == ["1", "4", "10", "20", "50", "60"]
    # The paper's cheapest pairs: 12 bits with rate 10, 14 bits with rate 20, and 12 bits with rate 50.
    places = [[(round(x - 0.4), round(y - 0.3)) for x, y in crosses(axes)] for axes in maps]
    assert places == [[(1, 2)], [(2, 3)], [(1, 4)]]
    assert "± " in maps[0].texts[0].get_text()
    assert "ε of at most 12,345 (z = 0.1), 12,345 (z = 0.3), 12,345 (z = 0.5)" in caption(figure)
    assert fits(figure)


def test_next_words_are_trained_where_torch_is_installed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    # With three clients, adaptive clipping's count alone exceeds the budget.
    tasks = FIGURES["price-training"].on_data(0, True, data)
    kept = [shortened(task, clipping="flat") for task in tasks if task.training.data == WORDS]
    table, figure = ran(monkeypatch, "price-training", kept, tmp_path)
    assert set(table["dimension"]) == {4_050_748}
    assert {"none", "distributed-discrete-gaussian", "sketched-discrete-gaussian"} == set(table["mechanism"])
    assert "next-word-lstm (4,050,748 parameters) on StackOverflow words, 3 clients" in caption(figure)


def test_linear_models_are_trained_on_both_data_in_a_row_of_panels_each(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [
        shortened(coarse(task), clients_per_round=4)
        for task in FIGURES["mvu-fig4"].on_data(0, True, data)
        if task.mechanism.name == "none" or str(task.mechanism) in ("sign-gaussian (noise_multiplier 2.5)", ONE_BIT)
    ]
    table, figure = ran(monkeypatch, "mvu-fig4", tasks, tmp_path)
    assert table.groupby("data", sort=False)["dimension"].unique().map(list).to_dict() == {"mnist": [39_700], "cifar10": [155_530]}
    assert table["accuracy"].between(0, 1).all()
    assert [axes.get_title().split(",")[0] for axes in figure.axes] == ["MNIST", "MNIST", "CIFAR-10", "CIFAR-10"]
    assert {axes.get_ylabel() for axes in figure.axes} == {"accuracy (%)", ""}
    for text in ("scatter-softmax on MNIST and CIFAR-10", "δ = 1/(images + 1)"):
        assert text in caption(figure)
    assert "standard error: the test examples of one seed" in entries(figure)


def test_tags_are_trained_without_torch_and_measured_by_recall(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [
        shortened(coarse(task), clients_per_round=1, secret_sampling=task.mechanism.name != "dp-fedavg")
        for task in FIGURES["dprec-table1"].on_data(0, True, data)
        if task.training.data == "stackoverflow-tags" and task.mechanism.name in ("none", "dp-fedavg", "dp-rec-training")
    ]
    table, figure = ran(monkeypatch, "dprec-table1", kept, tmp_path)
    assert set(table["dimension"]) == {5_000_500}
    reported = table[table["paper_percent"].notna()]
    assert dict(zip(reported["mechanism"], reported["paper_percent"], strict=True)) == {"dp-fedavg": 19.3, "dp-rec-training": 18.4}
    assert reported["target_epsilon"].isna().all()
    # The paper's own noise and clip ratio are at its epsilon, with the proven epsilon beside it.
    own = table[table["target_epsilon"].isna() & (table["mechanism"] != "none")].set_index("mechanism")
    assert own["stated_epsilon"].tolist() == [1.0, 1.0]
    assert (own.loc["dp-fedavg", "noise_multiplier"], own.loc["dp-rec-training", "clip_ratio"]) == (0.957, 1.227)
    assert np.isfinite(own.loc["dp-fedavg", "epsilon"])
    assert np.isinf(own.loc["dp-rec-training", "epsilon"])
    assert np.isfinite(own.loc["dp-rec-training", ["epsilon_published", "epsilon_any_clients"]].astype(float)).all()
    labels = axes_labels(figure)
    assert {"DP-FedAvg", "DP-FedAvg, the paper's noise", "DP-REC, ε proven", "DP-REC, ε as published"} <= labels
    assert (table["megabytes"] == table["megabytes_up"] + table["megabytes_down"]).all()
    floats = table.loc[table["mechanism"] == "none", "megabytes"].item()
    assert table["times_fewer_bytes"].tolist() == pytest.approx((floats / table["megabytes"]).tolist(), rel=1e-12)
    # The message has a seed of 64 bits, and two bits for each of the paper's six groups, padded to bytes.
    assert set(table.loc[table["mechanism"] == "dp-rec-training", "bits_per_client"].dropna()) == {64 + 16}
    (axes,) = figure.axes
    assert axes.get_ylabel() == "recall at 5 (%)"
    assert sorted(percent for _, percent in crosses(axes)) == [18.4, 19.3]
    assert "1 secretly drawn in each of 1 rounds" in caption(figure)
    assert "standard error: 1 test examples of one seed" in entries(figure)
    # All data sets have the same accuracies for their budgets.
    budgets = {name: [item.epsilon for item in training_settings("dp-rec", name).reported] for name in NAMES if name != "cifar10"}
    rows = [
        table.assign(data=name, stated_epsilon=table["stated_epsilon"].where(table["stated_epsilon"].isna(), epsilon))
        for name, epsilons in budgets.items()
        for epsilon in epsilons
    ]
    with print_style():
        figure = FIGURES["dprec-table1"].draw(pd.concat(rows, ignore_index=True))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        *("MNIST, ε = 3", "MNIST, ε = 6", "FEMNIST, ε = 1", "FEMNIST, ε = 3", "FEMNIST, ε = 6"),
        *("Shakespeare, ε = 3", "StackOverflow tags, ε = 1"),
    ]
    assert "One local epoch a round; " in caption(figure)
    assert fits(figure)


def test_models_of_torch_are_trained_where_it_is_installed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    kept = [
        shortened(coarse(task))
        for task in FIGURES["dprec-table1"].on_data(0, True, data)
        if task.training.data in ("mnist", "shakespeare") and task.mechanism.name in ("none", "dp-rec-training")
    ]
    table, figure = ran(monkeypatch, "dprec-table1", kept, tmp_path)
    assert table.groupby("data", sort=False)["dimension"].unique().map(list).to_dict() == {"mnist": [582_026], "shakespeare": [820_522]}
    assert [axes.get_title() for axes in figure.axes] == ["MNIST, ε = 6", "Shakespeare, ε = 3"]
    assert "character-lstm on Shakespeare, 2 clients, a client for each role" in caption(figure)
