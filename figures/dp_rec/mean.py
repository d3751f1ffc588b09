"""DP-REC's error of a mean against bits, the clip ratio, and epsilon.

The setting is that of Triastcyn, Reisser, Louizos 2021, section D.2: 200 dimensions, 10 000 clients, one bit, a prior at zero and a better
prior at 1 / sqrt(200) in every coordinate. The paper does not state clip ratios and norms, which this figure chooses, and has no settings
of more bits.


"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.catalogue.relative_entropy import adjacency_of_account
from ...analysis.provenance_columns import guarantee_columns
from ...analysis.random_streams import named_stream
from ...analysis.simulation.dp_rec_law import least_error_clip_ratio
from ...analysis.simulation.dp_rec_mean import equal_coordinates, simulate_dp_rec_mean, two_level_chunks
from ...analysis.simulation.mean import simulate_mean
from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import VectorMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Budget
from ...design.local.sqkr import SQKRMechanism, sqkr_mechanism
from ...design.local.unit_vectors.candidate_coding import minimal_random_coding_mechanism
from ...design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from ...design.relative_entropy.dp_rec import DpRecMechanism, DpRecTraining
from ...design.relative_entropy.group_layout import uniform_layout
from ..drawing.marks import DOTTED, PAPER_VALUE, SOLID, TRUSTED_SERVER, Mark, mechanism_mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from ..point import Point
from .references import calibrated_clip_ratio

ZERO, EQUAL, GROUPED, SQKR, PRIVUNIT, MMRC = (
    "DP-REC, prior at zero",
    "DP-REC, prior at 1/√d",
    "DP-REC, prior at zero, groups",
    "SQKR",
    "PrivUnitG",
    "PrivUnitG by MMRC",
)
LOCAL = (SQKR, PRIVUNIT, MMRC)
ADJACENCY = "add-or-remove-one"
# Clip norm around the prior at 1 / sqrt(d), which is the distance of the farther half of the vectors.
EQUAL_CLIP_NORM = math.sqrt(2 - math.sqrt(2))
# Number of groups of private messages, and bits of each group.
GROUPS, GROUP_BITS = 6, 7
CLIENTS, DIMENSION, REPETITIONS, SQKR_REPETITIONS = 10_000, 200, 6, 4
QUICK: Mapping[str, Any] = MappingProxyType(
    {
        "clients": 1000,
        "repetitions": 3,
        "sqkr_repetitions": 2,
        "bits": (1, 3, 7),
        "grouped_bits": (1, 3, 7),
        "coded_bits": (1,),
        "clip_ratios": (0.5, 0.7, 2.0),
        "epsilons": (1.0, 4.0),
        "sqkr_epsilons": (4.0,),
        "mmrc_epsilons": (1.0, 4.0),
    }
)
_CODE, DARK_TEAL = mechanism_mark("dp-rec"), "#1B6B5F"
MARKS: Mapping[str, Mark] = MappingProxyType(
    {
        ZERO: _CODE,
        # A darker shade of the same mechanism, as the paper's values are told apart by their colours alone.
        EQUAL: Mark(DARK_TEAL, "o", SOLID),
        GROUPED: replace(_CODE, marker="D", line=DOTTED),
        SQKR: mechanism_mark("sqkr"),
        PRIVUNIT: mechanism_mark("privunit-g"),
        MMRC: mechanism_mark("minimal-random-coding"),
    }
)
CODED_LOOK: Mapping[str, Any] = MappingProxyType({"marker": "x", "markersize": 8, "linestyle": ""})
PAPER_LOOK: Mapping[str, Any] = MappingProxyType({"marker": PAPER_VALUE.marker, "markersize": 9, "markeredgewidth": 1.6, "linestyle": ""})
# Approximate errors in the paper with one bit: with a poor prior, with a better prior, and of SQKR.
PAPER_CLIENTS, PAPER_BITS = 10_000, 1
PAPER_ERRORS: Mapping[str, float] = MappingProxyType({ZERO: 0.3, EQUAL: 0.03, SQKR: 0.07})


@dataclass(frozen=True)
class MeanSetting:
    """A mechanism on the paper's vectors.

    Without privacy every client sends one message, and DP-REC's clip ratio is the one with the least `worst_mean_error`. With privacy,
    there are as many draws with replacement as clients, and each draw sends a message, as the account assumes. The clip ratio is then the
    largest for the epsilon, unless the ratio of least error is smaller.

    Attributes
    ----------
    panel, series : str
        Panel and series of the figure.
    index_bits : int or None
        Number of bits of each group's index, or of SQKR's message; None for the best number of a private mechanism.
    groups : int
        Number of DP-REC's groups.
    epsilon : float
        Budget; infinite for no privacy.
    account : str
        DP-REC's account that keeps the budget: ``"published"`` or ``"conservative"``.
    clip_ratio : float or None
        DP-REC's clip ratio, instead of the automatic choice.
    coded : bool
        Whether vectors are coded, sent and decoded, or messages are drawn from their law.
    clients, dimension : int
        Number of clients, and length of their vectors.
    """

    panel: str
    series: str
    index_bits: int | None = None
    groups: int = 1
    epsilon: float = math.inf
    account: str = ""
    clip_ratio: float | None = None
    coded: bool = False
    clients: int = CLIENTS
    dimension: int = DIMENSION

    @property
    def delta(self) -> float:
        """Failure probability of DP-REC's private messages, by the paper's rule."""
        return float(self.clients**-1.1)

    def mechanism(self) -> DpRecMechanism | VectorMechanism:
        """Return the mechanism; its clip ratio is rounded down."""
        ball = NormBall(self.dimension, 2.0)
        if self.series == PRIVUNIT:
            return PrivUnitGMechanism(self.epsilon, ball)
        if self.series == MMRC:
            return minimal_random_coding_mechanism(self.epsilon, ball)
        if self.series == SQKR:
            return sqkr_mechanism(self.epsilon, ball) if self.index_bits is None else SQKRMechanism(self.epsilon, self.index_bits, ball)
        bits = GROUP_BITS if self.index_bits is None else self.index_bits
        ratio = self.clip_ratio or least_error_clip_ratio(self.dimension, self.groups, bits, self.clients)
        if math.isfinite(self.epsilon):
            budget = Budget(self.epsilon, self.delta, adjacency_of_account(self.account), method=self.account)
            largest = calibrated_clip_ratio(budget, self._training(ratio, bits))
            ratio = min(largest, ratio)
        clip_norm = EQUAL_CLIP_NORM if self.series == EQUAL else 1.0
        return DpRecMechanism(NormBall(self.dimension, 2.0, clip_norm), ratio, uniform_layout(self.dimension, self.groups, bits))

    def guarantee(self, mechanism: DpRecMechanism | VectorMechanism) -> Guarantee:
        """Return the guarantee of all messages.

        For DP-REC with privacy, its account gives the guarantee, which rests on the account's assumptions.
        """
        if not isinstance(mechanism, DpRecMechanism):
            return mechanism.guarantee
        if math.isinf(self.epsilon):
            return Guarantee(math.inf, ADJACENCY, "central")
        training = self._training(mechanism.clip_ratio, mechanism.layout.group_bits[0])
        bound = training.privacy().account(self.account).bound(self.delta, 1, None)
        return Guarantee(bound.epsilon, ADJACENCY, "central", delta=self.delta)

    def _training(self, clip_ratio: float, bits: int) -> DpRecTraining:
        """Return a round that draws as many clients as the population has."""
        return DpRecTraining(clip_ratio, self.clients, self.clients, self.groups * bits)


@dataclass(frozen=True, kw_only=True)
class MeanPoint(Point):
    """A run of a setting; its vectors, priors and draws depend on the repetition only.

    Attributes
    ----------
    of : MeanSetting
        The setting.
    repetition : int
        Number of the run, from 0.
    """

    of: MeanSetting
    repetition: int

    @property
    def setting(self) -> str:
        """The setting in words."""
        of = self.of
        bits = "" if of.index_bits is None else f", {of.index_bits} bits"
        ratio = "" if of.clip_ratio is None else f", clip ratio {of.clip_ratio:g}"
        epsilon = "" if math.isinf(of.epsilon) else f", epsilon {of.epsilon:g}"
        return f"{of.series}{bits}{ratio}{epsilon}"

    @property
    def design(self) -> MeanSetting:
        """The setting, whose runs all share a mechanism."""
        return self.of

    def prepare(self, _: Path | None) -> DpRecMechanism | VectorMechanism:
        """Return the mechanism."""
        return self.of.mechanism()

    def run(self, prepared: DpRecMechanism | VectorMechanism) -> list[dict[str, Any]]:
        """Return a row with the measured error and the predicted error, given vectors and draws.

        ``index_bits`` counts the bits that depend on the vector, without DP-REC's seeds, 64 bits of a message, and without the public
        randomness of SQKR and MMRC. ``message_bits`` counts DP-REC's bits with its seed. ``central_squared_error`` is the error of a
        trusted server's Gaussian noise, for add-or-remove-one adjacency.
        """
        of, mechanism = self.of, prepared
        layout = mechanism.layout if isinstance(mechanism, DpRecMechanism) else None
        private = math.isfinite(of.epsilon)
        ball = NormBall(of.dimension, 2.0)
        return [
            {
                "panel": of.panel,
                "series": of.series,
                "variant": of.account,
                "clients": of.clients,
                "dimension": of.dimension,
                "groups": None if layout is None else layout.groups,
                "bits_per_group": None if layout is None else layout.group_bits[0],
                "index_bits": mechanism.bits_per_client if layout is None else float(layout.total_bits),
                "message_bits": mechanism.bits_per_client,
                "clip_norm": mechanism.ball.clip_norm,
                "clip_ratio": mechanism.clip_ratio if isinstance(mechanism, DpRecMechanism) else math.nan,
                "drawn_from": "messages" if of.coded or layout is None else "law",
                "repetition": self.repetition,
                **self._measured(mechanism),
                "target_epsilon": of.epsilon,
                **guarantee_columns(of.guarantee(mechanism)),
                "central_squared_error": central_gaussian_error(ball, of.clients, of.epsilon, of.delta, ADJACENCY) if private else math.nan,
            }
        ]

    def _measured(self, mechanism: DpRecMechanism | VectorMechanism) -> dict[str, float]:
        of, run = self.of, self.repetition
        chunks = two_level_chunks(of.clients, of.dimension, named_stream(self.seed, f"vectors, {run}"))
        rng = named_stream(self.seed, f"mechanism, {self._stream(mechanism)}, {run}")
        if not isinstance(mechanism, DpRecMechanism):
            other = simulate_mean(mechanism, chunks, rng)
            return {
                "squared_error": other.unclipped_squared_error,
                "predicted_squared_error": other.predicted_squared_error,
                "squared_bias": math.nan,
                "clipped": other.clipped,
            }
        copies = None
        if math.isfinite(of.epsilon):
            draws = named_stream(self.seed, f"draws, {run}")
            copies = draws.multinomial(of.clients, np.full(of.clients, 1 / of.clients))
        prior_mean = equal_coordinates(of.dimension) if of.series == EQUAL else None
        simulated = simulate_dp_rec_mean(mechanism, chunks, rng, prior_mean=prior_mean, copies=copies, coded=of.coded)
        return {
            "squared_error": simulated.squared_error,
            "predicted_squared_error": simulated.predicted_squared_error,
            "squared_bias": simulated.squared_bias,
            "clipped": simulated.clipped,
        }

    def _stream(self, mechanism: DpRecMechanism | VectorMechanism) -> str:
        of = self.of
        fields = (of.panel, of.series, mechanism.bits_per_client, of.clip_ratio, of.account, of.epsilon)
        layout = mechanism.layout.group_bits if isinstance(mechanism, DpRecMechanism) else None
        return f"{fields}, {layout}, {of.coded}"


def mean_points(
    seed: int,
    *,
    clients: int = CLIENTS,
    dimension: int = DIMENSION,
    repetitions: int = REPETITIONS,
    sqkr_repetitions: int = SQKR_REPETITIONS,
    bits: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 9),
    grouped_bits: tuple[int, ...] = (1, 2, 3, 5, 7),
    coded_bits: tuple[int, ...] = (1, 7),
    sqkr_bits: tuple[int, ...] = (1, 4),
    clip_ratios: tuple[float, ...] = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8),
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0),
    sqkr_epsilons: tuple[float, ...] = (1.0, 4.0, 8.0),
    mmrc_epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
) -> list[MeanPoint]:
    """Return the runs of the comparison.

    SQKR and MMRC have fewer runs, because their encoders take longer, and their vectors are coded once. MMRC's encoder draws more than
    e^epsilon candidates. Panels are ``"bits"`` and ``"ratio"``, one bit by clip ratio, without privacy, and ``"epsilon"``.
    """
    priors = (ZERO, EQUAL)
    settings = [
        MeanSetting("bits", name, index_bits=number, coded=coded)
        for coded, numbers in ((True, coded_bits), (False, bits))
        for name in priors
        for number in numbers
    ]
    settings += [MeanSetting("bits", GROUPED, index_bits=number, groups=GROUPS) for number in grouped_bits]
    settings += [MeanSetting("bits", SQKR, index_bits=number) for number in sqkr_bits]
    settings += [MeanSetting("ratio", name, index_bits=1, clip_ratio=ratio) for name in priors for ratio in clip_ratios]
    for epsilon in epsilons:
        settings += [
            MeanSetting("epsilon", name, groups=GROUPS, epsilon=epsilon, account=account)
            for account in ("published", "conservative")
            for name in priors
        ]
        tried = ((PRIVUNIT, epsilons), (SQKR, sqkr_epsilons), (MMRC, mmrc_epsilons))
        settings += [MeanSetting("epsilon", name, epsilon=epsilon) for name, shown in tried if epsilon in shown]

    def runs(setting: MeanSetting) -> int:
        if setting.coded:
            return 1
        return sqkr_repetitions if setting.series in (SQKR, MMRC) else repetitions

    return [
        MeanPoint(seed=seed, of=replace(setting, clients=clients, dimension=dimension), repetition=repetition)
        for setting in settings
        for repetition in range(runs(setting))
    ]


SETTING = ("panel", "series", "variant", "index_bits", "clip_ratio", "drawn_from", "target_epsilon")


def summarise_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each setting: average errors, ``standard_error``, and clipped messages."""
    summary = []
    for _, runs in rows.groupby(list(SETTING), sort=False, dropna=False):
        errors = runs["squared_error"]
        measured = {
            "repetitions": len(runs),
            "mean_squared_error": errors.mean(),
            "standard_error": errors.sem(),
            "predicted_squared_error": runs["predicted_squared_error"].mean(),
            "squared_bias": runs["squared_bias"].mean(),
            "clipped": runs["clipped"].sum(),
        }
        first = runs.iloc[0].to_dict()
        place = list(first).index("repetition")
        head, tail = dict(list(first.items())[:place]), dict(list(first.items())[place + 5 :])
        summary.append(head | measured | tail)
    return pd.DataFrame(summary).astype({"groups": "Int64", "bits_per_group": "Int64"})


