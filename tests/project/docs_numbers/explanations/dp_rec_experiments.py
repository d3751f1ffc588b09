"""Numbers of docs/explanations/dp-rec-experiments.md."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.dp_rec_law import least_error_clip_ratio
from quietbits.analysis.simulation.dp_rec_mean import equal_coordinates, two_level_chunks
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.relative_entropy.dp_rec import message_account
from quietbits.figures.dp_rec.bits import BiasPoint, with_fitted_slopes
from quietbits.figures.dp_rec.mean import EQUAL, GROUPED, GROUPS, MMRC, PRIVUNIT, SQKR, ZERO, MeanPoint, MeanSetting
from quietbits.solvers.divergences.importance_resampling import resampled_moments
from quietbits.tests.project.docs_numbers.shared import short, up

CLIENTS, DIMENSION = 10_000, 200
DELTA = MeanSetting("epsilon", ZERO).delta
EPSILONS = (0.5, 1.0, 4.0, 8.0)


@cache
def vectors(repetition: int) -> np.ndarray:
    """Return the vectors of a repetition."""
    return np.concatenate(list(two_level_chunks(CLIENTS, DIMENSION, named_stream(0, f"vectors, {repetition}"))))


def from_prior(part: slice) -> float:
    """Return the mean squared distance of vectors from the better prior."""
    return float(((vectors(0)[part] - equal_coordinates(DIMENSION)) ** 2).sum(axis=1).mean())


def mean_from_prior() -> float:
    """Return the squared distance of the mean of all vectors from the better prior."""
    return float(((vectors(0).mean(axis=0) - equal_coordinates(DIMENSION)) ** 2).sum())


@cache
def setting(series: str, bits: int | None = None, epsilon: float = math.inf, account: str = "", ratio: float | None = None) -> MeanSetting:
    """Return a setting of `quietbits reproduce dprec-mean`."""
    panel = "epsilon" if math.isfinite(epsilon) else "bits" if ratio is None else "ratio"
    groups = GROUPS if account or series == GROUPED else 1
    return MeanSetting(panel, series, index_bits=bits, groups=groups, epsilon=epsilon, account=account, clip_ratio=ratio)


@cache
def runs(of: MeanSetting) -> pd.Series:
    """Return the averages over a setting's runs."""
    mechanism = of.mechanism()
    points = (MeanPoint(seed=0, of=of, repetition=repetition) for repetition in range(4 if of.series == SQKR else 6))
    rows = pd.DataFrame([row for point in points for row in point.run(mechanism)])
    return rows[["squared_error", "predicted_squared_error", "squared_bias"]].mean()


def predicted(*arguments: object, **options: object) -> float:
    return float(runs(setting(*arguments, **options))["predicted_squared_error"])


def measured(*arguments: object, **options: object) -> float:
    return float(runs(setting(*arguments, **options))["squared_error"])


def bias_share(*arguments: object, **options: object) -> float:
    """Return the share of bias in the predicted error."""
    by = runs(setting(*arguments, **options))
    return float(by["squared_bias"] / by["predicted_squared_error"])


def three(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:#.3g}"


def bits_rows() -> Iterator[list[str]]:
    """Return predicted and measured errors by bits, without privacy."""
    for bits in (1, 3, 4, 7):
        series = (ZERO, EQUAL, SQKR) if bits in (1, 4) else (ZERO, EQUAL)
        errors = [three(error(name, bits)) for name in series for error in (predicted, measured)]
        yield [str(bits), *errors, *[""] * (6 - len(errors))]


def largest_deviation() -> float:
    """Return the largest deviation of measured from predicted errors, in percent."""
    settings = [(name, bits) for bits in (1, 3, 4, 7) for name in (ZERO, EQUAL, SQKR) if name != SQKR or bits in (1, 4)]
    return 100 * max(abs(measured(*each) / predicted(*each) - 1) for each in settings)


def clip_ratio() -> float:
    """Return the clip ratio of one bit that does not depend on the vectors."""
    return least_error_clip_ratio(DIMENSION, 1, 1, CLIENTS)


@cache
def local(series: str, epsilon: float) -> tuple[float, float]:
    """Return the error of a local mechanism, and the bits of its message."""
    mechanism = setting(series, epsilon=epsilon).mechanism()
    sample = vectors(0)[:: CLIENTS // 20] if series == SQKR else vectors(0)[:1]
    return float(mechanism.variance(sample).mean()) / CLIENTS, mechanism.bits_per_client


@cache
def central(epsilon: float) -> float:
    """Return the error of a trusted server's Gaussian noise."""
    return central_gaussian_error(NormBall(DIMENSION, 2.0), CLIENTS, epsilon, DELTA, "add-or-remove-one")


def of_dp_rec(series: str, epsilon: float) -> list[float]:
    """Return DP-REC's errors by the published and by the conservative account."""
    return [predicted(series, epsilon=epsilon, account=account) for account in ("published", "conservative")]


def with_bits(series: str, epsilon: float) -> str:
    error, bits = local(series, epsilon)
    return f"{three(error)}, {bits:.0f} bit{'s' if bits > 1 else ''}"


def epsilon_rows() -> Iterator[list[str]]:
    """Return predicted errors of one round, by epsilon."""
    for epsilon in EPSILONS:
        own = [" / ".join(map(three, of_dp_rec(series, epsilon))) for series in (ZERO, EQUAL)]
        coded = with_bits(MMRC, epsilon) if epsilon <= 4 else ""
        sqkr = with_bits(SQKR, epsilon) if epsilon >= 1 else ""
        yield [f"{epsilon:g}", *own, short(central(epsilon)), three(local(PRIVUNIT, epsilon)[0]), coded, sqkr]


def over_central() -> list[float]:
    """Return DP-REC's errors over those of the trusted server."""
    return [error / central(epsilon) for epsilon in EPSILONS for series in (ZERO, EQUAL) for error in of_dp_rec(series, epsilon)]


def message_epsilon() -> str:
    """Return epsilon of one message at clip ratio 0.5."""
    return up(message_account(0.5).bound(1e-5, 1, None).epsilon, 1)


def message_error() -> float:
    """Return the error of messages at clip ratio 0.5 with enough bits, which is their noise."""
    return DIMENSION / 0.5**2 / CLIENTS


def coded_excess() -> float:
    """Return the largest excess of MMRC's error over PrivUnitG's, in percent."""
    return 100 * max(local(MMRC, epsilon)[0] / local(PRIVUNIT, epsilon)[0] - 1 for epsilon in (0.5, 1.0, 2.0, 4.0))


@cache
def slopes() -> dict[float, float]:
    """Return the slopes of the bias by bits, for each clip ratio."""
    points = (BiasPoint(seed=0, clip_ratio=ratio, dimension=1, group_bits=bits) for ratio in (0.5, 1.0, 1.5, 2.0) for bits in range(17))
    frame = with_fitted_slopes(pd.DataFrame([row for point in points for row in point.run()]))
    return frame.groupby("clip_ratio")["fitted_slope"].first().to_dict()


def squared_error() -> float:
    """Return the squared error of a message of one number at clip ratio 2 with 7 bits."""
    return resampled_moments(2.0, 2**7).squared_error
