"""What mechanisms reveal whose messages are e^epsilon as likely in the input's cap as outside it: PrivUnit and PrivUnitG."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ....arrays import FloatArray
from ....solvers.accounting.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon
from ....solvers.accounting.pure_privacy import check_orders, pure_renyi_divergences
from ....solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ....solvers.numerics.rounding import SLACK
from ...contracts.accounts import composed_loss, loss_account, pure_account, renyi_account
from ...contracts.privacy import Privacy

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Of a loss distribution's step, for the ten units or so that its masses are off by. Of the smallest epsilons that is less, but then
# `composed_loss` takes more than these units from delta.
GRID_MARGIN = 1 + SLACK


@dataclass(frozen=True)
class CapPrivacy:
    """Randomised response that is seen with probability `revealing`, and not at all otherwise: it dominates every two inputs.

    The densities of two unit vectors have the ratio e^epsilon on the first one's cap without the second's, e^-epsilon the other way
    round, and 1 elsewhere. With w the measure of either region, under the law that does not depend on the input, every f-divergence is w
    times a number that depends on epsilon only, and is not negative. So the pair with the largest w dominates all others, and mixtures of
    both directions (joint convexity): opposite vectors, with w the smaller of the measures of a cap and of its complement. A message then
    lies in one cap and not in the other with probability (e^epsilon + 1) w / Z.

    Attributes
    ----------
    epsilon : float
        Pure privacy parameter.
    revealing : float
        (e^epsilon + 1) w / Z, at most 1.
    """

    epsilon: float
    revealing: float

    @classmethod
    def of_cap(cls, epsilon: float, log_cap: float, log_rest: float) -> "CapPrivacy":
        """Return that of a cap and its complement, by the logarithms of their measures."""
        log_constant = np.logaddexp(epsilon + log_cap, log_rest)
        return cls(epsilon, min(1.0, math.exp(float(np.logaddexp(epsilon, 0.0) + min(log_cap, log_rest) - log_constant))))

    def privacy(self) -> Privacy:
        """Pure local privacy of the real-valued mechanism; over rounds, less than that of randomised response (`loss`)."""

        def curve() -> RenyiCurve:
            return RenyiCurve(np.array(DEFAULT_ORDERS), self.renyi_divergences(DEFAULT_ORDERS))

        def by_loss(rounds: int, delta: float) -> float | None:
            # Losses above 700, whose exponentials underflow, are left to randomised response, which dominates.
            own = composed_loss(self.loss(), rounds, delta)
            pure = composed_pure_epsilon(self.epsilon, rounds, delta) if rounds <= MOST_COMPOSED_ROUNDS else None
            return min((epsilon for epsilon in (own, pure) if epsilon is not None), default=None)

        accounts = (pure_account(self.epsilon), renyi_account(curve, "replace-one"), loss_account("pld", by_loss, "replace-one"))
        return Privacy("local", accounts)

    def loss(self) -> "PrivacyLossDistribution":
        """Return the loss distribution of two opposite vectors, which dominates every two vectors: -epsilon, 0 and epsilon.

        Its grid is epsilon, a little enlarged: a round adds two places, where a fine grid takes seconds to compose hundreds of rounds.
        """
        from dp_accounting.pld.pld_pmf import SparsePLDPmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        step = self.epsilon * GRID_MARGIN
        flipped = self.revealing / (math.exp(step) + 1)
        losses = {-1: flipped, 0: 1 - self.revealing, 1: self.revealing - flipped}
        return PrivacyLossDistribution(SparsePLDPmf(losses, step, 0.0, pessimistic_estimate=True))

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return, for each order above 1, the Rényi divergence of two opposite vectors, in nats: exact."""
        array = check_orders(orders)
        finite = np.where(np.isinf(array), 2.0, array)
        # e^((a - 1) r) = 1 - revealing + revealing e^((a - 1) r') with r' the divergence of randomised response.
        exponents = (finite - 1) * pure_renyi_divergences(self.epsilon, finite)
        small = exponents < 300
        direct = np.log1p(self.revealing * np.expm1(np.where(small, exponents, 0.0)))
        divergences = np.where(small, direct, exponents + math.log(self.revealing)) / (finite - 1)
        return np.asarray(np.where(np.isinf(array), self.epsilon, divergences))
