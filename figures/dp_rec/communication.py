"""Bytes of DP-REC's published federations, beside the paper's totals and other schemes.

The paper is Triastcyn, Reisser, Louizos 2021. Clients, messages of a round, rounds, models, groups and 7 bits of a group are the paper's.
The length of a seed, 32 bits, and the sizes of the two convolutional networks are inferred from the reported totals.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...analysis.simulation.two_way_compression import communication_totals, simulate_participation
from ...arguments import check_choice
from ...arrays import FloatArray
from ...design.relative_entropy.dp_rec import message_bytes
from ...design.relative_entropy.group_layout import uniform_layout
from ..drawing.directed_rounding import rounded_down
from ..drawing.marks import GREY, PAPER_VALUE, Mark, mechanism_mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point
from .references import PUBLISHED_SETTINGS

BITS_PER_GROUP, COUNTED_SEED_BITS = 7, 32
FLOAT_BYTES = 4
GIB = 2**30
UNCOMPRESSED, COUNTED = "uncompressed", "DP-REC, as the paper counts"
# Number of bits of a coordinate of a message to the server.
SECURE_SUMS = {"discrete Gaussian, 16 bits": 16, "discrete Gaussian, 12 bits": 12}
# Schemes by whether all clients hold the first model.
PACKAGES = {"DP-REC, first model public": True, "DP-REC, first model sent": False}
SCHEMES = (UNCOMPRESSED, *SECURE_SUMS, COUNTED, *PACKAGES)
_SETTINGS = {setting.dataset: setting for setting in PUBLISHED_SETTINGS}
_SUM, _CODE = mechanism_mark("distributed-discrete-gaussian"), mechanism_mark("dp-rec")
MARKS: Mapping[str, Mark] = MappingProxyType(
    dict(
        zip(
            SCHEMES,
            (GREY, _SUM, replace(_SUM, marker="v"), _CODE, replace(_CODE, marker="o"), replace(_CODE, marker="D")),
            strict=True,
        )
    )
)
PAPER_LOOK: Mapping[str, Any] = MappingProxyType({**PAPER_VALUE.points, "markersize": 10, "markeredgewidth": 0.8})
# Height of a scheme, and the space between two trainings.
STEP, SPACE = 0.3, 0.32


@dataclass(frozen=True)
class PublishedTotal:
    """Total communication that DP-REC's paper reports, in GiB.

    The total counts both directions, all clients and all rounds.
    """

    scheme: str
    gib: float


@dataclass(frozen=True)
class Federation:
    """A training: its clients, its data and its model.

    Attributes
    ----------
    dataset : str
        Name of the data in the paper.
    model : str
        The model, in words.
    tensors : tuple of tuple of int
        Shapes of its tensors.
    groups : int
        Number of groups that are coded independently.
    published : tuple of PublishedTotal
        The paper's totals of the training.
    variant : str
        Name that distinguishes trainings on the same data.
    rounds_instead : int or None
        Number of rounds, if it differs from DP-REC's main training.
    """

    dataset: str
    model: str
    tensors: tuple[tuple[int, ...], ...]
    groups: int
    published: tuple[PublishedTotal, ...]
    variant: str = ""
    rounds_instead: int | None = None

    def __str__(self) -> str:
        """Return the name of the data and of the variant."""
        return f"{self.dataset}, {self.variant}" if self.variant else self.dataset

    @property
    def population(self) -> int:
        """Number of clients."""
        return _SETTINGS[self.dataset].population

    @property
    def clients_per_round(self) -> int:
        """Number of messages of a round."""
        return _SETTINGS[self.dataset].clients_per_round

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return _SETTINGS[self.dataset].rounds if self.rounds_instead is None else self.rounds_instead

    @property
    def parameters(self) -> int:
        """Number of the model's parameters."""
        return sum(math.prod(shape) for shape in self.tensors)

    @property
    def model_bytes(self) -> int:
        """Number of bytes of the parameters in float32."""
        return FLOAT_BYTES * self.parameters

    @property
    def counted_bits(self) -> int:
        """Number of bits of a message by the paper's count."""
        return BITS_PER_GROUP * self.groups + COUNTED_SEED_BITS

    @property
    def message_bytes(self) -> int:
        """Number of bytes of a message: a 64-bit seed, and seven bits for each group.

        The bits are padded to whole bytes.
        """
        return message_bytes(uniform_layout(self.parameters, self.groups, BITS_PER_GROUP))

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes with a reported total, and DP-REC's packages if the paper reports DP-REC."""
        reported = tuple(total.scheme for total in self.published)
        return (*reported, *PACKAGES) if COUNTED in reported else reported

    def published_gib(self, scheme: str) -> float:
        """Return the paper's total of a scheme, or NaN."""
        return {total.scheme: total.gib for total in self.published}.get(scheme, math.nan)


