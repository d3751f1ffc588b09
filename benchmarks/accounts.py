"""Accounts of tables with as many letters as inputs, beside one product of matrices of that size; and how time grows with it."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.accounting.renyi_divergence import divergence_by_distance

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
        for name, table in (
            ("randomised response", generalised_randomised_response(1.0, bits).weights),
            ("Gaussian", gaussian / gaussian.sum(axis=1, keepdims=True)),
        ):
            curve = seconds(partial(divergence_by_distance, table, DEFAULT_ORDERS))
            loss = seconds(partial(dominating_privacy_loss, table))
            print(
                f"{name}, {size} x {size}: {len(DEFAULT_ORDERS)} orders {curve:.3f} s, {curve / len(DEFAULT_ORDERS) / product:.1f} x a "
                f"product of matrices for each; privacy loss {loss:.3f} s"
            )
        lengths.append(size)
        times.append(curve)
    print(f"time grows with the {np.polyfit(np.log(lengths), np.log(times), 1)[0]:.1f}th power of the number of letters")


if __name__ == "__main__":
    main()
