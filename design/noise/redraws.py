"""A limit on the number of a sampler's redraws.

A source of words that exceeds the limit is not random.
"""

from dataclasses import dataclass

MOST_REDRAWS = 1_000


@dataclass
class Redraws:
    """Counter of the turns of a loop that draws until a draw is accepted.

    Each turn ends such a loop, for each draw, with a probability of a tenth or more: a thousand turns have negligible probability, and a
    source that repeats the same word would never end the loop.
    """

    most: int = MOST_REDRAWS
    count: int = 0

    def another(self) -> None:
        """Count a turn; raise ValueError after too many turns."""
        self.count += 1
        if self.count > self.most:
            raise ValueError(f"words must be random, got a source that a sampler refused {self.most} times in a row")
