"""Bytes of DP-REC in both directions, in its paper's federations (Triastcyn, Reisser, Louizos 2021), beside uncompressed models."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.dp_rec_communication import FEDERATIONS, FIRST_MODELS, CommunicationPoint
from ..drawing.directed_rounding import rounded_down
from ..drawing.marks import BLUE, GREEN, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry

# Heights of the three marks of a training, around its row.
OFFSETS = (-0.25, 0.0, 0.25)
LABELS = ("up: messages", "down: history, first model public", "down: history, first model sent", "up or down, uncompressed")
MARKS: tuple[Mark, ...] = (BLUE, GREEN, VERMILION)


def draw_bytes(frame: pd.DataFrame) -> Figure:
    """Draw the bytes of a training, up and down, and how many times fewer they are than without compression."""
    trainings = [training for _, training in frame.groupby("dataset", sort=False)]
    figure = Figure(figsize=(WIDTH, 2.1 + 0.75 * len(trainings)), layout="constrained")
    axes = figure.subplots()
    for row, training in enumerate(trainings):
        _draw_training(axes, row, training)
    names = [
        f"{one['dataset'].iloc[0]}\n{one['model'].iloc[0]}\n{one['parameters'].iloc[0] / 1e6:.2f} million parameters" for one in trainings
    ]
    axes.set_yticks(range(len(trainings)), names)
    axes.set_ylim(len(trainings) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator())
    axes.xaxis.set_major_formatter(EngFormatter(unit="B"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("bytes of all clients and rounds")
    # Room for the number to the left of the leftmost mark.
    axes.set_xlim(frame["bytes_up"].min() / 30, 3 * frame["uncompressed_bytes"].max())
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    handles = [
        Line2D([], [], color=mark.colour, marker=mark.marker, linestyle="", label=label) for mark, label in zip(MARKS, LABELS, strict=False)
    ]
    handles.append(Line2D([], [], color=GREY, label=LABELS[-1]))
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    add_caption(figure, _caption(frame))
    return figure


def _draw_training(axes: Axes, row: int, training: pd.DataFrame) -> None:
    """Draw three marks, a line where uncompressed models are, and the factors between."""
    public, sent = (training[training["first_model"] == kind].iloc[0] for kind in ("public", "sent"))
    uncompressed = public["uncompressed_bytes"]
    values = (public["bytes_up"], public["bytes_down"], sent["bytes_down"])
    factors = (public["compression_up"], public["compression_down"], sent["compression_down"])
    axes.plot([uncompressed] * 2, [row - 0.4, row + 0.4], color=GREY, linewidth=1.6)
    for value, factor, offset, mark in zip(values, factors, OFFSETS, MARKS, strict=True):
        axes.plot([value, uncompressed], [row + offset] * 2, color=mark.colour, linewidth=0.5, linestyle=(0, (1, 3)))
        axes.plot(value, row + offset, color=mark.colour, marker=mark.marker, linestyle="")
        axes.annotate(
            f"\N{DIVISION SIGN} {_factor(factor)}",
            (value, row + offset),
            xytext=(-6, 0),
            textcoords="offset points",
            color=mark.colour,
            horizontalalignment="right",
            verticalalignment="center",
        )
    if row:
        across = blended_transform_factory(axes.transAxes, axes.transData)
        axes.plot([0, 1], [row - 0.5] * 2, color="#dddddd", linewidth=0.5, transform=across)


def _factor(value: float) -> str:
    """Return a factor of compression, rounded down: with one decimal if it is small."""
    return rounded_down(value, 2) if value < 10 else _thousands(int(value))


def _thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _caption(frame: pd.DataFrame) -> str:
    federations = "; ".join(
        f"{one['dataset']} {_thousands(one['population'])}, {one['clients_per_round']}, {one['rounds']}, {one['message_bytes']}"
        for _, one in frame.drop_duplicates("dataset").iterrows()
    )
    first = frame.iloc[0]
    return (
        f"Bytes of a whole training. Clients, messages per round, rounds, bytes per message: {federations}. The first three are the DP-REC "
        "paper's, and so are 7 bits per group, after a seed of 64 bits. Models are standard ones of the literature, with a group for each "
        "tensor; StackOverflow has the paper's six groups. A client gets the messages of all rounds since it was last there, or the "
        "float32 parameters where these are shorter. In its first round it gets all messages so far, if the first model is public, and "
        "else the parameters. Numbers: how many times fewer bytes than without compression, where the parameters go to and from each "
        "client of each round, rounded down. Who takes part is simulated, with replacement. Bytes do not depend on ε; DP-REC's promise is "
        f"for {first['adjacency']} adjacency, {first['trust_model']} trust model."
    )


def communication_tasks(seed: int, _: bool) -> list[CommunicationPoint]:
    """Return two tasks for each training, which are quick anyway."""
    return [CommunicationPoint(seed=seed, federation=one, first_model=first) for one in FEDERATIONS for first in FIRST_MODELS]


FIGURE = FigureEntry(
    name="dprec-communication",
    title="Bytes of DP-REC in both directions, in its paper's federations, beside uncompressed models",
    paper=entry_named("dp-rec").paper,
    duration="five seconds",
    experiment="DP-REC in both directions",
    tasks=communication_tasks,
    draw=draw_bytes,
)
