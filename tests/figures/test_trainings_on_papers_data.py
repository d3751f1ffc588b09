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
from matplotlib.figure import Figure

from quietbits.analysis.training.task import TrainedMechanism, TrainingTask
from quietbits.figures import registry
from quietbits.figures.drawing import save
from quietbits.figures.drawing.style import print_style, solve_layout
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
    return figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")


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
            "standard_error": 0.01,
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
    assert "keeps ε of at most 12,345 (z = 0.5)" in caption(figure)
    for text in ("80.13 % with 1000 and rate 50", "z = 0.5, 1000 clients, 21.21 % at 1, 21.11 % at 5, 20.74 % at 10", "18 bits"):
        assert text in caption(figure)
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
                "repetitions": 1,
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
        *("zeroed below 0.5", "zeroed below 1", "zeroed below 2"),
    }
    assert "keeps ε of at most 12,345 (z = 0.05)" in caption(figure)
    assert fits(figure)


def test_the_papers_maps_have_a_panel_for_each_noise(data: Path) -> None:
    rows = drawn_rows("price-training-heat-map", data, 12_345.0)
    with print_style():
        figure = FIGURES["price-training-heat-map"].draw(rows.drop_duplicates("label"))
    *maps, _ = figure.axes
    assert [axes.get_title() for axes in maps] == ["z = 0.1", "z = 0.3", "z = 0.5"]
    assert [tick.get_text() for tick in maps[-1].get_xticklabels()] == ["10", "12", "14", "16", "18", "20", "22"]
    assert [tick.get_text() for tick in maps[0].get_yticklabels()] == ["1", "4", "10", "20", "50", "60"]
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
    for line in ("on 120 images of MNIST, 4 in each of 1 rounds.", "on 20 images of CIFAR-10, 4 in each", "δ = 1/(images + 1)"):
        assert line in caption(figure)


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
    assert "Paper, StackOverflow tags, ε = 1: dp-fedavg 19.3, dp-rec 18.4, ddg16 14, ddg12 10 %" in caption(figure)
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
    text = "Paper, ε = 3: dp-fedavg 82.1, dp-rec 69.5, dp-fedavg-8-bits 58; ε = 6: dp-fedavg 90, dp-rec 83.7 %"
    assert text in caption(figure)
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
