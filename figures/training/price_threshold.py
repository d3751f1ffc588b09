"""Thresholding the noisy sum of sketches with an error memory: accuracy by rate.

The horizontal axis is the compression rate; each threshold has a line.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.datasets.found_data import found_data
from ...analysis.training.task import TrainingTask
from ..drawing.marks import Mark, mechanism_mark, series_marks
from ..drawing.style import add_caption
from .grids import add_legend, by_data, draw_accuracies, draw_no_privacy, grid_tasks, panel_rows, panel_title, set_rates
from .price_settings import (
    DENSE,
    ON_DATA,
    PAPER,
    ROTATION,
    ROWS,
    SKETCHED,
    arrange_rates,
    digits_common,
    digits_dimension,
    paper_common,
    papers_noise,
    row_sizes,
    settings_in_words,
)
from .training_figure import training_figure

# Noise multiplier of Figure 9; the text on thresholding states none.
NOISE = 0.05
# Thresholds in root mean squares of the sum of sketches; the paper does not state its "several threshold values".
THRESHOLDS = (0.0, 0.5, 1.0, 2.0)
RATES, RATES_ON_DATA = (4, 10, 40), (4, 10)
MARKS: Mapping[float, Mark] = dict(zip(THRESHOLDS, series_marks(len(THRESHOLDS)), strict=True))


def draw_thresholds(frame: pd.DataFrame) -> Figure:
    """Draw accuracy against the rate, by threshold, beside fresh sketches in each round."""
    sets = by_data(frame)
    figure, grid = panel_rows(dict.fromkeys(sets, 1), 3.8)
    for data, (axes,) in grid.items():
        own = sets[data]
        renewed = own[(own["mechanism"] == SKETCHED) | (own["mechanism"] == DENSE)]
        draw_accuracies(axes, renewed, "rate", mechanism_mark(SKETCHED).look, "a new sketch each round")
        for threshold, mark in MARKS.items():
            series = own[(own["mechanism"] == "thresholded-sketch") & (own["threshold"] == threshold)]
            draw_accuracies(axes, series, "rate", mark.look, f"zeroed below {threshold:g} rms" if threshold else "one sketch, all kept")
        draw_no_privacy(axes, own)
        set_rates(axes, own["rate"])
        axes.set_title(panel_title(grid, data, f"z = {NOISE:g}"))
    add_legend(figure, [axes for row in grid.values() for axes in row], frame)
    add_caption(figure, settings_in_words(frame))
    return figure


def _tasks(seed: int, common: Mapping[str, Any], sizes: list[int], bits: int, repetitions: int) -> list[TrainingTask]:
    noise = {"bits": bits, **papers_noise(NOISE)}
    shared = {"sketch_dimension": sizes, "rows": ROWS, **noise}
    blocks: list[Mapping[str, Any]] = [
        {"name": "none"},
        {"name": DENSE, "rotation": ROTATION, **noise},
        {"name": SKETCHED, **shared},
        {"name": "thresholded-sketch", "threshold": list(THRESHOLDS), **shared},
    ]
    return grid_tasks(seed, common, blocks, repetitions)


def threshold_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs for each rate and threshold."""
    model = "mlp-32" if quick else "mlp-60-60-60"
    common = digits_common(quick=quick, model=model, clients_per_round=50 if quick else min(PAPER.value("cohort")))
    return _tasks(seed, common, row_sizes(digits_dimension(model), RATES), PAPER.value("bits"), 2 if quick else 3)


def paper_threshold_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return runs in the paper's setting on the available data sets of the paper."""
    tasks: list[TrainingTask] = []
    for data in found_data(folder, tuple(ON_DATA)):
        paper = ON_DATA[data.name]
        common = paper_common(data, quick=quick, clients_per_round=min(paper.value("cohort")))
        sizes = row_sizes(paper.value("parameters"), RATES_ON_DATA[:1] if quick else RATES_ON_DATA)
        tasks += _tasks(seed, common, sizes, paper.value("bits"), 1)
    return tasks


FIGURE = training_figure(
    name="price-training-threshold",
    paper=f"{PAPER.source.partition(',')[0]}, appendix A.2: thresholding with an error term",
    experiment="trainings by sketches, thresholds",
    tasks=threshold_tasks,
    table=arrange_rates,
    draw=draw_thresholds,
    on_data=paper_threshold_tasks,
)
