"""Numbers of docs/explanations/dp-rec-accounting.md."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, norm

import quietbits
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import EpsilonBound
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS, PublishedSetting
from quietbits.solvers.divergences.dp_rec_privacy import draw_log_moment
from quietbits.solvers.divergences.importance_resampling import resampling_renyi_divergences
from quietbits.tests.project.docs_numbers.shared import up

MNIST, MNIST_6, _, _, FEMNIST_6, SHAKESPEARE, _ = PUBLISHED_SETTINGS
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
    """Return delta of one draw of infinitely many samples, with opposite other clients."""
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


def message_rows() -> Iterator[list[str]]:
    """Return epsilon of one message against the server."""
    yield ["c", *(f"{setting.clip_ratio:g}" for setting in PUBLISHED_SETTINGS)]
    ball, layout = NormBall(60, 2.0), uniform_layout(60, groups=6, group_bits=7)
    mechanisms = (DpRecMechanism(ball, setting.clip_ratio, layout, delta=setting.delta) for setting in PUBLISHED_SETTINGS)
    yield ["local ε of one message", *(up(mechanism.guarantee.epsilon, 2) for mechanism in mechanisms)]
