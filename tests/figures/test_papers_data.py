"""Figures of trainings on a user's folder.

Points under test: detection of the papers' data sets, and the papers' settings on each.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from quietbits.analysis.datasets.found_data import FoundData, found_data
from quietbits.analysis.training.models import named_models
from quietbits.analysis.training.models.named_models import network_named
from quietbits.analysis.training.task import TrainingTask
from quietbits.design.federated.adam import ServerAdam
from quietbits.errors import DataError, DataNotFoundError
from quietbits.figures import registry
from quietbits.figures.agreement.index_page import FigureIndex
from quietbits.figures.registry import FIGURES, reproduce
from quietbits.figures.training.price_settings import reported_percent
from quietbits.figures.training_settings import training_settings

from .conftest import CLIENTS, NAMES, WORDS, write_leaf, write_mnist


def test_data_are_found_in_a_folder_or_one_of_its_folders(data: Path, tmp_path: Path) -> None:
    result = found_data(data, NAMES)
    assert [item.name for item in result] == list(NAMES)
    tags = result[-1].folder
    assert found_data(data, (WORDS,)) == (FoundData(WORDS, tags),)
    assert FoundData(WORDS, tags).clients == CLIENTS["stackoverflow-tags"]
    assert {item.name: item.clients for item in result} == CLIENTS
    # The folder's own data come first. A repeated request searches again.
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
    # LEAF's other sets have file names, tweets, and features as examples.
    for name, item in (("celeba", "000001.jpg"), ("sent140", ["1467810369", "a tweet"]), ("synthetic", [0.5] * 60)):
        (tmp_path / name).mkdir()
        write_leaf(tmp_path / name, {"user": {"x": [item], "y": [1]}})
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
    monkeypatch.setattr(named_models, "installed", lambda _: False)
    with pytest.raises(ValueError, match=r"torch must be installed for dprec-table1 on data, with model lenet-5, .*, got none: "):
        reproduce(["dprec-table1"], tmp_path / "out", data=data)
    with pytest.raises(ValueError, match=r"torch must be installed for figures on femnist in .*: pip install 'quietbits\[torch\]'"):
        reproduce(None, tmp_path / "out", data=found_data(data, ("femnist",))[0].folder)
    assert not (tmp_path / "out").exists()


def by_data(tasks: Sequence[Any]) -> dict[str, list[TrainingTask]]:
    return {name: [task for task in tasks if task.training.data == name] for name in dict.fromkeys(task.training.data for task in tasks)}


def test_mvu_has_the_papers_grids_on_each_data(data: Path) -> None:
    tasks = by_data(FIGURES["mvu-fig4"].on_data(0, False, data))
    assert list(tasks) == ["mnist", "cifar10"]
    names = [task.mechanism.name for task in tasks["cifar10"] if task.training.sampling == "passes"]
    assert [names.count(name) for name in ("none", "dp-fedavg", "gaussian", "sign-gaussian", "mvu")] == [3, *3 * [6 * 90], 2 * 6 * 126]
    assert [task.training.sampling for task in tasks["cifar10"]].count("fixed") == len(names)
    rounds = {task.training.rounds for task in tasks["cifar10"]}
    assert rounds == {1000, 2000, 3000, 5000, 10_000, 15_000}
    assert {task.training.model for own in tasks.values() for task in own} == {"scatter-softmax"}
    # The paper's noise on each gradient is sigma clip norms, which are half of two gradients' distance; its steps use plain signs.
    for task in tasks["mnist"]:
        setting, options = task.training, dict(task.mechanism.options)
        if task.mechanism.name in ("gaussian", "sign-gaussian"):
            assert options["noise_multiplier"] in [0.25, 0.5, 1, 1.5, 2.5]
        if task.mechanism.name == "sign-gaussian":
            step = setting.server_rate * 2 * options["noise_multiplier"] * setting.clip * math.sqrt(math.pi / 2)
            assert min(abs(step / item - 1) for item in (0.01, 0.03, 0.1)) < 1e-12
        if task.mechanism.name == "mvu":
            assert (options["metric"], options["bits_in"], setting.epsilon, setting.round_epsilon) == ("l1", 9, None, None)
            assert options["table_epsilon"] in [0.25, 0.5, 0.75, 1, 2, 3, 5]
    # The paper uses its convolutional network only on MNIST.
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
                # The run has the paper's own clip ratio, or its clip norm with more noise for the proven epsilon.
                stated = [item.clip_ratio for item in paper.reported if options.get("clip_ratio", item.clip_ratio) == item.clip_ratio]
                assert setting.clip in [ratio * paper.value("sigma") for ratio in stated]
                assert options["group_bits"] == 7
                assert (setting.rounds, setting.download) == (paper.value("rounds"), "history")
                assert options.get("largest_group") == (10**6 if name == "stackoverflow-tags" else None)
            else:
                assert setting.clip == paper.value("fedavg_clip_norm")
                assert setting.rounds == paper.values.get("fedavg_rounds", paper.value("rounds"))
        # Each run has the paper's setting, once as published and once for its proven epsilon.
        fedavg = [task for task in own if task.mechanism.name == "dp-fedavg"]
        private = [task for task in fedavg if "bits" not in dict(task.mechanism.options)]
        # Eight-bit runs are only on MNIST, with the paper's noise for epsilon 3.
        levels = [dict(task.mechanism.options) for task in fedavg if task not in private]
        given = {"bits": 8, "noise_multiplier": 3.8}
        assert levels == ([given, {**given, "reach": "clip-norm"}] if name == "mnist" else [])
        assert [task.training.epsilon for task in private] == [item.epsilon for item in paper.reported] + [None] * len(paper.reported)
        noise = [multiplier for task in private if (multiplier := dict(task.mechanism.options).get("noise_multiplier")) is not None]
        assert noise == [item.noise_multiplier for item in paper.reported]
        coded = [task for task in own if task.mechanism.name == "dp-rec-training"]
        assert [task.training.epsilon for task in coded] == [item.epsilon for item in paper.reported] + [None] * len(paper.reported)
        ratios = [dict(task.mechanism.options).get("clip_ratio") for task in coded]
        assert ratios == [None] * len(paper.reported) + [item.clip_ratio for item in paper.reported]
        # Trainings on the paper's data include the discrete Gaussian exactly if the paper reports its accuracy.
        reported = {name for item in paper.reported for name in item.accuracy}
        assert {"distributed-discrete-gaussian"} & {task.mechanism.name for task in own} == (
            {"distributed-discrete-gaussian"} if "ddg16" in reported else set()
        )
    (mnist, *_), (tags, *_) = tasks["mnist"], tasks["stackoverflow-tags"]
    paper = training_settings("dp-rec", "mnist")
    assert mnist.training.optimiser == ServerAdam(2e-3, paper.value("server_beta1"), paper.value("server_beta2"))
    # The paper splits 50,000 images; all images of a smaller set are split.
    assert (mnist.training.split, mnist.training.dirichlet_alpha, mnist.training.images) == ("dirichlet", 1.0, CLIENTS["mnist"])
    assert (tags.training.server, tags.training.momentum, tags.training.client_rate) == ("momentum", 0.9, 10**2.5)
    assert {(task.training.server, task.training.split) for task in tasks["shakespeare"]} == {("sgd", "writer")}
    # Other figures of the paper are on FEMNIST.
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
            assert setting.clients_per_round <= setting.clients == {"femnist": 4, WORDS: 3}[name]
        sizes = sorted({size for task in own if (size := dict(task.mechanism.options).get("sketch_dimension"))})
        rates = [paper.value("parameters") / size for size in reversed(sizes)]
        assert rates == pytest.approx({"femnist": [5, 10, 20, 40, 50], WORDS: [4, 5, 10, 20]}[name], rel=1e-3)
        # The runs have the paper's noise, as in its table 1 for words, and a budget beside it.
        private = [task for task in own if task.mechanism.name != "none"]
        noise = [None if (entry := dict(task.mechanism.options).get("noise_multiplier")) is None else 2 * entry for task in private]
        assert {task.training.epsilon for task in private} == {None, 10.0}
        assert all((item is None) == (task.training.epsilon is not None) for item, task in zip(noise, private, strict=True))
        assert set(noise) == {None, 0.01, 0.3, 0.5} if name == WORDS else {None, 0.1, 0.3, 0.5}
        bits = [dict(task.mechanism.options)["bits"] for task in private]
        usual = paper.value("bits")
        reported = {(item.noise_multiplier, item.bits) for item in paper.reported if item.bits}
        assert {(item, width) for item, width in zip(noise, bits, strict=True) if width != usual} == reported
        if name == WORDS:
            seeds = len({task.seed for task in own})
            assert [width for width in bits if width != usual] == [width for width in (10, 12, 10, 12, 12) for _ in range(seeds)]
    # Maps have the paper's noise multipliers, models the largest multiplier, thresholds the multiplier of its Figure 9, and cohorts one
    # budget.
    noise = {"heat-map": (0.05, 0.15, 0.25), "model": (0.25,), "threshold": (0.025,), "cohort": (None,)}
    for figure, result in noise.items():
        tasks = FIGURES[f"price-training-{figure}"].on_data(0, False, data)
        private = [task for task in tasks if task.mechanism.name != "none"]
        budget = 10.0 if figure == "cohort" else None
        given = {(task.training.epsilon, dict(task.mechanism.options).get("noise_multiplier")) for task in private}
        assert given == {(budget, multiplier) for multiplier in result}


def test_figures_3_to_6_of_linear_compression_have_the_papers_bits_seeds_and_models(data: Path) -> None:
    maps = [task for task in FIGURES["price-training-heat-map"].on_data(0, False, data) if task.mechanism.name != "none"]
    assert {dict(task.mechanism.options)["bits"] for task in maps} == {10, 12, 14, 16, 18, 20, 22}
    assert {task.seed for task in maps} == set(range(30))
    models = FIGURES["price-training-model"].on_data(0, False, data)
    dimensions = {task.training.model: network_named(task.training.model, 784, 62, (28, 28, 1)).layers.dimension for task in models[:1]}
    assert dimensions == {"mlp-200-200": 209_662}
    assert {task.training.model for task in models} == {"mlp-200-200", "femnist-cnn"}


def test_thresholds_are_tried_on_each_data(data: Path) -> None:
    tasks = by_data(FIGURES["price-training-threshold"].on_data(0, False, data))
    assert list(tasks) == ["femnist", WORDS]
    for own in tasks.values():
        thresholds = {dict(task.mechanism.options).get("threshold") for task in own if task.mechanism.name == "thresholded-sketch"}
        assert thresholds == {0.0, 0.5, 1.0, 2.0}


@pytest.mark.parametrize(
    ("changed", "percent"),
    [
        ({}, 75.34),
        ({"clients_per_round": 1000, "rate": 49.99}, 80.13),
        ({"bits": 8}, None),
        ({"model": "dp-rec-cnn"}, None),
        ({"rate": 10.0}, None),
        ({"clients_per_round": 1000}, None),
        ({"clients_per_round": 200}, None),
        ({"paper_noise_multiplier": 0.4}, None),
        ({"paper_noise_multiplier": math.nan}, None),
        ({"data": WORDS, "model": "next-word-lstm", "clients_per_round": 1000, "bits": 10}, 21.21),
        ({"data": WORDS, "model": "next-word-lstm", "clients_per_round": 1000, "bits": 18}, None),
    ],
)
def test_the_papers_accuracies_stand_beside_its_own_runs_alone(changed: dict[str, Any], percent: float | None) -> None:
    row = {"data": "femnist", "model": "femnist-cnn", "clients_per_round": 100, "bits": 16, "rate": 1.0, "paper_noise_multiplier": 0.5}
    assert reported_percent(row | changed) == percent


def test_without_names_figures_are_made_whose_data_are_there(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    reported: list[str] = []
    ends = {
        name: replace(figure, run=lambda *_, name=name, **__: made.append(name), table=lambda _: None) for name, figure in FIGURES.items()
    }
    monkeypatch.setattr(registry, "FIGURES", MappingProxyType(ends))
    monkeypatch.setattr(registry, "_without_provenance", lambda rows: rows)
    monkeypatch.setattr(registry, "_write", lambda *_: SimpleNamespace(files=()))
    monkeypatch.setattr(FigureIndex, "add", lambda *_: None)
    monkeypatch.setattr(named_models, "installed", lambda _: True)
    (mnist,) = found_data(data, ("mnist",))
    reproduce(None, tmp_path, quick=True, data=mnist.folder, on_step=lambda *step: reported.append(step[2]))
    assert made == ["mvu-fig4", "mvu-fig6", "cpsgd-fig2", "dprec-table1"]
    assert reported[0].startswith("left out, without data: ")
    assert "price-training, " in reported[0]
    monkeypatch.setattr(named_models, "installed", lambda _: False)
    made.clear()
    reproduce(None, tmp_path, quick=True, data=mnist.folder, on_step=lambda *step: reported.append(step[2]))
    assert made == ["mvu-fig4", "cpsgd-fig2"]
    assert any(step.startswith("left out, without torch: mvu-fig6, dprec-table1; without data: ") for step in reported)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataNotFoundError, match=r"no file.*of mnist.*of stackoverflow-words"):
        reproduce(None, tmp_path, data=tmp_path / "empty")
