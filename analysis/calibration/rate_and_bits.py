"""Compression rate and bit width together: the pair with the fewest bits per parameter whose error stays within a slack."""

from dataclasses import dataclass, replace

from ...arguments import check_real
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Budget
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import fewest_bits
from .sketches import LARGEST_SLACK, SketchChoice, calibrate_sketched_sum, discrete_gaussian_within

# From here on more bits change nothing that can be seen.
AMPLE_BITS = 24


@dataclass(frozen=True)
class RateAndBits:
    """A secure sum of sketches, or of the vectors themselves; errors of the mean of one round, in squared units of the vectors.

    Attributes
    ----------
    bits : int
        Of a coordinate of a message.
    sketch_dimension : int
        Coordinates of a sketch; the dimension where there is none.
    rate : float
        Dimension over the sketch's.
    bits_per_parameter : float
        Of a client's whole message, over the dimension.
    compressed_error : float
        Where the mean is as long as the ball allows.
    reference_error : float
        That of vectors that are not sketched, with ample bits.
    """

    bits: int
    sketch_dimension: int
    rate: float
    bits_per_parameter: float
    compressed_error: float
    reference_error: float


def cheapest_rate_and_bits(
    ball: NormBall, clients: int, budget: Budget, slack: float, choice: SketchChoice | None = None
) -> tuple[RateAndBits, ...]:
    """Return the pairs of rate and bits whose error is within a slack of what is possible with ample bits, the fewest bits first.

    For each number of bits it is the shortest sketch within the slack, or none where none is. This is what the paper does by hand in its
    Table 1 and Figures 3, 5 and 6.

    Parameters
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients.
    budget : Budget
        Budget of all rounds.
    slack : float
        Largest predicted error over that of vectors that are not sketched, with ample bits; above 1.
    choice : SketchChoice or None
        Transform, rows and seed; None for the usual ones.

    Raises
    ------
    InfeasibleError
        If not even ample bits keep the budget.

    Examples
    --------
    >>> pairs = cheapest_rate_and_bits(NormBall(2**20, 2.0), 1000, Budget(1.0, 1e-5, "add-or-remove-one"), slack=2.0)
    >>> best = pairs[0]
    >>> best.bits, round(best.rate, 1), round(best.bits_per_parameter, 2)
    (15, 10.9, 1.38)
    """
    slack = check_real("slack", slack, low=1.0, high=LARGEST_SLACK)
    chosen = choice or SketchChoice()

    def plain(bits: int) -> float:
        mechanism = discrete_gaussian_within(ball, clients, bits, budget, chosen.seed)
        return ball.dimension * mechanism.largest_directional_variance / clients

    reference = plain(AMPLE_BITS)
    found = []
    for bits in range(fewest_bits(clients, 4.0), AMPLE_BITS + 1):
        try:
            without = plain(bits)
        except InfeasibleError:
            # These bits are too few for the budget.
            continue
        if without <= slack * reference:
            found.append(_pair(ball, bits, ball.dimension, float(bits), without, reference))
        if slack * reference / without < 1:
            continue
        try:
            sketched = calibrate_sketched_sum(ball, clients, bits, budget, replace(chosen, slack=slack * reference / without))
        except InfeasibleError:
            # No sketch is within the slack: vectors are sent as they are.
            continue
        mechanism = sketched.mechanism
        per_parameter = mechanism.bits_per_client / ball.dimension
        found.append(_pair(ball, bits, mechanism.sketch_dimension, per_parameter, sketched.compressed_error, reference))
    if not found:
        raise InfeasibleError(f"slack must be larger than {slack:g} for any number of bits up to {AMPLE_BITS}")
    return tuple(sorted(found, key=lambda pair: pair.bits_per_parameter))


def _pair(ball: NormBall, bits: int, size: int, per_parameter: float, error: float, reference: float) -> RateAndBits:
    return RateAndBits(bits, size, ball.dimension / size, per_parameter, error, reference)