def _lstm(inputs: int, units: int) -> tuple[tuple[int, ...], ...]:
    """Return the tensors of an LSTM layer in TensorFlow: weights and biases of four gates."""
    return (inputs, 4 * units), (units, 4 * units), (4 * units,)


# LeNet-5 of TensorFlow's tutorials: convolutions of 5 by 5, 32 and 64 channels, each followed by pooling, 512 hidden units, 10 classes.
_LENET = ((5, 5, 1, 32), (32,), (5, 5, 32, 64), (64,), (4 * 4 * 64, 512), (512,), (512, 10), (10,))
# Network of FEMNIST: convolutions of 3 by 3, 32 and 64 channels, each followed by pooling, 128 hidden units, 62 classes.
_CONVOLUTIONAL = ((3, 3, 1, 32), (32,), (3, 3, 32, 64), (64,), (5 * 5 * 64, 128), (128,), (128, 62), (62,))
# Network of Reddi et al. 2021, *Adaptive Federated Optimization*: 90 characters in 8 dimensions, two LSTM layers of 256 units.
_CHARACTERS = ((90, 8), *_lstm(8, 256), *_lstm(256, 256), (256, 90), (90,))
# The model predicts for a question with some of 10 000 words whether it has each of 500 tags.
_TAGS = ((10_000, 500), (500,))
_FEMNIST = ("FEMNIST", "convolutional network", _CONVOLUTIONAL)
GROUP_LENGTH = 64
_SHORT_GROUPS = sum(math.ceil(math.prod(shape) / GROUP_LENGTH) for shape in _CONVOLUTIONAL)


def _published(uncompressed: float, counted: float) -> tuple[PublishedTotal, ...]:
    return PublishedTotal(UNCOMPRESSED, uncompressed), PublishedTotal(COUNTED, counted)


# DP-FedAvg and the discrete Gaussian train for fewer rounds than DP-REC.
_FEWER_ROUNDS = tuple(PublishedTotal(scheme, gib) for scheme, gib in zip((UNCOMPRESSED, *SECURE_SUMS), (259.0, 194.0, 178.0), strict=True))

FEDERATIONS = (
    Federation("MNIST", "LeNet-5", _LENET, len(_LENET), _published(43.0, 0.01)),
    Federation(*_FEMNIST, len(_CONVOLUTIONAL), _published(690.6, 14.2)),
    Federation(*_FEMNIST, len(_CONVOLUTIONAL), _FEWER_ROUNDS, "1500 rounds", 1500),
    # Table 3 groups each tensor by 64 coordinates, with a smaller group at its end.
    Federation(*_FEMNIST, _SHORT_GROUPS, (PublishedTotal(COUNTED, 332.2),), f"groups of {GROUP_LENGTH}"),
    Federation("Shakespeare", "character LSTM", _CHARACTERS, len(_CHARACTERS), _published(81.0, 0.1)),
    # Five groups of a million weights each, and a group of biases.
    Federation("StackOverflow", "logistic regression", _TAGS, 6, _published(3356.0, 32.0)),
)


@dataclass(frozen=True)
class CountedBytes:
    """Number of bytes of a training by the paper's count, in expectation over its participants.

    The count excludes packages and padding.
    """

    up: float
    down: float


def counted_bytes(federation: Federation) -> CountedBytes:
    """Return DP-REC's bytes by the paper's count: messages up, and histories or models down.

    Every draw sends a message, and every client of a round gets its history or the model. Clients are drawn with replacement, and hold the
    first model. A client that last took part g rounds ago, or has not taken part in all g rounds so far, gets g rounds of messages, or the
    parameters in float32 where these are shorter.

    Examples
    --------
    >>> counted = counted_bytes(FEDERATIONS[1])
    >>> round((counted.up + counted.down) / GIB, 2)
    14.22
    """
    message = federation.counted_bits / 8
    passed = np.arange(federation.rounds)
    package = np.minimum(passed * federation.clients_per_round * message, federation.model_bytes)
    absent = (1 - 1 / federation.population) ** federation.clients_per_round
    never = absent**passed
    # Probabilities are per round, for a client that takes part in it.
    expected = (1 - absent) * np.append(0.0, np.cumsum(never[:-1] * package[1:])) + never * package
    down = federation.population * (1 - absent) * float(expected.sum())
    return CountedBytes(federation.rounds * federation.clients_per_round * message, down)


