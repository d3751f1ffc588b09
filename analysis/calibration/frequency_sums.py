"""Mechanisms for frequencies in a secure sum: the least noise within a budget, for a sketch that is chosen by predicted error."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from ...arguments import check_integer
from ...design.contracts.calibration import calibrate_parameter
from ...design.contracts.task import Budget
from ...design.frequencies.item_sketch import ItemSketch
from ...design.frequencies.noisy_sketch import (
    LARGEST_VARIANCE,
    LEAST_VARIANCE,
    WRAP_PROBABILITY,
    SketchedDiscreteGaussianFrequencies,
    SketchedSkellamFrequencies,
    discrete_gaussian_items_privacy,
    skellam_items_privacy,
    squared_distance,
)
from ...design.frequencies.sketched_frequencies import SketchedFrequencies
from ...design.frequencies.sketched_poisson_binomial import (
    SketchedPoissonBinomialFrequencies,
    differing_coordinates,
    sketched_tosses_privacy,
)
from ...design.noise.discrete_gaussian import LARGEST_SIGMA
from ...design.secure_sum.poisson_binomial_mechanism import SMALLEST_THETA
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import SMALLEST_SIGMA
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, MOST_CLIENTS, MOST_TRIALS
from ...solvers.numerics.bisection import first_true
from .gaussian_noise import calibrate_noise_multiplier
from .item_sketches import ItemSketchChoice

# Least noise of one client, in steps, that makes a sum discrete Gaussian: ratios of a million clients' sums are then below 1e-12.
SMOOTH_SIGMA = 1.5
# More steps, or tosses, are of use if they lower the variance by more than this share.
WORTHWHILE = 0.01
# Of Skellam noise that finer steps make no more like Gaussian noise.
GAUSSIAN_VARIANCE = 2.0**15
MOST_STEPS = 2**20
# What takes long to account for: tosses of all clients for a coordinate.
MOST_TOSSES = 2**24
# A theta from which on more tosses may be of use even where there are many clients, and how many those are.
NEAR_CERTAIN, FEW_CLIENTS = 0.4, 1000

Calibrated = TypeVar("Calibrated", bound=SketchedFrequencies)


def calibrate_discrete_gaussian_frequencies(
    categories: int, clients: int, budget: Budget, choice: ItemSketchChoice
) -> SketchedDiscreteGaussianFrequencies:
    """Return sketches with the least discrete Gaussian noise within a budget.

    An item is as many steps as make each client's noise 1.5 steps or more: less, and the sum would not be like a Gaussian.

    Raises
    ------
    InfeasibleError
        If the budget is out of reach, or the message too short; the message says what is needed.

    Examples
    --------
    >>> found = calibrate_discrete_gaussian_frequencies(1000, 10_000, Budget(1.0, 1e-5, "replace-one"), ItemSketchChoice())
    >>> found.sketch.direct, found.steps, 0 <= 1.0 - found.guarantee.epsilon <= 1e-6
    (True, 29, True)
    """
    adjacency = budget.adjacency
    multiplier = calibrate_noise_multiplier(budget, "secure-sum")

    def steps_of(square: int) -> int:
        return max(1, math.ceil(SMOOTH_SIGMA * math.sqrt(clients / square) / multiplier))

    def bits_of(sketch: ItemSketch) -> float:
        square = sketch.rows if adjacency != "replace-one" else 2 * sketch.rows
        return _bits(sketch, clients * steps_of(square), multiplier * math.sqrt(square) * steps_of(square))

    def calibrated(sketch: ItemSketch) -> SketchedDiscreteGaussianFrequencies:
        square = squared_distance(sketch, adjacency)
        steps = steps_of(square)

        def epsilon_of(inverse: float) -> float:
            privacy = discrete_gaussian_items_privacy(clients, sketch.rows, square, steps, 1 / inverse, adjacency)
            return privacy.epsilon(budget.delta, adjacency, budget.rounds, budget.sampling, account=budget.method)

        start = math.sqrt(clients / square) / (multiplier * steps)
        low, high = 1 / LARGEST_SIGMA, 1 / SMALLEST_SIGMA
        inverse = calibrate_parameter(epsilon_of, budget, low=low, high=high, name="one over local_sigma", start=start)
        return SketchedDiscreteGaussianFrequencies(sketch, clients, steps, 1 / inverse, budget.delta, adjacency)

    sketches = choice.sketches(categories, multiplier, clients, bits_of, distance=2.0 if adjacency == "replace-one" else 1.0)
    return _first_within(choice, sketches, calibrated)


def calibrate_skellam_frequencies(categories: int, clients: int, budget: Budget, choice: ItemSketchChoice) -> SketchedSkellamFrequencies:
    """Return sketches with the least Skellam noise within a budget; raises as `calibrate_discrete_gaussian_frequencies`.

    An item is a power of two of steps, the least with which the variance is within a hundredth of that with the most.

    Examples
    --------
    >>> found = calibrate_skellam_frequencies(1000, 10_000, Budget(1.0, 1e-5, "replace-one"), ItemSketchChoice())
    >>> found.sketch.direct, found.steps, 0 <= 1.0 - found.guarantee.epsilon <= 1e-6
    (True, 32, True)
    """
    adjacency = budget.adjacency
    multiplier = calibrate_noise_multiplier(budget, "secure-sum")

    # From enough steps for a client's noise to be drawn, up to those with which the sum's is like Gaussian noise.
    def fewest_of(square: int) -> int:
        return 1 << math.ceil(math.log2(max(1.0, math.sqrt(4 * LEAST_VARIANCE * clients / square) / multiplier)))

    def finest_of(square: int) -> int:
        return min(MOST_STEPS, 1 << max(0, math.ceil(math.log2(GAUSSIAN_VARIANCE / square) / 2 - math.log2(multiplier))))

    def bits_of(sketch: ItemSketch) -> float:
        square = sketch.rows if adjacency != "replace-one" else 2 * sketch.rows
        steps = finest_of(square) if choice.message_bits is None else fewest_of(square)
        return _bits(sketch, clients * steps, multiplier * math.sqrt(square) * steps)

    def calibrated(sketch: ItemSketch) -> SketchedSkellamFrequencies:
        square = squared_distance(sketch, adjacency)

        @cache
        def variance(steps: int) -> float:
            def epsilon_of(inverse: float) -> float:
                privacy = skellam_items_privacy(clients, sketch.rows, square, steps, 1 / inverse, adjacency)
                return privacy.epsilon(budget.delta, adjacency, budget.rounds, budget.sampling, account=budget.method)

            start = clients / (multiplier * steps) ** 2 / square
            low, high = 1 / LARGEST_VARIANCE, 1 / LEAST_VARIANCE
            return 1 / calibrate_parameter(epsilon_of, budget, low=low, high=high, name="one over local_variance", start=start)

        def mechanism(doublings: int) -> SketchedSkellamFrequencies:
            steps = fewest << doublings
            return SketchedSkellamFrequencies(sketch, clients, steps, variance(steps), budget.delta, adjacency)

        # With more steps the variance falls: finer noise is more like Gaussian noise.
        fewest = finest = fewest_of(square)
        while finest < finest_of(square):
            finest *= 2
        enough = (1 + WORTHWHILE) * variance(finest) / finest**2
        most = (finest // fewest).bit_length() - 1
        doublings = first_true(0, most, lambda doublings: variance(fewest << doublings) / (fewest << doublings) ** 2 <= enough)
        while doublings and not choice.affords(mechanism(doublings).bits_per_client):
            doublings -= 1
        return mechanism(doublings)

    sketches = choice.sketches(categories, multiplier, clients, bits_of, distance=2.0 if adjacency == "replace-one" else 1.0)
    return _first_within(choice, sketches, calibrated)


def calibrate_sketched_tosses(
    categories: int, clients: int, budget: Budget, choice: ItemSketchChoice, trials: int | None = None
) -> SketchedPoissonBinomialFrequencies:
    """Return the sketched Poisson-binomial mechanism with the largest theta within a budget.

    Without a number of trials, those from one on that lower the variance: twice as many as long as that lowers it by a hundredth or more.

    Raises
    ------
    InfeasibleError
        If the budget is out of reach, or the message too short; the message says what is needed.

    Examples
    --------
    >>> found = calibrate_sketched_tosses(1000, 10_000, Budget(1.0, 1e-5, "replace-one"), ItemSketchChoice(rows=5, width=128, signed=True))
    >>> found.trials, round(found.theta, 3), found.differing_coordinates, 0 <= 1.0 - found.guarantee.epsilon <= 1e-6
    (1, 0.25, 448, True)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    multiplier = calibrate_noise_multiplier(budget, "secure-sum")

    def bits_of(sketch: ItemSketch, tosses: int) -> float:
        return sketch.coordinates * math.log2(tosses * clients + 1)

    def variance(tosses: int, theta: float) -> float:
        return (0.25 - theta**2) / (tosses * theta**2)

    def calibrated(sketch: ItemSketch) -> SketchedPoissonBinomialFrequencies:
        differing = differing_coordinates(sketch)

        def largest_theta(tosses: int) -> float:
            def epsilon_of(theta: float, *, first_cell: bool = False) -> float:
                privacy = sketched_tosses_privacy(clients, tosses, theta, differing, first_cell=first_cell)
                return privacy.epsilon(budget.delta, "replace-one", budget.rounds, budget.sampling, account=budget.method)

            # Divergences are about 8 a theta^2 L / (n (1 - 4 theta^2)) for each coordinate, those of Gaussian noise a / (2 z^2) in all.
            start = math.sqrt(clients / (tosses * differing)) / (4 * multiplier)
            start /= math.sqrt(1 + 4 * start**2)
            if start > NEAR_CERTAIN and epsilon_of(LARGEST_THETA) <= budget.epsilon:
                return LARGEST_THETA
            # The first cell is mostly the worst one: then its theta needs a single look at all of them.
            for guess in (lambda theta: epsilon_of(theta, first_cell=True), epsilon_of):
                start = calibrate_parameter(guess, budget, low=SMALLEST_THETA, high=LARGEST_THETA, name="theta", start=start)
            return start

        number = 1 if trials is None else trials
        theta = largest_theta(number)
        while trials is None and 2 * number <= min(MOST_TRIALS, max(1, MOST_TOSSES // clients)):
            # Of many clients' sums, variance times divergence does not depend on the number of tosses.
            if (clients > FEW_CLIENTS and theta <= NEAR_CERTAIN) or not choice.affords(bits_of(sketch, 2 * number)):
                break
            more = largest_theta(2 * number)
            if variance(2 * number, more) > (1 - WORTHWHILE) * variance(number, theta):
                break
            number, theta = 2 * number, more
        return SketchedPoissonBinomialFrequencies(sketch, clients, number, theta, budget.delta)

    sketches = choice.sketches(categories, multiplier, clients, lambda one: bits_of(one, trials or 1), powers_of_two=True)
    return _first_within(choice, sketches, calibrated)


def _first_within(choice: ItemSketchChoice, sketches: Iterable[ItemSketch], calibrated: Callable[[ItemSketch], Calibrated]) -> Calibrated:
    """Return the mechanism of the first sketch whose message is not longer than was asked for."""
    lengths = list[float]()
    for sketch in sketches:
        mechanism = calibrated(sketch)
        if choice.affords(mechanism.bits_per_client):
            return mechanism
        lengths.append(mechanism.bits_per_client)
    raise InfeasibleError(f"message_bits must be at least {math.ceil(min(lengths))} for that sketch and noise, got {choice.message_bits:g}")


def _bits(sketch: ItemSketch, largest: int, deviation: float) -> float:
    """Return the bits of a message, about, whose buckets reach `largest` with noise of a deviation, as `NoisySketchSum.modulus` has it."""
    room = deviation * math.sqrt(2 * math.log(2 * sketch.coordinates / WRAP_PROBABILITY))
    return sketch.coordinates * math.log2(largest * (2 if sketch.signed else 1) + 2 * room + 1)
