"""Exact convolution of small cases, which no proven account may understate."""

import functools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import signal, stats

from ..analysis.catalogue.accounts import account
from ..arrays import FloatArray
from .cases import Arguments, Attack, refusal
from .parameters import REFUSALS, load_accounts, sampling_of

# ROUNDING bounds the error of probabilities in floating point, relative to delta, and TAIL the omitted tails.
ROUNDING, TAIL = 1e-7, 1e-15
MOST_OUTCOMES = 400_000
# Cells of Gaussian noise, whose law is known only on cells.
CELLS = 120


@dataclass(frozen=True)
class Pair:
    """The laws of an observation for two neighbours, on the same outcomes."""

    first: FloatArray
    second: FloatArray

    def product(self, pair: "Pair") -> "Pair":
        """Return the laws of two independent observations."""
        return Pair(np.multiply.outer(self.first, pair.first).ravel(), np.multiply.outer(self.second, pair.second).ravel())

    def sampled(self, share: float) -> "Pair":
        """Return the pair when the client is sampled with a probability."""
        return Pair(self.first, (1 - share) * self.first + share * self.second)

    def delta(self, epsilon: float) -> float:
        """Return the exact delta at an epsilon, the larger of both directions."""
        factor = math.exp(min(epsilon, 700.0))
        return max(math.fsum(np.maximum(0, a - factor * b)) for a, b in ((self.first, self.second), (self.second, self.first)))


def shifted(law: FloatArray, shift: int) -> Pair:
    """Return a law and the same law shifted by whole steps."""
    padding = np.zeros(shift)
    return Pair(np.concatenate([law, padding]), np.concatenate([padding, law]))


def binomial(trials: int, probability: float, shifts: int, dimension: int) -> tuple[Pair, dict[str, Any]]:
    """Return binomial noise, and a step that moves every coordinate."""
    sizes = {"dimension": dimension, "l1": float(shifts * dimension), "l2": shifts * math.sqrt(dimension), "linf": float(shifts)}
    pair = shifted(stats.binom.pmf(np.arange(trials + 1), trials, probability), shifts)
    whole = functools.reduce(Pair.product, [pair] * dimension)
    return whole, {"trials": trials, "probability": probability, "scale": 1.0, **sizes}


def discrete_gaussian(clients: int, sigma: float, steps: int, adjacency: str) -> tuple[Pair, dict[str, Any]]:
    """Return sums of discrete Gaussian noise."""
    # A law must not be cut off at outcomes on which the neighbour's law has mass.
    reach = math.ceil(9 * sigma + 3) + 2 * steps
    law = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2))
    law = functools.reduce(np.convolve, [law / math.fsum(law)] * clients)
    return _vector_sum(law, clients, steps, adjacency, {"local_sigma": sigma})


def skellam(clients: int, variance: float, steps: int, adjacency: str) -> tuple[Pair, dict[str, Any]]:
    """Return sums of Skellam noise."""
    mean = clients * variance / 2
    poisson = stats.poisson.pmf(np.arange(math.ceil(mean + 12 * math.sqrt(mean) + 30)), mean)
    return _vector_sum(np.convolve(poisson, poisson[::-1]), clients, steps, adjacency, {"local_variance": variance})


def _vector_sum(law: FloatArray, clients: int, steps: int, adjacency: str, noise: Mapping[str, float]) -> tuple[Pair, dict[str, Any]]:
    pair = shifted(law, steps * (2 if adjacency == "replace-one" else 1))
    return pair, {"clients": clients, "dimension": 1, "clip": float(steps), "granularity": 1.0, **noise}


def discrete_laplace(clients: int, survivors: int, scale: float, moves: list[int], adjacency: str) -> tuple[Pair, dict[str, Any]]:
    """Return sums of shares of discrete Laplace noise, of which some may be missing, and a change of one or two coordinates."""
    counts = np.arange(math.ceil(38 * scale) + 40)
    part = stats.nbinom.pmf(counts, clients / survivors, -math.expm1(-1 / scale))
    law = np.convolve(part, part[::-1])
    pair = functools.reduce(Pair.product, [shifted(law, move) for move in moves])
    numbers = {"clients": clients, "survivors": survivors, "bits": 60, "scale": scale}
    return pair, numbers | _l1_ball(moves, adjacency)