@dataclass(frozen=True, kw_only=True)
class CommunicationPoint(Point):
    """A training whose bytes are counted for a scheme.

    Attributes
    ----------
    federation : Federation
        The training.
    scheme : str
        Scheme of messages: ``"uncompressed"``, parameters in float32 to and from each draw of each round; ``"discrete Gaussian, 16 bits"``
        or 12 bits of a coordinate up, and parameters down; ``"DP-REC, as the paper counts"``, by `counted_bytes`; ``"DP-REC, first model
        public"`` or ``"sent"``, by the lengths of this package's messages and packages, for simulated participants. The server's optimiser
        is plain SGD, so that a model is its parameters; an optimiser with moments makes models two or three times as long.
    """

    federation: Federation
    scheme: str

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with the training's sizes and its bytes.

        ``total_gib`` counts both directions and stands beside the paper's ``paper_gib``. ``compression`` is the ratio of ``uncompressed``
        bytes to the scheme's bytes; ``packages``, ``full_models`` and ``replayed_messages`` are those of simulated participants. Adjacency
        and trust model are those of DP-REC's guarantee, on which bytes do not depend.

        Examples
        --------
        >>> rows = [CommunicationPoint(seed=0, federation=FEDERATIONS[0], scheme=scheme).run()[0] for scheme in FEDERATIONS[0].schemes]
        >>> [(row["scheme"], round(row["total_gib"], 4), row["paper_gib"]) for row in rows[:2]]
        [('uncompressed', 43.3643, 43.0), ('DP-REC, as the paper counts', 0.0102, 0.01)]
        """
        check_choice("scheme", self.scheme, self.federation.schemes)
        federation = self.federation
        uncompressed = federation.rounds * federation.clients_per_round * federation.model_bytes
        sent = self._bytes(uncompressed)
        total = sent["bytes_up"] + sent["bytes_down"]
        return [
            {
                "dataset": federation.dataset,
                "federation": str(federation),
                "scheme": self.scheme,
                "model": federation.model,
                "tensors": len(federation.tensors),
                "groups": federation.groups,
                "parameters": federation.parameters,
                "population": federation.population,
                "clients_per_round": federation.clients_per_round,
                "rounds": federation.rounds,
                **sent,
                "uncompressed_bytes": uncompressed,
                "compression_up": uncompressed / sent["bytes_up"],
                "compression_down": uncompressed / sent["bytes_down"],
                "compression": 2 * uncompressed / total,
                "total_gib": total / GIB,
                "paper_gib": federation.published_gib(self.scheme),
                "adjacency": "add-or-remove-one",
                "trust_model": "central",
            }
        ]

    def _bytes(self, uncompressed: int) -> dict[str, float]:
        """Return the bits of a message, and the bytes in both directions."""
        federation = self.federation
        none = {"expected_bytes_down": math.nan, "packages": math.nan, "full_models": math.nan, "replayed_messages": math.nan}
        if self.scheme in PACKAGES:
            return self._packages()
        if self.scheme == COUNTED:
            counted = counted_bytes(federation)
            return {"message_bits": federation.counted_bits, "bytes_up": counted.up, "bytes_down": counted.down} | none
        bits = SECURE_SUMS.get(self.scheme, 8 * FLOAT_BYTES)
        up = uncompressed * bits / (8 * FLOAT_BYTES)
        return {"message_bits": bits * federation.parameters, "bytes_up": up, "bytes_down": uncompressed} | none

    def _packages(self) -> dict[str, float]:
        federation = self.federation
        frame = simulate_participation(
            federation.population,
            federation.clients_per_round,
            federation.rounds,
            federation.model_bytes,
            federation.message_bytes,
            named_stream(self.seed, f"participation, {federation.dataset}"),
            public_start=PACKAGES[self.scheme],
        )
        totals = communication_totals(frame)
        return {
            "message_bits": 8 * federation.message_bytes,
            "bytes_up": totals.bytes_up,
            "bytes_down": totals.bytes_down,
            "expected_bytes_down": totals.expected_bytes_down,
            "packages": int(frame["clients"].sum()),
            "full_models": totals.full_models,
            "replayed_messages": totals.replayed_messages,
        }


def draw_bytes(frame: pd.DataFrame) -> Figure:
    """Draw the bytes of every training by every scheme, with the paper's totals.

    Numbers state the factor of compression.
    """
    trainings = [training for _, training in frame.groupby("federation", sort=False)]
    figure = Figure(figsize=(WIDTH, 2.9 + 0.9 * STEP * len(frame) + 0.3 * len(trainings)), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    # The leftmost mark needs room for the numbers to its left.
    axes.set_xlim(frame["total_gib"].min() / 300, 3 * frame["total_gib"].max())
    top, middles = 0.0, []
    for training in trainings:
        heights = np.asarray(top + STEP * np.arange(len(training)), dtype=float)
        _draw_training(axes, heights, training)
        middles.append(heights.mean())
        top = heights[-1] + STEP + SPACE
        across = blended_transform_factory(axes.transAxes, axes.transData)
        axes.plot([0, 1], [top - (STEP + SPACE) / 2] * 2, color="#dddddd", linewidth=0.5, transform=across)
    names = [
        f"{training['federation'].iloc[0]}\n{training['model'].iloc[0]}\n{training['parameters'].iloc[0] / 1e6:.2f} million parameters"
        for training in trainings
    ]
    axes.set_yticks(middles, names)
    axes.set_ylim(top - (STEP + SPACE) / 2, -(STEP + SPACE) / 2)
    axes.set_xlabel("GiB of all clients and rounds, up and down")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    handles = [Line2D([], [], label=scheme, **mark.points) for scheme, mark in MARKS.items()]
    handles.append(Line2D([], [], label="the paper (in brackets)", **PAPER_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    add_caption(figure, _caption(frame))
    return figure


def _draw_training(axes: Axes, heights: FloatArray, training: pd.DataFrame) -> None:
    """Draw a mark for each scheme, a cross for the paper's total, and the numbers beside it."""
    for height, (_, row) in zip(heights, training.iterrows(), strict=True):
        mark = MARKS[row["scheme"]]
        axes.plot(row["total_gib"], height, **mark.points)
        axes.plot(row["paper_gib"], height, **PAPER_LOOK)
        words = f"{row['total_gib']:.4g}"
        if row["scheme"] in (COUNTED, *PACKAGES):
            words = f"\N{DIVISION SIGN} {_factor(row['compression'])}: {words}"
        if not np.isnan(row["paper_gib"]):
            words += f" ({row['paper_gib']:g})"
        axes.annotate(
            words,
            (row["total_gib"], height),
            xytext=(-11, 0),
            textcoords="offset points",
            horizontalalignment="right",
            verticalalignment="center",
        )


