"""DP-REC's error of a mean against bits, the prior's quality and epsilon, beside SQKR, PrivUnitG, MMRC and a trusted server.

Triastcyn, Reisser, Louizos 2021, *DP-REC*, section D.2: 200 dimensions, 10 000 clients. What is not given there, and is chosen here: clip
ratios, bits, groups and priors.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

from ...arguments import check_integer
from ...arrays import FloatArray
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import VectorMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.local.minimal_random_coding import minimal_random_coding_mechanism
from ...design.local.privunit import PrivUnitMechanism
from ...design.local.sqkr import SQKRMechanism, sqkr_mechanism
from ...design.relative_entropy.dp_rec import DpRecMechanism
from ...design.relative_entropy.group_layout import uniform_layout
from ...progress import OnStep
from ..accounting.dp_rec import calibrate_dp_rec, dp_rec_account
from ..provenance_columns import guarantee_columns, with_provenance
from ..random_streams import named_stream
from ..simulation.dp_rec_law import least_error_clip_ratio
from ..simulation.dp_rec_mean import rough_estimate, simulate_dp_rec_mean, two_level_chunks
from ..simulation.vector_mean import simulate_vector_mean

ZERO, ROUGH, GROUPED, SQKR, PRIVUNIT, MMRC = (
    "DP-REC, prior at zero",
    "DP-REC, prior at an estimate",
    "DP-REC, prior at zero, groups",
    "SQKR",
    "PrivUnitG",
    "PrivUnitG by MMRC",
)
# Clip norms around a rough estimate, over the root mean square of what is left of vectors there: next to none lie outside.
CLIP_MARGIN = 1.2
# Mean squared distance of the unit vectors from their middle, nearly.
SPREAD = 0.02
NO_PRIVACY = Guarantee(math.inf, adjacency="add-or-remove-one", trust_model="central")


@dataclass(frozen=True)
class MeanComparisonSize:
    """How much is compared.

    Attributes
    ----------
    clients, dimension : int
        Number of clients, and length of their vectors.
    repetitions : int
        Repetitions of everything but SQKR and runs of the coder; from 2.
    sqkr_repetitions : int
        Repetitions of SQKR and MMRC, whose encoders take longer; from 2.
    bits : tuple of int
        Bits of one group.
    groups, bits_per_group : int
        Groups of private messages, and bits of each.
    grouped_bits : tuple of int
        Bits of each of so many groups, without privacy.
    coded_bits : tuple of int
        Bits of one group with which one run is coded, sent and decoded for each prior.
    sqkr_bits : tuple of int
        Bits of SQKR without privacy.
    prior_errors : tuple of float
        Squared distances of the prior's mean from the middle of the vectors.
    prior_bits : tuple of int
        Bits with which these are tried.
    rough_error : float
        Squared distance elsewhere: the error that SQKR has with one bit.
    epsilons : tuple of float
        Privacy parameters.
    sqkr_epsilons : tuple of float
        Those of SQKR.
    mmrc_epsilons : tuple of float
        Those of MMRC, whose encoder draws more than e^epsilon candidates.
    """

    clients: int = 10_000
    dimension: int = 200
    repetitions: int = 6
    sqkr_repetitions: int = 4
    bits: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 9)
    groups: int = 6
    bits_per_group: int = 7
    grouped_bits: tuple[int, ...] = (1, 2, 3, 5, 7)
    coded_bits: tuple[int, ...] = (1, 7)
    sqkr_bits: tuple[int, ...] = (1, 4)
    prior_errors: tuple[float, ...] = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
    prior_bits: tuple[int, ...] = (1, 3, 7)
    rough_error: float = 0.07
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    sqkr_epsilons: tuple[float, ...] = (1.0, 4.0, 8.0)
    mmrc_epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)

    @property
    def delta(self) -> float:
        """Failure probability of private messages of DP-REC, by the paper's rule."""
        return float(self.clients**-1.1)


@dataclass(frozen=True)
class _Setting:
    """A point of the comparison; `prior_error` is None where there is no prior, or it is at zero."""

    panel: str
    series: str
    mechanism: DpRecMechanism | VectorMechanism
    guarantee: Guarantee
    repetitions: int
    variant: str = ""
    target_epsilon: float = math.inf
    prior_error: float | None = None
    sampled: bool = False
    coded: bool = False

    @property
    def name(self) -> str:
        """What tells the point from all others."""
        fields = (self.panel, self.series, self.mechanism.bits_per_client, self.mechanism.ball.clip_norm, self.variant, self.target_epsilon)
        layout = self.mechanism.layout.bits if isinstance(self.mechanism, DpRecMechanism) else None
        return f"{fields}, {layout}, {self.coded}"


