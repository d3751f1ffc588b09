"""Accounts of tables with as many letters as inputs, as `account table` makes them, beside one product of matrices of that size."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.accounting.renyi_divergence import divergence_by_distance, largest_divergences

BITS = (6, 7, 8, 9)


def seconds(run: Callable[[], object]) -> float:
    """Return the processor's time for one call."""
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> None:
    """Print CPU seconds of curves of all orders and of privacy loss distributions."""
    # What is loaded when it is first used.
    dominating_privacy_loss([[3, 1], [1, 3]])
    lengths, times = [], []
    for bits in BITS:
        size = 1 << bits
        positions, letters = np.linspace(0, 1, size), np.linspace(-1, 2, size)
        gaussian = np.exp(-3 * (positions[:, None] - letters) ** 2)
        product = min(seconds(partial(np.matmul, gaussian, gaussian)) for _ in range(10))
        response = np.asarray(generalised_randomised_response(1.0, bits).weights, dtype=float)
        perturbed = response * np.exp(np.random.default_rng(bits).normal(0, 0.05, response.shape))
        for name, table in (
            ("randomised response", response),
            ("the same, perturbed", perturbed / perturbed.sum(axis=1, keepdims=True)),
            ("Gaussian", gaussian / gaussian.sum(axis=1, keepdims=True)),
        ):
            by_distance = seconds(partial(divergence_by_distance, table, DEFAULT_ORDERS))
            curve = seconds(partial(largest_divergences, table, DEFAULT_ORDERS, size))
            loss = seconds(partial(dominating_privacy_loss, table))
            print(
                f"{name}, {size} x {size}: {len(DEFAULT_ORDERS)} orders {curve:.3f} s, {curve / len(DEFAULT_ORDERS) / product:.1f} x a "
                f"product of matrices for each, by distance {by_distance:.3f} s; privacy loss {loss:.3f} s"
            )
        lengths.append(size)
        times.append(curve)
    print(f"time grows with the {np.polyfit(np.log(lengths), np.log(times), 1)[0]:.1f}th power of the number of letters")


if __name__ == "__main__":
    main()
