"""The registry's entries of secure sums: the server sees a modular sum of all clients' messages, and nothing else."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...design.contracts.domains import Interval
from ...design.contracts.mechanism import SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Scalar
from ...design.contracts.registry import Accountable, Accounted, Entry, Option, Target, Values, usual_adjacency
from ...design.contracts.task import Task
from ...design.noise.binomial_noise import MOST_TRIALS as MOST_CLIENT_TRIALS
from ...design.secure_sum.cpsgd import CpsgdMechanism
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from ...design.secure_sum.distributed_skellam import (
    DistributedSkellamMechanism,
    distributed_skellam_privacy,
)
from ...design.secure_sum.poisson_binomial_mechanism import (
    SMALLEST_THETA,
    hiding_clients,
    poisson_binomial_privacy,
)
from ...design.transforms.kashin import LARGEST_DIMENSION as LARGEST_FRAMED
from ...design.transforms.kashin import KashinFrame
from ...design.transforms.rotation import rotated_dimension
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.discrete_gaussian_divergence import (
    MOST_BITS,
    discrete_gaussian_tau,
    rounded_norm,
)
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, MOST_TRIALS, all_configurations, poisson_binomial_renyi
from ...solvers.divergences.quantised_sensitivity import MOST_LEVELS
from ...solvers.numerics.walsh_hadamard import LARGEST_DIMENSION as LARGEST_ROTATED
from ..calibration.cpsgd import MOST_BITS as MOST_CPSGD_BITS
from ..calibration.cpsgd import calibrate_cpsgd
from ..calibration.poisson_binomial import calibrate_poisson_binomial, calibrate_theta
from ..calibration.shared_noise import calibrate_discrete_gaussian, calibrate_distributed_skellam, finest_steps
from .lower_bounds import central_lower_bound
from .shared_options import CLIENTS, CLIP, DIMENSION, ROTATION, ROTATION_SEED, check_order, sum_bits, tried_bits
from .sums_of_numbers import numbers_too

BOTH = ("add-or-remove-one", "replace-one")
CPSGD_ADJACENCIES = ("replace-one", "add-or-remove-one")
ANY_DELTA = 1e-5
# From here on, accounting for many tosses takes long.
MANY_CLIENTS = 2**16
BITS = Option(
    "bits",
    int,
    "Bits of a coordinate that is sent, of padding too: sums are taken modulo 2**bits, or less.",
    16,
    1,
    MOST_BITS,
    "bits",
    budget="coordinate",
)
STATED_BITS = replace(BITS, default=None, help="Bits of a coordinate; without them the bits of a message are not stated.")
CLIP_NORM = replace(CLIP, help="L2 norm that vectors are clipped to.")
ROTATED_DIMENSION = replace(DIMENSION, help="Number of coordinates of a vector; the rotation pads them.", high=LARGEST_ROTATED)
FRAMED_DIMENSION = replace(
    DIMENSION, help="Number of coordinates of a vector, of which the frame sends two to four times as many.", default=1, high=LARGEST_FRAMED
)
DEVIATIONS = Option("deviations", float, "Standard deviations of a coordinate of the sum in half the modulus.", 4.0, 0.1, 100.0)
GRANULARITY = Option("granularity", float, "What a whole number stands for, in the vectors' units.", low=1e-100, high=1e100)
LOCAL_SIGMA = Option(
    "local_sigma", float, "Parameter of each client's noise, in the vectors' units.", low=1e-100, high=1e100, unit="vectors' units"
)
LOCAL_VARIANCE = Option(
    "local_variance", float, "Variance of each client's noise on a coordinate, in the vectors' units squared.", low=1e-100, high=1e100
)
CLIENT_TRIALS = Option("trials", int, "Trials of each client for each coordinate.", low=1, high=MOST_TRIALS)
ROTATED = Option("rotated", bool, "Whether vectors are rotated before they are quantised.", True, flags="--rotated/--plain")


def _account_discrete_gaussian(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
    clients, dimension, clip, sigma, granularity = (values[name] for name in ("clients", "dimension", "clip", "local_sigma", "granularity"))
    neighbours = usual_adjacency(adjacency, sampling, BOTH)
    padded = rotated_dimension(values["rotation"], dimension)
    privacy = discrete_gaussian_privacy(clients, padded, clip, sigma, granularity, neighbours)
    return Accounted(
        f"distributed discrete Gaussian, {clients} clients, dimension {dimension}, clip norm {clip:g}",
        privacy,
        neighbours,
        bits_per_client=_bits_per_client(values, padded),
        details={
            "clients": clients,
            "dimension": dimension,
            "padded_dimension": padded,
            "clip": clip,
            "local_sigma": sigma,
            "granularity": granularity,
            "tau": discrete_gaussian_tau(clients, sigma / granularity),
            "rounded_norm": rounded_norm(clip, granularity, padded),
            **_errors(DistributedDiscreteGaussianMechanism, values, sigma, neighbours),
        },
        ball=NormBall(dimension, 2.0, clip),
        clients=clients,
    )


def _account_skellam(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
    clients, dimension, clip, variance, granularity = (
        values[name] for name in ("clients", "dimension", "clip", "local_variance", "granularity")
    )
    padded, neighbours = rotated_dimension(values["rotation"], dimension), usual_adjacency(adjacency, sampling, BOTH)
    return Accounted(
        f"distributed Skellam, {clients} clients, dimension {dimension}, clip norm {clip:g}",
        distributed_skellam_privacy(clients, padded, clip, variance, granularity, neighbours),
        neighbours,
        bits_per_client=_bits_per_client(values, padded),
        details={
            "clients": clients,
            "dimension": dimension,
            "padded_dimension": padded,
            "clip": clip,
            "local_variance": variance,
            "granularity": granularity,
            "rounded_norm": rounded_norm(clip, granularity, padded),
            **_errors(DistributedSkellamMechanism, values, variance, neighbours),
        },
        ball=NormBall(dimension, 2.0, clip),
        clients=clients,
    )


def _errors(mechanism: Callable[..., SecureSumMechanism], values: Values, noise: float, adjacency: str) -> dict[str, Scalar]:
    """Return the bounds on error and bias of a sum of rounded vectors, which depend neither on bits nor on delta."""
    ball = NormBall(values["dimension"], 2.0, values["clip"])
    built = mechanism(ball, values["clients"], MOST_BITS, values["granularity"], noise, ANY_DELTA, 0, values["rotation"], adjacency)
    return {"worst_squared_error": built.error().of_mean(values["clients"]), "bias_bound": built.bias_bound}


def _bits_per_client(values: Values, padded: int) -> float | None:
    return None if values.get("bits") is None else float(padded * values["bits"])


def _solve_discrete_gaussian(target: Target, given: Values) -> Accounted:
    found = calibrate_discrete_gaussian(**_fitting(given), target=target)
    subject = _account_discrete_gaussian({**given, **found}, target.adjacency, target.sampling)
    return replace(subject, details={**subject.details, "bits": given["bits"], "deviations": given["deviations"]})


def _solve_skellam(target: Target, given: Values) -> Accounted:
    found = calibrate_distributed_skellam(**_fitting(given), target=target)
    subject = _account_skellam({**given, **found}, target.adjacency, target.sampling)
    return replace(subject, details={**subject.details, "bits": given["bits"], "deviations": given["deviations"]})


def _fitting(given: Values) -> dict[str, Any]:
    named = {name: given[name] for name in ("clients", "bits", "deviations")}
    return named | {"dimension": rotated_dimension(given["rotation"], given["dimension"]), "clip_norm": given["clip"]}


def _rounded(
    name: str, mechanism: Callable[..., SecureSumMechanism], calibrate: Callable[..., dict[str, float]], noise: str
) -> Callable[[Task, Values], SecureSumMechanism]:
    """Return how a sum of rounded vectors is built for a budget; `noise` is what the calibration calls its size."""

    def build(task: Task, options: Values) -> SecureSumMechanism:
        ball, target, bits, rotation = task.ball(name, (2.0,)), Target.of(task, name), options["bits"], options["rotation"]
        padded = rotated_dimension(rotation, ball.dimension)
        found = finest_steps(calibrate, task.clients, padded, ball.clip_norm, bits, target)
        fitting = (ball, task.clients, bits, found["granularity"], found[noise])
        return mechanism(*fitting, task.delta, options["rotation_seed"], rotation, task.adjacency)

    return build


def _cpsgd(task: Task, options: Values) -> SecureSumMechanism:
    ball, target = task.ball("cpsgd", (2.0,)), Target.of(task, "cpsgd")
    bits = None if options["bits"] is None else min(options["bits"], MOST_CPSGD_BITS)
    return calibrate_cpsgd(ball, task.clients, bits, target, rotated=options["rotated"], rotation_seed=options["rotation_seed"])


def _accounted_cpsgd(parameters: CpsgdMechanism) -> Accounted:
    ball = parameters.ball
    details: dict[str, Scalar] = {
        "clients": parameters.clients,
        "dimension": ball.dimension,
        "padded_dimension": parameters.padded_dimension,
        "clip": ball.clip_norm,
        "levels": parameters.levels,
        "trials": parameters.trials,
        "probability": parameters.probability,
        "rotated": parameters.rotated,
        "modulus": parameters.modulus,
        "bits_per_coordinate": parameters.bits_per_client / ball.dimension,
        "bits_before_aggregation": parameters.message_bits_before_aggregation,
        "worst_squared_error": parameters.error().of_mean(parameters.clients),
        "squared_error_bound": parameters.mean_squared_error_bound,
        "bias_bound": parameters.bias_bound,
    }
    return Accounted(
        f"cpSGD, {parameters.clients} clients, {parameters.levels} levels, {parameters.trials} trials of each client",
        parameters.privacy(),
        parameters.adjacency,
        bits_per_client=parameters.bits_per_client,
        details=details,
        ball=ball,
        clients=parameters.clients,
    )


def _account_cpsgd(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
    neighbours = usual_adjacency(adjacency, sampling, CPSGD_ADJACENCIES)
    return _accounted_cpsgd(
        CpsgdMechanism(
            NormBall(values["dimension"], 2.0, values["clip"]),
            values["clients"],
            values["levels"],
            values["trials"],
            values["delta"],
            probability=values["probability"],
            rotated=values["rotated"],
            adjacency=neighbours,
        )
    )


def _solve_cpsgd(target: Target, given: Values) -> Accounted:
    neighbours = usual_adjacency(target.adjacency, target.sampling, CPSGD_ADJACENCIES)
    ball = NormBall(given["dimension"], 2.0, given["clip"])
    found = calibrate_cpsgd(ball, given["clients"], given["bits"], replace(target, adjacency=neighbours), rotated=given["rotated"])
    subject = _accounted_cpsgd(found)
    return replace(subject, details={**subject.details, "bits": (found.modulus - 1).bit_length()})


def _poisson_binomial(task: Task, options: Values) -> SecureSumMechanism:
    ball, target = task.ball("poisson-binomial", (2.0,)), Target.of(task, "poisson-binomial")
    return calibrate_poisson_binomial(ball, task.clients, options["bits"], target, frame_seed=options["rotation_seed"])


def _account_poisson_binomial(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
    clients, trials, theta, dimension = (values[name] for name in ("clients", "trials", "theta", "dimension"))
    order: float | None = values.get("order")
    sent = KashinFrame(dimension).size
    details: dict[str, Scalar] = {}
    if order is not None:
        check_order(order)
        counted = {"rdp": clients, "rdp_proven": hiding_clients(clients, trials, theta)}
        details = {name: float(poisson_binomial_renyi(number, trials, theta, [order])[0]) for name, number in counted.items()}
    return Accounted(
        f"Poisson-binomial, {clients} clients, {trials} trials, theta {theta:g}, dimension {dimension}",
        poisson_binomial_privacy(clients, trials, theta, sent),
        usual_adjacency(adjacency, sampling, ("replace-one",)),
        bits_per_client=sent * math.log2(clients * trials + 1),
        details=details
        | {
            "rdp_order": order,
            "worst_case": "all configurations" if all_configurations(clients, trials, theta) else "all others at one extreme",
            "clients": clients,
            "trials": trials,
            "theta": theta,
            "dimension": dimension,
            "padded_dimension": sent,
        },
    )


def _solve_poisson_binomial(target: Target, given: Values) -> Accounted:
    theta = calibrate_theta(given["clients"], given["trials"], KashinFrame(given["dimension"]).size, target)
    return _account_poisson_binomial({**given, "theta": theta}, target.adjacency, target.sampling)


def _toss_bits(task: Task) -> range:
    """Return the bits that hold one toss of every client, and one more for few clients: more take long to account for, and gain little."""
    of_clients = math.ceil(math.log2(task.clients + 1))
    return range(of_clients, of_clients + (2 if task.clients <= MANY_CLIENTS else 1))


ENTRIES = (
    Entry(
        name="distributed-discrete-gaussian",
        title="Rotated, rounded vectors with discrete Gaussian noise from every client",
        paper="Kairouz, Liu, Steinke 2021, The distributed discrete Gaussian mechanism for federated learning with secure aggregation",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(BITS, ROTATION, ROTATION_SEED),
        calibrate=numbers_too(
            _rounded("distributed-discrete-gaussian", DistributedDiscreteGaussianMechanism, calibrate_discrete_gaussian, "local_sigma")
        ),
        accounting=Accountable(
            "distributed-discrete-gaussian",
            "The distributed discrete Gaussian mechanism",
            (CLIENTS, ROTATED_DIMENSION, CLIP_NORM, LOCAL_SIGMA, GRANULARITY, STATED_BITS, ROTATION),
            _account_discrete_gaussian,
            given=(CLIENTS, ROTATED_DIMENSION, CLIP_NORM, BITS, DEVIATIONS, ROTATION),
            solve=_solve_discrete_gaussian,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(sum_bits),
    ),
    Entry(
        name="distributed-skellam",
        title="Rotated, rounded vectors with Skellam noise from every client",
        paper="Agarwal, Kairouz, Liu 2021, The Skellam mechanism for differentially private federated learning",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(BITS, ROTATION, ROTATION_SEED),
        calibrate=numbers_too(
            _rounded("distributed-skellam", DistributedSkellamMechanism, calibrate_distributed_skellam, "local_variance")
        ),
        accounting=Accountable(
            "distributed-skellam",
            "The distributed Skellam mechanism",
            (CLIENTS, ROTATED_DIMENSION, CLIP_NORM, LOCAL_VARIANCE, GRANULARITY, STATED_BITS, ROTATION),
            _account_skellam,
            given=(CLIENTS, ROTATED_DIMENSION, CLIP_NORM, BITS, DEVIATIONS, ROTATION),
            solve=_solve_skellam,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(sum_bits),
    ),
    Entry(
        name="cpsgd",
        title="A few levels for each coordinate, and binomial noise from every client",
        paper="Agarwal, Suresh, Yu, Kumar, McMahan 2018, cpSGD: communication-efficient and differentially-private distributed SGD",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=CPSGD_ADJACENCIES,
        accounts=("theorem-1", "rdp", "near-gaussian"),
        options=(BITS, ROTATED, ROTATION_SEED),
        calibrate=numbers_too(_cpsgd),
        accounting=Accountable(
            "cpsgd",
            "cpSGD: its published theorem and two closer accounts, bits and errors",
            (
                CLIENTS,
                DIMENSION,
                CLIP_NORM,
                Option("levels", int, "Number of levels of a coordinate.", low=2, high=MOST_LEVELS),
                Option("trials", int, "Trials of each client's noise for each coordinate.", low=1, high=MOST_CLIENT_TRIALS),
                Option("probability", float, "Probability of success of a trial.", 0.5, 1e-9, 1 - 1e-9),
                ROTATED,
            ),
            _account_cpsgd,
            given=(
                CLIENTS,
                DIMENSION,
                CLIP_NORM,
                Option(
                    "bits", int, "Bits of a coordinate of the sum; the fewest that are good by default.", None, 1, MOST_CPSGD_BITS, "bits"
                ),
                ROTATED,
            ),
            solve=_solve_cpsgd,
            close=False,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(sum_bits),
    ),
    Entry(
        name="poisson-binomial",
        title="A few biased coin tosses for each coordinate, which hide each other",
        paper="Chen, Özgür, Kairouz 2022, The Poisson binomial mechanism for unbiased federated learning with secure aggregation",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=("replace-one",),
        accounts=("pure", "rdp", "pld", "rdp-extremes"),
        options=(BITS, ROTATION_SEED),
        calibrate=numbers_too(_poisson_binomial),
        accounting=Accountable(
            "poisson-binomial",
            "The Poisson-binomial mechanism, in the worst case over the other clients",
            (
                CLIENTS,
                CLIENT_TRIALS,
                Option("theta", float, "Largest distance of a trial's probability from 1/2.", low=SMALLEST_THETA, high=LARGEST_THETA),
                FRAMED_DIMENSION,
                Option("order", float, "Rényi order above 1, or inf: show the divergence of one coefficient there; none by default.", None),
            ),
            _account_poisson_binomial,
            given=(CLIENTS, CLIENT_TRIALS, FRAMED_DIMENSION),
            solve=_solve_poisson_binomial,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(_toss_bits),
    ),
)
