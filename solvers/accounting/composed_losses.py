"""Composition of different privacy losses: their distributions, convolved on one grid.

A privacy loss is a distribution that dominates a mechanism's pairs of neighbours: it has the masses of P and the log-ratios ln(P / Q) of a
pair (P, Q) whose hockey-stick divergences are nowhere below the mechanism's. Pairs that dominate each of several mechanisms dominate them
together, even if later mechanisms depend on earlier outputs (Zhu, Dong, Wang 2022, *Optimal accounting of differential privacy via
characteristic function*, theorem 10).

Masses are convolved directly, in positive terms: a Fourier transform would leave errors of the size of a small delta.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...arrays import FloatArray
from ..numerics.rounding import UNIT
from .exact_privacy_loss import SMALLEST_REACH, ExactPrivacyLoss, loss_reach
from .loss_grid import LossGrid
from .loss_masses import DirectedLosses, LossMasses

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Steps of the common grid up to the root of the summed squares of all reaches. A split between two steps adds at most a quarter of a
# squared step to the variance of a loss.
STEPS = 4096
# Largest number of sums of losses that are computed one by one.
FEW_SUMS = 2**13
# Share of delta that losses beyond the grids may have, all together, and its share in each trimmed end.
NEGLECTED = 1e-8
# Below this delta, masses too small for floats could matter.
SMALLEST_DELTA = 1e-200
# Cells of Gaussian losses between the ends of the grid.
CELLS = 2 * STEPS
# Error of a cell's logarithm of Q / P: normal probabilities of neighbouring cells cancel to a share of one over some thousand.
CELL_ERROR = 1e-11


@dataclass(frozen=True, eq=False)
class LossPair:
    """Dominating privacy losses of some rounds.

    Attributes
    ----------
    forth : ExactPrivacyLoss
        Losses of the outputs with a client against those without, or of either direction where `back` is None.
    back : ExactPrivacyLoss or None
        Losses of the other direction; None for the same.
    """

    forth: ExactPrivacyLoss
    back: ExactPrivacyLoss | None = None

    @property
    def directions(self) -> tuple[ExactPrivacyLoss, ExactPrivacyLoss]:
        """Losses of both directions."""
        return self.forth, self.forth if self.back is None else self.back


def losses_of_masses(losses: FloatArray, masses: FloatArray, certain: float = 0.0) -> ExactPrivacyLoss:
    """Return the distribution with given losses and masses; losses without mass are left out."""
    some = masses > 0
    return ExactPrivacyLoss(np.log(masses[some]), losses[some], certain, 0.0)


def losses_of_distribution(distribution: "PrivacyLossDistribution | DirectedLosses | LossGrid", missed: float) -> LossPair:
    """Return the losses of a distribution, or of a grid, whose losses are the same in both directions.

    Parameters
    ----------
    distribution : PrivacyLossDistribution, DirectedLosses or LossGrid
        The distribution, rounded upward.
    missed : float
        Mass that the distribution may have missed by rounding, which counts as certain failure.
    """
    if isinstance(distribution, LossGrid):
        return LossPair(losses_of_masses(distribution.losses(), distribution.masses, distribution.certain + missed))
    if isinstance(distribution, DirectedLosses):
        directions, symmetric = (distribution.removed, distribution.added), False
    else:
        # dp-accounting has no public access to the masses.
        dense = (distribution._pmf_remove.to_dense_pmf(), distribution._pmf_add.to_dense_pmf())
        removed, added = (
            LossMasses(mass._discretization, mass._lower_loss, np.asarray(mass._probs), mass._infinity_mass) for mass in dense
        )
        directions, symmetric = (removed, added), bool(distribution._symmetric)
    forth, back = (losses_of_masses(mass.losses(), mass.masses, min(1.0, mass.certain + missed)) for mass in directions)
    return LossPair(forth, None if symmetric else back)


def approximate_losses(epsilon: float, delta: float) -> ExactPrivacyLoss:
    """Return the losses that dominate every (epsilon, delta)-private mechanism.

    With probability delta the output names the input; otherwise it is that of binary randomised response (Kairouz, Oh, Viswanath 2015, *The
    composition theorem for differential privacy*, theorem 3.1).

    Examples
    --------
    >>> loss = approximate_losses(1.0, 1e-5)
    >>> round(loss.epsilon(1e-5 + 1e-12), 6), round(loss.epsilon(0.1), 4)
    (1.0, 0.8529)
    """
    losses = np.array([-epsilon, epsilon])
    return ExactPrivacyLoss(math.log1p(-delta) - np.logaddexp(0.0, -losses), losses, delta, delta)


def pure_losses(epsilon: float, uses: int) -> ExactPrivacyLoss:
    """Return the losses that dominate all uses of an epsilon-private mechanism.

    The losses are those of binary randomised response: (2 k - uses) epsilon, with k binomial.

    Examples
    --------
    >>> round(pure_losses(0.1, 100).epsilon(1e-5), 4)
    4.3068
    """
    count = np.arange(uses + 1)
    kept = -math.log1p(math.exp(-epsilon))
    log_masses = (
        scipy.special.gammaln(uses + 1)
        - scipy.special.gammaln(count + 1)
        - scipy.special.gammaln(uses - count + 1)
        + uses * kept
        - (uses - count) * epsilon
    )
    # The error of the exponents, in units, as in `composed_pure_epsilon`.
    slack = 32 * UNIT * (float(scipy.special.gammaln(uses + 1)) + uses * epsilon + uses)
    losses = (2 * count - uses) * epsilon
    return ExactPrivacyLoss(log_masses + slack, losses + 4 * UNIT * np.abs(losses), 0.0, 0.0)


def gaussian_losses(noise_multiplier: float, delta: float) -> ExactPrivacyLoss:
    """Return the losses of Gaussian noise on a grid, rounded upward.

    The loss is normal with variance s^2 = 1 / z^2 and mean s^2 / 2 under P, and mean -s^2 / 2 under Q. Each cell's masses under P and Q
    stay the same when they are split between the cell's ends (Doroshenko et al. 2022, *Connect the dots: tighter discrete approximations
    of privacy loss distributions*).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity, above 0.
    delta : float
        Failure probability at which the losses are used.

    Examples
    --------
    >>> round(gaussian_losses(3.730632, 1e-5).epsilon(1e-5), 4)
    1.0
    """
    spread = 1 / noise_multiplier
    reach = math.sqrt(-2 * math.log(NEGLECTED * delta))
    ends = np.linspace(-reach, reach, CELLS + 1)
    losses = spread * (ends + spread / 2)
    # A cell's mass is a difference of normal probabilities on the side of the mean where they are small.
    own, other = _normal_masses(ends), _normal_masses(ends + spread)
    with np.errstate(divide="ignore"):
        ratios = np.where(own > 0, np.log(other) - np.log(own), -losses[1:])
    steps = np.diff(losses)
    share = np.clip(np.expm1(losses[:-1] + ratios) / np.expm1(-steps) + CELL_ERROR / steps, 0.0, 1.0)
    masses = np.zeros(CELLS + 1)
    masses[:-1] += own * (1 - share)
    masses[1:] += own * share
    # Smaller losses count as the least of the grid, and larger ones as certain.
    beyond = float(scipy.special.ndtr(-reach)) * (1 + CELL_ERROR)
    masses[0] += beyond
    return losses_of_masses(losses, masses * (1 + CELL_ERROR), beyond)


def _normal_masses(ends: FloatArray) -> FloatArray:
    below, above = scipy.special.ndtr(ends), scipy.special.ndtr(-ends)
    return np.asarray(np.where(ends[1:] < 0, np.diff(below), -np.diff(above)))


def composed_pair(pairs: Sequence[LossPair], delta: float) -> LossPair:
    """Return the losses of all parts together, direction by direction.

    The direction of all parts is the same: either all have the client, or none has.
    """
    if all(pair.back is None for pair in pairs):
        return LossPair(composed_losses([pair.forth for pair in pairs], delta))
    forth, back = zip(*(pair.directions for pair in pairs), strict=True)
    return LossPair(composed_losses(forth, delta), composed_losses(back, delta))


def pair_epsilon(pair: LossPair, delta: float) -> float:
    """Return the larger epsilon of both directions at a failure probability."""
    return max(direction.epsilon(delta) for direction in (pair.directions if pair.back is not None else pair.directions[:1]))


def composed_losses(losses: Sequence[ExactPrivacyLoss], delta: float) -> ExactPrivacyLoss:
    """Return the distribution of the sum of independent losses, which errs upward.

    Distributions of few losses are multiplied out. Otherwise each mass is split between its neighbours on a common grid, so that the masses
    under P and under Q stay the same, and the grids are convolved.

    Parameters
    ----------
    losses : sequence of ExactPrivacyLoss
        Losses of each part, in one direction, at least one.
    delta : float
        Failure probability at which the sum is used, at least 1e-200: losses that are much rarer count as certain.

    Examples
    --------
    >>> together = composed_losses([pure_losses(0.5, 1), pure_losses(1.0, 1)], 1e-6)
    >>> 1.5 > together.epsilon(0.05) > 1.3
    True
    """
    losses = _multiplied_out(losses)
    if len(losses) == 1:
        return losses[0]
    neglected = NEGLECTED * delta / len(losses)
    reaches = [_reach(loss, neglected) for loss in losses]
    interval = math.hypot(*reaches) / STEPS
    # The widest losses come first: trimming keeps the sum short.
    grids = [_Grid.of(loss, interval, reach) for reach, loss in sorted(zip(reaches, losses, strict=True), key=lambda part: -part[0])]
    total = reduce(lambda first, second: first.convolved(second).trimmed(neglected), grids)
    # A product or a sum of positive terms has an error of a unit; terms of a sum are as many as grid points.
    slack = 4 * UNIT * len(grids) * (4 * STEPS)
    places = np.arange(total.lowest, total.lowest + len(total.masses), dtype=float)
    return losses_of_masses(places * interval, total.masses * (1 + slack), min(1.0, total.certain))


def _reach(loss: ExactPrivacyLoss, mass: float) -> float:
    """Return the size that losses of either sign exceed with at most a given probability."""
    mirrored = ExactPrivacyLoss(loss.log_masses, -loss.losses, 0.0, 0.0)
    return max(loss_reach(loss, mass), loss_reach(mirrored, mass), SMALLEST_REACH)


def _multiplied_out(losses: Sequence[ExactPrivacyLoss]) -> list[ExactPrivacyLoss]:
    """Return the parts, with the smallest distributions replaced by their exact sum."""
    few, *left = sorted(losses, key=lambda loss: len(loss.losses))
    while left and len(few.losses) * len(left[0].losses) <= FEW_SUMS:
        first, *left = left
        few = ExactPrivacyLoss(
            np.add.outer(few.log_masses, first.log_masses).ravel(),
            np.add.outer(few.losses, first.losses).ravel(),
            min(1.0, few.certain + first.certain),
            0.0,
        )
    return [few, *left]


@dataclass(frozen=True, eq=False)
class _Grid:
    """Masses at multiples of an interval, from `lowest` on."""

    lowest: int
    masses: FloatArray
    certain: float

    @classmethod
    def of(cls, loss: ExactPrivacyLoss, interval: float, reach: float) -> "_Grid":
        steps = math.ceil(reach / interval * (1 + UNIT * 4)) + 1
        mass = loss.on_grid(interval, steps)
        return cls(-steps, np.asarray(mass._probs), mass._infinity_mass)

    def convolved(self, other: "_Grid") -> "_Grid":
        return _Grid(self.lowest + other.lowest, np.convolve(self.masses, other.masses), self.certain + other.certain)

    def trimmed(self, mass: float) -> "_Grid":
        """Return the grid without its rare ends: low losses become the least loss, high losses become certain."""
        low = int(np.searchsorted(np.cumsum(self.masses), mass))
        high = len(self.masses) - int(np.searchsorted(np.cumsum(self.masses[::-1]), mass))
        if low >= high:
            return self
        masses = self.masses[low:high].copy()
        masses[0] += self.masses[:low].sum()
        return _Grid(self.lowest + low, masses, self.certain + float(self.masses[high:].sum()))
