"""Numbers of docs/papers/dp-rec.md."""

from dataclasses import replace
from functools import cache

import numpy as np

from quietbits.analysis.training.reference_mechanisms import rounded_within
from quietbits.figures.dp_rec.communication import FEDERATIONS, GIB, CommunicationPoint, counted_bytes
from quietbits.figures.dp_rec.mean import EQUAL, SQKR, ZERO, MeanPoint, MeanSetting
from quietbits.figures.dp_rec.references import PUBLISHED_SETTINGS, PublishedSetting
from quietbits.solvers.divergences.dp_rec_privacy import fewest_dp_rec_bits, lost_delta

__all__ = ["EQUAL", "ZERO", "fewest_dp_rec_bits", "lost_delta"]
FEMNIST_64, STACKOVERFLOW = FEDERATIONS[3], FEDERATIONS[5]
TAGS = PUBLISHED_SETTINGS[6]


def counted_total() -> float:
    """Return the total of FEMNIST's training with groups of 64 coordinates, in GiB."""
    counted = counted_bytes(FEMNIST_64)
    return (counted.up + counted.down) / GIB


def uncompressed_total() -> float:
    """Return the total of StackOverflow's training without compression, in GiB."""
    (row,) = CommunicationPoint(seed=0, federation=STACKOVERFLOW, scheme="uncompressed").run()
    return float(row["total_gib"])


def tags_bits() -> int:
    """Return the fewest bits with which StackOverflow's training keeps its delta."""
    return fewest_dp_rec_bits(TAGS.clip_ratio, TAGS.rounds * TAGS.clients_per_round, TAGS.delta)


@cache
def hoelder_ratio(setting: PublishedSetting) -> float:
    """Return the ratio of the conservative epsilon to the published epsilon."""
    privacy = setting.training.privacy()
    conservative, published = (
        privacy.account(name).bound(setting.delta, setting.rounds, None).epsilon for name in ("conservative", "published")
    )
    return conservative / published


def hoelder_ratios() -> list[float]:
    """Return the ratio of each setting of the paper, with enough bits."""
    return [hoelder_ratio(setting) for setting in (*PUBLISHED_SETTINGS[:6], replace(TAGS, index_bits=tags_bits()))]


@cache
def mean_error(series: str, clip_ratio: float | None = None) -> float:
    """Return the predicted squared error of DP-REC with one bit, in the setting of appendix D.2."""
    setting = MeanSetting("ratio" if clip_ratio else "bits", series, index_bits=1, clip_ratio=clip_ratio)
    point = MeanPoint(seed=0, of=setting, repetition=0)
    return float(point.run(point.prepare(None))[0]["predicted_squared_error"])


def sqkr_error() -> float:
    """Return the squared error of SQKR with one bit, in the setting of appendix D.2."""
    setting = MeanSetting("bits", SQKR, index_bits=1)
    return setting.mechanism().variance_bound / setting.clients


@cache
def rounded(coordinates: int, within_clip_norm: bool) -> tuple[float, float]:
    """Return the squared error of a unit vector rounded to 8 bits, and its remaining length."""
    rng = np.random.default_rng(0)
    vector = rng.normal(size=(1, coordinates))
    vector /= np.linalg.norm(vector)
    reach = np.ones(1) if within_clip_norm else np.abs(vector).max(axis=1)
    levels = rounded_within(vector, reach, 8, 1.0, rng)
    return float(np.sum((levels - vector) ** 2)), float((levels @ vector.T).item())
