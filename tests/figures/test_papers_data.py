"""Figures of trainings on a user's folder: which of the papers' data are found there, the papers' settings on each, and small runs."""

import json
import math
import pickle
import sqlite3
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.datasets.found_data import FoundData, found_data
from quietbits.analysis.training.models import network
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask
from quietbits.design.federated.adam import ServerAdam
from quietbits.errors import DataError, DataNotFoundError
from quietbits.figures import registry
from quietbits.figures.drawing import save
from quietbits.figures.drawing.style import print_style
from quietbits.figures.registry import FIGURES, reproduce
from quietbits.figures.training_settings import training_settings

RNG = np.random.default_rng(0)
NAMES = ("mnist", "cifar10", "femnist", "shakespeare", "stackoverflow-tags")
# In the folder of the tags, too.
WORDS = "stackoverflow-words"


def write_mnist(folder: Path) -> None:
    for part, count in (("train", 120), ("t10k", 10)):
        labels = bytes(number % 10 for number in range(count))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", count, 28, 28) + RNG.bytes(count * 784))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", count) + labels)


def write_cifar10(folder: Path) -> None:
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        batch = {b"data": RNG.integers(0, 256, (4, 3072), dtype=np.uint8), b"labels": [0, 3, 5, 9]}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=3))


def write_leaf(folder: Path, users: dict[str, Any]) -> None:
    content = {"users": list(users), "num_samples": [len(one["y"]) for one in users.values()], "user_data": users}
    for part in ("train", "test"):
        (folder / part).mkdir()
        (folder / part / "all_data_niid_0_keep_0.json").write_text(json.dumps(content))


def write_femnist(folder: Path) -> None:
    # LEAF's users may have no examples.
    users = {f"f{number}": {"x": (RNG.integers(0, 256, (number, 784)) / 255).tolist(), "y": [7] * number} for number in range(4)}
    write_leaf(folder, users)


def write_shakespeare(folder: Path) -> None:
    line = 'He cried: "x": [[1]], and no more was heard of it in all that night, nor ever af'
    assert len(line) == 80
    write_leaf(folder, {"NOBODY": {"x": [], "y": []}, "A": {"x": [line], "y": ["t"]}, "B": {"x": [line, line[::-1]], "y": ["t", "!"]}})


def field(number: int, content: bytes) -> bytes:
    length, digits = len(content), []
    while length > 127:
        digits.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *digits, length]) + content


