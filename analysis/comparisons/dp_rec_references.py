"""What DP-REC's account is put beside: the paper's numbers, Gaussian noise on the sum, and minimal random coding of local mechanisms."""

import math
from dataclasses import asdict, dataclass
from functools import cache

import pandas as pd

from ...arguments import check_choice, check_integer, check_real
from ...progress import OnStep, silent
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.divergences.dp_rec_privacy import MOST_BITS
from ...solvers.numerics.safe_root import safe_root
from ..accounting.dp_rec import DP_REC_VARIANTS, HUGE_EPSILON, DpRecAccount, calibrate_dp_rec, dp_rec_account
from ..accounting.mechanism_accounting import LARGEST_MULTIPLIER, LARGEST_PURE_EPSILON, gaussian_accounting
from ..accounting.subsampling import PoissonSampling

# Ways to account for the same Gaussian noise with Poisson sampling: the conversion of papers before 2020, the best one, and exactly.
GAUSSIAN_ACCOUNTS = ("classic", "optimal", "pld")
# Reference noise is found until epsilon is this close below its target, relatively: each step is an account of sampled noise.
REFERENCE_TOLERANCE = 1e-3
MOST_CANDIDATES = 2**62


@dataclass(frozen=True)
class PublishedSetting:
    """A training of the DP-REC paper, with the epsilon that it reports.

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
        What the paper reports.
    bits : int
        Bits of a message: 7 for each group, the paper's number, and 6 groups, which are those of StackOverflow. In the other settings more
        groups lower epsilon by 1.2 percent at most.
    """

    dataset: str
    population: int
    clients_per_round: int
    rounds: int
    clip_ratio: float
    epsilon: float
    bits: int = 42

    @property
    def delta(self) -> float:
        """Failure probability of all rounds together."""
        return float(self.population**-1.1)

    @property
    def sum_noise_multiplier(self) -> float:
        """Standard deviation of the noise in the sum of a round's messages, over the clip norm: sqrt(clients per round) / clip ratio.

        Each message is a sample with the standard deviation of the prior around the client's update, and the server adds them up: that is
        what DP-FedAvg's noise multiplier means, the standard deviation of the noise that the server adds to the sum, over the clip norm.
        """
        return math.sqrt(self.clients_per_round) / self.clip_ratio


# Triastcyn, Reisser, Louizos 2021, the experiments with privacy.
PUBLISHED_SETTINGS = (
    PublishedSetting("MNIST", 100, 10, 1000, 0.545, 3.0),
    PublishedSetting("MNIST", 100, 10, 1000, 0.87, 6.0),
    PublishedSetting("FEMNIST", 3500, 100, 4000, 0.77, 1.0),
    PublishedSetting("FEMNIST", 3500, 100, 4000, 1.41, 3.0),
    PublishedSetting("FEMNIST", 3500, 100, 4000, 1.745, 6.0),
    PublishedSetting("Shakespeare", 660, 66, 200, 1.435, 3.0),
    PublishedSetting("StackOverflow", 342_477, 60, 1500, 1.227, 1.0),
)


def dp_rec_references(settings: tuple[PublishedSetting, ...] = PUBLISHED_SETTINGS, on_step: OnStep = silent) -> pd.DataFrame:
    """Return DP-REC's accounts of its paper's settings, and those of Gaussian noise on the sum, DP-FedAvg.

    Parameters
    ----------
    settings : tuple of PublishedSetting
        The settings.
    on_step : callable
        Called after each setting as ``on_step(done, total, text)``.

    Returns
    -------
    DataFrame
        One row for each setting and account, with the setting's fields and

        - ``account``: ``"DP-REC, published"``, ``"DP-REC, conservative"``, ``"DP-REC, any-bits"``, ``"Gaussian, classic"``,
          ``"Gaussian, optimal"``, ``"Gaussian, pld"``;
        - ``epsilon``: with the noise of the setting on the sum; errs upward, infinite where the bits are too few;
        - ``minimum_bits`` and ``epsilon_at_minimum_bits``: fewest bits with which DP-REC's epsilon is finite, and what it is then; missing
          for Gaussian noise;
        - ``target_noise_multiplier``: noise on the sum, over the clip norm, with which the account gives the paper's epsilon; errs upward;
        - ``adjacency``, ``trust_model``, ``sampling``.

    Raises
    ------
    InfeasibleError
        If the bits of a setting are too few for every clip ratio.
    """
    rows: list[dict[str, object]] = []
    for done, setting in enumerate(settings, start=1):
        own = asdict(setting) | {"delta": setting.delta, "sum_noise_multiplier": setting.sum_noise_multiplier}
        own["paper_epsilon"] = own.pop("epsilon")
        rows += [own | _dp_rec_row(setting, variant) for variant in DP_REC_VARIANTS]
        rows += [own | _gaussian_row(setting, account) for account in GAUSSIAN_ACCOUNTS]
        on_step(done, len(settings), f"{setting.dataset}, epsilon {setting.epsilon:g}")
    return pd.DataFrame(rows).astype({"minimum_bits": "Int64"})


