"""A convolutional network by DP-SGD: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.training.task import TrainingTask
from ..drawing.style import add_caption
from .dp_sgd import PAPER, caption_of, draw_privacy, embedded_tasks, paper_tasks
from .training_figure import training_figure


def draw_network(frame: pd.DataFrame) -> Figure:
    """Draw accuracies, with what the paper reports."""
    figure = draw_privacy(frame)
    add_caption(figure, f"{caption_of(frame)} In the paper's pictures (MNIST, no numbers) MVU and signs are equal.")
    return figure


def network_tasks(seed: int, quick: bool) -> Sequence[TrainingTask]:
    """Return runs of a small network on the digits."""
    return embedded_tasks(seed, quick, "cnn-8-32", quick_repetitions=1)


def paper_network_tasks(seed: int, quick: bool, folder: Path) -> Sequence[TrainingTask]:
    """Return the paper's runs on MNIST."""
    return paper_tasks(seed, quick, folder, "mvu-cnn")


FIGURE = training_figure(
    name="mvu-fig6",
    paper=f"{PAPER.source}: DP-SGD with a convolutional network",
    experiment="DP-SGD of a convolutional network",
    tasks=network_tasks,
    draw=draw_network,
    on_data=paper_network_tasks,
)
