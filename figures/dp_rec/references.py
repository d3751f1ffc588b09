"""References for DP-REC's account: the paper's numbers, and Gaussian noise on the sum.

The numbers are those of Triastcyn, Reisser, Louizos 2021.
"""

import math
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, cast

from ...analysis.catalogue.relative_entropy import HUGE_EPSILON, largest_clip_ratio
from ...arguments import check_choice
from ...design.contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from ...design.contracts.privacy import EpsilonBound
from ...design.contracts.task import Budget
from ...design.relative_entropy.dp_rec import ANY_BITS, DpRecTraining, accounted_dp_rec
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.accounting.sampled_noise import sampled_gaussian_curve
from ...solvers.accounting.sampling import PoissonSampling
from ...solvers.divergences.dp_rec_privacy import MOST_BITS, VARIANTS
from ...solvers.numerics.safe_root import safe_root
from ..point import Point

ADJACENCY = "add-or-remove-one"
# Accounts of a training with DP-REC.
TRAINING_ACCOUNTS = (*VARIANTS, ANY_BITS)
# Accounts of the same Gaussian noise with Poisson sampling: by the conversion of papers before 2020, by the best conversion, and by the
# exact loss.
GAUSSIAN_ACCOUNTS = ("classic", "optimal", "pld")
# Relative distance of epsilon below its budget at which the search for reference noise ends, as each step is an account of sampled noise.
REFERENCE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class PublishedSetting:
    """A training of the DP-REC paper, with its reported epsilon.

    Attributes
    ----------
    dataset : str
        Name of the data.
    population : int
        Number of clients N; delta is N**-1.1.
    clients_per_round : int
        Number of clients of a round.
    rounds : int
        Number of rounds.
    clip_ratio : float
        Clip norm of a client's update over the standard deviation of the prior.
    epsilon : float
        Epsilon that the paper reports.
    index_bits : int
        Number of bits of all indices, 7 for each group. Groups are the 8 tensors of LeNet-5 and of FEMNIST's network, the 9 tensors of
        Shakespeare's network, and StackOverflow's 6 groups.
    noise_multiplier : float or None
        The paper's noise multiplier for DP-FedAvg at this epsilon.
    noise_rounds : int or None
        Number of rounds of DP-FedAvg, if it differs: 1500 for FEMNIST.
    """

    dataset: str
    population: int
    clients_per_round: int
    rounds: int
    clip_ratio: float
    epsilon: float
    index_bits: int = 42
    noise_multiplier: float | None = None
    noise_rounds: int | None = None

    def __str__(self) -> str:
        """Return the setting in words."""
        return f"{self.dataset} at epsilon {self.epsilon:g}"

    @property
    def delta(self) -> float:
        """Failure probability of all rounds together."""
        return float(self.population**-1.1)

    @property
    def training(self) -> DpRecTraining:
        """The training as a subject of accounts."""
        return DpRecTraining(self.clip_ratio, self.population, self.clients_per_round, self.index_bits)

    @property
    def sampling(self) -> PoissonSampling:
        """Sampling in the account of Gaussian noise, with the same average number of clients."""
        return PoissonSampling(self.clients_per_round / self.population)

    @property
    def gaussian_rounds(self) -> int:
        """Number of rounds of DP-FedAvg."""
        return self.rounds if self.noise_rounds is None else self.noise_rounds

    @property
    def sum_noise_multiplier(self) -> float:
        """Noise multiplier of the messages' sum: sqrt(clients per round) / clip ratio.

        The multiplier is the standard deviation of the noise in the sum of a round's messages, over the clip norm. Each message is a sample
        with the standard deviation of the prior around the client's update, and the server adds them up: DP-FedAvg's noise multiplier has
        the same meaning, the standard deviation of the noise that the server adds to the sum, over the clip norm.
        """
        return math.sqrt(self.clients_per_round) / self.clip_ratio


# Experiments with privacy in Triastcyn, Reisser, Louizos 2021.
PUBLISHED_SETTINGS = (
    PublishedSetting("MNIST", 100, 10, 1000, 0.545, 3.0, 56, 3.8),
    PublishedSetting("MNIST", 100, 10, 1000, 0.87, 6.0, 56, 2.15),
    PublishedSetting("FEMNIST", 3500, 100, 4000, 0.77, 1.0, 56, 5.0, 1500),
    PublishedSetting("FEMNIST", 3500, 100, 4000, 1.41, 3.0, 56, 1.85, 1500),
    PublishedSetting("FEMNIST", 3500, 100, 4000, 1.745, 6.0, 56, 1.15, 1500),
    PublishedSetting("Shakespeare", 660, 66, 200, 1.435, 3.0, 63, 2.15),
    PublishedSetting("StackOverflow", 342_477, 60, 1500, 1.227, 1.0, 42, 0.957),
)