@dataclass(frozen=True)
class _Measured:
    """One run of a setting."""

    squared_error: float
    predicted_squared_error: float
    squared_bias: float
    clipped: int


def compare_dp_rec_means(size: MeanComparisonSize, *, seed: int, workers: int, on_step: OnStep) -> pd.DataFrame:
    """Estimate the mean by every mechanism, several times, and predict what that is off by.

    Without privacy (panels ``"bits"`` and ``"prior"``) every client sends one message, and DP-REC's clip ratio is the one with the least
    `worst_mean_error`. With privacy (panel ``"epsilon"``) as many clients are drawn, with replacement, as there are, and each draw sends a
    message, as the accountant has it; the clip ratio is the largest for the epsilon, unless the other one is smaller.

    Parameters
    ----------
    size : MeanComparisonSize
        How much.
    seed : int
        Root seed of vectors, draws, priors and mechanisms.
    workers : int
        Number of processes; the result does not depend on it.
    on_step : callable
        Called after each setting as ``on_step(done, total, text)``.

    Returns
    -------
    DataFrame
        One row for each point: ``panel``, ``series``, ``variant`` (of the accountant, where there is privacy), ``clients``, ``dimension``,
        ``groups``, ``bits_per_group``, ``bits`` (what depends on the vector: neither seeds, 64 bits of a message of DP-REC, nor what is
        public for SQKR and MMRC are in it), ``message_bits`` (of DP-REC with its seed), ``clip_norm``, ``clip_ratio``, ``prior_error``
        (squared distance of the prior's mean from the middle of the vectors; missing where it is zero), ``drawn_from`` (``"law"`` of the
        messages, or ``"messages"``), ``repetitions``, ``mean_squared_error`` with ``standard_error``, ``predicted_squared_error`` and
        ``squared_bias`` (means over repetitions too, given vectors and draws; the bias is missing where there is none), ``clipped``
        (messages, of all repetitions), ``target_epsilon``, ``epsilon`` (errs upward), ``delta``, ``adjacency``, ``trust_model``,
        ``central_squared_error`` (a trusted server's Gaussian noise, add-or-remove-one), and provenance.

    Raises
    ------
    ValueError
        If the size is out of range.
    InfeasibleError
        If the bits of a private message are too few for an epsilon; the message says how many would do.
    """
    for name, repetitions in (("repetitions", size.repetitions), ("sqkr_repetitions", size.sqkr_repetitions)):
        check_integer(name, repetitions, low=2, high=1000)
    settings = _settings_by_bits(size) + _settings_by_prior(size) + _settings_by_epsilon(size)
    rows: list[dict[str, object]] = []
    with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1), Parallel(return_as="generator") as parallel:
        found = parallel(delayed(_row)(size, setting, seed) for setting in settings)
        for step, (setting, row) in enumerate(zip(settings, found, strict=True), start=1):
            rows.append(row)
            on_step(step, len(settings), f"{setting.series}, {row['bits']} bits")
    frame = pd.DataFrame(rows).astype({"groups": "Int64", "bits_per_group": "Int64"})
    return with_provenance(frame, "DP-REC's mean of vectors", seed)


def _row(size: MeanComparisonSize, setting: _Setting, seed: int) -> dict[str, object]:
    runs = pd.DataFrame([_run(size, setting, repetition, seed) for repetition in range(setting.repetitions)])
    mechanism = setting.mechanism
    layout = mechanism.layout if isinstance(mechanism, DpRecMechanism) else None
    ball = NormBall(size.dimension, 2.0)
    private = math.isfinite(setting.target_epsilon)
    central = central_gaussian_error(ball, size.clients, setting.target_epsilon, size.delta, "add-or-remove-one") if private else math.nan
    return {
        "panel": setting.panel,
        "series": setting.series,
        "variant": setting.variant,
        "clients": size.clients,
        "dimension": size.dimension,
        "groups": None if layout is None else layout.groups,
        "bits_per_group": None if layout is None else layout.bits[0],
        "bits": mechanism.bits_per_client if layout is None else float(layout.total_bits),
        "message_bits": mechanism.bits_per_client,
        "clip_norm": mechanism.ball.clip_norm,
        "clip_ratio": mechanism.clip_ratio if isinstance(mechanism, DpRecMechanism) else math.nan,
        "prior_error": math.nan if setting.prior_error is None else setting.prior_error,
        "drawn_from": "messages" if setting.coded or layout is None else "law",
        "repetitions": setting.repetitions,
        "mean_squared_error": runs["squared_error"].mean(),
        "standard_error": runs["squared_error"].sem(),
        "predicted_squared_error": runs["predicted_squared_error"].mean(),
        "squared_bias": runs["squared_bias"].mean(),
        "clipped": runs["clipped"].sum(),
        "target_epsilon": setting.target_epsilon,
        **guarantee_columns(setting.guarantee),
        "central_squared_error": central,
    }


