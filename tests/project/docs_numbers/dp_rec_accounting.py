"""Numbers of docs/dp-rec-accounting.md."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, norm

import quietbits
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import EpsilonBound
from quietbits.design.local.unit_vectors.candidate_coding import minimal_random_coding_mechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.figures.dp_rec.references import (
    ACCOUNTS,
    GAUSSIAN_ACCOUNTS,
    PUBLISHED_SETTINGS,
    PublishedSetting,
    ReferencePoint,
    gaussian_reference_epsilon,
)
from quietbits.solvers.divergences.dp_rec_privacy import draw_log_moment
from quietbits.solvers.divergences.importance_resampling import resampling_renyi_divergences
from quietbits.tests.project.docs_numbers.shared import spaced, up

MNIST, MNIST_6, FEMNIST_1, FEMNIST_3, FEMNIST_6, SHAKESPEARE, STACK_OVERFLOW = PUBLISHED_SETTINGS
ENOUGH_BITS = 60


@cache
def enough(setting: PublishedSetting) -> PublishedSetting:
    """Return a setting with enough index bits, so that further bits change nothing."""
    return replace(setting, index_bits=ENOUGH_BITS)


@cache
def bound(setting: PublishedSetting, account: str) -> EpsilonBound:
    """Return an account's bound for a setting."""
    return setting.training.privacy().account(account).bound(setting.delta, setting.rounds, None)


def epsilon(setting: PublishedSetting, account: str) -> float:
    return bound(setting, account).epsilon


def shown(value: float) -> str:
    """Return an epsilon rounded up."""
    return "∞" if math.isinf(value) else up(value, 3 if value < 10 else 2)


def paper_rows() -> Iterator[list[str]]:
    """Return the paper's settings with the accounts for its adjacency."""
    for setting in PUBLISHED_SETTINGS:
        sizes = [spaced(setting.population), str(setting.clients_per_round), str(setting.rounds)]
        numbers = [shown(epsilon(setting, name)) for name in ("published", "conservative")]
        rest = [str(bound(setting, "published").details["minimum_bits"]), shown(epsilon(setting, "any-bits"))]
        yield [setting.dataset, *sizes, f"{setting.clip_ratio:g}", f"{setting.epsilon:g}", *numbers, *rest]


def conservative_ratios() -> list[float]:
    """Return the conservative account over the published one, with enough bits."""
    return [epsilon(setting, "conservative") / epsilon(setting, "published") for setting in map(enough, PUBLISHED_SETTINGS)]


@cache
def gaussian_draws(setting: PublishedSetting) -> float:
    """Return epsilon of draws with infinitely many samples: Gaussian noise with multiplier 1/c."""
    draw = PoissonSampledDpEvent(1 / setting.population, GaussianDpEvent(1 / setting.clip_ratio))
    losses = PLDAccountant(value_discretization_interval=1e-5 if setting is STACK_OVERFLOW else 1e-4)
    return losses.compose(SelfComposedDpEvent(draw, setting.rounds * setting.clients_per_round)).get_epsilon(setting.delta)


def gaussian_draws_row() -> Iterator[list[str]]:
    values = [gaussian_draws(setting) for setting in PUBLISHED_SETTINGS]
    yield [up(value, 2 if value > 1 else 3 if value > 0.1 else 4) for value in values]


def published_over_gaussian(setting: PublishedSetting) -> float:
    return epsilon(enough(setting), "published") / gaussian_draws(setting)


def stack_overflow_divergences() -> float:
    """Return StackOverflow's published epsilon without -ln delta over the order less 1."""
    published = bound(enough(STACK_OVERFLOW), "published")
    return published.epsilon + math.log(STACK_OVERFLOW.delta) / (published.order - 1)


