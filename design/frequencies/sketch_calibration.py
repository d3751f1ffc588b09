"""Calibration of sketches for frequencies in a secure sum: least error within a budget."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from ...arguments import MOST_CATEGORIES, check_integer, check_probability, check_real
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import SMALLEST_SIGMA
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, MOST_CLIENTS, MOST_TRIALS
from ...solvers.numerics.bisection import first_true
from ..contracts.calibration import calibrate_parameter
from ..contracts.task import Budget
from ..local.vector_gaussian import calibrate_noise_multiplier
from ..noise.discrete_gaussian import LARGEST_SIGMA
from ..secure_sum.poisson_binomial_mechanism import SMALLEST_THETA
from .item_sketch import MOST_ROWS, ItemSketch, usual_rows
from .noisy_sketch import (
    LARGEST_VARIANCE,
    LEAST_VARIANCE,
    WRAP_PROBABILITY,
    SketchedDiscreteGaussianFrequencies,
    SketchedSkellamFrequencies,
    discrete_gaussian_items_privacy,
    skellam_items_privacy,
    squared_distance,
)
from .sketched_frequencies import SketchedFrequencies
from .sketched_poisson_binomial import SketchedPoissonBinomialFrequencies, differing_coordinates, sketched_tosses_privacy
from .worst_pair import likely_excess

# Numbers of rows that the calibration tries: more rows would take proportionally longer to decode.
TRIED_ROWS = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47, 63)
# Factor within which squared errors, or lengths, of sketches count as equal; such sketches are compared by their largest error.
ALIKE = 1.05
LARGEST_SLACK = 1e6
LARGEST_MESSAGE = 1e15
# Least noise of one client, in steps, that makes a sum nearly discrete Gaussian: tau of a million clients is then below 1e-9
# (`discrete_gaussian_tau`).
SMOOTH_SIGMA = 1.5
# Relative amount by which more steps, or tosses, must lower the variance to be useful.
WORTHWHILE = 0.01
# Variance of Skellam noise above which finer steps no longer bring it closer to Gaussian noise.
GAUSSIAN_VARIANCE = 2.0**15
MOST_STEPS = 2**20
# Largest number of tosses of all clients for a coordinate; accounts of more tosses take long.
MOST_TOSSES = 2**24
# The theta above which more tosses may be useful even with many clients, and the number of clients that counts as few.
NEAR_CERTAIN, FEW_CLIENTS = 0.4, 1000

Calibrated = TypeVar("Calibrated", bound=SketchedFrequencies)


@dataclass(frozen=True)
class SketchError:
    """The error of frequencies over noise and sketch, for a given sum of squared frequencies.

    Attributes
    ----------
    squared : float
        Expected squared L2 error of all frequencies, exact for the given noise.
    largest : float
        Bound on the error of every frequency, except with the requested failure probability. It follows from Bernstein's inequality for
        collisions, each of which is at most 1/rows of the heaviest item, and treats noise as Gaussian.
    """

    squared: float
    largest: float


def predicted_error(sketch: ItemSketch, noise: float, concentration: float, failure: float) -> SketchError:
    """Return the error of a sketch from the variance `noise` of each decoded frequency.

    Parameters
    ----------
    sketch : ItemSketch
        The sketch.
    noise : float
        Variance of each frequency, of all clients together.
    concentration : float
        Sum of squared frequencies, or a bound on it, up to 1.
    failure : float
        Probability with which `SketchError.largest` may fail.

    Examples
    --------
    >>> error = predicted_error(ItemSketch(100_000, 15, 1024), 1e-8, concentration=0.01, failure=0.05)
    >>> round(error.squared, 4), round(error.largest, 4)
    (0.0661, 0.0383)
    """
    collisions = sketch.collision_share * concentration
    exponent = math.log(2 * sketch.categories / failure)
    heaviest = math.sqrt(concentration) / sketch.rows if collisions else 0.0
    if not sketch.signed:
        heaviest *= sketch.width / (sketch.width - 1)
    return SketchError(
        sketch.categories * noise + (sketch.categories - 1) * collisions,
        math.sqrt(2 * exponent * (noise + collisions)) + exponent * heaviest / 3,
    )


@dataclass(frozen=True)
class ItemSketchChoice:
    """The choice of a sketch of items.

    Attributes
    ----------
    rows, width : int or None
        Size of the sketch; None for the choice by predicted error. With a width of at least the number of items, the sketch is a histogram
        of all items.
    message_bits : float or None
        Largest number of bits of a message, for the least squared error; None for the shortest message within the slack.
    slack : float
        Largest squared error over that of a histogram of all items, from 1.
    concentration : float
        Expected sum of squared frequencies, up to 1 in the worst case; it is 1/d for uniform frequencies, and 0.011 for Zipf's law on 10**5
        items.
    failure : float
        Probability with which the largest error of all frequencies may be above its prediction.
    signed : bool
        Whether hashed items have signs.
    seed : int
        Public seed.
    """

    rows: int | None = None
    width: int | None = None
    message_bits: float | None = None
    slack: float = 2.0
    concentration: float = 1.0
    failure: float = 0.05
    signed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the fields that the sketch does not check."""
        if self.rows is not None:
            check_integer("rows", self.rows, low=1, high=MOST_ROWS)
        if self.width is not None:
            check_integer("width", self.width, low=2, high=MOST_CATEGORIES)
        if self.message_bits is not None:
            check_real("message_bits", self.message_bits, low=1.0, high=LARGEST_MESSAGE)
        check_real("slack", self.slack, low=1.0, high=LARGEST_SLACK)
        check_real("concentration", self.concentration, low=1e-12, high=1.0)
        check_probability("failure", self.failure)

    def affords(self, bits: float) -> bool:
        """Return whether a message of this length is short enough."""
        return self.message_bits is None or bits <= self.message_bits

    def sketches(
        self,
        categories: int,
        multiplier: float,
        clients: int,
        bits_of: Callable[[ItemSketch], float],
        *,
        powers_of_two: bool = False,
        distance: float = 2.0,
    ) -> list[ItemSketch]:
        """Return sketches for a number of items, best sketches first.

        With `message_bits` there are several sketches, as estimated bits may turn out to be too few.

        Parameters
        ----------
        categories : int
            Number of items.
        multiplier : float
            Standard deviation, over the L2 sensitivity, of Gaussian noise within the target; the predicted noise follows from it.
        clients : int
            Number of clients.
        bits_of : callable
            Approximate bits of a message, at most the mechanism's bits.
        powers_of_two : bool
            Whether even a histogram of all items needs a width that is a power of two.
        distance : float
            Squared distance of neighbours in each row: 2, or 1 for an added or removed item.
        """
        candidates = list(self._candidates(categories, powers_of_two))
        if len(candidates) == 1:
            return candidates

        def error(sketch: ItemSketch) -> SketchError:
            square = distance * (sketch.rows + (likely_excess(sketch) if distance == 2 else 0))
            noise = sketch.noise_share * square * (multiplier / clients) ** 2
            return predicted_error(sketch, noise, self.concentration, self.failure)

        errors, bits = [error(candidate) for candidate in candidates], [bits_of(candidate) for candidate in candidates]
        choices = range(len(candidates))
        if self.message_bits is not None:
            if min(bits) > self.message_bits:
                raise InfeasibleError(
                    f"message_bits must be at least {math.ceil(min(bits))} for a sketch of {categories} items of {clients} clients, "
                    f"got {self.message_bits:g}"
                )
            affordable = [place for place in choices if bits[place] <= self.message_bits]
            least = min(errors[place].squared for place in affordable)
            alike = sorted(
                (place for place in affordable if errors[place].squared <= ALIKE * least), key=lambda place: errors[place].largest
            )
            others = sorted(
                (place for place in affordable if errors[place].squared > ALIKE * least), key=lambda place: errors[place].squared
            )
            return [candidates[place] for place in (*alike, *others)]
        # If no size was requested, the last candidate has no collisions.
        allowed = self.slack * errors[-1].squared
        enough = [place for place in choices if errors[place].squared <= allowed] or [min(choices, key=lambda place: errors[place].squared)]
        fewest = min(bits[place] for place in enough)
        short = [place for place in enough if bits[place] <= ALIKE * fewest]
        return [candidates[min(short, key=lambda place: errors[place].largest)]]

    def _candidates(self, categories: int, powers_of_two: bool) -> Iterator[ItemSketch]:
        """Yield possible sketches, a histogram of all items last."""
        direct = 1 << (categories - 1).bit_length() if powers_of_two else categories
        if self.width is not None:
            hashed = self.width < categories
            rows = self.rows or (usual_rows(categories, self.failure) if hashed else 1)
            yield ItemSketch(categories, rows, self.width, self.seed if hashed else 0, signed=self.signed and hashed)
            return
        for rows in TRIED_ROWS if self.rows is None else (self.rows,):
            width = 2
            while width < categories and rows * width <= MOST_CATEGORIES:
                yield ItemSketch(categories, rows, width, self.seed, signed=self.signed)
                width *= 2
        if self.rows in (None, 1):
            yield ItemSketch(categories, 1, direct, signed=False)


