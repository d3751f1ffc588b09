"""A convolutional network by DP-SGD: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables."""

from .dp_sgd import dp_sgd_figure

FIGURE = dp_sgd_figure(
    "mvu-fig6",
    "DP-SGD of a convolutional network",
    model="cnn-8-32",
    paper_model="mvu-cnn",
    data=("mnist",),
    claim="MVU and signs are equal",
    quick_repetitions=1,
)