def mixture(shares: list[float], means: list[float], deviation: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the log density of a mixture of Gaussians."""
    parts = [(math.log(share), mean) for share, mean in zip(shares, means, strict=True)]
    return lambda points: logsumexp([norm.logpdf(points, mean, deviation) + share for share, mean in parts], axis=0)


def second_moment(first: Callable[[np.ndarray], np.ndarray], second: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return ln E_second[(first / second)^2], by the trapezoidal rule."""
    points = np.arange(-60 * 64, 60 * 64 + 1) / 64
    return float(logsumexp(2 * first(points) - second(points))) - math.log(64)


def opposite_in_messages(setting: PublishedSetting) -> float:
    """Return the second moment of a draw with opposite other clients, over that of the account."""
    ratio, shares = setting.clip_ratio, [1 - 1 / setting.population, 1 / setting.population]
    realised = second_moment(mixture(shares, [-ratio, ratio], 1.0), mixture(shares, [-ratio, 0.0], 1.0))
    return realised / draw_log_moment(ratio, setting.population, 2)


def opposite_in_sums(setting: PublishedSetting) -> float:
    """Return a round's larger second moment with opposite other clients, over the account's."""
    drawn, clients = np.arange(12), setting.clients_per_round
    chances = binom.pmf(drawn, clients, 1 / setting.population).clip(1e-300)
    shares, ratio, deviation = (chances / chances.sum()).tolist(), setting.clip_ratio, math.sqrt(clients)
    own, none = (mixture(shares, (distance * ratio * drawn).tolist(), deviation) for distance in (2, 1))
    return max(second_moment(own, none), second_moment(none, own)) / (clients * draw_log_moment(ratio, setting.population, 2))


def two_samples_over_moment() -> float:
    """Return the realised moment of order 6 of two samples at c = 1 over the bound M."""
    return 5 * float(resampling_renyi_divergences(0.0, 1.0, 2, [6])[0]) / draw_log_moment(1.0, 1, 6)


# Each row has the account, bits, clip ratio, population, and exponent of delta.
COUNTEREXAMPLES = (("any-bits", 6, 0.545, 10, 3), ("published", 60, 0.545, 10, 5), ("conservative", 80, 1.41, 1000, 8))


def counterexample_rows() -> Iterator[list[str]]:
    """Return claimed and realised deltas of one draw with opposite other clients."""
    for account, bits, ratio, population, exponent in COUNTEREXAMPLES:
        delta = 10.0**-exponent
        setting = PublishedSetting("", population, 1, 1, ratio, math.nan, bits)
        claims = [up(setting.training.privacy().account(name).bound(delta, 1, None).epsilon, 3) for name in (account, "any-clients")]
        excess = indices_delta if bits == 6 else normals_delta
        realised = brentq(lambda value: excess(ratio, population, value) - delta, 0.1, 20.0, xtol=1e-6)  # noqa: B023
        epsilons = [claims[0], f"{math.floor(1000 * realised) / 1000:.3f}", claims[1]]
        yield [f"`{account}`", str(bits), f"{ratio:g}", str(population), f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[exponent]}", *epsilons]


def normals_delta(ratio: float, population: int, epsilon: float) -> float:
    """Return delta of a draw of infinitely many samples: the client's update, or a prior sample."""
    points, step = np.linspace(-14, 14, 400_001, retstep=True)
    others, own, none = (norm.pdf(points - mean) for mean in (-ratio, ratio, 0.0))
    return positive(others, own, none, population, epsilon) * len(points) * float(step)


@cache
def relative_weights(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the relative weights of the client and of the others for lists of 64 samples."""
    weights = np.exp(ratio * np.random.default_rng(0).standard_normal((100_000, 64)))
    own, others = (each / each.mean(axis=1, keepdims=True) for each in (weights, 1 / weights))
    return own, others


def indices_delta(ratio: float, population: int, epsilon: float) -> float:
    own, others = relative_weights(ratio)
    return positive(others, own, np.ones(1), population, epsilon)


def positive(others: np.ndarray, own: np.ndarray, none: np.ndarray, population: int, epsilon: float) -> float:
    """Return the mean positive part of one density less e^epsilon times the other."""
    excess = (1 - 1 / population) * others * -math.expm1(epsilon) + (own - math.exp(epsilon) * none) / population
    return float(np.maximum(excess, 0.0).mean())


def proven_rows() -> Iterator[list[str]]:
    """Return proven epsilons of the paper's settings, and the clip ratio for its epsilon."""
    yield ["c of the paper", *(f"{setting.clip_ratio:g}" for setting in PUBLISHED_SETTINGS)]
    yield ["paper's ε", *(f"{setting.epsilon:g}" for setting in PUBLISHED_SETTINGS)]
    epsilons = [epsilon(setting, "any-clients") for setting in PUBLISHED_SETTINGS]
    yield ["`any-clients` ε", *(up(value, 3 if value < 100 else 1) for value in epsilons)]
    ratios = [
        quietbits.calibrate(
            "dp-rec",
            epsilon=setting.epsilon,
            delta=setting.delta,
            rounds=setting.rounds,
            population=setting.population,
            clients_per_round=setting.clients_per_round,
            index_bits=setting.index_bits,
        )["clip_ratio"]
        for setting in PUBLISHED_SETTINGS
    ]
    yield ["c for the paper's ε", *(f"{math.floor(ratio * 1000) / 1000:.3f}" for ratio in ratios)]


def above(least: float) -> int:
    """Return the number of settings whose proven epsilon exceeds a number."""
    return sum(epsilon(setting, "any-clients") > least for setting in PUBLISHED_SETTINGS)


def participations(setting: PublishedSetting) -> int:
    """Return the number of draws of a client that its proven epsilon counts."""
    return int(bound(setting, "any-clients").details["participations"])


@cache
def references(setting: PublishedSetting) -> pd.DataFrame:
    """Return the rows of `quietbits reproduce dprec-accounting` of a setting, by account."""
    rows = [row for account in ACCOUNTS for row in ReferencePoint(seed=0, published=setting, account=account).run()]
    return pd.DataFrame(rows).set_index("account")


def reference(setting: PublishedSetting, account: str, column: str) -> float:
    return float(references(setting).loc[f"Gaussian, {account}", column])


def same_rounds(setting: PublishedSetting, account: str) -> str:
    """Return the noise that the paper's epsilon needs over DP-REC's rounds."""
    return digits(reference(setting, account, "same_rounds_noise_multiplier"))


@cache
def at_papers_noise(setting: PublishedSetting) -> str:
    """Return epsilon of the paper's DP-FedAvg noise in DP-REC's rounds, older conversion."""
    value = gaussian_reference_epsilon(setting.noise_multiplier or math.nan, setting, "classic")
    return up(value, 2 if value < 10 else 1)


def digits(value: float) -> str:
    """Return an upper bound with three digits, and at least two after the point."""
    return up(value, 2 if value >= 1 else 2 - math.floor(math.log10(value)))


def reference_rows() -> Iterator[list[str]]:
    """Return DP-REC's noise beside DP-FedAvg's, by the accounts of Gaussian noise."""
    for setting in PUBLISHED_SETTINGS:
        epsilons = [digits(reference(setting, account, "epsilon")) for account in GAUSSIAN_ACCOUNTS]
        noises = [digits(reference(setting, account, "target_noise_multiplier")) for account in GAUSSIAN_ACCOUNTS]
        own = f"{setting.sum_noise_multiplier:.2f}"
        yield [f"{setting.dataset}, {setting.epsilon:g}", own, *epsilons, f"{setting.noise_multiplier:g}", *noises]


def papers_deviation() -> float:
    """Return the paper's largest relative deviation from the older conversion, in percent."""
    needed = [(setting, reference(setting, "classic", "target_noise_multiplier")) for setting in PUBLISHED_SETTINGS]
    return 100 * max(abs(noise / (setting.noise_multiplier or math.nan) - 1) for setting, noise in needed)


def noise_over_gaussian(setting: PublishedSetting) -> float:
    """Return DP-REC's noise over the Gaussian noise for the paper's epsilon in the same rounds."""
    return setting.sum_noise_multiplier / reference(setting, "pld", "same_rounds_noise_multiplier")


def message_rows() -> Iterator[list[str]]:
    """Return epsilon of one message against the server."""
    yield ["c", *(f"{setting.clip_ratio:g}" for setting in PUBLISHED_SETTINGS)]
    ball, layout = NormBall(60, 2.0), uniform_layout(60, groups=6, group_bits=7)
    mechanisms = (DpRecMechanism(ball, setting.clip_ratio, layout, delta=setting.delta) for setting in PUBLISHED_SETTINGS)
    yield ["local ε of one message", *(up(mechanism.guarantee.epsilon, 2) for mechanism in mechanisms)]


@cache
def coded(epsilon: float) -> tuple[float, float]:
    """Return the bits of an MMRC message in 200 dimensions, and its error over PrivUnitG's."""
    ball = NormBall(200, 2.0)
    mechanism = minimal_random_coding_mechanism(epsilon, ball)
    vector = np.eye(200)[:1]
    return mechanism.bits_per_client, float(mechanism.variance(vector)[0] / PrivUnitGMechanism(epsilon, ball).variance(vector)[0])


def largest_coded_excess() -> float:
    """Return the largest excess of MMRC's error over PrivUnitG's, in percent."""
    return 100 * max(coded(epsilon)[1] - 1 for epsilon in (0.5, 1.0, 2.0, 4.0))
