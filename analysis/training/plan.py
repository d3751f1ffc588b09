"""Preparation of a training: the mechanism for its budget, and every round's privacy loss."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import FloatArray
from ...design.contracts.gaussian import gaussian_privacy
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism, VectorMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Account, Privacy, Scalar
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import LARGEST_TARGET, SMALLEST_TARGET, Task, check_offered_adjacency
from ...design.federated.adaptive_clipping import sum_noise_multiplier, usual_count_deviation
from ...design.federated.joint_privacy import joint_privacy
from ...design.federated.model_layers import ModelLayers
from ...design.local.vector_gaussian import calibrate_noise_multiplier
from ...design.secure_sum.noisy_count import NoisyCount
from ...design.secure_sum.sketch_calibration import check_sketch_of_noise
from ...errors import InfeasibleError
from ...solvers.accounting.sampling import PoissonSampling, Sampling
from .baselines import (
    COUNT_DEVIATION,
    DP_REC_TRAINING,
    POPULATION,
    SIZES,
    given_for_budget,
    needs_budget,
    training_entry,
)
from .setting import OVERFLOW_SHARE, TrainingSetting

# Ratio of consecutive accounted numbers of rounds, after the first rounds; between them, epsilon is that of the next accounted number. The
# larger ratio is for Poisson-sampled rounds, whose composition takes long.
SPARSE_RATIO, DENSE_RATIO = 1.25, 1.02
# Number of rounds up to which every number has an account, unless rounds are Poisson-sampled.
DENSE_ROUNDS = 100
# Share of the budget within which the search for noise beside a count ends, and its largest number of mechanisms.
BUDGET_TOLERANCE, BUDGET_STEPS = 1e-3, 30


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A mechanism, and its privacy loss round after round.

    Attributes
    ----------
    mechanism : Mechanism
        Mechanism for the setting's clip norm.
    trust_model : str
        Trust model of `epsilons`.
    seats : int or None
        Number of clients that share the noise of a secure sum, some of them without a report; None without a secure sum.
    count : NoisyCount or None
        Secure sum by which adaptive clipping counts norms within the clip norm.
    count_deviation : float or None
        Standard deviation of a trusted server's noise in the count of updates within the clip norm.
    epsilons : ndarray of shape (rounds,)
        Proven epsilon of the first 1, 2, ... rounds at the setting's delta and adjacency, of sum and count together; an upper bound.
    amplified : ndarray of shape (rounds,) or None
        Epsilon of a local mechanism against an observer who sees all messages but not their senders; None if sampling has no amplification.
    unamplified : ndarray of shape (rounds,) or None
        Epsilon against an observer who knows the participants, if sampling amplifies `epsilons`.
    others : mapping
        Epsilons of other accounts, by name. These accounts have no proof, need an assumption, or are for another adjacency.
    repeats : bool
        Whether a client that is drawn twice in a round sends two messages.
    """

    mechanism: VectorMechanism
    trust_model: str
    seats: int | None
    count: NoisyCount | None
    count_deviation: float | None
    epsilons: FloatArray
    amplified: FloatArray | None = None
    unamplified: FloatArray | None = None
    others: Mapping[str, FloatArray] = field(default_factory=dict)
    repeats: bool = False

    @property
    def message_bits(self) -> float:
        """Number of bits of a client's message, including the count's message."""
        return self.mechanism.bits_per_client + (self.count.bits if self.count is not None else 0)

    def built(self) -> dict[str, Scalar]:
        """Return the mechanism's calibrated numbers, such as its noise or levels.

        The names of the values start with ``built_``.
        """
        mechanism: Any = self.mechanism
        values = {field.name: getattr(mechanism, field.name) for field in fields(mechanism) if field.name != "delta"}
        # The method omits default values, which were not calibrated to the budget.
        usual = {field.name: field.default for field in fields(mechanism)}
        return {f"built_{name}": value for name, value in values.items() if isinstance(value, (int, float)) and value != usual[name]}


