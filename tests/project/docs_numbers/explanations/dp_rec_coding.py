"""Numbers of docs/explanations/dp-rec-coding.md."""

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.stats import norm

from quietbits.analysis.audits.dp_rec_audit import DeltaEstimate, DivergenceAudit, audit_divergences, estimate_delta, published_delta
from quietbits.design.relative_entropy.coding import index_distribution
from quietbits.design.relative_entropy.dp_rec import message_bytes
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.design.relative_entropy.shared_randomness import normals_from_words
from quietbits.solvers.divergences.importance_resampling import resampled_moments
from quietbits.tests.project.docs_numbers.shared import short

# Each row has the clip ratio, number of samples, and Rényi order.
AUDITED = ((0.545, 128, 2), (0.545, 128, 16), (0.87, 16, 16), (0.87, 128, 16), (1.41, 2, 16), (1.41, 128, 2))


@cache
def variations() -> np.ndarray:
    """Return the total variation between one-bit indices for 0.5 and -0.5, for seeds 0 to 999."""
    return np.array([abs(index_distribution([0.5], 1, seed) - index_distribution([-0.5], 1, seed)).sum() / 2 for seed in range(1000)])


def largest_normal() -> float:
    """Return the largest shared normal number, which has the smallest tail."""
    return float(normals_from_words(np.array([1], dtype=np.uint64))[0])


def exceeding() -> float:
    """Return the probability that a normal number exceeds a bound in absolute value."""
    return 2 * float(norm.sf(largest_normal()))


def bias_rows() -> Iterator[list[str]]:
    """Return the relative bias of the expected message, by clip ratio and number of samples."""
    for ratio in (0.5, 1.0, 1.5, 2.0):
        shares = [1 - resampled_moments(ratio, 2**bits).mean / ratio for bits in (1, 4, 7, 10, 14)]
        yield [str(ratio), *(f"{share:#.2g}" if share > 1e-3 else short(share) for share in shares)]


@cache
def audit(ratio: float, samples: int) -> DivergenceAudit:
    return audit_divergences(ratio, samples, [2, 16])


def divergence_rows() -> Iterator[list[str]]:
    """Return Rényi divergences of a message, of the Gaussians, and of the theorem."""
    for ratio, samples, order in AUDITED:
        by = audit(ratio, samples)
        columns = (by.added, by.removed, by.gaussian, by.published, by.opposite)
        yield [f"{ratio:g}", str(samples), str(order), *(f"{column[(2, 16).index(order)]:.3f}" for column in columns)]


@cache
def true_delta() -> DeltaEstimate:
    """Return the larger delta of both directions at epsilon 1, from random lists of samples."""
    rng = np.random.default_rng(0)
    both = (estimate_delta([target], [0.545 - target], 128, 1.0, 20_000, rng) for target in (0.545, 0.0))
    return max(both, key=lambda estimate: estimate.high)


def claimed_delta() -> float:
    return published_delta(0.545, 7, 1.0)


def packed_bytes(groups: int, bits: int) -> int:
    return message_bytes(uniform_layout(groups, groups, bits))