def calibrate_discrete_gaussian_frequencies(
    categories: int, clients: int, budget: Budget, choice: ItemSketchChoice
) -> SketchedDiscreteGaussianFrequencies:
    """Return sketches with the least discrete Gaussian noise within a budget.

    An item adds enough steps to make each client's noise 1.5 steps or more: with less noise, the sum would not be like a Gaussian.

    Raises
    ------
    InfeasibleError
        If the budget is out of reach, or the message too short; the message states the requirement.

    Examples
    --------
    >>> mechanism = calibrate_discrete_gaussian_frequencies(1000, 10_000, Budget(1.0, 1e-5, "replace-one"), ItemSketchChoice())
    >>> mechanism.sketch.direct, mechanism.steps, 0 <= 1.0 - mechanism.guarantee.epsilon <= 1e-6
    (True, 29, True)
    """
    adjacency, hiding = budget.adjacency, budget.survivors(clients)
    multiplier = calibrate_noise_multiplier(budget, "secure-sum")
    # The clients that remain add this noise, and all clients more.
    whole = multiplier * math.sqrt(clients / hiding)

    def steps_of(square: int) -> int:
        return max(1, math.ceil(SMOOTH_SIGMA * math.sqrt(hiding / square) / multiplier))

    def bits_of(sketch: ItemSketch) -> float:
        square = sketch.rows if adjacency != "replace-one" else 2 * sketch.rows
        return _bits(sketch, clients * steps_of(square), whole * math.sqrt(square) * steps_of(square))

    def calibrated(sketch: ItemSketch) -> SketchedDiscreteGaussianFrequencies:
        square = squared_distance(sketch, adjacency)
        steps = steps_of(square)

        def epsilon_of(inverse: float) -> float:
            privacy = discrete_gaussian_items_privacy(hiding, sketch.rows, square, steps, 1 / inverse, adjacency)
            return privacy.epsilon(budget.delta, adjacency, budget.rounds, budget.sampling, account=budget.method)

        start = math.sqrt(hiding / square) / (multiplier * steps)
        low, high = 1 / LARGEST_SIGMA, 1 / SMALLEST_SIGMA
        inverse = calibrate_parameter(epsilon_of, budget, low=low, high=high, name="one over local_sigma", start=start)
        return SketchedDiscreteGaussianFrequencies(
            sketch, clients, steps, 1 / inverse, budget.delta, adjacency, budget.stated_survivors(clients)
        )

    sketches = choice.sketches(categories, whole, clients, bits_of, distance=2.0 if adjacency == "replace-one" else 1.0)
    return _first_within(choice, sketches, calibrated)


