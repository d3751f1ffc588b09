"""The figure of a mechanism's page: error against epsilon, and against the bits of a message."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from quietbits.figures.drawing.marks import BLUE, SKY
from quietbits.figures.drawing.style import GREY, WIDTH

CENTRAL: dict[str, Any] = {"color": GREY, "linestyle": (0, (5, 3)), "linewidth": 1.0}
BOUND: dict[str, Any] = {"color": GREY, "linewidth": 2.5, "alpha": 0.35}


def draw_errors(numbers: dict[str, Any], epsilon: float) -> Figure:
    """Draw the errors of `page_numbers`; the right side has the designs at the given epsilon."""
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    points = numbers["by_epsilon"]
    epsilons = [point["epsilon"] for point in points]
    left.plot(epsilons, [point["error"] for point in points], color=BLUE.colour, marker=BLUE.marker, label="predicted error")
    _draw_known(left, epsilons, [point["worst"] for point in points], label="worst case", **{**SKY.look, "marker": ""})
    _draw_known(left, epsilons, [point["bound"] for point in points], label="proven bound", **BOUND)
    _draw_known(left, epsilons, [point["central"] for point in points], label="trusted server, best noise", **CENTRAL)
    left.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="squared L2 error of the mean", title="at the usual design")
    left.set_xticks(epsilons, [f"{value:g}" for value in epsilons], minor=False)
    left.set_xticks([], minor=True)
    _draw_designs(right, numbers, epsilon)
    for axes in (left, right):
        axes.grid(visible=True)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _draw_designs(axes: Axes, numbers: dict[str, Any], epsilon: float) -> None:
    """Draw the designs, and the least error within a number of bits as steps."""
    designs = numbers["by_bits"]
    bits, errors = [design["bits"] for design in designs], [design["error"] for design in designs]
    least = [min(errors[: place + 1]) for place in range(len(errors))]
    axes.scatter(bits, errors, color=BLUE.colour, s=22, alpha=0.6, linewidth=0)
    axes.plot(bits, least, color=BLUE.colour, drawstyle="steps-post")
    axes.set(xscale="log", yscale="log", xlabel="bits of a message", title=f"designs at epsilon {epsilon:g}")
    if max(bits) < 1.5 * min(bits):
        axes.set_xlim(min(bits) / 2, max(bits) * 2)
    decades = math.log10(axes.get_xlim()[1] / axes.get_xlim()[0])
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.5 else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value < 1e5 else f"{value / 1e6:,g} M"))
    axes.xaxis.set_minor_formatter(lambda *_: "")
    # Errors that hardly differ would fill the axis with digits.
    if max(errors) < 3 * min(errors):
        axes.set_ylim(min(errors) / 4, max(errors) * 4)


def _draw_known(axes: Axes, epsilons: list[float], values: list[float | None], **look: Any) -> None:
    stated_values = [(epsilon, value) for epsilon, value in zip(epsilons, values, strict=True) if value]
    if stated_values:
        axes.plot(*zip(*stated_values, strict=True), **look)
