"""Reference mechanisms of trainings, in addition to the registry's entries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ...arguments import check_choice
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Privacy
from ...design.contracts.registry import Entry, InPlaceOfBudget, Option, Values
from ...design.contracts.task import Budget, Task
from ...design.federated.adaptive_clipping import sum_noise_multiplier
from ...design.local.vector_gaussian import calibrate_noise_multiplier
from ...design.relative_entropy.dp_rec import ANY_BITS, ANY_CLIENTS, DP_REC_ADJACENCIES, DpRecMechanism, DpRecTraining
from ...design.relative_entropy.group_layout import GroupLayout, uniform_layout
from ...design.transforms.thresholding import MOST_THRESHOLD
from ...errors import InfeasibleError
from ...solvers.divergences.dp_rec_privacy import VARIANTS
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT
from ..catalogue.registry import REGISTRY
from ..catalogue.relative_entropy import DP_REC, adjacency_of_account, largest_clip_ratio
from ..catalogue.shared_options import NOISE, SUM_NOISE
from .reference_mechanisms import (
    LARGEST,
    REACHES,
    CentralGaussianMechanism,
    FloatMechanism,
    QuantisedMechanism,
    SignGaussianMechanism,
)

FLOAT_BITS = Option("bits", int, "Bits of a coordinate: 32 or 64.", 32, 32, 64, "bits")
LEVEL_BITS = Option("bits", int, "Bits of a coordinate.", 8, 1, 16, "bits")
SENT_BITS = Option("bits", int, "Bits of a coordinate: 32 for floats, or 2 to 16 for levels within the clip norm.", 32, 2, 32, "bits")
CLIP_RATIO = Option(
    "clip_ratio",
    float,
    "Clip norm over the prior's standard deviation; by default the largest that keeps the budget.",
    None,
    1e-3,
    LARGEST_SHIFT,
)
ACCOUNT = Option(
    "account",
    str,
    "Account that the clip ratio is to keep to.",
    ANY_CLIENTS,
    choices=(*VARIANTS, ANY_BITS, ANY_CLIENTS),
)
GROUP_BITS = Option("group_bits", int, "Bits of each group's index.", 7, 1, 20, "bits")
GROUP_SIZE = Option("group_size", int, "Coordinates of a group; by default a group is a tensor of the model.", None, 1, 2**30)
LARGEST_GROUP = Option(
    "largest_group", int, "Coordinates of a group at most: larger tensors are several groups. Not with group_size.", None, 1, 2**30
)
THRESHOLD = Option(
    "threshold",
    float,
    "Coordinates of the noisy sum of sketches are zeroed below this many of its root mean squares, and remembered; 0 keeps all.",
    1.0,
    0.0,
    MOST_THRESHOLD,
)
REACH = Option("reach", str, "What the outermost levels stand for, where bits are below 32.", LARGEST, choices=REACHES)
# Names of options that a training sets if an entry has them.
SIZES = Option("sizes", str, "Sizes of the model's tensors; filled in by the training.", "")
POPULATION = Option("population", int, "Number of clients; filled in by the training.", 1, 1, 10**9)
COUNT_DEVIATION = Option("count_deviation", float, "Noise in adaptive clipping's count; filled in by the training.", None, 1e-6, 1e15)
FILLED_IN = (SIZES.name, POPULATION.name, COUNT_DEVIATION.name)
DP_REC_TRAINING, THRESHOLDED = "dp-rec-training", "thresholded-sketch"


def entries() -> Mapping[str, Entry]:
    """Return all mechanisms of trainings, by name."""
    return {name: training_entry(name) for name in _names()}


def training_entry(name: str) -> Entry:
    """Return an entry for vectors by its name, or raise ValueError with the possible names."""
    if name == THRESHOLDED:
        return _thresholded_sketch()
    own = next((entry for entry in _QUICKLY_LOADED if entry.name == name), None)
    if own is not None:
        return own
    if name not in REGISTRY or NormBall not in REGISTRY[name].domains:
        check_choice("mechanism", name, _names())
    return _without_budget(REGISTRY[name])


def baselines() -> tuple[Entry, ...]:
    """Return the entries that the registry does not have."""
    return tuple(training_entry(name) for name in _own_names())


def provider_of(name: str) -> str | None:
    """Return the provider of a mechanism of a training, or None for quietbits itself."""
    return None if name in _own_names() else REGISTRY.provider(name)


def _own_names() -> tuple[str, ...]:
    return *(entry.name for entry in _QUICKLY_LOADED), THRESHOLDED


def _names() -> tuple[str, ...]:
    return *_own_names(), *(name for name, entry in REGISTRY.items() if NormBall in entry.domains)


def given_for_budget(entry: Entry, values: Values) -> str | None:
    """Return the name of the parameter that replaces a budget, or None without such a parameter."""
    stated = entry.in_place_of_budget
    return None if stated is None or values.get(stated.option.name) is None else stated.option.name


def needs_budget(entry: Entry, values: Values) -> bool:
    """Return whether a mechanism needs an epsilon.

    Mechanisms without privacy, or with another parameter in place of the budget, need no epsilon.
    """
    return entry.private and given_for_budget(entry, values) is None


def _without_budget(entry: Entry) -> Entry:
    """Return a registry entry with the option that may replace its budget, if there is one."""
    stated = entry.in_place_of_budget
    if stated is None:
        return entry

    def built(task: Task, options: Values) -> Mechanism:
        if options[stated.option.name] is not None:
            return stated.build(task, options)
        return entry.build(task, {name: value for name, value in options.items() if name != stated.option.name})

    return replace(entry, options=(*entry.options, stated.option), build=built)


@dataclass(frozen=True)
class DpRecOverTraining(DpRecMechanism):
    """DP-REC with the privacy of a whole training, against observers of its models.

    Clients are drawn with replacement.
    """

    training: DpRecTraining | None = None

    def privacy(self) -> Privacy:
        """Return the account of `DpRecTraining`, proven (``"any-clients"``) or by assumption."""
        return super().privacy() if self.training is None else self.training.privacy()


def _none(task: Task, options: Values) -> Mechanism:
    bits = options["bits"]
    if bits not in (32, 64):
        raise ValueError(f"bits must be 32 or 64 for none, got {bits!r}")
    return FloatMechanism(task.ball("none"), bits)


def _quantised(task: Task, options: Values) -> Mechanism:
    return QuantisedMechanism(task.ball("quantised"), options["bits"])


def _dp_fedavg(task: Task, options: Values) -> Mechanism:
    multiplier, deviation = options["noise_multiplier"], options["count_deviation"]
    if multiplier is None:
        multiplier = calibrate_noise_multiplier(task.budget_of("dp-fedavg"), "central")
        if deviation is not None:
            multiplier = sum_noise_multiplier(multiplier, deviation, task.adjacency)
    ball, sent = task.ball("dp-fedavg"), (options["bits"], options["reach"])
    return CentralGaussianMechanism(ball, task.clients, multiplier, task.delta, task.adjacency, deviation, *sent)


def _sign_gaussian(task: Task, options: Values) -> Mechanism:
    multiplier = options["noise_multiplier"]
    if multiplier is None:
        multiplier = calibrate_noise_multiplier(task.budget_of("sign-gaussian"), "local")
    return SignGaussianMechanism(task.ball("sign-gaussian"), multiplier, task.delta)


def _dp_rec_training(task: Task, options: Values) -> Mechanism:
    ball = task.ball(DP_REC_TRAINING, (2.0,))
    sizes = tuple(int(size) for size in options["sizes"].split(",")) if options["sizes"] else (ball.dimension,)
    if (largest := options["largest_group"]) is not None:
        if options["group_size"] is not None:
            raise ValueError(f"largest_group must be left out where group_size is given, got {largest} and {options['group_size']}")
        sizes = tuple(part for size in sizes for part in uniform_layout(size, -(-size // largest), 1).sizes)
    layout = GroupLayout(sizes, (options["group_bits"],) * len(sizes))
    if options["group_size"] is not None:
        layout = uniform_layout(ball.dimension, -(-ball.dimension // options["group_size"]), options["group_bits"])
    ratio, clients = options["clip_ratio"], {"population": options["population"], "clients_per_round": task.clients}
    if ratio is None:
        adjacency = adjacency_of_account(options["account"])
        budget = Budget(task.epsilon, task.check_delta(DP_REC_TRAINING), adjacency, task.rounds, method=options["account"])
        ratio = min(LARGEST_SHIFT, largest_clip_ratio(budget, {**clients, "index_bits": layout.total_bits}))
    training = DpRecTraining(ratio, options["population"], task.clients, layout.total_bits)
    return DpRecOverTraining(ball, ratio, layout, task.check_delta(DP_REC_TRAINING), training)


NONE_TITLE, QUANTISED_TITLE = "Floats: neither clipped nor private", "A few random levels for each coordinate: not private"
_QUICKLY_LOADED = (
    Entry(
        name="none",
        title=NONE_TITLE,
        paper="McMahan, Moore, Ramage, Hampson, Agüera y Arcas 2017, Communication-efficient learning of deep networks",
        domains=(NormBall,),
        trust_model="local",
        adjacencies=ADJACENCIES,
        accounts=("pure",),
        options=(FLOAT_BITS,),
        build=_none,
        private=False,
    ),
    Entry(
        name="quantised",
        title=QUANTISED_TITLE,
        paper="Alistarh, Grubic, Li, Tomioka, Vojnovic 2017, QSGD",
        domains=(NormBall,),
        trust_model="local",
        adjacencies=ADJACENCIES,
        accounts=("pure",),
        options=(LEVEL_BITS,),
        build=_quantised,
        private=False,
    ),
    Entry(
        name="dp-fedavg",
        title="DP-FedAvg: a trusted server's Gaussian noise on the sum",
        paper="McMahan, Ramage, Talwar, Zhang 2018, Learning differentially private recurrent language models",
        domains=(NormBall,),
        trust_model="central",
        adjacencies=ADJACENCIES,
        accounts=("rdp", "rdp-classic", "pld"),
        options=(NOISE, COUNT_DEVIATION, SENT_BITS, REACH),
        build=_dp_fedavg,
        on_real_numbers=True,
        in_place_of_budget=InPlaceOfBudget(NOISE, _dp_fedavg),
    ),
    Entry(
        name="sign-gaussian",
        title="signSGD: signs of coordinates with Gaussian noise",
        paper="Jin, Huang, He, Dai, Wu 2020, Stochastic-sign SGD for federated learning with theoretical guarantees",
        domains=(NormBall,),
        trust_model="local",
        adjacencies=("replace-one",),
        accounts=("rdp", "rdp-classic", "pld"),
        options=(NOISE,),
        build=_sign_gaussian,
        in_place_of_budget=InPlaceOfBudget(NOISE, _sign_gaussian),
    ),
    Entry(
        name=DP_REC_TRAINING,
        title="DP-REC, accounted for over the training",
        paper="Triastcyn, Reisser, Louizos 2021, DP-REC: private and communication-efficient federated learning",
        domains=(NormBall,),
        trust_model="central",
        adjacencies=DP_REC_ADJACENCIES,
        accounts=DP_REC.accounts,
        options=(CLIP_RATIO, ACCOUNT, GROUP_BITS, GROUP_SIZE, LARGEST_GROUP, SIZES, POPULATION),
        build=_dp_rec_training,
        norms=(2.0,),
        in_place_of_budget=InPlaceOfBudget(CLIP_RATIO, _dp_rec_training),
    ),
)


@cache
def _thresholded_sketch() -> Entry:
    """Return the entry of thresholded sketches; other trainings do not wait for the import of sketches."""
    from ..catalogue.linear_compression import SKETCHED
    from .thresholded_sketch import ThresholdedSketchedSum

    sketched = _without_budget(SKETCHED)

    def build(task: Task, options: Values) -> Mechanism:
        if options["decoder"] != "mean":
            raise InfeasibleError(f"decoder must be mean for thresholded sketches, got {options['decoder']}: their memory adds up sketches")
        made: Any = sketched.build(task, {name: value for name, value in options.items() if name != THRESHOLD.name})
        return ThresholdedSketchedSum(made.ball, made.sketch, made.inner, options[THRESHOLD.name])

    return Entry(
        name=THRESHOLDED,
        title="Sketches in a secure sum, whose noisy sum is thresholded with an error memory",
        paper=f"{sketched.paper}, appendix A.2",
        domains=sketched.domains,
        trust_model=sketched.trust_model,
        adjacencies=sketched.adjacencies,
        accounts=sketched.accounts,
        options=(*sketched.options, THRESHOLD),
        build=build,
        norms=sketched.norms,
        in_place_of_budget=InPlaceOfBudget(SUM_NOISE, build),
    )
