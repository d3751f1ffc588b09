"""How many rows and buckets a sketch of items needs: those with the least predicted error, or the fewest that are good enough."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...arguments import MOST_ITEMS, check_integer, check_probability, check_real
from ...design.frequencies.item_sketch import MOST_ROWS, ItemSketch, usual_rows
from ...design.frequencies.worst_pair import likely_excess
from ...errors import InfeasibleError

# Numbers of rows that are tried: more would take as much longer to decode.
TRIED_ROWS = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47, 63)
# Sketches that are as good, or as short, within this share differ by their largest error.
ALIKE = 1.05
LARGEST_SLACK = 1e6
LARGEST_MESSAGE = 1e15


@dataclass(frozen=True)
class PredictedError:
    """What frequencies are off by over noise and sketch, where the sum of squared frequencies is known.

    Attributes
    ----------
    squared : float
        Expected squared L2 error of all frequencies: exact for the noise that it is predicted from.
    largest : float
        What no frequency is off by more than, except with the failure probability that was asked for: Bernstein's inequality for
        collisions, each of which is at most 1/rows of the heaviest item, and noise as if it were Gaussian.
    """

    squared: float
    largest: float


def predicted_error(sketch: ItemSketch, noise: float, concentration: float, failure: float) -> PredictedError:
    """Return the error of a sketch whose decoded frequencies have the variance `noise` each, given the sketch.

    Parameters
    ----------
    sketch : ItemSketch
        The sketch.
    noise : float
        Variance of each frequency, of all clients together.
    concentration : float
        Sum of squared frequencies, or a bound on it, up to 1.
    failure : float
        Probability that `PredictedError.largest` may fail with.

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
    return PredictedError(
        sketch.categories * noise + (sketch.categories - 1) * collisions,
        math.sqrt(2 * exponent * (noise + collisions)) + exponent * heaviest / 3,
    )


@dataclass(frozen=True)
class ItemSketchChoice:
    """Which sketch is wanted.

    Attributes
    ----------
    rows, width : int or None
        Size of the sketch; None for what the predicted error asks for. A width of the number of items, or more, is a histogram of all.
    message_bits : float or None
        Bits of a message at most, for the least squared error; None for the shortest message within the slack.
    slack : float
        Largest squared error over that of a histogram of all items, from 1.
    concentration : float
        Sum of squared frequencies that is expected, up to 1, which is the worst: 1/d for uniform ones, 0.011 for Zipf's law on 10**5 items.
    failure : float
        Probability with which the largest error of all frequencies may be above its prediction.
    signed : bool
        Whether items have signs, where they are hashed.
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
            check_integer("width", self.width, low=2, high=MOST_ITEMS)
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
        """Return sketches for a number of items, the best first: with `message_bits` several, as estimated bits may turn out to be too few.

        Parameters
        ----------
        categories : int
            Number of items.
        multiplier : float
            Standard deviation over the L2 sensitivity of Gaussian noise within the target: what noise is predicted from.
        clients : int
            Number of clients.
        bits_of : callable
            Bits of a message, about, and not above what the mechanism takes.
        powers_of_two : bool
            Whether even a histogram of all items needs such a width.
        distance : float
            Squared distance of neighbours in each row: 2, or 1 where an item is compared with none.
        """
        candidates = list(self._candidates(categories, powers_of_two))
        if len(candidates) == 1:
            return candidates

        def error(sketch: ItemSketch) -> PredictedError:
            square = distance * (sketch.rows + (likely_excess(sketch) if distance == 2 else 0))
            noise = sketch.noise_share * square * (multiplier / clients) ** 2
            return predicted_error(sketch, noise, self.concentration, self.failure)

        errors, bits = [error(one) for one in candidates], [bits_of(one) for one in candidates]
        choices = range(len(candidates))
        if self.message_bits is not None:
            if min(bits) > self.message_bits:
                raise InfeasibleError(
                    f"message_bits must be at least {math.ceil(min(bits))} for a sketch of {categories} items of {clients} clients, "
                    f"got {self.message_bits:g}"
                )
            affordable = [one for one in choices if bits[one] <= self.message_bits]
            least = min(errors[one].squared for one in affordable)
            alike = sorted((one for one in affordable if errors[one].squared <= ALIKE * least), key=lambda one: errors[one].largest)
            others = sorted((one for one in affordable if errors[one].squared > ALIKE * least), key=lambda one: errors[one].squared)
            return [candidates[one] for one in (*alike, *others)]
        # The last candidate is the one without collisions, if nothing was asked for.
        allowed = self.slack * errors[-1].squared
        enough = [one for one in choices if errors[one].squared <= allowed] or [min(choices, key=lambda one: errors[one].squared)]
        fewest = min(bits[one] for one in enough)
        short = [one for one in enough if bits[one] <= ALIKE * fewest]
        return [candidates[min(short, key=lambda one: errors[one].largest)]]

    def _candidates(self, categories: int, powers_of_two: bool) -> Iterator[ItemSketch]:
        """Yield sketches that are possible, a histogram of all items last."""
        direct = 1 << (categories - 1).bit_length() if powers_of_two else categories
        if self.width is not None:
            hashed = self.width < categories
            rows = self.rows or (usual_rows(categories, self.failure) if hashed else 1)
            yield ItemSketch(categories, rows, self.width, self.seed if hashed else 0, signed=self.signed and hashed)
            return
        for rows in TRIED_ROWS if self.rows is None else (self.rows,):
            width = 2
            while width < categories and rows * width <= MOST_ITEMS:
                yield ItemSketch(categories, rows, width, self.seed, signed=self.signed)
                width *= 2
        if self.rows in (None, 1):
            yield ItemSketch(categories, 1, direct, signed=False)
