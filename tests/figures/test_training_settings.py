"""The papers' settings are complete, as published, and the same as in other figures."""

import math

import pytest

from quietbits.analysis.datasets.named_data import DATA_NAMES
from quietbits.figures.dp_rec.communication import COUNTED, FEDERATIONS, SECURE_SUMS, UNCOMPRESSED
from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS
from quietbits.figures.training_settings import all_training_settings, training_settings

NAMES = {"MNIST": "mnist", "FEMNIST": "femnist", "Shakespeare": "shakespeare", "StackOverflow": "stackoverflow-tags"}


def test_every_experiment_has_a_source_and_something_to_compare_with() -> None:
    results = all_training_settings()
    assert [(item.paper, item.experiment) for item in results] == [
        ("mvu", "mnist"),
        ("mvu", "cifar10"),
        ("cpsgd", "infinite-mnist"),
        *(("dp-rec", name) for name in NAMES.values()),
        ("linear-compression", "femnist"),
        ("linear-compression", "stackoverflow-words"),
    ]
    for entry in results:
        assert entry.source
        assert entry.reported or entry.value("open")
        assert all(0 < accuracy < 100 for result in entry.reported for accuracy in result.accuracy.values())
    assert {item.data for item in results} & set(DATA_NAMES) == set(DATA_NAMES) - {"digits", "emnist"}


def test_dp_rec_has_the_settings_of_its_other_figures() -> None:
    for dataset, name in NAMES.items():
        settings = training_settings("dp-rec", name)
        own = [setting for setting in PUBLISHED_SETTINGS if setting.dataset == dataset]
        assert [(item.epsilon, item.clip_ratio, item.noise_multiplier) for item in settings.reported] == [
            (setting.epsilon, setting.clip_ratio, setting.noise_multiplier) for setting in own
        ]
        for setting in own:
            assert (settings.value("clients"), settings.value("clients_per_round")) == (setting.population, setting.clients_per_round)
            assert settings.value("rounds") == setting.rounds
            assert settings.values.get("fedavg_rounds", setting.rounds) == setting.gaussian_rounds
            assert settings.value("groups") * settings.value("bits_per_group") == setting.index_bits
            assert setting.delta == setting.population ** settings.value("delta_exponent")
        main, *others = [federation for federation in FEDERATIONS if federation.dataset == dataset]
        totals = settings.value("total_gib")
        assert (totals["uncompressed"], totals["dp-rec"]) == (main.published_gib(UNCOMPRESSED), main.published_gib(COUNTED))
        if others:
            shorter, grouped = others
            result = [shorter.published_gib(scheme) for scheme in (UNCOMPRESSED, *SECURE_SUMS)]
            assert [totals[key] for key in ("uncompressed-1500", "ddg16", "ddg12")] == result
            assert totals["dp-rec-groups-of-64"] == grouped.published_gib(COUNTED)


def test_grids_have_the_published_sizes() -> None:
    settings = training_settings("mvu", "mnist")
    shared = math.prod(len(settings.value(name)) for name in ("iterations", "step", "clip_norm"))
    assert shared * len(settings.value("gaussian_sigma")) == settings.value("grid_gaussian") == settings.value("grid_sign") == 450
    assert shared * len(settings.value("mvu_epsilon")) == settings.value("grid_mvu") == 630


def test_other_numbers_are_as_stated() -> None:
    cpsgd = training_settings("cpsgd", "infinite-mnist")
    assert cpsgd.value("clients") == cpsgd.value("clients_per_round") * cpsgd.value("rounds")
    tags = training_settings("dp-rec", "stackoverflow-tags")
    assert (tags.value("client_step"), tags.value("server_step")) == (10**2.5, 10**-0.25)
    words = training_settings("linear-compression", "stackoverflow-words")
    assert [(item.noise_multiplier, item.rate, item.bits) for item in words.reported] == [
        *((0.3, 1, 10), (0.3, 5, 12), (0.5, 1, 10), (0.5, 5, 12), (0.5, 10, 12)),
    ]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="paper must be one of mvu, cpsgd, dp-rec, linear-compression, got 'sgd'"):
        training_settings("sgd", "mnist")
    with pytest.raises(ValueError, match="experiment must be one of mnist, cifar10, got 'femnist'"):
        training_settings("mvu", "femnist")
    with pytest.raises(ValueError, match=r"name must be one of batch, momentum, .*, got 'decay'"):
        training_settings("mvu", "mnist").value("decay")
