"""Numbers of docs/explanations/repeated-rounds.md."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

import quietbits
from quietbits.analysis.simulation.digit_gradients import DigitModel, digits, gradient_unit, hidden_widths, model_of_dimension
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.federated.adaptive_clipping import AdaptiveClipping, sum_noise_multiplier
from quietbits.design.secure_sum.noisy_count import NoisyCount
from quietbits.solvers.accounting.sampling import PoissonSampling


@cache
def epsilon(steps: int, adjacency: str = "add-or-remove-one") -> float:
    """Return epsilon of 1500 counts of 1000 clients that send an answer as `steps` steps."""
    sigma = 2 * 8.0 / math.sqrt(1000)
    return NoisyCount(1000, steps * sigma, steps).privacy(adjacency).epsilon(1e-5, adjacency, rounds=1500)


def count_bits(clients: int) -> int:
    """Return the bits of a count's message."""
    return NoisyCount.of_deviation(clients, clients / 20).bits


def count_cost_rows() -> Iterator[list[str]]:
    """Return the increase of the sum's noise that pays for the count, in percent.

    Rows are numbers of clients; columns are total noise multipliers.
    """
    for clients, places in ((100, (3, 3, 2, 1)), (1000, (4, 4, 3, 3))):
        costs = [100 * (sum_noise_multiplier(total, clients / 20) / total - 1) for total in (0.3, 0.5, 1.0, 2.0)]
        yield [str(clients), *(f"{cost:.{place}f} %" for cost, place in zip(costs, places, strict=True))]


def joint(separately: bool) -> float:
    """Return epsilon of two Gaussian releases about one sampled client.

    With `separately`, the function adds the amplified epsilons; otherwise one account covers both releases.
    """
    first, second = (gaussian_privacy(multiplier, "add-or-remove-one", "central") for multiplier in (1.0, 1.2))
    sampling = PoissonSampling(0.01)
    if separately:
        return first.epsilon(5e-6, sampling=sampling) + second.epsilon(5e-6, sampling=sampling)
    return quietbits.joint_privacy([first, second], "add-or-remove-one").epsilon(1e-5, sampling=sampling)


def rounds_of_growth() -> int:
    """Return the number of rounds in which the clip norm grows tenfold if no update is below it."""
    clipping = AdaptiveClipping()
    state = clipping.start()
    for rounds in range(1, 1000):
        state = clipping.step(state, 0.0)
        if state.clip_norm >= 10 * clipping.start().clip_norm * (1 - 1e-9):
            return rounds
    raise AssertionError


def mean_norm_over_clip(model: DigitModel) -> float:
    """Return the L2 norm of the mean clipped gradient over the clip norm.

    The mean is over all images; the clip norm is `gradient_unit`.
    """
    clip, norms = gradient_unit(model), model.gradient_norms()
    total = np.zeros(model.dimension)
    for image, norm in enumerate(norms):
        gradients = model.gradients(digits().images[image, None, None], digits().labels[image, None, None])
        total += min(1.0, clip / norm) * gradients[0] if norm > 0 else 0.0
    return float(np.linalg.norm(total)) / len(norms) / clip


def gradient_rows() -> Iterator[list[str]]:
    """Return the digits' networks, with the norm of their mean clipped gradient over the clip."""
    for name, dimension in (("650", 650), ("8170", 8170), ("2¹⁷", 2**17), ("2²⁰", 2**20)):
        model = model_of_dimension(dimension)
        yield [name, ", ".join(map(str, hidden_widths(dimension))) or "none", f"{mean_norm_over_clip(model):.3f}"]