def _factor(value: float) -> str:
    """Return a factor of compression as text, rounded down; small factors have a decimal."""
    return rounded_down(value, 2) if value < 10 else _thousands(int(value))


def _thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return (
        "Bytes of a whole training, both directions. As the paper counts: without headers; the other two: packages made here. Crosses: "
        "the paper's totals. Numbers: GiB; how many times fewer, rounded down. Bytes do not depend on ε; DP-REC's promise is for "
        f"{first['adjacency']} adjacency, {first['trust_model']} trust model."
    )


def communication_tasks(seed: int, _: bool) -> list[CommunicationPoint]:
    """Return a task for each training and scheme; all of them are quick."""
    return [
        CommunicationPoint(seed=seed, federation=federation, scheme=scheme) for federation in FEDERATIONS for scheme in federation.schemes
    ]


def _savings(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the ratio of uncompressed bytes to the packages' bytes."""
    return frame.loc[frame["scheme"].isin(list(PACKAGES)), "compression"]


FIGURE = FigureEntry(
    name="dprec-communication",
    paper=entry_named("dp-rec").paper,
    experiment="DP-REC in both directions",
    tasks=communication_tasks,
    draw=draw_bytes,
    findings=(Finding("Bytes without compression over those of DP-REC's messages", _savings),),
)
