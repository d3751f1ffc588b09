"""Numbers of docs/explanations/dp-rec-settings.md."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pandas as pd
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from quietbits.figures.dp_rec.references import (
    ACCOUNTS,
    GAUSSIAN_ACCOUNTS,
    PUBLISHED_SETTINGS,
    PublishedSetting,
    ReferencePoint,
    gaussian_reference_epsilon,
)
from quietbits.tests.project.docs_numbers.explanations.dp_rec_accounting import bound, enough, epsilon, shown
from quietbits.tests.project.docs_numbers.shared import spaced, up

_, _, FEMNIST_1, FEMNIST_3, FEMNIST_6, _, STACK_OVERFLOW = PUBLISHED_SETTINGS


def paper_rows() -> Iterator[list[str]]:
    """Return the paper's settings, and epsilon by the accounts for its adjacency."""
    for setting in PUBLISHED_SETTINGS:
        sizes = [spaced(setting.population), str(setting.clients_per_round), str(setting.rounds)]
        numbers = [shown(epsilon(setting, name)) for name in ("published", "conservative")]
        rest = [str(bound(setting, "published").details["minimum_bits"]), shown(epsilon(setting, "any-bits"))]
        yield [setting.dataset, *sizes, f"{setting.clip_ratio:g}", f"{setting.epsilon:g}", *numbers, *rest]


@cache
def gaussian_draws(setting: PublishedSetting) -> float:
    """Return epsilon of DP-REC's draws with infinitely many samples.

    Each draw is Gaussian noise with multiplier 1/c, sampled with probability 1/N.
    """
    draw = PoissonSampledDpEvent(1 / setting.population, GaussianDpEvent(1 / setting.clip_ratio))
    losses = PLDAccountant(value_discretization_interval=1e-5 if setting is STACK_OVERFLOW else 1e-4)
    return losses.compose(SelfComposedDpEvent(draw, setting.rounds * setting.clients_per_round)).get_epsilon(setting.delta)


def with_bits(bits: int, account: str) -> str:
    """Return StackOverflow's epsilon with another number of bits."""
    return shown(epsilon(replace(STACK_OVERFLOW, index_bits=bits), account))


def gaussian_draws_row() -> Iterator[list[str]]:
    values = [gaussian_draws(setting) for setting in PUBLISHED_SETTINGS]
    yield [up(value, 2 if value > 1 else 3 if value > 0.1 else 4) for value in values]


def published_over_gaussian(setting: PublishedSetting) -> float:
    return epsilon(enough(setting), "published") / gaussian_draws(setting)


def stack_overflow_divergences() -> float:
    """Return StackOverflow's published epsilon without its term for delta.

    With enough bits, that term is -ln delta over the order less 1.
    """
    published = bound(enough(STACK_OVERFLOW), "published")
    return published.epsilon + math.log(STACK_OVERFLOW.delta) / (published.order - 1)


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
    """Return epsilon of the paper's DP-FedAvg noise over DP-REC's rounds.

    The conversion is the older, classic conversion.
    """
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
    """Return the largest difference of the paper's noise from the old conversion's, in percent."""
    needed = [(setting, reference(setting, "classic", "target_noise_multiplier")) for setting in PUBLISHED_SETTINGS]
    return 100 * max(abs(noise / (setting.noise_multiplier or math.nan) - 1) for setting, noise in needed)


def noise_over_gaussian(setting: PublishedSetting) -> float:
    """Return DP-REC's noise over the Gaussian noise that gives the paper's epsilon.

    The number of rounds is the same.
    """
    return setting.sum_noise_multiplier / reference(setting, "pld", "same_rounds_noise_multiplier")
