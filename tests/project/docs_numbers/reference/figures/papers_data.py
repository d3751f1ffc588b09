"""Numbers of docs/reference/figures/papers-data.md."""

import math
from collections.abc import Iterator
from functools import cache

import quietbits
from quietbits.analysis.training.plan import training_plan
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.design.federated.model_layers import Layer, ModelLayers
from quietbits.figures.drawing.directed_rounding import rounded_up
from quietbits.figures.training_settings import settings_by_data, training_settings
from quietbits.solvers.accounting.sampling import PoissonSampling


def fedavg_rows() -> Iterator[list[object]]:
    """Return the proven and the stated epsilon of the DP-REC paper's DP-FedAvg."""
    for data, paper in settings_by_data("dp-rec").items():
        clients = paper.value("clients")
        sampling = PoissonSampling(paper.value("clients_per_round") / clients)
        for reported in paper.reported:
            if reported.noise_multiplier is None:
                continue
            report = quietbits.account(
                "gaussian",
                noise_multiplier=reported.noise_multiplier,
                delta=clients ** paper.value("delta_exponent"),
                rounds=paper.values.get("fedavg_rounds", paper.value("rounds")),
                adjacency="add-or-remove-one",
                sampling=sampling,
            )
            assert math.isfinite(report.epsilon)
            yield [data, f"{reported.epsilon:g}", f"{reported.noise_multiplier:g}", rounded_up(report.epsilon, 3)]


@cache
def sum_epsilon(noise_multiplier: float, cohort: int) -> str:
    """Return the proven epsilon of the linear compression paper's noise on FEMNIST, rounded up."""
    paper = training_settings("linear-compression", "femnist")
    setting = TrainingSetting(
        data="femnist",
        # Computing the budget reads no file.
        folder="femnist",
        split="writer",
        clients=paper.value("clients"),
        clients_per_round=cohort,
        rounds=paper.value("rounds"),
        delta=1 / paper.value("clients"),
        adjacency="replace-one",
        local_epochs=1,
        clip=paper.value("clip_start"),
        clipping="adaptive",
    )
    layers = ModelLayers("parameters", (Layer("all", ((paper.value("parameters"),),)),))
    # Replacing a client changes a sum by up to two clip norms.
    options = {"bits": paper.value("bits"), "noise_multiplier": noise_multiplier / 2}
    epsilon = math.ceil(training_plan(setting, "distributed-discrete-gaussian", options, layers).epsilons[-1])
    return f"{epsilon:,}".replace(",", " ") if epsilon >= 10_000 else str(epsilon)
