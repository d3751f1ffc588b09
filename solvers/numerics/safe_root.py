"""Root finding that ends on the safe side: the largest parameter whose cost is known not to exceed a target."""

import math
from collections.abc import Callable

from ...errors import ConvergenceError, InfeasibleError

MOST_EVALUATIONS = 100
# An argument grows or shrinks at most by this factor while the target is not yet bracketed.
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
    name: str = "argument",
    shown: Callable[[float], float] = float,
) -> float:
    """Return an argument at which a rising function is at most `target`, and no further below it than `tolerance`.

    The function is followed as a power law, by secants of logarithms that are kept inside the bracket, so that a smooth one takes a few
    evaluations: each may be the design of a table. It was evaluated at the argument that is returned.

    Parameters
    ----------
    function : callable
        Rising function of a positive number, from 0 to infinity.
    target : float
        Largest value that is allowed; above 0.
    start : float
        Where to begin.
    low, high : float
        Smallest and largest argument that may be tried.
    tolerance : float
        How far below the target the value may end. Where the function jumps over this band, the last argument before the jump is
        returned.
    jump : float
        How closely a jump is bracketed, relative to the argument: also how steep a function without jumps may be.
    name : str
        What the argument is, for messages.
    shown : callable
        What messages say for an argument.

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
    safe, unsafe = 0.0, math.inf
    argument = min(max(start, low), high)
    before: tuple[float, float] | None = None
    widths = [math.inf]
    missed = False
    for _ in range(MOST_EVALUATIONS):
        value = function(argument)
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
        # A power law through the last two points, or through the origin and the only one.
        power = 1.0
        if before is not None and 0 < value < math.inf and value != before[1]:
            power = max(math.log(value / before[1]) / math.log(argument / before[0]), 0.05)
        if 0 < value < math.inf:
            step = math.log(aim / value) / power
            before = (argument, value)
        else:
            # No power law leads there: as far as one may go at a time.
            step = math.inf if value == 0 else -math.inf
            before = None
        if safe == 0 or unsafe == math.inf:
            # From the second time on a little further than the law says, so that the target is soon bracketed.
            further = 1.01 if missed else 1.0
            step = math.copysign(min(abs(step) * further + 1e-12, math.log(STRIDE)), step)
            missed = True
            argument = min(max(argument * math.exp(step), low), high)
            continue
        widths.append(math.log(unsafe / safe))
        argument = argument * math.exp(step) if abs(step) < widths[-1] else math.nan
        # The law may lead out of the bracket, or creep along one side of it: then the bracket is halved.
        if not safe < argument < unsafe or (len(widths) > 3 and widths[-1] > widths[-4] / 2):
            argument = math.sqrt(safe) * math.sqrt(unsafe)
    raise ConvergenceError(
        f"{name}: the target {target:.6g} was not met in {MOST_EVALUATIONS} evaluations, the last at {shown(argument)!r}"
    )


def falling_root(function: Callable[[float], float], low: float, high: float, *, tolerance: float, jump: float) -> float:
    """Return an argument at which a falling function is at most 0, and no further below it than `tolerance`.

    It is followed by secants that are kept inside the bracket (the Illinois rule), so that a smooth function takes a few evaluations.

    Parameters
    ----------
    function : callable
        Falling function, above 0 at `low` and at most 0 at `high`; it is evaluated at both.
    low, high : float
        Where the root lies between; at least 0.
    tolerance : float
        How far below 0 the value may end. Where the function jumps over this band, an argument just after the jump is returned.
    jump : float
        How closely a jump is bracketed, relative to `high`.

    Examples
    --------
    >>> argument = falling_root(lambda x: 2 - x**2, 0.0, 3.0, tolerance=1e-9, jump=1e-12)
    >>> 0 <= argument**2 - 2 <= 1e-9
    True
    """
    width, aim = jump * high, -tolerance / 2
    value = function(high)
    # What secants go by: the value of an end that stays is halved.
    above, below, stays = function(low) - aim, value - aim, 0
    for _ in range(MOST_EVALUATIONS):
        if value >= 2 * aim or high - low <= width:
            break
        argument = high - below * (high - low) / (below - above)
        if not low < argument < high:
            argument = (low + high) / 2
        tried = function(argument)
        if tried > 0:
            low, above = argument, tried - aim
            below /= 2 if stays > 0 else 1
            stays = 1
        else:
            high, below, value = argument, tried - aim, tried
            above /= 2 if stays < 0 else 1
            stays = -1
    return high