def draw_errors(frame: pd.DataFrame) -> Figure:
    """Draw squared errors against bits (left), the clip ratio (middle), and epsilon (right)."""
    figure = Figure(figsize=(WIDTH, 5.9), layout="constrained")
    by_bits, by_ratio, by_epsilon = figure.subplots(1, 3)
    _draw_bits(by_bits, frame[frame["panel"] == "bits"])
    _draw_ratios(by_ratio, frame[frame["panel"] == "ratio"])
    _draw_epsilons(by_epsilon, frame[frame["panel"] == "epsilon"])
    for name, error in PAPER_ERRORS.items():
        by_bits.plot(PAPER_BITS, error, color=MARKS[name].colour, **PAPER_LOOK)
    for axes in (by_bits, by_ratio, by_epsilon):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True)
    for axes in (by_bits, by_ratio, by_epsilon):
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=16))
        axes.xaxis.set_major_formatter("{x:g}")
    by_bits.set(title="no privacy", xlabel="bits per client", ylabel="squared L2 error of the mean")
    by_ratio.set(title="no privacy, one bit", xlabel="clip ratio")
    by_epsilon.set(title="with privacy", xlabel="ε")
    handles = [Line2D([], [], label=name, **mark.look) for name, mark in MARKS.items()]
    handles.append(Line2D([], [], color=GREY, label="messages really coded", **CODED_LOOK))
    handles.append(Line2D([], [], color=PAPER_VALUE.colour, label=f"the paper, {PAPER_CLIENTS:,} vectors", **PAPER_LOOK))
    handles.append(Line2D([], [], label="trusted server, Gaussian", **TRUSTED_SERVER.rule))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_series(axes: Axes, series: pd.DataFrame, by: str, mark: Mark, face: str | None = None) -> None:
    axes.plot(series[by], series["predicted_squared_error"], color=mark.colour, linestyle=mark.line)
    axes.errorbar(
        series[by],
        series["mean_squared_error"],
        yerr=series["standard_error"],
        color=mark.colour,
        marker=mark.marker,
        markerfacecolor=mark.colour if face is None else face,
        linestyle="",
        capsize=2,
    )


