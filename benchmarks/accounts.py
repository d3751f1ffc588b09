"""Accounts of tables, beside one product of matrices of their size, and of sampled Gaussian noise, beside dp-accounting's own."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SampledWithoutReplacementDpEvent
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS
from quietbits.solvers.accounting.renyi_divergence import divergence_by_distance, largest_divergences
from quietbits.solvers.accounting.sampled_noise import WHOLE_ORDERS, gaussian_loss_interval, sampled_gaussian_curve, sampled_gaussian_loss
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

BITS = (6, 7, 8, 9)
NOISE_MULTIPLIER = 1.0


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
    sampled_noise()


def sampled_noise() -> None:
    """Print CPU seconds for one sampled round of Gaussian noise, and dp-accounting's for the same orders or the same grid."""
    probability, event = 0.01, GaussianDpEvent(NOISE_MULTIPLIER)
    fixed, poisson = FixedSizeSampling(1000, 10), PoissonSampling(probability)
    for sampling, theirs, relation in (
        (poisson, PoissonSampledDpEvent(probability, event), NeighboringRelation.ADD_OR_REMOVE_ONE),
        (fixed, SampledWithoutReplacementDpEvent(1000, 10, event), NeighboringRelation.REPLACE_ONE),
    ):
        adjacency = "add-or-remove-one" if sampling is poisson else "replace-one"
        own = min(seconds(partial(sampled_gaussian_curve.__wrapped__, NOISE_MULTIPLIER, sampling, adjacency)) for _ in range(5))
        other = seconds(partial(RdpAccountant(WHOLE_ORDERS, relation).compose, theirs))
        print(f"Gaussian noise, {sampling}: {len(WHOLE_ORDERS)} whole orders {own:.3f} s, {own / other:.2f} x dp-accounting")
    interval = gaussian_loss_interval(NOISE_MULTIPLIER, probability)
    own = min(seconds(partial(sampled_gaussian_loss, NOISE_MULTIPLIER, poisson, "add-or-remove-one")) for _ in range(5))
    made = partial(from_gaussian_mechanism, NOISE_MULTIPLIER, sampling_prob=probability, value_discretization_interval=interval)
    other = seconds(made)
    loss, theirs = sampled_gaussian_loss(NOISE_MULTIPLIER, poisson, "add-or-remove-one"), made()
    deltas = [[one.get_delta_for_epsilon(epsilon) for epsilon in (0.01, 0.1, 1.0)] for one in (loss, theirs)]
    agree = "the same" if deltas[0] == deltas[1] else "OTHER"
    print(f"Gaussian noise, {poisson}: privacy loss {own:.3f} s, {own / other:.2f} x dp-accounting, {agree} numbers")


if __name__ == "__main__":
    main()