def training_plan(setting: TrainingSetting, name: str, options: Values, layers: ModelLayers, cache: Path | None = None) -> TrainingPlan:
    """Build the mechanism of a training for its budget, and account for all rounds.

    Parameters
    ----------
    setting : TrainingSetting
        The training.
    name, options
        A mechanism for vectors of the registry or of `baselines`, and its design choices.
    layers : ModelLayers
        Layers of the model.
    cache : Path or None
        Folder of designed tables.

    Raises
    ------
    InfeasibleError
        If the mechanism cannot keep the budget, or has no account of adaptive clipping; the message states the requirement.
    """
    entry = training_entry(name)
    check_training(setting, name, options)
    options = dict(options) | _filled_in(entry, setting, layers, cache)
    task = _task(setting, entry, options, layers.dimension)
    count, deviation = None, None
    if setting.clipping == "adaptive" and entry.private:
        deviation = usual_count_deviation(setting.clients_per_round)
        if entry.trust_model == "secure-sum":
            count = NoisyCount.of_deviation(task.clients, deviation)
        else:
            options |= {COUNT_DEVIATION.name: deviation}
    if count is not None and needs_budget(entry, options):
        mechanism = _built_beside(count, entry, task, options)
    else:
        mechanism = entry.mechanism_for(task, options)
    assert isinstance(mechanism, VectorMechanism)  # noqa: S101 - what entries for vectors build
    privacy = mechanism.privacy() if count is None else _joint(mechanism, count, setting.adjacency)
    seats = task.clients if isinstance(mechanism, SecureSumMechanism) else None
    central_deviation = None if count is not None else deviation
    repeats = name == DP_REC_TRAINING
    plan = TrainingPlan(mechanism, privacy.trust_model, seats, count, central_deviation, np.empty(0), repeats=repeats)
    sampling = setting_sampling(setting, entry)
    accounted = _account(privacy, setting, task.delta, sampling)
    unamplified = _unamplified(privacy, setting, task.delta, sampling)
    amplified = None
    secret = setting.cohorts.amplifying if setting.secret_sampling else None
    if entry.trust_model == "local" and entry.private and secret is not None and secret.adjacency == setting.adjacency:
        amplified = _account(Privacy("central", _amplifiable(privacy, task.delta, secret)), setting, task.delta, secret).epsilons
    return replace(plan, epsilons=accounted.epsilons, amplified=amplified, unamplified=unamplified, others=accounted.others)


def check_training(setting: TrainingSetting, name: str, options: Values) -> None:
    """Refuse a mechanism and a setting whose conflict can be detected without data.

    Raises
    ------
    ValueError
        If a budget is missing, or given twice; or the mechanism is not for the setting's sampling, clipping or download.
    """
    entry = training_entry(name)
    if setting.download == "history" and entry.private and entry.trust_model != "local" and name != DP_REC_TRAINING:
        raise ValueError(f"download must be model for {name}, whose single messages nobody may see, got 'history'")
    if name == DP_REC_TRAINING and setting.sampling != "with-replacement":
        raise ValueError(f"sampling must be with-replacement for {DP_REC_TRAINING}, whose account is for that, got {setting.sampling!r}")
    if name == DP_REC_TRAINING and not setting.secret_sampling:
        raise ValueError(f"secret_sampling must be true for {DP_REC_TRAINING}, whose account is for draws that nobody sees, got False")
    counts_norms = entry.trust_model == "secure-sum" or COUNT_DEVIATION.name in {option.name for option in entry.options}
    if setting.clipping == "adaptive" and entry.private and not counts_norms:
        raise InfeasibleError(f"clipping must be flat or per-layer with {name}, got 'adaptive': the question about norms is not private")
    if not entry.private:
        return
    check_offered_adjacency(name, setting.adjacency, entry.adjacencies)
    if setting.delta == 0 and "pure" not in entry.accounts:
        raise ValueError(f"delta must be above 0 for {name}, got 0")
    if (given := given_for_budget(entry, options)) is not None:
        for key in ("epsilon", "round_epsilon"):
            if getattr(setting, key) is not None:
                raise ValueError(f"{key} must be left out, or 'none', for {name} with a {given}, got {getattr(setting, key):g}")
        if options.get("objective") is not None:
            raise ValueError(f"objective must be left out for {name} with a {given}, got {options['objective']!r}: it is for a budget")
        if "sketch_dimension" in {option.name for option in entry.options}:
            check_sketch_of_noise(options.get("sketch_dimension"))
    elif setting.epsilon is None and setting.round_epsilon is None:
        raise ValueError(f"epsilon is missing: {name} needs it, or round_epsilon")