def _run(size: MeanComparisonSize, setting: _Setting, repetition: int, seed: int) -> _Measured:
    # Vectors, priors and draws are those of the repetition, whatever the mechanism.
    chunks = two_level_chunks(size.clients, size.dimension, named_stream(seed, f"vectors, {repetition}"))
    rng = named_stream(seed, f"mechanism, {setting.name}, {repetition}")
    if not isinstance(setting.mechanism, DpRecMechanism):
        other = simulate_vector_mean(setting.mechanism, chunks, rng)
        return _Measured(other.unclipped_squared_error, other.predicted_squared_error, math.nan, other.clipped)
    copies = None
    if setting.sampled:
        copies = named_stream(seed, f"draws, {repetition}").multinomial(size.clients, np.full(size.clients, 1 / size.clients))
    found = simulate_dp_rec_mean(
        setting.mechanism,
        chunks,
        rng,
        prior_mean=_prior_mean(size, setting.prior_error, repetition, seed),
        copies=copies,
        coded=setting.coded,
    )
    return _Measured(found.squared_error, found.predicted_squared_error, found.squared_bias, found.clipped)


def _prior_mean(size: MeanComparisonSize, error: float | None, repetition: int, seed: int) -> FloatArray | None:
    return None if error is None else rough_estimate(size.dimension, error, named_stream(seed, f"prior, {repetition}"))


def _dp_rec(size: MeanComparisonSize, groups: int, bits: int, error: float | None, largest_ratio: float = math.inf) -> DpRecMechanism:
    clip_norm = 1.0 if error is None else CLIP_MARGIN * math.sqrt(SPREAD + error)
    ratio = min(largest_ratio, least_error_clip_ratio(size.dimension, groups, bits, size.clients))
    return DpRecMechanism(NormBall(size.dimension, 2.0, clip_norm), ratio, uniform_layout(size.dimension, groups, bits))


def _settings_by_bits(size: MeanComparisonSize) -> list[_Setting]:
    priors = ((ZERO, None), (ROUGH, size.rough_error))
    settings = [
        _Setting("bits", name, _dp_rec(size, 1, bits, error), NO_PRIVACY, 1 if coded else size.repetitions, prior_error=error, coded=coded)
        for coded, numbers in ((True, size.coded_bits), (False, size.bits))
        for name, error in priors
        for bits in numbers
    ]
    settings += [
        _Setting("bits", GROUPED, _dp_rec(size, size.groups, bits, None), NO_PRIVACY, size.repetitions) for bits in size.grouped_bits
    ]
    unprotected = [SQKRMechanism(math.inf, bits, NormBall(size.dimension, 2.0)) for bits in size.sqkr_bits]
    return settings + [_Setting("bits", SQKR, one, one.guarantee, size.sqkr_repetitions) for one in unprotected]


def _settings_by_prior(size: MeanComparisonSize) -> list[_Setting]:
    return [
        _Setting("prior", ROUGH, _dp_rec(size, 1, bits, error), NO_PRIVACY, size.repetitions, prior_error=error)
        for bits in size.prior_bits
        for error in size.prior_errors
    ]


def _settings_by_epsilon(size: MeanComparisonSize) -> list[_Setting]:
    ball = NormBall(size.dimension, 2.0)
    settings = []
    # One round, in which as many clients are drawn, with replacement, as there are.
    budget = (size.clients, size.clients, 1, size.groups * size.bits_per_group, size.delta)
    for epsilon in size.epsilons:
        for variant in ("published", "conservative"):
            largest = calibrate_dp_rec(epsilon, *budget, variant).clip_ratio
            for name, error in ((ZERO, None), (ROUGH, size.rough_error)):
                mechanism = _dp_rec(size, size.groups, size.bits_per_group, error, largest)
                promise = dp_rec_account(mechanism.clip_ratio, *budget, variant).guarantee
                settings.append(_Setting("epsilon", name, mechanism, promise, size.repetitions, variant, epsilon, error, sampled=True))
        local: list[tuple[str, VectorMechanism, int]] = [(PRIVUNIT, PrivUnitMechanism(epsilon, ball), size.repetitions)]
        if epsilon in size.sqkr_epsilons:
            local.append((SQKR, sqkr_mechanism(epsilon, ball), size.sqkr_repetitions))
        if epsilon in size.mmrc_epsilons:
            local.append((MMRC, minimal_random_coding_mechanism(epsilon, ball), size.sqkr_repetitions))
        settings += [_Setting("epsilon", name, one, one.guarantee, repetitions, target_epsilon=epsilon) for name, one, repetitions in local]
    return settings
