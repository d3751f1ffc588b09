"""How much noise a secure sum of whole numbers needs, and how fine its steps can be, for a number of bits."""

import math
from collections.abc import Callable
from functools import cache

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ...design.contracts.calibration import TOLERANCE
from ...design.contracts.task import Budget
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.divergences.discrete_gaussian_divergence import MOST_BITS, MOST_CLIENTS, fewest_bits, granularity_for_bits
from ...solvers.numerics.safe_root import safe_root

# The standard deviation of one client's noise is looked for up to and down to these numbers of clip norms.
MOST_CLIP_NORMS, LEAST_CLIP_NORMS = 1e9, 1e-9

NamedParameters = tuple[tuple[str, float], ...]
"""Parameters of a mechanism by name, hashable."""


def calibrate_granularity(
    parameters: Callable[[float, float], NamedParameters],
    epsilon_of: Callable[[NamedParameters], float],
    clients: int,
    dimension: int,
    clip_norm: float,
    bits: int,
    budget: Budget,
    deviations: float,
) -> NamedParameters:
    """Return the least noise of a mechanism, and the granularity with which its sum fits the bits; errs toward more noise.

    Granularity and noise depend on each other: more noise needs coarser steps, and coarser steps raise the sensitivity. Epsilon falls as
    the noise grows and the granularity follows (`granularity_for_bits`), but not to zero: too few bits cannot give every epsilon.

    Parameters
    ----------
    parameters : callable
        What to call a standard deviation of one client's noise and the finest granularity that fits, both in the vectors' units.
    epsilon_of : callable
        Epsilon of all rounds with such parameters; infinite where there is too little noise to be accounted for.
    clients : int
        Number of clients that add noise, 1 to 10**9.
    dimension : int
        Number of coordinates, after padding.
    clip_norm : float
        L2 norm that vectors are clipped to, above 0.
    bits : int
        Bits of a coordinate: sums are taken modulo 2**bits; 1 to 62.
    budget : Budget
        What epsilon of all rounds is to be, from 1e-5 to 10**4, and delta.
    deviations : float
        Standard deviations of a coordinate of the sum in half the modulus, 0.1 to 100: 4 leaves a Gaussian one outside with probability
        6.3e-5.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the bits are too few for the clients and epsilon; the message says how many are enough.
    """
    bits = check_integer("bits", bits, low=1, high=MOST_BITS)
    epsilon, delta = budget.epsilon, check_delta(budget.delta)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    deviations = check_real("deviations", deviations, low=0.1, high=100.0)

    def fitting(inverse: float, width: int) -> NamedParameters:
        deviation = clip_norm / inverse
        return parameters(deviation, granularity_for_bits(clients, dimension, clip_norm, deviation, width, deviations=deviations))

    @cache
    def reached(inverse: float, width: int) -> float:
        return epsilon_of(fitting(inverse, width))

    most_noise = 1 / MOST_CLIP_NORMS
    tolerance = TOLERANCE * min(1.0, epsilon)
    fewest = fewest_bits(clients, deviations)
    if bits < fewest or reached(most_noise, bits) > epsilon - tolerance:
        wider = range(max(bits + 1, fewest), MOST_BITS + 1)
        enough = next((width for width in wider if reached(most_noise, width) <= epsilon - tolerance), None)
        goal = f"for {clients} clients to reach epsilon = {epsilon:g} at delta = {delta:g} in {dimension} dimensions"
        if enough is None:
            raise InfeasibleError(f"epsilon or delta must be larger: no number of bits up to {MOST_BITS} would be enough {goal}")
        raise InfeasibleError(f"bits must be at least {enough} {goal}, however much noise they add, got {bits}")
    inverse = safe_root(
        lambda argument: reached(argument, bits),
        epsilon,
        start=min(epsilon, 1.0) * math.sqrt(clients) / 4,
        low=most_noise,
        high=1 / LEAST_CLIP_NORMS,
        tolerance=tolerance,
        name="clip norm over the standard deviation of a client's noise",
    )
    return fitting(inverse, bits)