def _draw_bits(axes: Axes, frame: pd.DataFrame) -> None:
    # A single value has no standard error.
    coded = frame["standard_error"].isna()
    for name, series in frame[~coded].groupby("series", sort=False):
        _draw_series(axes, series, "index_bits", MARKS[str(name)])
    for name, series in frame[coded].groupby("series", sort=False):
        axes.plot(series["index_bits"], series["mean_squared_error"], color=MARKS[str(name)].colour, **CODED_LOOK)


def _draw_ratios(axes: Axes, frame: pd.DataFrame) -> None:
    for name, series in frame.groupby("series", sort=False):
        _draw_series(axes, series, "clip_ratio", MARKS[str(name)])


def _draw_epsilons(axes: Axes, frame: pd.DataFrame) -> None:
    for (name, variant), series in frame.groupby(["series", "variant"], sort=False):
        _draw_series(axes, series, "target_epsilon", MARKS[str(name)], "white" if variant == "published" else None)
    central = frame.drop_duplicates("target_epsilon")
    axes.plot(central["target_epsilon"], central["central_squared_error"], **TRUSTED_SERVER.rule)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    private = frame[frame["variant"] != ""].iloc[0]
    return (
        f"Mean of {first['clients']:,} unit vectors, d = {first['dimension']}. Points: measured, with standard errors; lines: "
        f"predicted. Hollow: DP-REC's theorem, not proven; full: its conservative variant, with an assumption; {private['adjacency']} "
        f"adjacency, {private['trust_model']} trust model, as the trusted server. Others: replace-one adjacency, local trust model, δ = "
        "0."
    )


def mean_tasks(seed: int, quick: bool) -> list[MeanPoint]:
    """Return the runs."""
    return mean_points(seed, **QUICK) if quick else mean_points(seed)


def _over_sqkr(frame: pd.DataFrame, name: str) -> "pd.Series[float]":
    """Return a series' errors at the fewest bits without privacy, over SQKR's errors."""
    own = frame[(frame["panel"] == "bits") & frame["standard_error"].notna()]
    own = own[own["index_bits"] == own["index_bits"].min()]
    return ratios(own[own["series"] == name], own[own["series"] == SQKR], ("index_bits",), "mean_squared_error")


FIGURE = FigureEntry(
    name="dprec-mean",
    paper=f"{entry_named('dp-rec').paper}, section D.2",
    experiment="DP-REC's mean of vectors",
    tasks=mean_tasks,
    table=summarise_means,
    draw=draw_errors,
    findings=(
        Finding("Error over SQKR's with the fewest bits, prior at zero", lambda frame: _over_sqkr(frame, ZERO)),
        Finding("prior at 1/√d", lambda frame: _over_sqkr(frame, EQUAL)),
    ),
)
