"""Numbers of docs/dp-rec-history.md."""

from collections.abc import Iterator
from functools import cache

import pandas as pd

from quietbits.analysis.simulation.history_training import LocalTraining, digits_mechanism, train_by_history
from quietbits.design.federated.server_optimiser import FedAdam, ServerSGD
from quietbits.figures.dp_rec.communication import COUNTED, FEDERATIONS, PACKAGES, UNCOMPRESSED, CommunicationPoint
from quietbits.figures.drawing.directed_rounding import rounded_down
from quietbits.tests.project.docs_numbers.shared import spaced

PUBLIC, SENT = PACKAGES


@cache
def federations() -> pd.DataFrame:
    """Return the rows of `quietbits reproduce dprec-communication`, by federation and scheme."""
    points = [
        CommunicationPoint(seed=0, federation=federation, scheme=scheme) for federation in FEDERATIONS for scheme in federation.schemes
    ]
    return pd.DataFrame([row for point in points for row in point.run()]).set_index(["federation", "scheme"])


def number(federation: str, scheme: str, column: str) -> float:
    return float(federations().loc[(federation, scheme), column])


def communication_rows() -> Iterator[list[str]]:
    """Return GiB of every federation beside the paper's, and by what factors bytes are fewer than without compression."""
    for federation in FEDERATIONS:
        name, schemes = str(federation), federation.schemes
        cells = []
        for scheme in (UNCOMPRESSED, COUNTED):
            columns = (("total_gib", ".4g"), ("paper_gib", "g"))
            cells += [format(number(name, scheme, column), form) if scheme in schemes else "" for column, form in columns]
        factors = [number(name, scheme, "compression") if scheme in schemes else None for scheme in (COUNTED, PUBLIC, SENT)]
        counts = ["" if factor is None else rounded_down(factor, 2) if factor < 10 else spaced(int(factor)) for factor in factors]
        yield [name, spaced(federation.parameters), *cells, *counts]


def total(scheme: str) -> float:
    """Return the GiB of a scheme on FEMNIST over 1500 rounds."""
    return number("FEMNIST, 1500 rounds", scheme, "total_gib")


def paper(scheme: str) -> float:
    """Return what the paper reports of it."""
    return number("FEMNIST, 1500 rounds", scheme, "paper_gib")


def messages_of_package(federation: str) -> float:
    """Return how many messages a package has on average, if the first model is public."""
    return number(federation, PUBLIC, "replayed_messages") / number(federation, PUBLIC, "packages")


@cache
def digits(clip_ratio: float | None) -> pd.DataFrame:
    """Return the rounds of a training on the digits: by DP-REC's messages, or without privacy and compression."""
    mechanism = None if clip_ratio is None else digits_mechanism(1.0, clip_ratio)
    return train_by_history(mechanism, FedAdam(0.02, adaptivity=0.1), LocalTraining(), population=100, clients_per_round=10, rounds=200)


def accuracy(clip_ratio: float | None) -> float:
    """Return the percentage of digits that are recognised, on average over the last 20 rounds."""
    return 100 * float(digits(clip_ratio)["accuracy"].tail(20).mean())


def published_epsilon(clip_ratio: float) -> float:
    return float(digits(clip_ratio)["published_epsilon"].iloc[-1])


def sgd_accuracy() -> float:
    """Return the percentage that plain SGD reaches without privacy and compression."""
    return 100 * float(train_by_history(None, ServerSGD(1.0), LocalTraining(), rounds=200)["accuracy"].tail(20).mean())


def fewer_bytes(direction: str) -> float:
    """Return by what factor the bytes of a direction are fewer than those of uncompressed models."""
    rounds = digits(1.0)
    return float(rounds["uncompressed_bytes"].sum() / rounds[f"bytes_{direction}"].sum())