def central_laplace(scale: float, moves: list[int], adjacency: str) -> tuple[Pair, dict[str, Any]]:
    """Return discrete Laplace noise of a trusted server, and a change of one or two coordinates."""
    pair, numbers = discrete_laplace(1, 1, scale, moves, adjacency)
    return pair, {name: value for name, value in numbers.items() if name not in ("survivors", "bits")}


def central_staircase(epsilon: float, steps: int, width: int, move: int, adjacency: str) -> tuple[Pair, dict[str, Any]]:
    """Return staircase noise of a trusted server, and a change by at most its sensitivity."""
    sensitivity = steps * (2 if adjacency == "replace-one" else 1)
    width, move = min(width, sensitivity), min(move, sensitivity)
    reach = sensitivity * math.ceil(38 / epsilon + 3)
    levels = (np.abs(np.arange(-reach, reach + 1)) + sensitivity - width) // sensitivity
    law = np.exp(-epsilon * levels)
    numbers = {"clients": 1, "dimension": 1, "norm": "1", "clip": 1.0, "steps": steps, "epsilon": epsilon, "width": width}
    return shifted(law / math.fsum(law), move), numbers


def central_gaussian(sigma: float, steps: int, adjacency: str) -> tuple[Pair, dict[str, Any]]:
    """Return discrete Gaussian noise of a trusted server."""
    pair, _ = discrete_gaussian(1, sigma, steps, adjacency)
    sensitivity = (steps + 1) * (2 if adjacency == "replace-one" else 1)
    numbers = {"clients": 1, "dimension": 1, "norm": "2", "clip": 1.0, "steps": steps}
    # The noise that the account counts is less than the law's.
    return pair, numbers | {"noise_multiplier": sigma / sensitivity * (1 - 1e-12)}


def subsampled_gaussian(noise: float, levels: int, share: float, clip: float, angle: float) -> tuple[Pair, dict[str, Any]]:
    """Return two rotated coordinates of a longest vector, rounded and sampled, with noise that is put into cells."""
    deviation = noise * share / clip
    edges = np.linspace(-9 * deviation, 9 * deviation + 1, CELLS - 1)

    def cells(shift: float) -> FloatArray:
        below = np.diff(stats.norm.cdf(edges, shift, deviation), prepend=0.0, append=1.0)
        above = -np.diff(stats.norm.sf(edges, shift, deviation), prepend=1.0, append=0.0)
        # Differences of numbers near 1 would lose the upper tail.
        return np.asarray(np.where(np.append(edges, np.inf) > shift, above, below))

    # Levels are counted in shares of the largest level.
    parts = list[Pair]()
    for coordinate in (math.cos(angle), math.sin(angle)):
        place = min(abs(coordinate) / clip, 1.0) * levels
        below = min(math.floor(place), levels - 1)
        rounded = (below + 1 - place) * cells(below / levels) + (place - below) * cells((below + 1) / levels)
        parts.append(Pair(cells(0.0), (1 - share) * cells(0.0) + share * rounded))
    numbers = {"clients": 1, "dimension": 2, "norm": "2", "clip": 1.0, "levels": levels, "coordinate_share": share}
    return parts[0].product(parts[1]), numbers | {"coordinate_clip": clip, "noise_multiplier": noise}


def _l1_ball(moves: list[int], adjacency: str) -> dict[str, Any]:
    """Return the smallest L1 ball of whole numbers whose neighbours differ by the moves."""
    steps = math.ceil(sum(moves) / 2) if adjacency == "replace-one" else sum(moves)
    return {"dimension": len(moves), "norm": "1", "clip": 1.0, "steps": steps}


def cpsgd(clients: int, trials: int, probability: float, levels: int) -> tuple[Pair, dict[str, Any]]:
    """Return levels with the binomial noise of all clients."""
    total = clients * trials
    pair = shifted(stats.binom.pmf(np.arange(total + 1), total, probability), levels - 1)
    numbers = {"clients": clients, "trials": trials, "probability": probability, "levels": levels}
    return pair, {**numbers, "dimension": 1, "clip": 1.0, "rotated": False}


