"""The published privacy of binomial noise in many dimensions: Theorem 1 of cpSGD.

Agarwal, Suresh, Yu, Kumar, McMahan 2018, *cpSGD: communication-efficient and differentially-private distributed SGD*. The mechanism adds s
(Z - N p), with Z binomial, to every coordinate of a vector of multiples of a scale s.
"""

import math

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer, check_real
from ...errors import InfeasibleError
from ..accounting.gaussian_privacy import LARGEST_DELTA, SMALLEST_DELTA, SMALLEST_MULTIPLIER, gaussian_epsilon
from ..accounting.renyi_curve import check_delta

MOST_TRIALS = 10**15
LARGEST_SENSITIVITY = 1e12
SMALLEST_PROBABILITY = 1e-9
# Largest epsilon of the theorem; beyond it, the theorem counts as doubtful. Exact accounts contradict it for uneven probabilities, from 54
# on in our computations.
LARGEST_THEOREM_EPSILON = 10.0


def binomial_theorem_epsilon(
    trials: int,
    probability: float,
    scale: float,
    dimension: int,
    l1_sensitivity: float,
    l2_sensitivity: float,
    linf_sensitivity: float,
    delta: float,
) -> float:
    """Return the epsilon that Theorem 1 states for binomial noise.

    The theorem is false in some ranges, in which `is_theorem_doubtful` is True; no exact account contradicts it elsewhere so far. With
    v = N p (1 - p) and sensitivities D1, D2, Dinf,

        epsilon = D2 sqrt(2 ln(1.25 / delta)) / (s sqrt(v)) + (D2 c sqrt(ln(10 / delta)) + D1 b) / (s v (1 - delta / 10))
                  + ((2/3) Dinf ln(1.25 / delta) + Dinf d ln(20 dimension / delta) ln(10 / delta)) / (s v),

    where b = (2/3) (p^2 + (1-p)^2) + 1 - 2 p, c = sqrt(2) (3 p^3 + 3 (1-p)^3 + 2 p^2 + 2 (1-p)^2) and d = (4/3) (p^2 + (1-p)^2), if
    v >= max(23 ln(10 dimension / delta), 2 Dinf / s). The theorem's b is made for p up to 1/2. Z and N - Z are equally private, so that
    1 - p takes the place of a larger p.

    Parameters
    ----------
    trials : int
        Number N of trials of a coordinate's noise, of all clients together; 1 to 10**15.
    probability : float
        Probability p of success, from 1e-9 to 1 - 1e-9.
    scale : float
        Contribution of one success, in the vectors' units; from 1e-12 to 10**12. The vectors' coordinates are multiples of it.
    dimension : int
        Number of coordinates, at least 1.
    l1_sensitivity, l2_sensitivity, linf_sensitivity : float
        Largest distance of two neighbours' vectors in each norm, in the vectors' units; 0 to 10**12.
    delta : float
        Failure probability, above 0 and below 1.

    Raises
    ------
    InfeasibleError
        If the theorem's condition does not hold; the message gives the necessary number of trials and scale.

    Examples
    --------
    >>> round(binomial_theorem_epsilon(10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6), 6)
    0.011399
    """
    trials, probability, scale = check_trials(trials), check_rate(probability), check_scale(scale)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    l1 = check_sensitivity("l1_sensitivity", l1_sensitivity)
    l2 = check_sensitivity("l2_sensitivity", l2_sensitivity)
    linf = check_sensitivity("linf_sensitivity", linf_sensitivity)
    delta = check_delta(delta)
    # The probability is at most 1/2, so 1 - 2 p is not negative.
    rarer = min(probability, 1 - probability)
    per_trial = probability * (1 - probability)
    variance = trials * per_trial
    log_delta = math.log(delta)
    by_dimension, by_scale = 23 * (math.log(10 * dimension) - log_delta), 2 * linf / scale
    if variance < max(by_dimension, by_scale):
        message = (
            f"trials must be at least {_fewest_trials(max(by_dimension, by_scale), per_trial)} for Theorem 1 of cpSGD to hold with "
            f"probability {probability:g}, scale {scale:g}, dimension {dimension} and delta {delta:g}, got {trials}"
        )
        if variance >= by_dimension:
            message += f"; or scale at least {2 * linf / variance:.9g}"
        raise InfeasibleError(message)
    squares = rarer**2 + (1 - rarer) ** 2
    b = 2 / 3 * squares + 1 - 2 * rarer
    c = math.sqrt(2) * (3 * rarer**3 + 3 * (1 - rarer) ** 3 + 2 * squares)
    d = 4 / 3 * squares
    gaussian = l2 * math.sqrt(2 * (math.log(1.25) - log_delta)) / (scale * math.sqrt(variance))
    second = (l2 * c * math.sqrt(math.log(10) - log_delta) + l1 * b) / (scale * variance * (1 - delta / 10))
    third = (2 / 3 * (math.log(1.25) - log_delta) + d * (math.log(20 * dimension) - log_delta) * (math.log(10) - log_delta)) * linf
    return gaussian + second + third / (scale * variance)


