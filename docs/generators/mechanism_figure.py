"""The figure of a mechanism's page: error against epsilon, and against the bits of a message."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quietbits.figures.drawing.marks import DOTTED, LOWER_BOUND, TRUSTED_SERVER, Mark
from quietbits.figures.drawing.style import WIDTH

CENTRAL: dict[str, Any] = TRUSTED_SERVER.rule | {"linewidth": 1.0}
BOUND: dict[str, Any] = LOWER_BOUND.rule | {"linewidth": 2.5, "alpha": 0.35}


def draw_errors(numbers: dict[str, Any], epsilon: float, mark: Mark) -> Figure:
    """Draw the errors of `page_numbers` with the mechanism's mark; the right side has the designs at the given epsilon."""
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    points = numbers["by_epsilon"]
    epsilons = [point["epsilon"] for point in points]
    left.plot(epsilons, [point["error"] for point in points], label="predicted error", **mark.look)
    _draw_known(left, epsilons, [point["worst"] for point in points], label="worst case", **mark.rule | {"linestyle": DOTTED})
    _draw_known(left, epsilons, [point["bound"] for point in points], label="proven bound", **BOUND)
    _draw_known(left, epsilons, [point["central"] for point in points], label="trusted server, best noise", **CENTRAL)
    left.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="squared L2 error of the mean", title="at the usual design")
    left.set_xticks(epsilons, [f"{value:g}" for value in epsilons], minor=False)
    left.set_xticks([], minor=True)
    _draw_designs(right, numbers, epsilon, mark)
    for axes in (left, right):
        axes.grid(visible=True)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _draw_designs(axes: Axes, numbers: dict[str, Any], epsilon: float, mark: Mark) -> None:
    """Draw the designs, and the least error within a number of bits as steps."""
    designs = numbers["by_bits"]
    bits, errors = [design["bits"] for design in designs], [design["error"] for design in designs]
    least = [min(errors[: place + 1]) for place in range(len(errors))]
    axes.scatter(bits, errors, color=mark.colour, s=22, alpha=0.6, linewidth=0)
    axes.plot(bits, least, color=mark.colour, drawstyle="steps-post")
    axes.set(xscale="log", yscale="log", xlabel="bits of a message", title=f"designs at epsilon {epsilon:g}")
    if max(bits) < 1.5 * min(bits):
        axes.set_xlim(min(bits) / 2, max(bits) * 2)
    # Errors that hardly differ would fill the axis with digits.
    if max(errors) < 3 * min(errors):
        axes.set_ylim(min(errors) / 4, max(errors) * 4)


def _draw_known(axes: Axes, epsilons: list[float], values: list[float | None], **look: Any) -> None:
    stated_values = [(epsilon, value) for epsilon, value in zip(epsilons, values, strict=True) if value]
    if stated_values:
        axes.plot(*zip(*stated_values, strict=True), **look)
