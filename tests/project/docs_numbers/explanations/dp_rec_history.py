"""Numbers of docs/explanations/dp-rec-history.md."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pandas as pd

from quietbits.analysis.training.run import run_training_tasks
from quietbits.analysis.training.spec import parse_training
from quietbits.design.relative_entropy.dp_rec import dp_rec_account
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
    """Return each federation's total and the paper's total in GiB, and the compression factors."""
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
    """Return the total of a scheme on FEMNIST over 1500 rounds, in GiB."""
    return number("FEMNIST, 1500 rounds", scheme, "total_gib")


def paper(scheme: str) -> float:
    """Return the paper's total for a scheme and federation."""
    return number("FEMNIST, 1500 rounds", scheme, "paper_gib")


def messages_of_package(federation: str) -> float:
    """Return the mean number of messages per package, if the first model is public."""
    return number(federation, PUBLIC, "replayed_messages") / number(federation, PUBLIC, "packages")


GRID = {
    "clients": 100,
    "clients_per_round": 10,
    "sampling": "with-replacement",
    "rounds": 200,
    "local_epochs": 5,
    "client_rate": 0.5,
    "server": "adam",
    "server_rate": 0.02,
    "delta": 100**-1.1,
    "adjacency": "add-or-remove-one",
    "download": "history",
}
DP_REC = MappingProxyType({"name": "dp-rec-training", "group_size": 65})
ADAM, SGD = {"name": "none"}, {"name": "none", "server": "sgd"} | {"server_rate": 1.0}


def digits(mechanism: Mapping[str, object]) -> pd.DataFrame:
    """Return the rounds of a training on the digits."""
    with TemporaryDirectory() as folder:
        return run_training_tasks(parse_training({**GRID, "mechanism": [dict(mechanism)]}).tasks(), Path(folder))


def accuracy(mechanism: Mapping[str, object]) -> float:
    """Return the mean accuracy on digits over the last 20 rounds, in percent."""
    return 100 * float(digits(mechanism)["accuracy"].tail(20).mean())


def published_epsilon(clip_ratio: float) -> float:
    return dp_rec_account(clip_ratio, 100, 10, 200, 70, 100**-1.1).epsilon_by("published")


def fewer_bytes(direction: str) -> float:
    """Return the factor by which a direction has fewer bytes than uncompressed models."""
    plain, coded = digits(SGD | {"download": "model"}), digits(DP_REC | {"clip_ratio": 1.0})
    return float(plain[f"bytes_{direction}"].sum() / coded[f"bytes_{direction}"].sum())