def gaussian_reference_epsilon(noise_multiplier: float, setting: PublishedSetting, account: str) -> float:
    """Return DP-FedAvg's epsilon in a setting: Gaussian noise on the sum, Poisson sampling with as many clients on average.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the sum over the clip norm, from 0.001 to 10**6.
    setting : PublishedSetting
        Population, clients of a round, rounds and delta.
    account : str
        ``"classic"``: Rényi divergences, converted as papers before 2020 did, r(a) + ln(1/delta) / (a - 1), which DP-REC's does too;
        ``"optimal"``: the same divergences, converted as Canonne, Kamath, Steinke 2020; ``"pld"``: by privacy loss distribution.

    Returns
    -------
    float
        Epsilon for add-or-remove-one adjacency and the central trust model; errs upward. Infinite where the privacy loss distribution is
        too expensive.

    Raises
    ------
    ValueError
        If the noise multiplier is out of range, or there is no such account.

    Examples
    --------
    >>> setting = PUBLISHED_SETTINGS[0]
    >>> [round(gaussian_reference_epsilon(5.8, setting, account), 2) for account in GAUSSIAN_ACCOUNTS]
    [1.91, 1.39, 1.15]
    """
    check_choice("account", account, GAUSSIAN_ACCOUNTS)
    mechanism = gaussian_accounting(noise_multiplier, sampling=_poisson(setting))
    if account == "pld":
        # Known for Poisson sampling, but not at any price.
        found = None if mechanism.epsilon_by_loss is None else mechanism.epsilon_by_loss(setting.rounds, setting.delta)
        return math.inf if found is None else found
    return mechanism.curve.composed(setting.rounds).epsilon(setting.delta, account).epsilon


def minimal_random_coding_epsilon(epsilon: float, candidates: int) -> float:
    """Return the local epsilon of minimal random coding, where the mechanism that is coded has two densities, e^epsilon apart.

    So have PrivUnit with its cap, subset selection and randomised response. All candidates are public; a client sends the index of one,
    with probability proportional to its density. The ratio of two inputs' probabilities is largest where the first input's density is high
    at the candidate sent alone, and the second's at all others: with K candidates

        epsilon + ln( (1 + (K - 1) e^epsilon) / (e^epsilon + K - 1) )

    which rises from 0 at K = 1 to 2 epsilon, the bound of Shah, Chen, Balle, Kairouz, Theis 2021, *Optimal compression of locally
    differentially private mechanisms*, for any number of candidates. Their modified coding, MMRC, gives the candidates fixed
    probabilities by their share with high density, and keeps epsilon.

    Parameters
    ----------
    epsilon : float
        Pure privacy parameter of the mechanism that is coded, from 1e-6 to 100.
    candidates : int
        Number of candidates K, 2**bits of a message; from 1 to 2**62.

    Returns
    -------
    float
        Pure epsilon for replace-one adjacency and the local trust model, if some candidates can lie so; otherwise errs upward.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> [round(minimal_random_coding_epsilon(1.0, candidates), 4) for candidates in (1, 2, 16, 2**20)]
    [0.0, 1.0, 1.8577, 2.0]
    """
    epsilon = check_real("epsilon", epsilon, low=1e-6, high=LARGEST_PURE_EPSILON)
    others = check_integer("candidates", candidates, low=1, high=MOST_CANDIDATES) - 1
    return epsilon + math.log((1 + others * math.exp(epsilon)) / (math.exp(epsilon) + others))


def _dp_rec_row(setting: PublishedSetting, variant: str) -> dict[str, object]:
    budget = (setting.population, setting.clients_per_round, setting.rounds)

    def account(bits: int) -> DpRecAccount:
        return dp_rec_account(setting.clip_ratio, *budget, bits, setting.delta, variant)

    least = account(account(MOST_BITS).minimum_bits)
    found = calibrate_dp_rec(setting.epsilon, *budget, setting.bits, setting.delta, variant)
    return {
        "account": f"DP-REC, {variant}",
        "epsilon": account(setting.bits).epsilon if setting.bits >= least.bits else math.inf,
        "minimum_bits": least.bits,
        "epsilon_at_minimum_bits": least.epsilon,
        "target_noise_multiplier": math.sqrt(setting.clients_per_round) / found.clip_ratio,
        "adjacency": least.adjacency,
        "trust_model": least.trust_model,
        "sampling": least.sampling,
    }


def _gaussian_row(setting: PublishedSetting, account: str) -> dict[str, object]:
    @cache
    def epsilon(inverse: float) -> float:
        return gaussian_reference_epsilon(1 / inverse, setting, account)

    own = 1 / setting.sum_noise_multiplier
    inverse = safe_root(
        lambda argument: min(epsilon(argument), HUGE_EPSILON),
        setting.epsilon,
        start=own,
        low=1 / LARGEST_MULTIPLIER,
        high=1 / SMALLEST_MULTIPLIER,
        tolerance=REFERENCE_TOLERANCE * setting.epsilon,
        name="one over the noise multiplier",
    )
    return {
        "account": f"Gaussian, {account}",
        "epsilon": epsilon(own),
        "minimum_bits": None,
        "epsilon_at_minimum_bits": math.nan,
        "target_noise_multiplier": 1 / inverse,
        "adjacency": "add-or-remove-one",
        "trust_model": "central",
        "sampling": str(_poisson(setting)),
    }


def _poisson(setting: PublishedSetting) -> PoissonSampling:
    return PoissonSampling(setting.clients_per_round / setting.population)