def calibrate_skellam_frequencies(categories: int, clients: int, budget: Budget, choice: ItemSketchChoice) -> SketchedSkellamFrequencies:
    """Return sketches with the least Skellam noise within a budget.

    The number of steps that an item adds is a power of two. It is the least number whose variance is within a hundredth of the variance
    with the most steps, or fewer if the message would be too long. Raises the errors of `calibrate_discrete_gaussian_frequencies`.

    Examples
    --------
    >>> mechanism = calibrate_skellam_frequencies(1000, 10_000, Budget(1.0, 1e-5, "replace-one"), ItemSketchChoice())
    >>> mechanism.sketch.direct, mechanism.steps, 0 <= 1.0 - mechanism.guarantee.epsilon <= 1e-6
    (True, 32, True)
    """
    adjacency, hiding = budget.adjacency, budget.survivors(clients)
    multiplier = calibrate_noise_multiplier(budget, "secure-sum")
    # The clients that remain add this noise, and all clients more.
    whole = multiplier * math.sqrt(clients / hiding)

    # The search starts with enough steps to sample a client's noise, and ends where the sum's noise is like Gaussian noise.
    def fewest_of(square: int) -> int:
        return 1 << math.ceil(math.log2(max(1.0, math.sqrt(4 * LEAST_VARIANCE * hiding / square) / multiplier)))

    def finest_of(square: int) -> int:
        return min(MOST_STEPS, 1 << max(0, math.ceil(math.log2(GAUSSIAN_VARIANCE / square) / 2 - math.log2(multiplier))))

    def bits_of(sketch: ItemSketch) -> float:
        square = sketch.rows if adjacency != "replace-one" else 2 * sketch.rows
        steps = finest_of(square) if choice.message_bits is None else fewest_of(square)
        return _bits(sketch, clients * steps, whole * math.sqrt(square) * steps)

    def calibrated(sketch: ItemSketch) -> SketchedSkellamFrequencies:
        square = squared_distance(sketch, adjacency)

        @cache
        def variance(steps: int) -> float:
            def epsilon_of(inverse: float) -> float:
                privacy = skellam_items_privacy(hiding, sketch.rows, square, steps, 1 / inverse, adjacency)
                return privacy.epsilon(budget.delta, adjacency, budget.rounds, budget.sampling, account=budget.method)

            start = hiding / (multiplier * steps) ** 2 / square
            low, high = 1 / LARGEST_VARIANCE, 1 / LEAST_VARIANCE
            return 1 / calibrate_parameter(epsilon_of, budget, low=low, high=high, name="one over local_variance", start=start)

        def mechanism(doublings: int) -> SketchedSkellamFrequencies:
            steps = fewest << doublings
            return SketchedSkellamFrequencies(
                sketch, clients, steps, variance(steps), budget.delta, adjacency, budget.stated_survivors(clients)
            )

        # With more steps the variance falls, as finer noise is more like Gaussian noise.
        fewest = finest = fewest_of(square)
        while finest < finest_of(square):
            finest *= 2
        enough = (1 + WORTHWHILE) * variance(finest) / finest**2
        most = (finest // fewest).bit_length() - 1
        doublings = first_true(0, most, lambda doublings: variance(fewest << doublings) / (fewest << doublings) ** 2 <= enough)
        while doublings and not choice.affords(mechanism(doublings).bits_per_client):
            doublings -= 1
        return mechanism(doublings)

    sketches = choice.sketches(categories, whole, clients, bits_of, distance=2.0 if adjacency == "replace-one" else 1.0)
    return _first_within(choice, sketches, calibrated)


def calibrate_sketched_tosses(
    categories: int, clients: int, budget: Budget, choice: ItemSketchChoice, trials: int | None = None
) -> SketchedPoissonBinomialFrequencies:
    """Return the sketched Poisson-binomial mechanism with the largest theta within a budget.

    Without a number of trials, the search starts from one trial and doubles the number as long as that lowers the variance by a hundredth
    or more.

    Raises
    ------
    InfeasibleError
        If the budget is out of reach, or the message too short; the message states the requirement.

    Examples
    --------
    >>> choice = ItemSketchChoice(rows=5, width=128, signed=True)
    >>> mechanism = calibrate_sketched_tosses(1000, 10_000, Budget(1.0, 1e-5, "replace-one"), choice)
    >>> mechanism.trials, round(mechanism.theta, 3), mechanism.differing_coordinates, 0 <= 1.0 - mechanism.guarantee.epsilon <= 1e-6
    (1, 0.251, 448, True)
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    hiding = budget.survivors(clients)
    multiplier = calibrate_noise_multiplier(budget, "secure-sum")
    # The clients that remain add this noise, and all clients more.
    whole = multiplier * math.sqrt(clients / hiding)

    def bits_of(sketch: ItemSketch, tosses: int) -> float:
        return sketch.coordinates * math.log2(tosses * clients + 1)

    def variance(tosses: int, theta: float) -> float:
        return (0.25 - theta**2) / (tosses * theta**2)

    def calibrated(sketch: ItemSketch) -> SketchedPoissonBinomialFrequencies:
        differing = differing_coordinates(sketch)

        def largest_theta(tosses: int) -> float:
            def epsilon_of(theta: float, *, first_cell: bool = False) -> float:
                privacy = sketched_tosses_privacy(hiding, tosses, theta, differing, first_cell=first_cell)
                return privacy.epsilon(budget.delta, "replace-one", budget.rounds, budget.sampling, account=budget.method)

            # Divergences are about 8 a theta^2 L / (n (1 - 4 theta^2)) for each coordinate, those of Gaussian noise a / (2 z^2) in all.
            start = math.sqrt(hiding / (tosses * differing)) / (4 * multiplier)
            start /= math.sqrt(1 + 4 * start**2)
            if start > NEAR_CERTAIN and epsilon_of(LARGEST_THETA) <= budget.epsilon:
                return LARGEST_THETA
            # The first cell is usually the worst cell; its theta then needs only one evaluation of all cells.
            for guess in (lambda theta: epsilon_of(theta, first_cell=True), epsilon_of):
                start = calibrate_parameter(guess, budget, low=SMALLEST_THETA, high=LARGEST_THETA, name="theta", start=start)
            return start

        number = 1 if trials is None else trials
        theta = largest_theta(number)
        while trials is None and 2 * number <= min(MOST_TRIALS, max(1, MOST_TOSSES // clients)):
            # Variance times divergence does not depend on the number of tosses for many clients' sums.
            if (clients > FEW_CLIENTS and theta <= NEAR_CERTAIN) or not choice.affords(bits_of(sketch, 2 * number)):
                break
            more = largest_theta(2 * number)
            if variance(2 * number, more) > (1 - WORTHWHILE) * variance(number, theta):
                break
            number, theta = 2 * number, more
        return SketchedPoissonBinomialFrequencies(sketch, clients, number, theta, budget.delta, budget.stated_survivors(clients))

    sketches = choice.sketches(categories, whole, clients, lambda sketch: bits_of(sketch, trials or 1), powers_of_two=True)
    return _first_within(choice, sketches, calibrated)


def _first_within(choice: ItemSketchChoice, sketches: Iterable[ItemSketch], calibrated: Callable[[ItemSketch], Calibrated]) -> Calibrated:
    """Return the mechanism of the first sketch whose message is short enough."""
    lengths = list[float]()
    for sketch in sketches:
        mechanism = calibrated(sketch)
        if choice.affords(mechanism.bits_per_client):
            return mechanism
        lengths.append(mechanism.bits_per_client)
    raise InfeasibleError(f"message_bits must be at least {math.ceil(min(lengths))} for that sketch and noise, got {choice.message_bits:g}")


def _bits(sketch: ItemSketch, largest: int, deviation: float) -> float:
    """Return approximate bits of a message, by the modulus of `NoisySketchSum`."""
    room = deviation * math.sqrt(2 * math.log(2 * sketch.coordinates / WRAP_PROBABILITY))
    return sketch.coordinates * math.log2(largest * (2 if sketch.signed else 1) + 2 * room + 1)
