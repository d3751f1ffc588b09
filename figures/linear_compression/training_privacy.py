"""What repeated rounds with sampled clients reveal, in every way that is accounted for, beside what a paper states."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling
from ..point import Point

SAMPLINGS = ("poisson", "fixed-size")
# Accounts of Gaussian noise, and the conversion of Rényi divergences that each stands for.
CONVERSIONS = {"rdp": "optimal", "rdp-classic": "older", "pld": "none: privacy losses"}
# Next words of StackOverflow: Chen, Choquette-Choo, Kairouz, Suresh 2022, section 7 and appendix C.
POPULATION, CLIENTS_PER_ROUND, ROUNDS = 342_477, 1000, 1500
NOISE_MULTIPLIERS = (0.5, 0.6)
# Appendix C says that the highest noise multipliers "roughly correspond to" epsilon 5 and 10, by batches of a fixed size.
PAPER_EPSILON = {0.5: "about 10", 0.6: "about 5"}


@dataclass(frozen=True, kw_only=True)
class TrainingPrivacyPoint(Point):
    """Gaussian noise on the sum of each round's clipped updates, for one kind of sampling.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clip norm.
    sampling : str
        ``"poisson"``, add-or-remove-one adjacency: a client's presence moves the sum by one clip norm. ``"fixed-size"``, drawn without
        replacement, replace-one adjacency.
    sensitivity : float
        How far a client moves the sum, in clip norms. Replaced updates may be 2 apart; published accounts of batches of a fixed size take
        1, which is proven only where neighbours' updates are at most one clip norm apart.
    population, clients_per_round, rounds : int
        The training; clients of a round on average, with Poisson sampling.
    delta : float or None
        Failure probability of all rounds together; None for 1 / population.
    """

    noise_multiplier: float
    sampling: str
    sensitivity: float = 1.0
    population: int = POPULATION
    clients_per_round: int = CLIENTS_PER_ROUND
    rounds: int = ROUNDS
    delta: float | None = None

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each account of the noise: epsilon errs upward, and is infinite where the account says nothing.

        Examples
        --------
        >>> rows = TrainingPrivacyPoint(seed=0, noise_multiplier=1.0, sampling="poisson", rounds=100).run()
        >>> [(row["account"], round(row["epsilon"], 2)) for row in rows]
        [('rdp', 0.95), ('rdp-classic', 1.28), ('pld', 0.23)]
        """
        multiplier = check_real("noise_multiplier", self.noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
        sensitivity = check_real("sensitivity", self.sensitivity, low=1e-3, high=2.0)
        sampling = self._sampling()
        delta = 1 / self.population if self.delta is None else self.delta
        privacy = gaussian_privacy(multiplier / sensitivity, sampling.adjacency, "central")
        report = privacy.report(delta, sampling.adjacency, self.rounds, sampling)
        own = {
            "noise_multiplier": multiplier,
            "sampling": str(sampling),
            "adjacency": sampling.adjacency,
            "sensitivity_in_clip_norms": sensitivity,
            "rounds": self.rounds,
            "delta": delta,
            "trust_model": "central",
        }
        paper = PAPER_EPSILON.get(multiplier) if self._is_the_papers else None
        return [
            own | {"account": one.name, "conversion": CONVERSIONS[one.name], "epsilon": one.bound.epsilon, "paper_epsilon": paper}
            for one in report.accounts
        ]

    @property
    def _is_the_papers(self) -> bool:
        given = (self.population, self.clients_per_round, self.rounds)
        return given == (POPULATION, CLIENTS_PER_ROUND, ROUNDS) and self.delta in (None, 1 / POPULATION)

    def _sampling(self) -> Sampling:
        population = check_integer("population", self.population, low=1, high=10**12)
        clients = check_integer("clients_per_round", self.clients_per_round, low=1, high=population)
        if check_choice("sampling", self.sampling, SAMPLINGS) == "poisson":
            return PoissonSampling(clients / population)
        return FixedSizeSampling(population, clients)


def training_privacy_points(noise_multipliers: tuple[float, ...] = NOISE_MULTIPLIERS, seed: int = 0) -> list[TrainingPrivacyPoint]:
    """Return the paper's training with Poisson sampling, and with batches of a fixed size in both readings of the sensitivity."""
    kinds = (("poisson", 1.0), ("fixed-size", 1.0), ("fixed-size", 2.0))
    return [
        TrainingPrivacyPoint(seed=seed, noise_multiplier=multiplier, sampling=sampling, sensitivity=sensitivity)
        for multiplier in noise_multipliers
        for sampling, sensitivity in kinds
    ]


def training_privacy(noise_multipliers: tuple[float, ...] = NOISE_MULTIPLIERS) -> pd.DataFrame:
    """Return the rows of `training_privacy_points` as a tidy table: a row for each noise multiplier, sampling, sensitivity and account."""
    return pd.DataFrame([row for point in training_privacy_points(noise_multipliers) for row in point.run()])
