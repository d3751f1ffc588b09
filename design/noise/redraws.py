"""A bound on how often a sampler may draw again: a source of words that makes it do so more often is not random."""

from dataclasses import dataclass

MOST_REDRAWS = 1_000


@dataclass
class Redraws:
    """Counts the turns of a loop that draws until something fits.

    Each turn of such a loop ends it, for each thing that is drawn, with a probability of a tenth or more: a thousand of them have next to
    no probability, and a source whose words are all the same would have no end of them.
    """

    most: int = MOST_REDRAWS
    count: int = 0

    def another(self) -> None:
        """Count a turn; ValueError if there have been too many."""
        self.count += 1
        if self.count > self.most:
            raise ValueError(f"words must be random, got a source that a sampler refused {self.most} times in a row")
