"""Ticks of logarithmic axes: at powers of ten, or at 1, 2 and 5 times these where an axis holds few of them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, Locator, LogLocator, MaxNLocator, NullFormatter

from ...shown import with_powers

# Least number of labels of an axis, if its numbers are not equal.
LEAST_LABELS = 3
# Room of a label in inches: its width on a horizontal axis, its height on a vertical one.
LABEL_WIDTH, LABEL_HEIGHT = 0.42, 0.24
# Mantissas of ticks, in the order in which they are tried on an axis that holds few powers of ten.
MANTISSAS = ((1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7))
# Range in which all labels of an axis are written without powers of ten.
PLAIN = (9e-4, 1.1e5)
# Relative margin by which ticks at the ends of an axis count as inside.
ROUNDING = 1e-9


def label_logarithms(figure: Figure) -> None:
    """Label every decimal logarithmic axis of a figure, unless the figure has chosen the places of its ticks.

    An axis of fewer than three powers of ten has labels at 1, 2 and 5 times these, or closer.
    """
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log" and isinstance(axis.get_major_locator(), LogLocator) and _base(axis) == 10:
                axis.set_major_locator(LogarithmicTicks())
                axis.set_major_formatter(LogarithmicLabels())
                axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=99))
                axis.set_minor_formatter(NullFormatter())


def _base(axis: Axis) -> float:
    transform: Any = axis.get_transform()
    return float(transform.base)


def logarithmic_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most about `most` round numbers between two positive ends, evenly spread on a logarithmic axis.

    There are at least three unless the ends are equal or there is no room.

    Examples
    --------
    >>> logarithmic_ticks(0.03, 60.0, 8), logarithmic_ticks(0.8, 30.0, 8)
    ([0.1, 1.0, 10.0], [1.0, 2.0, 5.0, 10.0, 20.0])
    >>> logarithmic_ticks(1e-9, 1e9, 5), logarithmic_ticks(2.1, 2.9, 8)
    ([1e-08, 0.0001, 1.0, 10000.0, 100000000.0], [2.2, 2.4, 2.6, 2.8])
    """
    powers = _multiples((1,), low, high)
    if len(powers) >= LEAST_LABELS:
        step = math.ceil(len(powers) / max(most, LEAST_LABELS))
        return [power for power in powers if round(math.log10(power)) % step == 0]
    tried = [ticks for mantissas in MANTISSAS if len(ticks := _multiples(mantissas, low, high)) >= LEAST_LABELS]
    fitting = [ticks for ticks in tried if len(ticks) <= most]
    if fitting:
        # The ticks at 1, 2 and 5 are preferred to those at 1 and 3 if there is room.
        return next((ticks for ticks in fitting if ticks == _multiples(MANTISSAS[1], low, high)), fitting[0])
    if tried:
        return tried[0]
    return [float(tick) for tick in MaxNLocator(min(most, 5)).tick_values(low, high) if low <= tick <= high]


def _multiples(mantissas: Sequence[float], low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # Decimal text gives the nearest number, which a product with a power would miss.
    multiples = (float(f"{mantissa}e{decade}") for decade in decades for mantissa in mantissas)
    return [multiple for multiple in multiples if low * (1 - ROUNDING) <= multiple <= high * (1 + ROUNDING)]


class LogarithmicTicks(Locator):
    """Locator of `logarithmic_ticks` for the length of the drawn axis."""

    def __call__(self) -> Any:
        """Return the ticks of the axis' view."""
        axis: Any = self.axis
        return self.tick_values(*axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between two ends."""
        low, high = sorted((float(vmin), float(vmax)))
        if not 0 < low < high:
            return np.array([])
        return np.array(logarithmic_ticks(low, high, self._most()))

    def _most(self) -> int:
        axis: Any = self.axis
        width, height = axis.axes.bbox.size / axis.axes.get_figure(root=True).dpi
        horizontal = axis.axis_name == "x"
        return max(LEAST_LABELS, int(width / LABEL_WIDTH if horizontal else height / LABEL_HEIGHT))


class LogarithmicLabels(Formatter):
    """Formatter that writes all numbers of an axis plainly, or all with powers of ten."""

    _places: Sequence[float] = ()

    def set_locs(self, locs: Any) -> None:
        """Take the places of all ticks, which decide together how each is written."""
        self._places = [float(place) for place in locs]

    def __call__(self, x: float, _: int | None = None) -> str:
        """Return the label of a tick."""
        ends = [place for place in self._places if place > 0] or [x]
        if PLAIN[0] <= min(ends) and max(ends) <= PLAIN[1]:
            return f"{x:,.10g}"
        exponent = math.floor(math.log10(x) + ROUNDING)
        return with_powers(f"{x / 10**exponent:.3g}e{exponent:+03d}").replace(" ", "")
