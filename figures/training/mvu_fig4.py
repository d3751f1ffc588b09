"""A linear model by DP-SGD: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.style import add_caption
from .dp_sgd import PAPER, caption_of, draw_privacy, embedded_tasks, paper_tasks
from .training_figure import training_figure


def draw_linear(frame: pd.DataFrame) -> Figure:
    """Draw accuracies, with what the paper reports."""
    figure = draw_privacy(frame)
    add_caption(figure, f"{caption_of(frame)} In the paper's pictures (MNIST, no numbers) MVU is better than signs nearly everywhere.")
    return figure


def linear_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs of a softmax on the digits."""
    return embedded_tasks(seed, quick, "softmax", quick_repetitions=2)


def scatter_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on MNIST: a linear layer on features of a scattering network."""
    return paper_tasks(seed, quick, folder, "scatter-softmax")


FIGURE = training_figure(
    name="mvu-fig4",
    paper=f"{PAPER.source}: DP-SGD with one linear layer",
    experiment="DP-SGD of a linear model",
    tasks=linear_tasks,
    draw=draw_linear,
    on_data=scatter_tasks,
)
