"""The papers' learning experiments, read from `training_settings.toml` with their sources."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from ..arguments import check_choice


@dataclass(frozen=True)
class ReportedResult:
    """A result that a paper reports for a run of an experiment.

    None marks an inapplicable value.

    Attributes
    ----------
    accuracy : mapping of str to float
        Accuracy in per cent, by mechanism or cohort.
    epsilon, clip_ratio, noise_multiplier, rate : float or None
        Parameters of the run; the noise multiplier is that of Gaussian noise on a sum.
    bits : int or None
        Number of bits of a coordinate.
    """

    accuracy: Mapping[str, float]
    epsilon: float | None = None
    clip_ratio: float | None = None
    noise_multiplier: float | None = None
    rate: float | None = None
    bits: int | None = None


@dataclass(frozen=True)
class TrainingSettings:
    """An experiment of a paper.

    Attributes
    ----------
    paper, experiment : str
        Names in the file.
    source : str
        Paper, with its figure or table.
    data : str
        Name of the data, which is the name in `quietbits.analysis.datasets.named_data` if that has the data.
    values : mapping
        Hyperparameters and other stated values, by their names in the file.
    reported : tuple of ReportedResult
        The paper's reported numbers.
    """

    paper: str
    experiment: str
    source: str
    data: str
    values: Mapping[str, Any]
    reported: tuple[ReportedResult, ...]

    def value(self, name: str) -> Any:
        """Return the stated value of a name; a `ValueError` lists the names."""
        check_choice("name", name, tuple(self.values))
        return self.values[name]


@cache
def all_training_settings() -> tuple[TrainingSettings, ...]:
    """Return all experiments, in the order of the file."""
    document = tomllib.loads(files(__package__).joinpath("training_settings.toml").read_text(encoding="utf-8"))
    return tuple(_settings(paper, name, table) for paper, tables in document.items() for name, table in tables.items())


def training_settings(paper: str, experiment: str) -> TrainingSettings:
    """Return an experiment by its names.

    Examples
    --------
    >>> settings = training_settings("dp-rec", "femnist")
    >>> settings.value("rounds"), settings.value("fedavg_rounds"), settings.reported[1].noise_multiplier
    (4000, 1500, 1.85)
    """
    _check_paper(paper)
    own = {settings.experiment: settings for settings in all_training_settings() if settings.paper == paper}
    return own[check_choice("experiment", experiment, tuple(own))]


def settings_by_data(paper: str) -> Mapping[str, TrainingSettings]:
    """Return the experiments of a paper by their data, in the order of the file.

    Examples
    --------
    >>> list(settings_by_data("mvu"))
    ['mnist', 'cifar10']
    """
    _check_paper(paper)
    return MappingProxyType({settings.data: settings for settings in all_training_settings() if settings.paper == paper})


def _check_paper(paper: str) -> None:
    check_choice("paper", paper, tuple(dict.fromkeys(settings.paper for settings in all_training_settings())))


def _settings(paper: str, experiment: str, table: dict[str, Any]) -> TrainingSettings:
    values = {name: value for name, value in table.items() if name not in ("source", "data", "reported")}
    reported = tuple(_result(result) for result in table.get("reported", []))
    return TrainingSettings(paper, experiment, table["source"], table["data"], MappingProxyType(values), reported)


def _result(table: dict[str, Any]) -> ReportedResult:
    return ReportedResult(**table | {"accuracy": MappingProxyType(table["accuracy"])})