def setting_sampling(setting: TrainingSetting, entry: Entry) -> Sampling | None:
    """Return the sampling that amplifies a mechanism's guarantees in a training, or None."""
    secret = setting.secret_sampling and entry.trust_model != "local" and entry.name != DP_REC_TRAINING
    sampling = setting.cohorts.amplifying if secret else None
    return sampling if sampling is not None and sampling.adjacency == setting.adjacency else None


def _filled_in(entry: Entry, setting: TrainingSetting, layers: ModelLayers, cache: Path | None) -> dict[str, Any]:
    """Return the options that the training determines."""
    tensors = ",".join(str(int(np.prod(shape))) for layer in layers.layers for shape in layer.shapes)
    values = {SIZES.name: tensors, POPULATION.name: setting.clients, "cache": cache}
    return {option.name: values[option.name] for option in entry.options if option.name in values}


def _task(setting: TrainingSetting, entry: Entry, options: Values, dimension: int) -> Task:
    epsilon, rounds, sampling = setting.epsilon, setting.cohorts.participations(setting.rounds), setting_sampling(setting, entry)
    if not needs_budget(entry, options):
        epsilon = LARGEST_TARGET
    elif setting.round_epsilon is not None:
        epsilon, rounds, sampling = setting.round_epsilon, 1, None
    assert epsilon is not None  # noqa: S101 - as `check_training` sees to
    clients, delta = setting.clients_per_round, setting.delta
    if entry.trust_model == "secure-sum":
        clients = setting.cohorts.seats(setting.rounds, delta)
        if setting.sampling == "poisson":
            delta *= 1 - OVERFLOW_SHARE
    return Task(NormBall(dimension, setting.norm, setting.clip), clients, epsilon, delta, setting.adjacency, rounds, sampling=sampling)


def _joint(mechanism: Mechanism, count: NoisyCount, adjacency: str) -> Privacy:
    """Return the privacy of a round's sum and count together; they share the round's clients."""
    return joint_privacy((mechanism.privacy(), count.privacy(adjacency)), adjacency)


def _built_beside(count: NoisyCount, entry: Entry, task: Task, options: Values) -> Mechanism:
    """Build the mechanism of largest epsilon whose sum and count keep the task's epsilon.

    The search is by secants of ln(joint epsilon) as a function of ln(the mechanism's own epsilon), between bounds that narrow; it ends
    within a share of `BUDGET_TOLERANCE` below the budget.
    """

    def spent(privacy: Privacy) -> float:
        return privacy.epsilon(task.delta, task.adjacency, task.rounds, task.sampling)

    of_count = spent(count.privacy(task.adjacency))
    if of_count >= task.epsilon:
        raise InfeasibleError(
            f"epsilon must be above {of_count:.4g} for adaptive clipping, whose count costs that much, got {task.epsilon:g}: allow more, "
            "take more clients per round, or clip to a fixed norm"
        )
    best: Mechanism | None = None
    low, high = math.log(SMALLEST_TARGET), math.log(task.epsilon)
    own = min(high, math.log(_gaussian_share(count, task, of_count))) - BUDGET_TOLERANCE / 2
    for _ in range(BUDGET_STEPS):
        try:
            mechanism = entry.mechanism_for(replace(task, epsilon=math.exp(own)), options)
        except InfeasibleError:
            # The bits may be too few for more noise.
            if best is None and own >= high - BUDGET_TOLERANCE:
                raise
            low, own = own, (own + high) / 2
            continue
        miss = math.log(task.epsilon / spent(_joint(mechanism, count, task.adjacency)))
        if miss >= 0:
            best, low = mechanism, own
        else:
            high = own
        if 0 <= miss <= BUDGET_TOLERANCE or high - low <= BUDGET_TOLERANCE:
            break
        # The joint epsilon rises about as fast as the mechanism's own epsilon; the search aims at the middle of the tolerance.
        step = own + miss - BUDGET_TOLERANCE / 2
        own = step if low < step < high else (low + high) / 2
    if best is None:
        raise InfeasibleError(
            f"epsilon must be larger for {entry.name} beside adaptive clipping's count, which costs {of_count:.4g}, got {task.epsilon:g}"
        )
    return best


