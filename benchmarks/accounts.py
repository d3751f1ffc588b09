"""Accounts of tables and of sampled noise against independent computations.

The references are a matrix product and dp-accounting.

The benchmark also measures time and largest memory of the calibration of binomial noise. Sampled noise has no size that could grow: its
orders are fixed.
"""

from functools import partial

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from shared.growth import slope
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import beside_limit
from shared.processor_time import seconds, timed

import quietbits
from quietbits.arrays import FloatArray
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.accounting.renyi_divergence import divergence_by_distance, largest_divergences
from quietbits.solvers.accounting.sampled_noise import WHOLE_ORDERS, gaussian_loss_interval, sampled_gaussian_curve, sampled_gaussian_loss
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

BITS = (6, 7, 8, 9)
NOISE_MULTIPLIER = 1.0
# These epsilons need from 4000 to twelve million trials.
BINOMIAL_EPSILONS = (0.1, 0.01, 0.001)


def main() -> None:
    """Print CPU seconds of curves, privacy loss distributions, and accounts without a table.

    The physical limit of a curve is to copy the table for each order. A privacy loss compares all pairs of inputs; its limit is a product
    of matrices of the table's size.
    """
    binomial_noise()
    # The first call loads the modules that are imported lazily.
    dominating_privacy_loss([[3, 1], [1, 3]])
    largest_divergences(np.array([[0.75, 0.25], [0.25, 0.75]]), DEFAULT_ORDERS, 2)
    times: dict[str, list[float]] = {}
    for bits in BITS:
        gaussian = gaussian_weights(bits)
        product = seconds(partial(np.matmul, gaussian, gaussian), 10)
        for name, table in tables(bits, gaussian).items():
            copied = seconds(table.copy, calls=20)
            by_distance = seconds(partial(divergence_by_distance, table, DEFAULT_ORDERS), 1)
            curve = seconds(partial(largest_divergences, table, DEFAULT_ORDERS, len(table)), 1)
            loss = seconds(partial(dominating_privacy_loss, table), 1)
            times.setdefault(f"{name}, orders", []).append(curve)
            times.setdefault(f"{name}, privacy loss", []).append(loss)
            orders = len(DEFAULT_ORDERS)
            print(
                f"{name}, {len(table)} x {len(table)}: {orders} orders {curve:.3f} s, {curve / orders / product:.2g} x a product of "
                f"matrices for each, {beside_limit(curve, orders * copied)}; by distance {by_distance:.3f} s; privacy loss {loss:.3f} s, "
                f"{beside_limit(loss, product)}"
            )
    for name, durations in times.items():
        print(f"{name}: time grows with the {slope([1 << bits for bits in BITS], durations):.2f}th power of the number of letters")
    sampled_noise()


def gaussian_weights(bits: int) -> FloatArray:
    """Return a square matrix of Gaussian weights."""
    positions, letters = np.linspace(0, 1, 1 << bits), np.linspace(-1, 2, 1 << bits)
    return np.exp(-3 * (positions[:, None] - letters) ** 2)


def tables(bits: int, gaussian: FloatArray) -> dict[str, FloatArray]:
    """Return tables by name."""
    response = np.asarray(generalised_randomised_response(1.0, bits).weights, dtype=float)
    perturbed = response * np.exp(np.random.default_rng(bits).normal(0, 0.05, response.shape))
    return {
        "randomised response": response,
        "the same, perturbed": perturbed / perturbed.sum(axis=1, keepdims=True),
        "Gaussian": gaussian / gaussian.sum(axis=1, keepdims=True),
    }


def binomial_noise() -> None:
    """Print time and memory of binomial calibrations, against a copy of a number per trial."""
    shape = {"delta": 1e-5, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 1.0, "l2": 1.0, "linf": 1.0}
    # The first call loads the modules that are imported lazily.
    quietbits.calibrate("binomial", epsilon=1.0, **shape)
    trials, times = [], []
    for epsilon in BINOMIAL_EPSILONS:
        before = peak_mebibytes()
        calibration, taken = timed(partial(quietbits.calibrate, "binomial", epsilon=epsilon, **shape))
        memory = peak_mebibytes() - before
        trials.append(calibration["trials"])
        times.append(taken)
        print(
            f"calibration of binomial noise, epsilon {epsilon:g}, {calibration['trials']} trials: {taken:.3f} s, "
            f"{beside_limit(taken, seconds(np.zeros(calibration['trials']).copy))}, {memory:.1f} MiB more at most"
        )
    print(f"time grows with the {slope(trials, times):.2f}th power of the number of trials")


def sampled_noise() -> None:
    """Print CPU seconds of a sampled Gaussian round, against dp-accounting's on the same grid.

    The physical limit is an exponential for each term of the orders' sums, and for each point of the grid.
    """
    exponentials = partial(np.exp, np.zeros(sum(WHOLE_ORDERS)))
    probability, event = 0.01, GaussianDpEvent(NOISE_MULTIPLIER)
    fixed, poisson = FixedSizeSampling(1000, 10), PoissonSampling(probability)
    for sampling, theirs, relation in (
        (poisson, PoissonSampledDpEvent(probability, event), NeighboringRelation.ADD_OR_REMOVE_ONE),
        (fixed, SampledWithoutReplacementDpEvent(1000, 10, event), NeighboringRelation.REPLACE_ONE),
    ):
        adjacency = "add-or-remove-one" if sampling is poisson else "replace-one"
        own = seconds(partial(sampled_gaussian_curve.__wrapped__, NOISE_MULTIPLIER, sampling, adjacency))
        other = seconds(partial(RdpAccountant(WHOLE_ORDERS, relation).compose, theirs), 1)
        print(
            f"Gaussian noise, {sampling}: {len(WHOLE_ORDERS)} whole orders {own:.3f} s, {own / other:.2f} x dp-accounting's time, "
            f"{beside_limit(own, seconds(exponentials))}"
        )
    interval = gaussian_loss_interval(NOISE_MULTIPLIER, probability)
    own = seconds(partial(sampled_gaussian_loss, NOISE_MULTIPLIER, poisson, "add-or-remove-one"))
    made = partial(from_gaussian_mechanism, NOISE_MULTIPLIER, sampling_prob=probability, value_discretization_interval=interval)
    other = seconds(made, 1)
    loss, theirs = sampled_gaussian_loss(NOISE_MULTIPLIER, poisson, "add-or-remove-one"), made()
    deltas = [[distribution.get_delta_for_epsilon(epsilon) for epsilon in (0.01, 0.1, 1.0)] for distribution in (loss, theirs)]
    agree = "the same" if deltas[0] == deltas[1] else "OTHER"
    points = np.zeros(loss._pmf_remove.size + loss._pmf_add.size)
    ratios = f"{own / other:.2f} x dp-accounting's time, {beside_limit(own, seconds(partial(np.exp, points)))}"
    print(f"Gaussian noise, {poisson}: privacy loss {own:.3f} s, {ratios}, {agree} numbers")


if __name__ == "__main__":
    main()