def poisson_binomial(clients: int, trials: int, theta: float, others: float) -> tuple[Pair, dict[str, Any]]:
    """Return the coin tosses of two coefficients.

    A client is at either end, and the other clients are all at the same place.
    """

    def tosses(count: int, chance: float) -> FloatArray:
        return np.asarray(stats.binom.pmf(np.arange(count + 1), count, chance))

    rest = tosses((clients - 1) * trials, 0.5 + theta * others)
    first, second = (np.convolve(rest, tosses(trials, 0.5 + sign * theta)) for sign in (-1, 1))
    # A vector of a single coordinate has two coefficients.
    pair = Pair(first, second)
    return pair.product(pair), {"clients": clients, "trials": trials, "theta": theta, "dimension": 1}


def shuffled_bits(clients: int, epsilon: float, others: float) -> tuple[Pair, dict[str, Any]]:
    """Return counts of bits flipped by randomised response.

    A share of the other clients holds the second item.
    """
    flip = 1 / (math.exp(epsilon) + 1)
    ones = round((clients - 1) * others)
    counts = [(ones, 1 - flip), (clients - 1 - ones, flip)]
    rest = functools.reduce(np.convolve, [stats.binom.pmf(np.arange(count + 1), count, chance) for count, chance in counts])
    pair = Pair(np.convolve(rest, [1 - flip, flip]), np.convolve(rest, [flip, 1 - flip]))
    return pair, {"clients": clients, "categories": 2, "epsilon": epsilon}


def mixed_shares(clients: int, messages: int, width: int, steps: int, scale: float, others: int) -> tuple[Pair, dict[str, Any]]:
    """Return the numbers of mixed shares of each value, with discrete Laplace noise; the first client is at either end."""
    modulus = 2**width
    counts = np.arange(math.ceil(38 * scale) + 40)
    part = stats.nbinom.pmf(counts, 1 / clients, -math.expm1(-1 / scale))
    noise = np.convolve(part, part[::-1])
    wrapped = np.bincount((np.arange(len(noise)) - len(counts) + 1) % modulus, weights=noise, minlength=modulus)
    numbers = np.array(list(_histograms(messages, modulus)))
    values = numbers @ np.arange(modulus) % modulus
    chances = np.array([math.factorial(messages) / math.prod(map(math.factorial, row)) for row in numbers.tolist()])

    def shares(step: int) -> FloatArray:
        law = np.zeros((messages + 1,) * (modulus - 1))
        # The numbers of all values but the last determine that of the last.
        law[tuple(numbers[:, :-1].T)] = chances * wrapped[(values - step) % modulus] / modulus ** (messages - 1)
        return law

    rest = [shares(others)] * (clients - 1)
    whole = [functools.reduce(functools.partial(signal.convolve, method="direct"), [shares(place), *rest]) for place in (-steps, steps)]
    first, second = (law.ravel() for law in whole)
    numbers_of = {"clients": clients, "bits": messages * width, "messages": messages, "scale": scale}
    return Pair(first, second), numbers_of | {"dimension": 1, "norm": "1", "clip": 1.0, "steps": steps}


def _histograms(total: int, kinds: int) -> Iterator[tuple[int, ...]]:
    if kinds == 1:
        yield (total,)
        return
    for count in range(total + 1):
        yield from ((count, *rest) for rest in _histograms(total - count, kinds - 1))