@dataclass(frozen=True, kw_only=True)
class ReferencePoint(Point):
    """An account of a setting, for DP-REC or for Gaussian noise on the sum (DP-FedAvg).

    Attributes
    ----------
    published : PublishedSetting
        The setting.
    account : str
        ``"DP-REC, published"``, ``"DP-REC, conservative"``, ``"DP-REC, any-bits"``, ``"Gaussian, classic"``, ``"Gaussian, optimal"`` or
        ``"Gaussian, pld"``.
    """

    published: PublishedSetting
    account: str

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row with the fields of the setting, and the account's numbers.

        ``epsilon`` is an upper bound on epsilon of the setting's noise on the sum over ``rounds``; it is infinite if the bits are too few.
        ``minimum_bits`` is the least number of bits with a finite epsilon of DP-REC, and ``epsilon_at_minimum_bits`` is that epsilon
        (missing for Gaussian noise). ``target_noise_multiplier`` is an upper bound on the noise on the sum, over the clip norm, with which
        the account gives the paper's epsilon. For Gaussian noise, ``target_noise_multiplier``, the paper's own ``paper_noise_multiplier``
        and its ``paper_noise_epsilon`` by this account are for ``noise_rounds``. ``same_rounds_noise_multiplier`` is for ``rounds``,
        DP-REC's number of rounds.
        """
        mechanism, name = self.account.split(", ")
        own = asdict(self.published) | {"delta": self.published.delta, "sum_noise_multiplier": self.published.sum_noise_multiplier}
        own["paper_epsilon"] = own.pop("epsilon")
        own["paper_noise_multiplier"] = own.pop("noise_multiplier")
        own["noise_rounds"] = self.published.gaussian_rounds
        columns = _dp_rec_row(self.published, name) if mechanism == "DP-REC" else _gaussian_row(self.published, name)
        return [own | {"account": self.account} | columns]


ACCOUNTS = (*(f"DP-REC, {name}" for name in TRAINING_ACCOUNTS), *(f"Gaussian, {name}" for name in GAUSSIAN_ACCOUNTS))


def gaussian_reference_epsilon(noise_multiplier: float, setting: PublishedSetting, account: str) -> float:
    """Return DP-FedAvg's epsilon in a setting.

    DP-FedAvg adds Gaussian noise to the sum; Poisson sampling draws the same number of clients on average.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the sum over the clip norm, from 0.001 to 10**6.
    setting : PublishedSetting
        Population, clients of a round, rounds and delta.
    account : str
        Account: ``"classic"`` for Rényi divergences with the conversion of papers before 2020, r(a) + ln(1/delta) / (a - 1), as for DP-REC;
        ``"optimal"`` for the same divergences with the conversion of Canonne, Kamath, Steinke 2020; ``"pld"`` for the privacy loss
        distribution.

    Returns
    -------
    float
        Epsilon for add-or-remove-one adjacency and the central trust model, an upper bound. It is infinite if the privacy loss distribution
        is too expensive.

    Examples
    --------
    >>> setting = PUBLISHED_SETTINGS[0]
    >>> [round(gaussian_reference_epsilon(5.8, setting, account), 2) for account in GAUSSIAN_ACCOUNTS]
    [1.91, 1.38, 1.15]
    """
    check_choice("account", account, GAUSSIAN_ACCOUNTS)
    privacy = gaussian_privacy(noise_multiplier, ADJACENCY, "central")
    if account == "pld":
        return privacy.account("pld").bound(setting.delta, setting.rounds, setting.sampling).epsilon
    curve = sampled_gaussian_curve(noise_multiplier, setting.sampling, ADJACENCY)
    return curve.composed(setting.rounds).epsilon(setting.delta, account).epsilon


def calibrated_clip_ratio(budget: Budget, training: DpRecTraining) -> float:
    """Return the largest clip ratio with which DP-REC keeps a budget, rounded down.

    The budget's method names the account. The training's own clip ratio has no effect.
    """
    given = {"population": training.population, "clients_per_round": training.clients_per_round, "index_bits": training.index_bits}
    return largest_clip_ratio(budget, given)


def _dp_rec_row(setting: PublishedSetting, name: str) -> dict[str, Any]:
    def account(bits: int) -> EpsilonBound:
        training = replace(setting.training, index_bits=bits)
        return training.privacy().account(name).bound(setting.delta, setting.rounds, None)

    fewest = int(cast("int", account(MOST_BITS).details["minimum_bits"]))
    ratio = calibrated_clip_ratio(Budget(setting.epsilon, setting.delta, ADJACENCY, setting.rounds, method=name), setting.training)
    return {
        "epsilon": account(setting.index_bits).epsilon,
        "minimum_bits": fewest,
        "epsilon_at_minimum_bits": account(fewest).epsilon,
        "target_noise_multiplier": math.sqrt(setting.clients_per_round) / ratio,
        "paper_noise_epsilon": math.nan,
        "same_rounds_noise_multiplier": math.sqrt(setting.clients_per_round) / ratio,
        "adjacency": ADJACENCY,
        "trust_model": "central",
        "sampling": accounted_dp_rec(setting.training).details["drawn"],
    }


def _gaussian_row(setting: PublishedSetting, name: str) -> dict[str, Any]:
    of_noise = replace(setting, rounds=setting.gaussian_rounds)
    needed = _needed_noise(of_noise, name)
    published = setting.noise_multiplier
    return {
        "epsilon": gaussian_reference_epsilon(setting.sum_noise_multiplier, setting, name),
        "minimum_bits": None,
        "epsilon_at_minimum_bits": math.nan,
        "target_noise_multiplier": needed,
        "paper_noise_epsilon": math.nan if published is None else gaussian_reference_epsilon(published, of_noise, name),
        "same_rounds_noise_multiplier": needed if of_noise == setting else _needed_noise(setting, name),
        "adjacency": ADJACENCY,
        "trust_model": "central",
        "sampling": str(setting.sampling),
    }


def _needed_noise(setting: PublishedSetting, name: str) -> float:
    """Return the noise multiplier with which an account gives the paper's epsilon, rounded up."""

    @cache
    def epsilon(inverse: float) -> float:
        return min(gaussian_reference_epsilon(1 / inverse, setting, name), HUGE_EPSILON)

    inverse = safe_root(
        epsilon,
        setting.epsilon,
        start=1 / setting.sum_noise_multiplier,
        low=1 / LARGEST_MULTIPLIER,
        high=1 / SMALLEST_MULTIPLIER,
        tolerance=REFERENCE_TOLERANCE * setting.epsilon,
        name="one over the noise multiplier",
    )
    return 1 / inverse
