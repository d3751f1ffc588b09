"""Poisson private representation: an exact simulation of PrivUnit by public points.

A message is the number of a public point.

Liu, Chen, Özgür, Li 2024, *Universal exact compression of differentially private mechanisms*.
`docs/proofs/random-coding.md` has the proofs.
`TailPoints` are points of a Poisson process beyond a horizon: only points with rare marks are drawn, and the others are counted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CLIENTS, check_integer, check_real
from ....arrays import FloatArray
from ...contracts.accounts import pure_privacy
from ...contracts.error import VarianceParts
from ...contracts.mechanism import EPSILON_LOW, VectorMechanism
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...noise.random_words import WordsLike, WordSource, word_source
from ...noise.redraws import MOST_REDRAWS, Redraws
from ...relative_entropy.shared_randomness import SharedNormals
from .privunit import BestCap
from .random_direction import direction_variance, random_directions

# Smallest means at which Poisson numbers come from transformed rejection, and from rounded normal numbers, which are closer than 1e-4.
TRANSFORMED_FROM, NORMAL_FROM = 10.0, 2.0**26

SMALLEST_ALPHA, LARGEST_ALPHA = 1.25, 8.0
# Largest exponent, as the time grows with e to the power of the exponent.
LARGEST_CODED = 10.0
# Number of public points, counted from 0; later points count as point 0.
MOST_POINTS = 2**62
# Largest number of batches of arrivals up to the horizon; a second batch is rare.
MOST_EXTENSIONS = 100
STREAM_POINTS = 2**32
# The client examines every arrival up to the time EXAMINED times the largest density, plus FEW.
EXAMINED, FEW = 4.0, 16.0


@dataclass(frozen=True)
class PoissonRepresentationMechanism(VectorMechanism):
    """Every client sends a public sphere point's number; the point has PrivUnit's law.

    The client draws arrival times T_1 < T_2 < ... of a Poisson process and numbers the public points z_i by them. With r the density of
    PrivUnit at `coded_epsilon` over the uniform density (`BestCap`), it sends i with probability in proportion to (r(z_i) / T_i)**alpha:
    z_i then has the density r exactly. Given the points, two vectors' weights differ by at most a factor of e^(alpha coded_epsilon), and so
    do their sums: **2 alpha coded_epsilon pure privacy for every seed**. The paper's theorem for (epsilon, delta) needs an alpha that
    hardly exceeds 1, and very long messages; the mechanism does not use it.

    `bits_of_messages` codes a number k by a prefix code for probabilities in proportion to k**-power.

    Attributes
    ----------
    epsilon : float
        Proven privacy parameter, from 1e-3; at most 20 alpha.
    ball : NormBall
        L2 ball of the vectors.
    alpha : float
        Exponent from 1.25 to 8: a smaller alpha reveals less and takes longer messages.

    Examples
    --------
    >>> mechanism = PoissonRepresentationMechanism(4.0, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.coded_epsilon, 9), round(mechanism.variance_bound, 2), round(mechanism.bits_per_client, 2)
    (1.0, 1263.35, 4.4)
    """

    epsilon: float
    ball: NormBall
    alpha: float = 2.0
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "alpha", check_real("alpha", self.alpha, low=SMALLEST_ALPHA, high=LARGEST_ALPHA))
        largest = 2 * self.alpha * LARGEST_CODED
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=largest))
        check_ball(self.ball, "Poisson private representation", 2)

    @property
    def coded_epsilon(self) -> float:
        """Privacy parameter of the simulated PrivUnit, at most 10, rounded down."""
        return self.epsilon / (2 * self.alpha) * (1 - 1e-15)

    @cached_property
    def cap(self) -> BestCap:
        """Cap of the simulated mechanism."""
        return BestCap(self.ball.dimension, self.coded_epsilon)

    @cached_property
    def mean_log_number(self) -> float:
        """Upper bound on the mean of log2 of the number sent, counted from 1."""
        # The sent point has the arrival time r(z) B V**(-1/alpha), with z from PrivUnit, V of the Gamma law of parameter 1 - 1/alpha and B
        # exponential of mean 1/Gamma(1 - 1/alpha), all independent, and at most a Poisson number of points before it.
        shape = 1 - 1 / self.alpha
        logs = np.arange(-40 / shape, 5, 0.01)
        weights = np.exp(shape * logs - np.exp(logs))
        keep = self.cap.keep_probability
        total = 0.0
        for share, density in ((keep, self.cap.density), (1 - keep, self.cap.density * math.exp(-self.coded_epsilon))):
            inverse = math.gamma(shape) / density * np.exp(logs / self.alpha)
            # E log(1 + s B) = e^x E_1(x) with x = 1/s is at most s.
            near = np.minimum(inverse, 500.0)
            means = np.where(inverse < 500, np.exp(near) * scipy.special.exp1(near), 1 / inverse)
            total += share * float(weights @ means / weights.sum())
        return total / math.log(2) * (1 + 1e-9)

    @property
    def power(self) -> float:
        """Exponent of the probabilities that the prefix code assumes."""
        return 1 + 1 / max(self.mean_log_number, 1e-3)

    @property
    def bits_per_client(self) -> float:
        """Upper bound on the mean length of a message.

        The seed is public randomness and costs nothing.
        """
        return self.power * self.mean_log_number + math.log2(scipy.special.zeta(self.power)) + 1

    def bits_of_messages(self, messages: NDArray[Any]) -> FloatArray:
        """Return the length of each message, in bits.

        The length is -log2 of the code's probability of the number, rounded up (Kraft's inequality).
        """
        numbers = messages[:, 1].astype(float) + 1
        return np.asarray(np.ceil(self.power * np.log2(numbers) + math.log2(scipy.special.zeta(self.power))))

    def privacy(self) -> Privacy:
        """Return the pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of PrivUnit at the ball's centre."""
        return self.ball.clip_norm**2 * (1 + self.cap.excess)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - ||x||**2`` for each vector.

        The variance is exact, over seeds and numbers.
        """
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance by rounding to the sphere, ``clip_norm**2 - ||x||**2``, and noise."""
        return VarianceParts.split(self.variance(vectors), rounding=direction_variance(self.ball, vectors))

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.uint64]:
        """Draw the public seed and a point's number for each client, shape (clients, 2).

        Numbers start from 0.
        """
        random_words = word_source(random_words)
        directions = random_directions(self.ball, vectors, random_words)
        seeds = random_words(len(directions))
        numbers = [self._draw(direction, seed, random_words) for direction, seed in zip(directions, seeds.tolist(), strict=True)]
        return np.column_stack([seeds, np.array(numbers, dtype=np.uint64)])

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the points that were sent, shape (dimension,).

        The server generates no other points.
        """
        if messages.ndim != 2 or messages.shape[1] != 2:
            raise ValueError(f"messages must have the shape (clients, 2), got {messages.shape}")
        total = np.zeros(self.ball.dimension)
        for seed, number in messages.tolist():
            total += self._point(seed, check_integer("number", number, low=0, high=MOST_POINTS - 1))
        return total

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded points, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.cap.mean * clients)))

    def _point(self, seed: int, number: int) -> FloatArray:
        point = SharedNormals(seed, self.ball.dimension, number // STREAM_POINTS).vector(number % STREAM_POINTS).astype(float)
        return np.asarray(point / np.linalg.norm(point))

    def _draw(self, direction: FloatArray, seed: int, random_words: WordSource) -> int:
        """Return the number of the point with the least T V**(1/alpha) / r(z), V exponential.

        The point wins an exponential race of the weights.
        """
        high, low = self.cap.density, self.cap.density * math.exp(-self.coded_epsilon)
        horizon = EXAMINED * high + FEW
        times = _arrivals(horizon, random_words)
        points = SharedNormals(seed, self.ball.dimension).vectors(0, len(times)).astype(float)
        densities = np.where(points @ direction >= self.cap.mean * np.linalg.norm(points, axis=1), high, low)
        races = times * exponentials(random_words, len(times)) ** (1 / self.alpha) / densities
        chosen = int(np.argmin(races))
        best = float(races[chosen])
        # Later points that could still win the race are few, and have small probabilities. The client only counts all other points.
        for later in TailPoints(max(horizon, float(times[0])), best * high, self.alpha).draw(random_words):
            number = len(times) + later.before
            if number >= MOST_POINTS:
                # Point 0 then stands for these points too, which keeps the privacy.
                number = 0
            density = high if self._point(seed, number) @ direction >= self.cap.mean else low
            race = later.race / density
            if race < best:
                best, chosen = race, number
        return chosen


def _arrivals(horizon: float, random_words: WordSource) -> FloatArray:
    """Return the arrival times of a unit-rate Poisson process up to a horizon, at least one."""
    size = math.ceil(horizon + 6 * math.sqrt(horizon))
    times = np.cumsum(exponentials(random_words, size))
    redraws = Redraws(MOST_EXTENSIONS)
    while times[-1] <= horizon:
        redraws.another()
        times = np.append(times, times[-1] + np.cumsum(exponentials(random_words, size)))
    return np.asarray(times[: max(1, np.count_nonzero(times <= horizon))])


def exponentials(random_words: WordSource, count: int) -> FloatArray:
    """Draw exponential numbers of mean 1, above 0."""
    # Half a step beyond the largest uniform number rounds to 1, where the logarithm is infinite.
    return np.asarray(-np.log1p(-np.minimum(random_words.uniforms(count) + 2.0**-54, 1 - 2.0**-53)))


@dataclass(frozen=True)
class TailPoint:
    """A point (T, V) of a marked Poisson process.

    Attributes
    ----------
    before : int
        Number of points, inside or outside the reach, between the horizon and this point.
    race : float
        ``T V**(1/alpha)``.
    """

    before: int
    race: float


@dataclass(frozen=True)
class TailPoints:
    """Points (T, V) beyond a horizon with ``T V**(1/alpha) <= reach``, in order of T.

    The times T come at rate 1, and V is exponential.

    Attributes
    ----------
    horizon : float
        Time after which the points arrive, above 0.
    reach : float
        Largest ``T V**(1/alpha)``, at least 0.
    alpha : float
        Exponent, above 1.
    """

    horizon: float
    reach: float
    alpha: float

    def draw(self, random_words: WordSource) -> Iterator[TailPoint]:
        """Yield the points."""
        # Candidates come at the rate x = (reach / T)**alpha. A candidate is a point with probability (1 - e^-x) / x, the probability that V
        # <= x, divided by x.
        past, before = self.horizon, 0
        rest = self._rate_beyond(self.horizon)
        # There are far fewer candidates than points.
        redraws = Redraws(math.ceil(MOST_REDRAWS + 20 * rest))
        while True:
            redraws.another()
            rest -= float(exponentials(random_words, 1)[0])
            if rest <= 0:
                return
            time = (self.reach**self.alpha / (rest * (self.alpha - 1))) ** (1 / (self.alpha - 1))
            level = (self.reach / time) ** self.alpha
            chance, place = (float(number) for number in random_words.uniforms(2))
            if chance * level >= -math.expm1(-level):
                continue
            before += poisson(self._others(past, time), random_words)
            value = -math.log1p((place + 2.0**-54) * math.expm1(-level))
            yield TailPoint(before, time * value ** (1 / self.alpha))
            past, before = time, before + 1

    def _rate_beyond(self, time: float) -> float:
        """Return the mean number of candidates beyond a time."""
        return math.pow(self.reach, self.alpha) * math.pow(time, 1 - self.alpha) / (self.alpha - 1)

    def _others(self, first: float, last: float) -> float:
        """Return the mean number of other points, at the rate e^-x, between two times."""
        # Integration by parts over T = reach x**(-1/alpha) gives the integral of e^-x.
        shape = 1 - 1 / self.alpha
        at_first, at_last = ((self.reach / time) ** self.alpha for time in (first, last))
        if self.reach == 0:
            return last - first
        beyond = math.gamma(shape) * float(scipy.special.gammaincc(shape, at_last) - scipy.special.gammaincc(shape, at_first))
        return max(0.0, last * math.exp(-at_last) - first * math.exp(-at_first) - self.reach * beyond)


def poisson(mean: float, random_words: WordSource) -> int:
    """Draw a Poisson number.

    The draw is exact up to floating-point rounding below a mean of 2**26, and closer than 1e-4 from there on.
    """
    if mean < TRANSFORMED_FROM:
        count, total = 0, float(exponentials(random_words, 1)[0])
        redraws = Redraws()
        while total <= mean:
            redraws.another()
            count, total = count + 1, total + float(exponentials(random_words, 1)[0])
        return count
    if mean >= NORMAL_FROM:
        return max(0, round(mean + math.sqrt(mean) * float(random_words.normals(1)[0])))
    # Hörmann 1993, The transformed rejection method for generating Poisson random variables, algorithm PTRS.
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    redraws = Redraws()
    while True:
        redraws.another()
        first, second = (float(number) for number in random_words.uniforms(2))
        u, v = first - 0.5, second + 2.0**-54
        side = 0.5 - abs(u)
        if side <= 0:
            continue
        k = math.floor((2 * a / side + b) * u + mean + 0.43)
        if side >= 0.07 and v <= accepted:
            return k
        if k < 0 or (side < 0.013 and v > side):
            continue
        if math.log(v * inverse / (a / side**2 + b)) <= k * math.log(mean) - mean - math.lgamma(k + 1):
            return k
