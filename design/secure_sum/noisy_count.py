"""A noisy count of the clients that answer yes, by a secure sum.

Adaptive clipping uses it to count norms within the clip norm.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...solvers.divergences.discrete_gaussian_divergence import MOST_CLIENTS
from ..contracts.privacy import Privacy
from ..noise.discrete_gaussian import LARGEST_SIGMA, discrete_gaussian_variance, sample_discrete_gaussian
from ..noise.random_words import WordsLike, word_source
from .modular_arithmetic import aggregate_residues, centred_representatives, messages_modulo
from .noisy_sum import NoisySum, noisy_sum_privacy

LEAST_SIGMA = 1e-3
MOST_STEPS = 10**6
# Least noise of a client, in steps, with which log-ratios of the sum to discrete Gaussian noise are below 1e-30 (`discrete_gaussian_tau`).
SMOOTH_SIGMA = 3.0
# Bound on the probability that the sum modulo 2**bits wraps.
WRAP_PROBABILITY = 1e-9


@dataclass(frozen=True)
class NoisyCount:
    """Clients send plus or minus a number with discrete Gaussian noise; the server sees the sum.

    Messages are modulo 2**bits. The value 2 b - 1 in place of the bit b halves the sensitivity in units of the count, as a client without
    data sends noise alone. The steps of the value are so fine that the sum of the clients' noise is as private as Gaussian noise, also over
    many rounds.

    Attributes
    ----------
    clients : int
        Number of clients that add noise, from 1 to 10**9. The guarantee counts the noise of all of them.
    local_sigma : float
        Parameter of each client's noise, in steps; from 0.001 to 10**12.
    steps : int
        Size of a client's message before noise; from 1 to 10**6.

    Examples
    --------
    >>> count = NoisyCount.of_deviation(1000, 50.0)
    >>> count.bits, round(count.deviation, 6), round(count.privacy().epsilon(1e-5), 4)
    (12, 50.0, 0.0272)
    >>> messages = count.encode(np.arange(1000) < 700, np.random.default_rng(0))
    >>> messages.dtype, round(count.fraction(messages.sum(keepdims=True)), 2)
    (dtype('uint16'), 0.65)
    """

    clients: int
    local_sigma: float
    steps: int = 1

    def __post_init__(self) -> None:
        """Check the fields."""
        check_integer("clients", self.clients, low=1, high=MOST_CLIENTS)
        check_integer("steps", self.steps, low=1, high=MOST_STEPS)
        object.__setattr__(self, "local_sigma", check_real("local_sigma", self.local_sigma, low=LEAST_SIGMA, high=LARGEST_SIGMA))

    @classmethod
    def of_deviation(cls, clients: int, deviation: float) -> "NoisyCount":
        """Return the count with a given standard deviation of its noise, in clients.

        The count's steps make each client's noise at least 3 steps.
        """
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        sigma = 2 * check_real("deviation", deviation, low=1e-5 * math.sqrt(clients), high=1e15) / math.sqrt(clients)
        steps = max(1, math.ceil(SMOOTH_SIGMA / sigma))
        return cls(clients, steps * sigma, steps)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in the count, in clients."""
        return math.sqrt(self.clients * discrete_gaussian_variance(self.local_sigma)) / (2 * self.steps)

    @property
    def bits(self) -> int:
        """Fewest bits of a message with which the sum wraps with probability at most 1e-9.

        The number is log2(2 clients) and a few more bits.
        """
        # A sum of discrete Gaussians is sub-Gaussian with their parameters (Canonne, Kamath, Steinke 2020).
        room = math.sqrt(2 * self.clients * math.log(2 / WRAP_PROBABILITY)) * self.local_sigma
        return 1 + math.ceil(math.log2(self.clients * self.steps + room + 1))

    def encode(self, answers: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return the messages of clients' answers, yes or no, shape (clients of the chunk,)."""
        bits = np.asarray(answers)
        if bits.dtype != bool or bits.ndim != 1 or bits.size == 0:
            raise ValueError(f"answers must be truth values, shape (clients,), of at least one client, got {bits.dtype} and {bits.shape}")
        noise = sample_discrete_gaussian(self.local_sigma, bits.shape, word_source(random_words))
        return messages_modulo(self.steps * (2 * bits.astype(np.int64) - 1) + noise, 1 << self.bits)

    def fraction(self, aggregate: ArrayLike) -> float:
        """Return the noisy fraction of yes from the sum of messages; it may be outside [0, 1].

        The aggregate of all clients has the shape (1,).
        """
        modulus = 1 << self.bits
        total = int(centred_representatives(aggregate_residues(aggregate, 1, modulus), modulus)[0])
        return 0.5 + total / (2 * self.clients * self.steps)

    def privacy(self, adjacency: str = "add-or-remove-one") -> Privacy:
        """Return the privacy of one count."""
        sensitivity = float(self.steps * (2 if adjacency == "replace-one" else 1))
        return noisy_sum_privacy(self.clients, NoisySum(self.local_sigma, sensitivity, 1), adjacency)
