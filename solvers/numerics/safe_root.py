"""Root finding that ends on the safe side, at an argument whose value is within a target."""

import math
from collections.abc import Callable

from ...errors import ConvergenceError, InfeasibleError
from ...progress import About, Evaluations

MOST_EVALUATIONS = 100
# Factor by which a secant step multiplies the number of right digits, the golden ratio.
SECANT_GROWTH = (1 + math.sqrt(5)) / 2
# Largest factor by which an argument grows or shrinks until the target is bracketed.
STRIDE = 8.0


def safe_root(
    function: Callable[[float], float],
    target: float,
    *,
    start: float,
    low: float,
    high: float,
    tolerance: float,
    jump: float = 1e-6,
    power: float = 1.0,
    name: str = "argument",
    shown: Callable[[float], float] = float,
) -> float:
    """Return an argument at which a rising function is at most, and close to, a target.

    The value is no further below the target than `tolerance`. The search follows the function as a power law, by secants of logarithms
    inside the bracket, so that a smooth function takes a few evaluations: each evaluation may be the design of a table. The function was
    evaluated at the returned argument.

    Parameters
    ----------
    function : callable
        Rising function of a positive number, with values from 0 to infinity.
    target : float
        Largest allowed value; above 0.
    start : float
        First argument.
    low, high : float
        Smallest and largest argument that the search may try.
    tolerance : float
        Largest gap between the value and the target. If the function jumps over this band, the search returns the last argument before the
        jump.
    jump : float
        Width of the bracket of a jump, relative to the argument; it also limits the steepness of a function without jumps.
    power : float
        Exponent of the power law that the first step follows.
    name : str
        Name of the argument, for messages.
    shown : callable
        Function from an argument to its text in messages.

    Raises
    ------
    InfeasibleError
        If the function is above the target even at `low`, or below it by more than the tolerance even at `high`.
    ConvergenceError
        If neither end was reached in 100 evaluations.

    Examples
    --------
    >>> argument = safe_root(lambda x: x**2, 2.0, start=1.0, low=1e-3, high=1e3, tolerance=1e-9)
    >>> 0 <= 2.0 - argument**2 <= 1e-9
    True
    """
    aim = target - tolerance / 2
    evaluations = Evaluations(function, About(secant_steps(1.0, tolerance / target)), name)
    safe, unsafe = 0.0, math.inf
    argument = min(max(start, low), high)
    before: tuple[float, float] | None = None
    widths = [math.inf]
    missed = False
    for _ in range(MOST_EVALUATIONS):
        value = evaluations(argument)
        evaluations.expect(secant_steps(abs(value / target - 1), tolerance / target))
        if value <= target:
            safe = argument
            if target - value <= tolerance or unsafe <= safe * (1 + jump):
                return safe
            if safe == high:
                raise InfeasibleError(
                    f"{name} would have to be above {shown(high):g}, where {value:.6g} is reached of the target {target:.6g}"
                )
        else:
            unsafe = argument
            if unsafe <= safe * (1 + jump):
                return safe
            if unsafe == low:
                raise InfeasibleError(f"{name} would have to be below {shown(low):g}, where {value:.6g} exceeds the target {target:.6g}")
        # The secant is a power law through the last two points, or of the given power through the only point.
        exponent = power
        if before is not None and 0 < value < math.inf and value != before[1]:
            exponent = max(math.log(value / before[1]) / math.log(argument / before[0]), 0.05)
        if 0 < value < math.inf:
            step = math.log(aim / value) / exponent
            before = (argument, value)
        else:
            # No secant step exists, so take the longest allowed step.
            step = math.inf if value == 0 else -math.inf
            before = None
        if safe == 0 or unsafe == math.inf:
            # From the second step on, the search goes a little further than the power law, so that it soon brackets the target.
            further = 1.01 if missed else 1.0
            step = math.copysign(min(abs(step) * further + 1e-12, math.log(STRIDE)), step)
            missed = True
            argument = min(max(argument * math.exp(step), low), high)
            continue
        widths.append(math.log(unsafe / safe))
        argument = argument * math.exp(step) if abs(step) < widths[-1] else math.nan
        # The power law may lead out of the bracket, or creep along one side of it: the search halves the bracket then.
        if not safe < argument < unsafe or (len(widths) > 3 and widths[-1] > widths[-4] / 2):
            argument = math.sqrt(safe) * math.sqrt(unsafe)
    raise ConvergenceError(
        f"{name}: the target {target:.6g} was not met in {MOST_EVALUATIONS} evaluations, the last at {shown(argument)!r}"
    )


def falling_root(function: Callable[[float], float], low: float, high: float, *, tolerance: float, jump: float) -> float:
    """Return an argument at which a falling function is at most, and close to, 0.

    The value is no further below 0 than `tolerance`. The search follows secants inside the bracket (the Illinois rule), so that a smooth
    function takes a few evaluations.

    Parameters
    ----------
    function : callable
        Falling function, above 0 at `low` and at most 0 at `high`; the search evaluates it at both.
    low, high : float
        Ends of the interval that contains the root; at least 0.
    tolerance : float
        Largest gap between the value and 0. If the function jumps over this band, the search returns an argument just after the jump.
    jump : float
        Width of the bracket of a jump, relative to `high`.

    Examples
    --------
    >>> argument = falling_root(lambda x: 2 - x**2, 0.0, 3.0, tolerance=1e-9, jump=1e-12)
    >>> 0 <= argument**2 - 2 <= 1e-9
    True
    """
    width, aim = jump * high, -tolerance / 2
    evaluations = Evaluations(function, About(MOST_EVALUATIONS), "a root")
    value = evaluations(high)
    # Secants use these values: the value of an end that stays is halved.
    above, below, stays = evaluations(low) - aim, value - aim, 0
    size = max(above, -below)
    for _ in range(MOST_EVALUATIONS):
        if value >= 2 * aim or high - low <= width:
            break
        argument = high - below * (high - low) / (below - above)
        if not low < argument < high:
            argument = (low + high) / 2
        evaluations.expect(secant_steps(-value / size, tolerance / size))
        tried = evaluations(argument)
        if tried > 0:
            low, above = argument, tried - aim
            below /= 2 if stays > 0 else 1
            stays = 1
        else:
            high, below, value = argument, tried - aim, tried
            above /= 2 if stays < 0 else 1
            stays = -1
    return high


def secant_steps(error: float, tolerance: float) -> int:
    """Return about how many secant steps lead from one relative error to another: each multiplies the number of right digits."""
    # An unknown error, of infinite values, counts as large.
    right, wanted = (-math.log(max(number, 1e-16)) if number < 0.5 else math.log(2) for number in (error, tolerance))
    return 1 + max(0, math.ceil(math.log(wanted / right, SECANT_GROWTH)))