def _gaussian_share(count: NoisyCount, task: Task, of_count: float) -> float:
    """Return a Gaussian sum's share of epsilon beside the count, a guess for other noise."""
    try:
        total = calibrate_noise_multiplier(task.budget, "central")
        multiplier = sum_noise_multiplier(total, count.deviation, task.adjacency)
    except InfeasibleError:
        return task.epsilon - of_count
    return gaussian_privacy(multiplier, task.adjacency, "central").epsilon(task.delta, task.adjacency, task.rounds, task.sampling)


def _amplifiable(privacy: Privacy, delta: float, sampling: Sampling) -> tuple[Account, ...]:
    """Return the accounts that cover sampled rounds; other accounts refuse them."""
    accounts = []
    for account in privacy.accounts:
        try:
            account.bound(delta, 1, sampling)
        except InfeasibleError:
            pass
        except ValueError:
            continue
        accounts.append(account)
    return tuple(accounts)


@dataclass(frozen=True, eq=False)
class _Accounted:
    epsilons: FloatArray
    others: Mapping[str, FloatArray]


def _account(privacy: Privacy, setting: TrainingSetting, delta: float, sampling: Sampling | None, *, sparse: bool = False) -> _Accounted:
    """Return the privacy loss of the first 1, 2, ... rounds.

    At the numbers of `accounted_rounds` the results equal those of `Privacy.report`; other numbers have the result of the next such number.
    """
    cohorts, rounds = setting.cohorts, setting.rounds
    asked = accounted_rounds(rounds, sparse=sparse or isinstance(sampling, PoissonSampling))
    times = {cohorts.participations(number): None for number in asked}
    reports = {count: privacy.report(delta, setting.adjacency, count, sampling) for count in times}
    reached = [reports[cohorts.participations(asked[place])] for place in np.searchsorted(asked, np.arange(1, rounds + 1)).tolist()]
    guarantees = {row.name for row in privacy.accounts if row.is_guarantee and row.adjacency == setting.adjacency}
    names = [row.name for row in privacy.accounts if row.name not in guarantees]
    others = {name: np.array([report.epsilon_by(name) for report in reached]) for name in names}
    return _Accounted(np.array([report.epsilon for report in reached]), others)


def _unamplified(privacy: Privacy, setting: TrainingSetting, delta: float, sampling: Sampling | None) -> FloatArray | None:
    """Return the loss of rounds with public sampling; None if sampling has no amplification."""
    return None if sampling is None else _account(privacy, setting, delta, None, sparse=True).epsilons


def accounted_rounds(rounds: int, *, sparse: bool) -> list[int]:
    """Return the accounted numbers of rounds: all, or first numbers and a geometric sequence.

    The last number is always included.
    """
    points, ratio = [1], SPARSE_RATIO if sparse else DENSE_RATIO
    while points[-1] < rounds:
        dense = not sparse and points[-1] < DENSE_ROUNDS
        points.append(min(rounds, points[-1] + 1 if dense else max(points[-1] + 1, int(points[-1] * ratio))))
    return points
