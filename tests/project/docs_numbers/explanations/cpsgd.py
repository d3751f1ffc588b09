"""Numbers of docs/explanations/cpsgd.md."""

import math
from collections.abc import Iterator
from functools import cache

import quietbits
from quietbits import InfeasibleError
from quietbits.figures.cpsgd.binomial_slack import SlackPoint
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_delta, shifted_binomial_epsilon
from quietbits.solvers.divergences.cpsgd_theorem import binomial_theorem_epsilon


def theorem(trials: int, shift: int, delta: float) -> float:
    """Return epsilon of a shift of fair binomial noise by Theorem 1."""
    return binomial_theorem_epsilon(trials, 0.5, 1.0, 1, float(shift), float(shift), float(shift), delta)


def exact(trials: int, shift: int, delta: float) -> float:
    """Return the exact epsilon of a shift of fair binomial noise."""
    return shifted_binomial_epsilon(trials, 0.5, shift, delta)


def delta_of_theorem() -> float:
    """Return the exact delta of 10 000 fair trials at the epsilon of Theorem 1."""
    return shifted_binomial_delta(10**4, 0.5, 1000, theorem(10**4, 1000, 1e-6))


def central_error() -> float:
    return quietbits.central_gaussian_error(quietbits.NormBall(1024, 2.0), 1000, 1.0, 1e-5, "replace-one")


def trial_rows() -> Iterator[list[str]]:
    """Return the binomial trials that the privacy of one number needs."""
    for epsilon, delta in ((0.1, 1e-5), (0.5, 1e-5), (1.0, 1e-5), (1.0, 1e-9), (2.0, 1e-5)):
        cells = [f"{epsilon:g}", f"{delta:.0e}".replace("e-0", "e-")]
        for factor in (8, 64):
            trials = math.ceil(factor * math.log(2 / delta) / epsilon**2)
            row = SlackPoint(seed=0, trials=trials, scale=1.0, delta=delta).run()[0]
            exact = row["epsilon_exact"]
            cells += [f"{trials:,}", f"{exact:.4f}" if exact < 0.1 else f"{exact:.3f}"]
            if factor == 8:
                cells.append("not valid" if math.isnan(row["epsilon"]) else f"{row['epsilon']:.3f}")
        yield cells


def calibrated_rows() -> Iterator[list[str]]:
    """Return levels, trials and errors for numbers of bits, by Theorem 1 and by proven accounts."""
    asked = {"clients": 1000, "dimension": 1024, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"}
    for bits in (14, 16, 20, 24):
        cells = []
        for method in ("theorem-1", None):
            try:
                calibrated = quietbits.calibrate("cpsgd", bits=bits, method=method, **asked).document()
                cells.append(f"{calibrated['levels']}, {calibrated['trials']}, {calibrated['worst_squared_error']:.4f}")
            except InfeasibleError as error:
                cells.append("needs " + str(error).partition("bits must be at least ")[2].partition(" ")[0] + " bits")
        yield [str(bits), *cells]


@cache
def _uneven() -> quietbits.AccountReport:
    return quietbits.account("cpsgd", clients=1000, dimension=64, clip=1.0, levels=64, trials=4000, probability=0.1, delta=1e-6)


def uneven(account: str) -> float:
    """Return epsilon of trials with the probability 0.1."""
    return _uneven().epsilon_by(account)
