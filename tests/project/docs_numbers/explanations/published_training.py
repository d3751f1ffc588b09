"""Numbers of docs/explanations/published-training.md."""

from collections.abc import Iterator
from functools import cache

from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.privacy import PrivacyReport
from quietbits.design.federated.model_layers import model_layers
from quietbits.figures.training.price_heat_map import SETTINGS, modular_clip_probability
from quietbits.solvers.accounting.renyi_curve import EpsilonAtDelta, RenyiCurve
from quietbits.solvers.accounting.sampled_noise import sampled_gaussian_curve
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, likely_participations
from quietbits.tests.project.docs_numbers.shared import up

# Next words of StackOverflow: Chen, Choquette-Choo, Kairouz, Suresh 2022, section 7 and appendix C.
POPULATION, CLIENTS_PER_ROUND, ROUNDS = 342_477, 1000, 1500


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
    """Return the ratio of bits to rate in a table or figure of the paper, without repetitions."""
    return list(dict.fromkeys(setting.bits_per_parameter for setting in SETTINGS if setting.source == source))


def parameters(model: str) -> int:
    """Return the size of a model of the paper."""
    return model_layers(model).dimension


def wrapping() -> float:
    """Return the wrapping probability of a modulus of four standard deviations on either side."""
    return modular_clip_probability()