def write_tags(folder: Path) -> None:
    (folder / "stackoverflow.word_count").write_text("".join(f"word{place} {20_000 - place}\n" for place in range(10_000)))
    (folder / "stackoverflow.tag_count").write_text(json.dumps({f"tag{place}": 1000 - place for place in range(500)}))
    texts = {"tokens": "word1 word9999 nothing", "title": "word1", "tags": "tag0|tag499"}
    entries = [field(1, name.encode()) + field(2, field(1, field(1, text.encode()))) for name, text in texts.items()]
    post = field(1, b"".join(field(1, entry) for entry in entries))
    with closing(sqlite3.connect(folder / "stackoverflow.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE examples (split_name TEXT, client_id TEXT, serialized_example_proto BLOB)")
        connection.execute("CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)")
        connection.executemany("INSERT INTO client_metadata VALUES (?, 'train', 1)", [("1",), ("2",), ("3",)])
        connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", [("train", user, post) for user in "123"] + [("test", "1", post)])


WRITERS: dict[str, Callable[[Path], None]] = dict(
    zip(NAMES, (write_mnist, write_cifar10, write_femnist, write_shakespeare, write_tags), strict=True)
)
# Tables of 3 bits take long to design, and are no different here.
ONE_BIT = "mvu (bits_in 5, metric l1, bits_out 1)"
CLIENTS = dict(zip(NAMES, (120, 20, 3, 2, 3), strict=True))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of folders, named otherwise than the data."""
    folder = tmp_path_factory.mktemp("data")
    for place, (name, write) in enumerate(WRITERS.items()):
        own = folder / f"part{9 - place}"
        own.mkdir()
        write(own)
        assert found_data(own, NAMES) == (FoundData(name, own),)
    return folder


def test_data_are_found_in_a_folder_or_one_of_its_folders(data: Path, tmp_path: Path) -> None:
    found = found_data(data, NAMES)
    assert [one.name for one in found] == list(NAMES)
    tags = found[-1].folder
    assert found_data(data, (WORDS,)) == (FoundData(WORDS, tags),)
    assert FoundData(WORDS, tags).clients == CLIENTS["stackoverflow-tags"]
    assert {one.name: one.clients for one in found} == CLIENTS
    # The folder's own come first. What is asked again is looked for again.
    with pytest.raises(DataNotFoundError):
        found_data(tmp_path, ("mnist",))
    write_mnist(tmp_path)
    (tmp_path / "copy").mkdir()
    write_mnist(tmp_path / "copy")
    assert found_data(tmp_path, ("cifar10", "mnist")) == (FoundData("mnist", tmp_path),)


def test_look_alikes_are_not_taken_for_the_data(tmp_path: Path) -> None:
    for name in ("fashion", "kuzushiji"):
        (tmp_path / name).mkdir()
        write_mnist(tmp_path / name)
    with pytest.raises(DataError, match="several of its folders may be mnist: fashion, kuzushiji; call the right one mnist"):
        found_data(tmp_path, ("mnist",))
    (tmp_path / "MNIST").mkdir()
    write_mnist(tmp_path / "MNIST")
    assert found_data(tmp_path, ("mnist",)) == (FoundData("mnist", tmp_path / "MNIST"),)
    # LEAF's other sets: names of files, tweets, and features.
    for name, one in (("celeba", "000001.jpg"), ("sent140", ["1467810369", "a tweet"]), ("synthetic", [0.5] * 60)):
        (tmp_path / name).mkdir()
        write_leaf(tmp_path / name, {"user": {"x": [one], "y": [1]}})
    with pytest.raises(DataError, match="there is no file"):
        found_data(tmp_path, ("femnist", "shakespeare"))


def test_what_is_looked_for_is_named_where_there_is_nothing(data: Path, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "other.json").write_text('{"x": [1, 2]}')
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError) as error:
            FIGURES["dprec-table1"].on_data(0, False, folder)
        for text in (str(folder), "train-labels-idx1-ubyte, of mnist, from https", "train/*.json with texts, of shakespeare", "tag_count"):
            assert text in str(error.value)
    with pytest.raises(DataError, match=r"data_batch_1, of cifar10, from https://www\.cs\.toronto\.edu"):
        reproduce(["mvu-fig4"], tmp_path / "out", data=tmp_path)
    with pytest.raises(DataError, match=r"no file, in it or in a folder of it, train-labels-idx1-ubyte, of mnist, from \S+$"):
        FIGURES["mvu-fig6"].on_data(0, False, data / "part8")
    assert not (tmp_path / "out").exists()


def test_models_of_torch_are_refused_at_once_where_it_is_not_installed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"left out for dprec-table1, or: pip install 'quietbits\[torch\]', for lenet-5,"):
        reproduce(["dprec-table1"], tmp_path / "out", data=data)
    with pytest.raises(ValueError, match=r"takes without torch, or: pip install 'quietbits\[torch\]'; got femnist in"):
        reproduce([], tmp_path / "out", data=found_data(data, ("femnist",))[0].folder)
    assert not (tmp_path / "out").exists()


def by_data(tasks: Sequence[Any]) -> dict[str, list[TrainingTask]]:
    return {name: [task for task in tasks if task.training.data == name] for name in dict.fromkeys(task.training.data for task in tasks)}


def test_mvu_has_the_papers_grids_on_each_data(data: Path) -> None:
    tasks = by_data(FIGURES["mvu-fig4"].on_data(0, False, data))
    assert list(tasks) == ["mnist", "cifar10"]
    names = [task.mechanism.name for task in tasks["cifar10"]]
    assert [names.count(name) for name in ("none", "dp-fedavg", "sign-gaussian", "mvu")] == [3, 6 * 90, 6 * 90, 2 * 6 * 126]
    rounds = {task.training.rounds for task in tasks["cifar10"]}
    assert rounds == {1000, 2000, 3000, 5000, 10_000, 15_000}
    assert {task.training.model for own in tasks.values() for task in own} == {"scatter-softmax"}
    # The paper has its convolutional network on MNIST alone.
    assert list(by_data(FIGURES["mvu-fig6"].on_data(0, False, data))) == ["mnist"]


def test_dp_rec_has_the_papers_settings_on_each_data(data: Path) -> None:
    tasks = by_data(FIGURES["dprec-table1"].on_data(0, False, data))
    assert list(tasks) == ["mnist", "femnist", "shakespeare", "stackoverflow-tags"]
    models = {"mnist": "lenet-5", "femnist": "dp-rec-cnn", "shakespeare": "character-lstm", "stackoverflow-tags": "softmax"}
    for name, own in tasks.items():
        paper = training_settings("dp-rec", name)
        clients = {"mnist": 100}.get(name, CLIENTS[name])
        for task in own:
            setting, options = task.training, dict(task.mechanism.options)
            assert (setting.clients, setting.model, setting.batch) == (clients, models[name], paper.value("batch"))
            assert (setting.client_rate, setting.server_rate) == (paper.value("client_step"), paper.value("server_step"))
            assert setting.delta == clients ** paper.value("delta_exponent")
            assert setting.clients_per_round == min(clients, paper.value("clients_per_round"))
            assert setting.local_epochs == 1
            if task.mechanism.name == "dp-rec-training":
                # With the paper's own clip ratio; or with its clip norm and more noise, for the epsilon that is proven.
                stated = [one.clip_ratio for one in paper.reported if options.get("clip_ratio", one.clip_ratio) == one.clip_ratio]
                assert setting.clip in [ratio * paper.value("sigma") for ratio in stated]
                assert options["group_bits"] == 7
                assert (setting.rounds, setting.download) == (paper.value("rounds"), "history")
                assert options.get("largest_group") == (10**6 if name == "stackoverflow-tags" else None)
            else:
                assert setting.clip == paper.value("fedavg_clip_norm")
                assert setting.rounds == paper.values.get("fedavg_rounds", paper.value("rounds"))
        # Each as the paper has it, and for its epsilon as it is proven here.
        private = [task for task in own if task.mechanism.name == "dp-fedavg"]
        assert [task.training.epsilon for task in private] == [one.epsilon for one in paper.reported] + [None] * len(paper.reported)
        noise = [multiplier for task in private if (multiplier := dict(task.mechanism.options).get("noise_multiplier")) is not None]
        assert noise == [one.noise_multiplier for one in paper.reported]
        coded = [task for task in own if task.mechanism.name == "dp-rec-training"]
        assert [task.training.epsilon for task in coded] == [one.epsilon for one in paper.reported] + [None] * len(paper.reported)
        ratios = [dict(task.mechanism.options).get("clip_ratio") for task in coded]
        assert ratios == [None] * len(paper.reported) + [one.clip_ratio for one in paper.reported]
        # The discrete Gaussian is where the paper has it.
        reported = {name for one in paper.reported for name in one.accuracy}
        assert {"distributed-discrete-gaussian"} & {task.mechanism.name for task in own} == (
            {"distributed-discrete-gaussian"} if "ddg16" in reported else set()
        )
    (mnist, *_), (tags, *_) = tasks["mnist"], tasks["stackoverflow-tags"]
    paper = training_settings("dp-rec", "mnist")
    assert mnist.training.optimiser == ServerAdam(2e-3, paper.value("server_beta1"), paper.value("server_beta2"))
    # The paper deals out 50,000; of fewer all.
    assert (mnist.training.split, mnist.training.dirichlet_alpha, mnist.training.images) == ("dirichlet", 1.0, CLIENTS["mnist"])
    assert (tags.training.server, tags.training.momentum, tags.training.client_rate) == ("momentum", 0.9, 10**2.5)
    assert {(task.training.server, task.training.split) for task in tasks["shakespeare"]} == {("sgd", "writer")}
    # Others of the paper's figures are of FEMNIST.
    for name in ("dprec-fig1", "dprec-fig2", "dprec-fig3", "dprec-table3", "dprec-local-epsilon"):
        assert list(by_data(FIGURES[name].on_data(0, False, data))) == ["femnist"]


def test_linear_compression_has_the_papers_settings_on_each_data(data: Path) -> None:
    tasks = by_data(FIGURES["price-training"].on_data(0, False, data))
    assert list(tasks) == ["femnist", WORDS]
    for name, own in tasks.items():
        paper = training_settings("linear-compression", name)
        for task in own:
            setting = task.training
            assert (setting.model, setting.rounds, setting.batch) == (paper.value("model"), 1500, {"femnist": 20, WORDS: 16}[name])
            assert (setting.client_rate, setting.server_rate) == (paper.value("client_step"), paper.value("server_step"))
            assert (setting.clipping, setting.clip, setting.momentum) == ("adaptive", 0.1, 0.9)
            assert setting.clients_per_round <= setting.clients == 3
        sizes = sorted({size for task in own if (size := dict(task.mechanism.options).get("sketch_dimension"))})
        rates = [paper.value("parameters") / size for size in reversed(sizes)]
        assert rates == pytest.approx({"femnist": [5, 10, 20, 40, 50], WORDS: [4, 5, 10, 20]}[name], rel=1e-3)
        # The paper's noise, with its table 1 of words, and beside it a budget.
        private = [task for task in own if task.mechanism.name != "none"]
        noise = [None if (one := dict(task.mechanism.options).get("noise_multiplier")) is None else 2 * one for task in private]
        assert {task.training.epsilon for task in private} == {None, 10.0}
        assert all((one is None) == (task.training.epsilon is not None) for one, task in zip(noise, private, strict=True))
        assert set(noise) == {None, 0.01, 0.3, 0.5} if name == WORDS else {None, 0.1, 0.3, 0.5}
        bits = [dict(task.mechanism.options)["bits"] for task in private]
        usual = paper.value("bits")
        reported = {(one.noise_multiplier, one.bits) for one in paper.reported if one.bits}
        assert {(one, width) for one, width in zip(noise, bits, strict=True) if width != usual} == reported
        if name == WORDS:
            seeds = len({task.seed for task in own})
            assert [width for width in bits if width != usual] == [width for width in (10, 12, 10, 12, 12) for _ in range(seeds)]
    # A map and models have the paper's largest noise, cohorts one budget.
    for figure, found in {"heat-map": (None, 0.25), "model": (None, 0.25), "cohort": (10.0, None)}.items():
        tasks = FIGURES[f"price-training-{figure}"].on_data(0, False, data)
        private = [task for task in tasks if task.mechanism.name != "none"]
        assert {(task.training.epsilon, dict(task.mechanism.options).get("noise_multiplier")) for task in private} == {found}


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
        figure.draw_without_rendering()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{name}, {cohort} clients a round" for name in ("FEMNIST", "StackOverflow words") for cohort in ("100", "1,000")]
    labels = axes_labels(figure)
    assert labels == {"no privacy", "ε = 10", "z = 0.5", "z = 0.5, table 1's bits"}
    assert "keeps ε of 12,345 (z = 0.5)" in caption(figure)
    for text in ("80.13 % with 1000 and rate 50", "z = 0.5, 1000 clients, 21.21 % at 1, 21.11 % at 5, 20.74 % at 10", "18 bits"):
        assert text in caption(figure)
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert 0 <= box.x0 < box.x1 <= width
    assert 0 <= box.y0 < box.y1 <= height


def test_next_words_are_trained_where_torch_is_installed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    # Among three clients adaptive clipping's count alone costs more than the budget.
    tasks = FIGURES["price-training"].on_data(0, True, data)
    kept = [shortened(task, clipping="flat") for task in tasks if task.training.data == WORDS]
    table, figure = ran(monkeypatch, "price-training", kept, tmp_path)
    assert set(table["dimension"]) == {4_050_748}
    assert {"none", "distributed-discrete-gaussian", "sketched-discrete-gaussian"} == set(table["mechanism"])
    assert "next-word-lstm (4,050,748 parameters) on StackOverflow words, 3 clients" in caption(figure)


def test_without_names_figures_are_made_whose_data_are_there(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    told: list[str] = []
    ends = {name: replace(one, run=lambda *_, name=name, **__: made.append(name), table=lambda _: None) for name, one in FIGURES.items()}
    monkeypatch.setattr(registry, "FIGURES", MappingProxyType(ends))
    monkeypatch.setattr(registry, "_without_provenance", lambda rows: rows)
    monkeypatch.setattr(registry, "_write", lambda *_: [])
    monkeypatch.setattr(network, "find_spec", lambda _: "there")
    (mnist,) = found_data(data, ("mnist",))
    reproduce([], tmp_path, data=mnist.folder, on_step=lambda *step: told.append(step[2]))
    assert made == ["mvu-fig4", "mvu-fig6", "cpsgd-fig2", "dprec-table1"]
    assert told[0].startswith("left out, without data: ")
    assert "price-training, " in told[0]
    monkeypatch.setattr(network, "find_spec", lambda _: None)
    made.clear()
    reproduce([], tmp_path, data=mnist.folder, on_step=lambda *step: told.append(step[2]))
    assert made == ["mvu-fig4", "cpsgd-fig2"]
    assert told[-1].startswith("left out, without torch: mvu-fig6, dprec-table1; without data: ")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataNotFoundError, match=r"no file.*of mnist.*of stackoverflow-words"):
        reproduce([], tmp_path, data=tmp_path / "empty")


def ran(monkeypatch: pytest.MonkeyPatch, name: str, tasks: Sequence[TrainingTask], output: Path) -> tuple[pd.DataFrame, Figure]:
    """Return the table of a figure of these tasks, as it is written, and the figure."""
    # The other kinds are the same drawing.
    monkeypatch.setattr(save, "METADATA", {"svg": save.METADATA["svg"]})
    entry = replace(FIGURES[name], on_data=lambda *_: tasks)
    monkeypatch.setattr(registry, "FIGURES", MappingProxyType({name: entry}))
    reproduce([name], output, data=output)
    table = pd.read_csv(output / f"{name}.csv")
    with print_style():
        return table, entry.draw(table)


def shortened(task: TrainingTask, **changed: Any) -> TrainingTask:
    return replace(task, training=replace(task.training, rounds=1, evaluate_every=1, **changed))


def coarse(task: TrainingTask) -> TrainingTask:
    """Return a task whose messages of DP-REC have few candidates."""
    options = tuple((name, 2 if name == "group_bits" else value) for name, value in task.mechanism.options)
    return replace(task, mechanism=TrainedMechanism(task.mechanism.name, options))


def axes_labels(figure: Figure) -> set[str]:
    return {label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]}


def caption(figure: Figure) -> str:
    return figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")


def test_linear_models_are_trained_on_both_data_in_a_row_of_panels_each(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [
        shortened(task, clients_per_round=4)
        for task in FIGURES["mvu-fig4"].on_data(0, True, data)
        if task.mechanism.name == "none" or str(task.mechanism) in ("sign-gaussian (noise_multiplier 5.0)", ONE_BIT)
        if task.training.round_epsilon in (None, 5.0)
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
        shortened(coarse(task), secret_sampling=task.mechanism.name != "dp-fedavg")
        for task in FIGURES["dprec-table1"].on_data(0, True, data)
        if task.training.data == "stackoverflow-tags" and task.mechanism.name in ("none", "dp-fedavg", "dp-rec-training")
    ]
    table, figure = ran(monkeypatch, "dprec-table1", kept, tmp_path)
    assert set(table["dimension"]) == {5_000_500}
    assert set(table.loc[table["mechanism"] == "dp-fedavg", "paper_percent"]) == {19.3}
    # The paper's own noise and clip ratio stand at its epsilon, with what they keep.
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
    assert table["times_fewer_bytes"].tolist() == (floats / table["megabytes"]).tolist()
    # A seed of 64 bits, and two for each of the paper's six groups, filled up to bytes.
    assert set(table.loc[table["mechanism"] == "dp-rec-training", "bits_per_client"].dropna()) == {64 + 16}
    (axes,) = figure.axes
    assert axes.get_ylabel() == "recall at 5 (%)"
    assert "Paper, StackOverflow tags, ε = 1: dp-fedavg 19.3, dp-rec 18.4, ddg16 14, ddg12 10 %" in caption(figure)
    # All data at once: the same accuracies for the budgets of each.
    budgets = {name: [one.epsilon for one in training_settings("dp-rec", name).reported] for name in NAMES if name != "cifar10"}
    rows = [
        table.assign(data=name, stated_epsilon=table["stated_epsilon"].where(table["stated_epsilon"].isna(), epsilon))
        for name, epsilons in budgets.items()
        for epsilon in epsilons
    ]
    with print_style():
        figure = FIGURES["dprec-table1"].draw(pd.concat(rows, ignore_index=True))
        figure.draw_without_rendering()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        *("MNIST, ε = 3", "MNIST, ε = 6", "FEMNIST, ε = 1", "FEMNIST, ε = 3", "FEMNIST, ε = 6"),
        *("Shakespeare, ε = 3", "StackOverflow tags, ε = 1"),
    ]
    assert "Paper, ε = 3: dp-fedavg 82.1, dp-rec 69.5; ε = 6: dp-fedavg 90, dp-rec 83.7 %" in caption(figure)
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert 0 <= box.x0 < box.x1 <= width
    assert 0 <= box.y0 < box.y1 <= height


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
