"""Pairs of compression rate and bit width that a paper chose by hand, with the bits for each parameter that they come to.

Chen, Choquette-Choo, Kairouz, Suresh 2022, *The fundamental price of secure aggregation in differentially private federated learning*.
"""

from dataclasses import asdict, dataclass

import pandas as pd
from scipy.special import ndtr

from ....arguments import check_integer, check_real

LARGEST_RATE = 1e9
MOST_BITS = 62
# Standard deviations of a sum that half of the modulus holds, in the paper's trainings.
DEVIATIONS = 4.0


@dataclass(frozen=True)
class CompressionSetting:
    """One setting of the paper.

    Attributes
    ----------
    source : str
        The table or figure.
    task : str
        What is learned.
    rate : float
        Compression rate r: parameters over coordinates of a sketch.
    bits : int
        Bits b of a coordinate of the secure sum.
    noise_multiplier : float or None
        Standard deviation of the noise over the clip norm; None where the text does not say.
    accuracy : float or None
        What is reported, in per cent.
    """

    source: str
    task: str
    rate: float
    bits: int
    noise_multiplier: float | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_real("rate", self.rate, low=1.0, high=LARGEST_RATE)
        check_integer("bits", self.bits, low=1, high=MOST_BITS)

    @property
    def bits_per_parameter(self) -> float:
        """Bits over rate."""
        return self.bits / self.rate


NEXT_WORD, FEMNIST = "StackOverflow, next word", "F-EMNIST"
SETTINGS = (
    CompressionSetting("Table 1", NEXT_WORD, 1, 10, 0.3, 21.90),
    CompressionSetting("Table 1", NEXT_WORD, 5, 12, 0.3, 21.68),
    CompressionSetting("Table 1", NEXT_WORD, 1, 10, 0.5, 21.21),
    CompressionSetting("Table 1", NEXT_WORD, 5, 12, 0.5, 21.11),
    CompressionSetting("Table 1", NEXT_WORD, 10, 12, 0.5, 20.74),
    CompressionSetting("Figure 3", FEMNIST, 50, 12, 0.5),
    # Section 7 states 0.27 bits for the best rate at 16 bits; the rate is the one that has them.
    CompressionSetting("Section 7", FEMNIST, 60, 16, 0.5),
    CompressionSetting("Figure 5a", FEMNIST, 10, 12, 0.1),
    CompressionSetting("Figure 5b", FEMNIST, 20, 14, 0.3),
)


def modular_clip_probability(deviations: float = DEVIATIONS) -> float:
    """Return 2 (1 - Phi(k)): how often a Gaussian coordinate of the sum is outside of a modulus of k standard deviations either way.

    Examples
    --------
    >>> f"{modular_clip_probability():.3g}"
    '6.33e-05'
    """
    return 2 * float(ndtr(-check_real("deviations", deviations, low=0.0, high=100.0)))


def compression_settings() -> pd.DataFrame:
    """Return the paper's settings as a tidy table, with the columns ``bits_per_parameter`` and ``modular_clip_probability`` beside.

    Examples
    --------
    >>> compression_settings()["bits_per_parameter"].round(2).tolist()
    [10.0, 2.4, 10.0, 2.4, 1.2, 0.24, 0.27, 1.2, 0.7]
    """
    own = {"modular_clip_probability": modular_clip_probability()}
    return pd.DataFrame([asdict(setting) | {"bits_per_parameter": setting.bits_per_parameter} | own for setting in SETTINGS])
