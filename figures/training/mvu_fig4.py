"""A linear model by DP-SGD: accuracy against epsilon for Gaussian noise, noisy signs and optimised tables."""

from .dp_sgd import dp_sgd_figure

# The paper trains a linear layer on features of a scattering network.
FIGURE = dp_sgd_figure(
    "mvu-fig4",
    "DP-SGD of a linear model",
    model="softmax",
    paper_model="scatter-softmax",
    data=("mnist", "cifar10"),
    claim="MVU is better than signs nearly everywhere",
    quick_repetitions=2,
)
