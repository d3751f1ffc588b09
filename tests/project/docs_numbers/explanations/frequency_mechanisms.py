"""Numbers of docs/explanations/frequency-mechanisms.md."""

from collections.abc import Callable, Iterator
from functools import cache

import pandas as pd

import quietbits
from quietbits.analysis.simulation.populations import item_probabilities
from quietbits.design.contracts.mechanism import FrequencyMechanism
from quietbits.figures.frequencies.regimes import RegimePoint, winners

ITEMS, CLIENTS, DELTA = 100_000, 50_000, 1e-5
SKETCH = {"rows": 15, "width": 1024}
TOSSES, GAUSSIAN, SKELLAM = "sketched-poisson-binomial", "sketched-discrete-gaussian-frequencies", "sketched-skellam-frequencies"


LOCAL = (
    "frequency-randomised-response",
    "hadamard-response",
    "recursive-hadamard-response",
    "projective-geometry-response",
    "unary-encoding",
    "subset-selection",
)
SHUFFLED = "shuffled-frequency-randomised-response"


@cache
def built(name: str, **options: object) -> FrequencyMechanism:
    """Return a mechanism for the page's task: epsilon = 1, replace-one adjacency."""
    delta = 0.0 if name in LOCAL else DELTA
    task = quietbits.Task(quietbits.Categories(ITEMS), clients=CLIENTS, epsilon=1.0, delta=delta, adjacency="replace-one")
    return quietbits.build_mechanism(name, task, options)


def squared_error(mechanism: FrequencyMechanism) -> float:
    """Return the predicted squared error of all frequencies of Zipf's law."""
    return float(mechanism.variance_bound / CLIENTS + mechanism.shared_variance(item_probabilities("zipf", ITEMS)))


def mechanism_rows(number: Callable[[float], str]) -> Iterator[list[str]]:
    """Return every mechanism for items with its predicted squared error and its bits."""
    rows = [(f"`{name}`", name, {}) for name in (*LOCAL, SHUFFLED)]
    for name, width, signs in ((TOSSES, 2**17, True), (GAUSSIAN, ITEMS, False), (SKELLAM, ITEMS, False)):
        rows.append((f"`{name}`, a histogram", name, {"width": width}))
        rows.append((f"`{name}`, 15 x 1024", name, {**SKETCH, **({"signed": True} if signs else {})}))
    for title, name, options in rows:
        mechanism = built(name, **options)
        yield [title, number(squared_error(mechanism)), f"{mechanism.bits_per_client:.0f}"]


def regime_rows() -> Iterator[list[str]]:
    """Return the winning kind at 10^5 clients, and its error over a trusted server's."""
    budgets = (1e3, 1e5, 1e7)
    for power in range(2, 5):
        row = [f"10^{power}"]
        for epsilon in (1.0, 10.0):
            point = RegimePoint(seed=0, clients=100_000, categories=10**power, epsilon=epsilon, budgets=budgets)
            best = winners(pd.DataFrame(point.run())).set_index("budget")
            for budget in budgets:
                winner = best.loc[budget]
                row.append(f"{winner['kind']}, {winner['predicted_squared_error'] / winner['central_squared_error']:.2f}")
        yield row
