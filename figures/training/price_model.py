"""Accuracy of a compressed large model and of a small model against the message's size.

The trainings share an epsilon or a noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.marks import DOTTED, series_marks
from ..drawing.style import add_caption
from .grids import accuracy_panels, add_legend, draw_accuracies, draw_level
from .price_settings import (
    EPSILON,
    MOST_NOISE,
    PAPER,
    arrange_rates,
    digits_common,
    digits_dimension,
    femnist_common,
    papers_noise,
    row_sizes,
    setting_in_words,
    sketch_tasks,
)
from .training_figure import training_figure

MODELS = ("softmax", "mlp-128")
# Sizes of a sketched message, in addition to the size of the whole model.
QUICK_SIZES, FULL_SIZES = (75, 150, 300, 600, 2400), (75, 150, 300, 600, 1200, 2400, 4800)
RATES_ON_DATA = (4, 16, 64)


def arrange_messages(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each setting, with the kilobytes of a message."""
    frame = arrange_rates(rows)
    return frame.assign(message_kilobytes=frame["bits_per_client"] / 8000)


def draw_models(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the size of a message, a line for each model.

    The largest message is the whole model.
    """
    figure, (axes,) = accuracy_panels(1, 4.0)
    models = sorted(frame["dimension"].unique())
    for dimension, mark in zip(models, series_marks(len(models)), strict=True):
        own = frame[frame["dimension"] == dimension]
        name = own["model"].iloc[0]
        draw_accuracies(axes, own[own["mechanism"] != "none"], "message_kilobytes", mark.look, f"{name}, {dimension:,} parameters")
        draw_level(axes, own[own["mechanism"] == "none"], replace(mark, line=DOTTED), f"{name}, no privacy")
    axes.set(xlabel="kilobytes of a message")
    axes.set_xscale("log")
    add_legend(figure, axes, frame, 2)
    add_caption(
        figure,
        f"{setting_in_words(frame)} {PAPER.value('bits')} bits a number; a line ends at the model without a sketch. The "
        "paper prints no numbers.",
    )
    return figure


def model_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs for each model and size of a message."""
    sizes, tasks = QUICK_SIZES if quick else FULL_SIZES, []
    for model in MODELS:
        common = digits_common(quick=quick, model=model, clients_per_round=100)
        dimension = digits_dimension(model)
        tasks += sketch_tasks(seed, common, [size for size in sizes if size < dimension], 2 if quick else 5, {"epsilon": EPSILON})
    return tasks


def paper_model_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs on FEMNIST: the paper's large and small models, at its largest noise."""
    rates, tasks = RATES_ON_DATA[:1] if quick else RATES_ON_DATA, []
    for kind in ("small_", ""):
        common = femnist_common(folder, quick=quick, model=PAPER.value(f"{kind}model"), clients_per_round=min(PAPER.value("cohort")))
        tasks += sketch_tasks(seed, common, row_sizes(PAPER.value(f"{kind}parameters"), rates), 1, papers_noise(MOST_NOISE))
    return tasks


FIGURE = training_figure(
    name="price-training-model",
    paper=f"{PAPER.source}: large and small models",
    experiment="trainings by sketches, models",
    tasks=model_tasks,
    table=arrange_messages,
    draw=draw_models,
    on_data=paper_model_tasks,
)