def is_theorem_doubtful(epsilon: float, trials: int, probability: float, scale: float, l2_sensitivity: float, delta: float) -> bool:
    """Return whether Theorem 1's epsilon is in a range where exact accounts contradict it.

    The result is True above 10, and wherever Gaussian noise of the same variance has a larger epsilon.

    The theorem's main term, D2 sqrt(2 ln(1.25 / delta)) / (s sqrt(v)), is the classic term of Gaussian noise. For large epsilon this term,
    and the theorem's whole sum, are below the exact epsilon of Gaussian noise: with 10**4 fair trials, a shift by 1000 and delta = 1e-6,
    the sum is 186, and the exact epsilon is 297. Contradictions occur from about 6 on if Gaussian noise of the same variance has a larger
    epsilon than the theorem's, and, with uneven probabilities, from 54 on.

    Examples
    --------
    >>> epsilon = binomial_theorem_epsilon(10**4, 0.5, 1.0, 1, 1000.0, 1000.0, 1000.0, 1e-6)
    >>> round(epsilon, 1), is_theorem_doubtful(epsilon, 10**4, 0.5, 1.0, 1000.0, 1e-6)
    (186.1, True)
    """
    if epsilon > LARGEST_THEOREM_EPSILON:
        return True
    if l2_sensitivity == 0:
        return False
    multiplier = scale * math.sqrt(trials * probability * (1 - probability)) / l2_sensitivity
    return multiplier < SMALLEST_MULTIPLIER or gaussian_epsilon(multiplier, min(max(delta, SMALLEST_DELTA), LARGEST_DELTA)) > epsilon


def binomial_squared_error(trials: int, probability: float, scale: float, dimension: int) -> float:
    """Return the expected squared L2 norm of the noise.

    The error is ``dimension * scale**2 * trials * probability * (1 - probability)``.

    Examples
    --------
    >>> binomial_squared_error(100, 0.5, 0.5, 8)
    50.0
    """
    trials, probability, scale = check_trials(trials), check_rate(probability), check_scale(scale)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    return dimension * (scale * scale) * (trials * probability * (1 - probability))


def check_trials(trials: int) -> int:
    """Return a number of trials as an int, if it is from 1 to 10**15."""
    return check_integer("trials", trials, low=1, high=MOST_TRIALS)


def check_rate(probability: float) -> float:
    """Return a probability of success as a float, if it is from 1e-9 to 1 - 1e-9."""
    return check_real("probability", probability, low=SMALLEST_PROBABILITY, high=1 - SMALLEST_PROBABILITY)


def check_scale(scale: float) -> float:
    """Return the contribution of one success as a float, if it is from 1e-12 to 10**12."""
    return check_real("scale", scale, low=1e-12, high=1e12)


def check_sensitivity(name: str, value: float) -> float:
    """Return a sensitivity as a float, if it is from 0 to 10**12."""
    return check_real(name, value, low=0.0, high=LARGEST_SENSITIVITY)


def _fewest_trials(variance: float, per_trial: float) -> int:
    """Return the smallest number of trials whose computed variance is large enough."""
    trials = math.ceil(variance / per_trial)
    while trials * per_trial < variance:
        trials += 1
    while trials > 1 and (trials - 1) * per_trial >= variance:
        trials -= 1
    return trials