def shuffled_code(clients: int, epsilon: float, bits: int, closest: int, others: list[float]) -> tuple[Pair, dict[str, Any]]:
    """Return counts of letters close to the one vector, close to the other vector, and close to neither.

    Two shares of the other clients hold the one vector and the other vector. The rest hold a vector whose letters are close to neither, if
    there are enough of them, or as many letters of both.
    """
    letters = 1 << bits
    closest = min(closest, letters // 2)
    sizes = np.array([closest, closest, letters - 2 * closest])
    neither = [0, 0, closest] if sizes[2] >= closest else [closest - closest // 2, closest // 2, 0]
    rows = [(sizes + math.expm1(epsilon) * np.array(near)) for near in ([closest, 0, 0], [0, closest, 0], neither)]
    rows = [row / row.sum() for row in rows]
    first = round((clients - 1) * others[0])
    second = round((clients - 1 - first) * others[1])

    def counted(law: FloatArray, row: FloatArray) -> FloatArray:
        """Return the law of the first two counts, with another client's letter."""
        longer = np.zeros((len(law) + 1, len(law) + 1))
        longer[:-1, :-1] = row[2] * law
        longer[1:, :-1] += row[0] * law
        longer[:-1, 1:] += row[1] * law
        return longer

    held = [rows[0]] * first + [rows[1]] * second + [rows[2]] * (clients - 1 - first - second)
    rest = functools.reduce(counted, held, np.ones((1, 1)))
    pair = Pair(counted(rest, rows[0]).ravel(), counted(rest, rows[1]).ravel())
    code = {"local_epsilon": epsilon, "letter_bits": bits, "seed_bits": 10, "closest": closest}
    return pair, {"dimension": 20, "norm": "2", "clip": 1.0, "clients": clients, **code}


LAWS: Mapping[str, Callable[..., tuple[Pair, dict[str, Any]]]] = {
    "binomial": binomial,
    "distributed-discrete-gaussian": discrete_gaussian,
    "distributed-skellam": skellam,
    "distributed-discrete-laplace": discrete_laplace,
    "central-laplace": central_laplace,
    "central-staircase": central_staircase,
    "central-gaussian": central_gaussian,
    "subsampled-gaussian": subsampled_gaussian,
    "cpsgd": cpsgd,
    "poisson-binomial": poisson_binomial,
    "shuffled-frequency-randomised-response": shuffled_bits,
    "split-and-mix": mixed_shares,
    "shuffled-rotating-simplex": shuffled_code,
    "shuffled-random-coding": shuffled_code,
}
REPLACED = (
    "cpsgd",
    "poisson-binomial",
    "shuffled-frequency-randomised-response",
    "split-and-mix",
    "shuffled-rotating-simplex",
    "shuffled-random-coding",
)
# Laws of clients that remain, of a larger number that was planned.
PLANNED = (
    "distributed-discrete-gaussian",
    "distributed-skellam",
    "cpsgd",
    "poisson-binomial",
    "shuffled-frequency-randomised-response",
    "shuffled-rotating-simplex",
    "shuffled-random-coding",
)


def draw(rng: random.Random) -> Arguments:
    """Draw a small sum, with rounds, delta, adjacency and sampling."""
    name = rng.choice(list(LAWS))
    adjacency = rng.choice(("replace-one", "add-or-remove-one"))
    clients, chance = rng.randint(1, 6), rng.choice((0.5, rng.uniform(0.05, 0.95)))
    others = rng.choice((-1.0, 0.0, 1.0, rng.uniform(-1, 1)))
    noise = 10 ** rng.uniform(-0.5, 0.8)
    moves = [rng.randint(1, 4) for _ in range(rng.randint(1, 2))]
    law: dict[str, dict[str, Any]] = {
        "binomial": {"trials": int(10 ** rng.uniform(0, 2.5)), "probability": chance, "shifts": rng.randint(1, 3), "dimension": 1},
        "distributed-discrete-gaussian": {"clients": clients, "sigma": noise, "steps": rng.randint(1, 4), "adjacency": adjacency},
        "distributed-skellam": {"clients": clients, "variance": noise**2, "steps": rng.randint(1, 4), "adjacency": adjacency},
        "distributed-discrete-laplace": {
            "clients": clients,
            "survivors": rng.randint(1, 8),
            "scale": min(noise, 3.0),
            "moves": moves,
            "adjacency": adjacency,
        },
        "central-laplace": {"scale": min(noise, 3.0), "moves": moves, "adjacency": adjacency},
        "central-staircase": {
            "epsilon": noise,
            "steps": rng.randint(1, 6),
            "width": rng.randint(1, 12),
            "move": rng.randint(1, 12),
            "adjacency": adjacency,
        },
        "central-gaussian": {"sigma": max(noise, 1.0), "steps": rng.randint(1, 4), "adjacency": adjacency},
        "subsampled-gaussian": {
            "noise": 10 ** rng.uniform(-0.3, 1),
            "levels": rng.choice((1, 1, 3, 7)),
            "share": rng.uniform(0.05, 0.95),
            "clip": rng.choice((1.0, rng.uniform(0.5, 1.0))),
            "angle": rng.uniform(0, math.pi / 2),
        },
        "cpsgd": {"clients": clients, "trials": int(10 ** rng.uniform(0, 2)), "probability": chance, "levels": rng.randint(2, 4)},
        "poisson-binomial": {"clients": clients, "trials": rng.randint(1, 8), "theta": rng.uniform(0.001, 0.499), "others": others},
        "shuffled-frequency-randomised-response": {"clients": rng.randint(2, 80), "epsilon": noise, "others": abs(others)},
        "split-and-mix": {
            "clients": min(clients, 4),
            "messages": rng.randint(2, 24 if (width := rng.randint(1, 2)) == 1 else 6),
            "width": width,
            "steps": rng.randint(1, 4),
            "scale": min(noise, 3.0),
            "others": rng.randint(-4, 4),
        },
    }
    code = {"epsilon": noise, "bits": rng.randint(1, 4), "closest": rng.randint(1, 8), "others": [rng.random(), rng.random()]}
    law |= {key: {"clients": rng.randint(2, 24), **code} for key in ("shuffled-rotating-simplex", "shuffled-random-coding")}
    if name == "binomial" and law[name]["trials"] < 20:
        law[name]["dimension"] = rng.randint(1, 2)
    if name in REPLACED:
        adjacency = "replace-one"
    if name == "subsampled-gaussian":
        adjacency = "add-or-remove-one"
    share = rng.choice((None, None, rng.uniform(0.05, 1.0)))
    sampled = None if share is None else [share] if adjacency == "add-or-remove-one" else [1000, max(1, round(1000 * share))]
    rounds = rng.randint(1, 3)
    while len(LAWS[name](**law[name])[0].first) ** rounds > MOST_OUTCOMES:
        rounds -= 1
    return {
        "name": name,
        "law": law[name],
        "adjacency": adjacency,
        "rounds": rounds,
        "delta": 10 ** rng.uniform(-9, -0.5),
        "sampling": sampled,
        "dropped": rng.choice((0, 0, rng.randint(1, 5))) if name in PLANNED else 0,
    }


def check(
    folder: Path,  # noqa: ARG001 - nothing is written
    name: str,
    law: dict[str, Any],
    rounds: int,
    delta: float,
    adjacency: str,
    sampling: list[float] | None,
    dropped: int = 0,
) -> None:
    """Compare every guaranteed account with the exact delta at its epsilon; some further clients may have dropped out."""
    pair, parameters = LAWS[name](**law)
    if dropped:
        parameters |= {"survivors": parameters["clients"], "clients": parameters["clients"] + dropped}
    if sampling is not None:
        # All other clients hold the client's data at one neighbour, so that a replacement of the client adds the same data.
        pair = pair.sampled(sampling[0] if len(sampling) == 1 else sampling[1] / sampling[0])
    try:
        report = account(name, delta=delta, rounds=rounds, adjacency=adjacency, sampling=sampling_of(sampling), **parameters).privacy
    except REFUSALS as error:
        raise refusal(error) from error
    together = functools.reduce(Pair.product, [pair] * rounds)
    for answer in report.accounts:
        if answer.proven and answer.assumes is None and answer.adjacency == adjacency and math.isfinite(answer.bound.epsilon):
            real = together.delta(answer.bound.epsilon)
            assert real <= delta * (1 + ROUNDING) + TAIL, (
                f"{answer.name} says {answer.bound.epsilon!r} at {delta!r}, where delta is {real!r}"
            )


ATTACK = Attack("exact_accounts", draw, check, share=1.5, prepare=load_accounts)
