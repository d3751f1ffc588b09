"""Numbers of docs/repeated-rounds.md."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

import quietbits
from quietbits.analysis.simulation.digit_gradients import DigitModel, digits, gradient_unit, hidden_widths, model_of_dimension
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.privacy import PrivacyReport
from quietbits.design.federated.adaptive_clipping import AdaptiveClipping, sum_noise_multiplier
from quietbits.design.federated.model_layers import model_layers
from quietbits.design.secure_sum.noisy_count import NoisyCount
from quietbits.figures.training.price_heat_map import SETTINGS, modular_clip_probability
from quietbits.solvers.accounting.renyi_curve import EpsilonAtDelta, RenyiCurve
from quietbits.solvers.accounting.sampled_noise import sampled_gaussian_curve
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, likely_participations
from quietbits.tests.project.docs_numbers.shared import up

# Next words of StackOverflow: Chen, Choquette-Choo, Kairouz, Suresh 2022, section 7 and appendix C.
POPULATION, CLIENTS_PER_ROUND, ROUNDS = 342_477, 1000, 1500


@cache
def epsilon(steps: int, adjacency: str = "add-or-remove-one") -> float:
    """Return epsilon of 1500 counts of 1000 clients, with `steps` steps per answer."""
    sigma = 2 * 8.0 / math.sqrt(1000)
    return NoisyCount(1000, steps * sigma, steps).privacy(adjacency).epsilon(1e-5, adjacency, rounds=1500)


def count_bits(clients: int) -> int:
    """Return the bits of a count's message."""
    return NoisyCount.of_deviation(clients, clients / 20).bits


def count_cost_rows() -> Iterator[list[str]]:
    """Return the extra noise that the count costs the sum, by cohort and noise multiplier."""
    for clients, places in ((100, (3, 3, 2, 1)), (1000, (4, 4, 3, 3))):
        costs = [100 * (sum_noise_multiplier(total, clients / 20) / total - 1) for total in (0.3, 0.5, 1.0, 2.0)]
        yield [str(clients), *(f"{cost:.{place}f} %" for cost, place in zip(costs, places, strict=True))]


@cache
def published_report(multiplier: float, sampling: str, sensitivity: float) -> PrivacyReport:
    """Return the accounts of the published training, for a sensitivity in clip norms."""
    chosen = {"Poisson": PoissonSampling(CLIENTS_PER_ROUND / POPULATION), "fixed size": FixedSizeSampling(POPULATION, CLIENTS_PER_ROUND)}
    adjacency = chosen[sampling].adjacency
    privacy = gaussian_privacy(multiplier / sensitivity, adjacency, "central")
    return privacy.report(1 / POPULATION, adjacency, ROUNDS, chosen[sampling])


def published_epsilon(multiplier: float, sampling: str, sensitivity: float, account: str) -> float:
    """Return epsilon of the published training by an account."""
    return published_report(multiplier, sampling, sensitivity).epsilon_by(account)


def published_rows() -> Iterator[list[str]]:
    """Return the accounts of the published training beside the paper's statements."""
    for sampling, adjacency, sensitivity in (
        ("Poisson", "add-or-remove-one", 1),
        ("fixed size", "replace-one", 1),
        ("fixed size", "replace-one", 2),
    ):
        for multiplier, paper in ((0.5, "about 10"), (0.6, "about 5")):
            epsilons = [published_epsilon(multiplier, sampling, sensitivity, name) for name in ("rdp", "rdp-classic", "pld")]
            numbers = [up(value, 2 if value < 50 else 1 if value < 100 else 0) for value in epsilons]
            words = "1 clip norm" if (sampling, multiplier) == ("Poisson", 0.5) else str(sensitivity)
            yield [str(multiplier), f"{sampling}, {adjacency}", words, *numbers, paper if sampling == "fixed size" else ""]


def joint(separately: bool) -> float:
    """Return epsilon of two releases about a sampled client: amplified apart, or jointly."""
    first, second = (gaussian_privacy(multiplier, "add-or-remove-one", "central") for multiplier in (1.0, 1.2))
    sampling = PoissonSampling(0.01)
    if separately:
        return first.epsilon(5e-6, sampling=sampling) + second.epsilon(5e-6, sampling=sampling)
    return quietbits.joint_privacy([first, second], "add-or-remove-one").epsilon(1e-5, sampling=sampling)


def amplified(multiplier: float, conversion: str = "optimal", *, whole_orders: bool = False) -> EpsilonAtDelta:
    """Return the add-or-remove-one epsilon of the published training, amplified in every round."""
    curve = sampled_gaussian_curve(multiplier, PoissonSampling(CLIENTS_PER_ROUND / POPULATION), "add-or-remove-one")
    chosen = curve.orders == curve.orders.round() if whole_orders else slice(None)
    return RenyiCurve(curve.orders[chosen], curve.divergences[chosen]).composed(ROUNDS).epsilon(1 / POPULATION, conversion)


def amplified_batches(multiplier: float) -> float:
    """Return epsilon of the published training with amplified batches and sensitivity 2."""
    curve = sampled_gaussian_curve(multiplier / 2, FixedSizeSampling(POPULATION, CLIENTS_PER_ROUND), "replace-one")
    return curve.composed(ROUNDS).epsilon(1 / POPULATION).epsilon


def most_draws() -> int:
    """Return the most rounds of a client, except with probability delta / 2."""
    return likely_participations(CLIENTS_PER_ROUND / POPULATION, ROUNDS, 1 / POPULATION / 2)


def bits_over_rate(source: str) -> list[float]:
    """Return bits over rate of a table or figure of the paper, without repetitions."""
    return list(dict.fromkeys(setting.bits_per_parameter for setting in SETTINGS if setting.source == source))


def parameters(model: str) -> int:
    """Return the size of a model of the paper."""
    return model_layers(model).dimension


def wrapping() -> float:
    """Return the wrapping probability of a modulus of four standard deviations on either side."""
    return modular_clip_probability()


def rounds_of_growth() -> int:
    """Return the rounds in which the clip norm grows tenfold if all updates exceed it."""
    clipping = AdaptiveClipping()
    state = clipping.start()
    for rounds in range(1, 1000):
        state = clipping.step(state, 0.0)
        if state.clip_norm >= 10 * clipping.start().clip_norm * (1 - 1e-9):
            return rounds
    raise AssertionError


def mean_norm_over_clip(model: DigitModel) -> float:
    """Return the L2 norm of the mean clipped gradient of all images, over the clip norm."""
    clip, norms = gradient_unit(model), model.gradient_norms()
    total = np.zeros(model.dimension)
    for image, norm in enumerate(norms):
        gradients = model.gradients(digits().images[image, None, None], digits().labels[image, None, None])
        total += min(1.0, clip / norm) * gradients[0] if norm > 0 else 0.0
    return float(np.linalg.norm(total)) / len(norms) / clip


def gradient_rows() -> Iterator[list[str]]:
    """Return networks of the digits, and the norm of the mean of their clipped gradients."""
    for name, dimension in (("650", 650), ("8170", 8170), ("2¹⁷", 2**17), ("2²⁰", 2**20)):
        model = model_of_dimension(dimension)
        yield [name, ", ".join(map(str, hidden_widths(dimension))) or "none", f"{mean_norm_over_clip(model):.3f}"]
