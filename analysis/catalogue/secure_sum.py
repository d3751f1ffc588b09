"""The registry's entries of secure sums, whose server sees only a modular sum of messages."""

import math
from collections.abc import Callable
from dataclasses import replace

from ...design.contracts.calibration import over_rounds
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, InPlaceOfBudget, Option, Values
from ...design.contracts.task import Task
from ...design.secure_sum.cpsgd import MOST_BITS as MOST_CPSGD_BITS
from ...design.secure_sum.cpsgd import CpsgdMechanism, calibrate_cpsgd
from ...design.secure_sum.delegated_sum import ItemSum, NumberSum
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ...design.secure_sum.distributed_discrete_laplace import (
    DistributedDiscreteLaplaceMechanism,
    calibrate_distributed_discrete_laplace,
)
from ...design.secure_sum.distributed_skellam import (
    DistributedSkellamMechanism,
)
from ...design.secure_sum.poisson_binomial_mechanism import PoissonBinomialMechanism, calibrate_poisson_binomial
from ...design.secure_sum.rounded_secure_sum import RoundedSecureSum
from ...design.secure_sum.shared_noise import (
    calibrate_discrete_gaussian,
    calibrate_distributed_skellam,
    calibrate_finest_steps,
    discrete_gaussian_of_noise,
)
from ...design.transforms.rotation import rotated_dimension
from ...solvers.divergences.discrete_gaussian_divergence import MOST_BITS
from ...solvers.divergences.poisson_binomial_divergence import MOST_TRIALS
from .lower_bounds import central_lower_bound, frequency_lower_bound
from .shared_options import ROTATION, ROTATION_SEED, SUM_NOISE, sum_bits, tried_bits

BOTH = ("add-or-remove-one", "replace-one")
# Number of clients from which accounting for many tosses is slow.
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
LAPLACE_BITS = replace(BITS, help="Bits of a coordinate; by default the fewest whose rounding adds at most 1 % to the error.", default=None)
CPSGD_BITS = replace(BITS, help="Bits of a coordinate of the sum; by default the fewest within 1 % of the least error.", default=None)
DEVIATIONS = Option(
    "deviations",
    float,
    "Standard deviations of a coordinate of the sum in half the modulus; by default 4, in steps that are no finer than is of use.",
    None,
    0.1,
    100.0,
)
TRIALS = Option(
    "trials", int, "Trials of each client for each coordinate; the best number that the bits hold by default.", None, 1, MOST_TRIALS
)
ROTATED = Option("rotated", bool, "Whether vectors are rotated before they are quantised.", True, flags="--rotated/--plain")
# Steps of margin by which the ball exceeds the interval: calibration ends close to the longest steps, with varying accuracy.
STEP = 1.01


def _serve_numbers(calibrate: Callable[[Task, Values], SecureSumMechanism]) -> Callable[[Task, Values], Mechanism]:
    """Extend a calibration for vectors to intervals by a `NumberSum`."""

    def calibrated(task: Task, values: Values) -> Mechanism:
        if not isinstance(task.domain, Interval):
            return calibrate(task, values)
        ball = task.domain.ball(task.adjacency)
        inner = calibrate(replace(task, domain=ball), values)
        if isinstance(inner, RoundedSecureSum) and STEP * inner.granularity < ball.clip_norm / 2:
            # Widen the ball by a step; steps lengthen in proportion to the ball.
            wider = ball.clip_norm / (1 - STEP * inner.granularity / ball.clip_norm)
            inner = calibrate(replace(task, domain=replace(ball, clip_norm=wider)), values)
        return NumberSum(inner, (task.domain.low, task.domain.high))

    return calibrated


def _rounded(
    name: str, mechanism: Callable[..., SecureSumMechanism], calibrate: Callable[..., dict[str, float]], noise: str
) -> Callable[[Task, Values], SecureSumMechanism]:
    """Return a builder of sums of rounded vectors; `noise` names the calibrated noise size."""

    def build(task: Task, options: Values) -> SecureSumMechanism:
        ball, budget, bits, rotation = task.ball(name, (2.0,)), task.budget_of(name), options["bits"], options["rotation"]
        padded = rotated_dimension(rotation, ball.dimension)
        if options["deviations"] is None:
            calibrated = calibrate_finest_steps(calibrate, task.clients, padded, ball.clip_norm, bits, budget)
        else:
            calibrated = calibrate(task.clients, padded, ball.clip_norm, bits, budget, options["deviations"])
        fitting = (ball, task.clients, bits, calibrated["granularity"], calibrated[noise])
        survivors = budget.stated_survivors(task.clients)
        return mechanism(*fitting, task.delta, options["rotation_seed"], rotation, task.adjacency, survivors)

    return build


def _discrete_gaussian_of_noise(task: Task, options: Values) -> SecureSumMechanism:
    name = "distributed-discrete-gaussian"
    ball, budget = task.ball(name, (2.0,)), task.budget_of(name)
    rotation = {"rotation": options["rotation"], "rotation_seed": options["rotation_seed"]}
    return discrete_gaussian_of_noise(ball, task.clients, options["bits"], budget, options[SUM_NOISE.name], **rotation)


def _cpsgd(task: Task, options: Values) -> SecureSumMechanism:
    ball, budget = task.ball("cpsgd", (2.0,)), task.budget_of("cpsgd")
    bits = None if options["bits"] is None else min(options["bits"], MOST_CPSGD_BITS)
    return calibrate_cpsgd(ball, task.clients, bits, budget, rotated=options["rotated"], rotation_seed=options["rotation_seed"])


def _poisson_binomial(task: Task, options: Values) -> SecureSumMechanism:
    ball, budget = task.ball("poisson-binomial", (2.0,)), task.budget_of("poisson-binomial")
    return calibrate_poisson_binomial(
        ball, task.clients, options["bits"], budget, trials=options["trials"], frame_seed=options["rotation_seed"]
    )


def build_discrete_laplace(task: Task, options: Values) -> SecureSumMechanism:
    """Return the distributed discrete Laplace mechanism for a task."""
    name, domain = "distributed-discrete-laplace", task.domain
    match domain:
        case Categories():
            ball = NormBall(domain.size, 1.0)
        case Interval():
            ball = NormBall(1, 1.0, (domain.high - domain.low) / 2)
        case _:
            ball = task.ball(name, (1.0,))
    survivors = task.budget.stated_survivors(task.clients)

    def build(epsilon: float) -> DistributedDiscreteLaplaceMechanism:
        return calibrate_distributed_discrete_laplace(
            ball, task.clients, options["bits"], epsilon, task.adjacency, survivors=survivors, whole=isinstance(domain, Categories)
        )

    inner = over_rounds(task.budget, build)
    assert isinstance(inner, DistributedDiscreteLaplaceMechanism)  # noqa: S101 - what `build` returns
    match domain:
        case Categories():
            return ItemSum(inner)
        case Interval():
            return NumberSum(inner, (domain.low, domain.high))
        case _:
            return inner


build_discrete_gaussian = _serve_numbers(
    _rounded("distributed-discrete-gaussian", DistributedDiscreteGaussianMechanism, calibrate_discrete_gaussian, "local_sigma")
)
"""Return the distributed discrete Gaussian mechanism for a task."""


def _laplace_lower_bound(task: Task) -> float | None:
    """Bound the squared error of every mechanism with a private estimate, of items or vectors."""
    if isinstance(task.domain, Categories):
        return frequency_lower_bound(task, "secure-sum", unbiased=True)
    return central_lower_bound(task)


def _laplace_candidates(task: Task) -> list[Values]:
    return [{}] if isinstance(task.domain, Categories) else [{}, *({"bits": bits} for bits in sum_bits(task))]


def _toss_bits(task: Task) -> range:
    """Return the number of bits for one toss per client, plus one for few clients."""
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
        options=(BITS, DEVIATIONS, ROTATION, ROTATION_SEED),
        build=build_discrete_gaussian,
        mechanism=DistributedDiscreteGaussianMechanism,
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(sum_bits),
        in_place_of_budget=InPlaceOfBudget(SUM_NOISE, _discrete_gaussian_of_noise),
        formula=(
            r"With $R$ a public random rotation, each of $n$ clients sends $$y_i = \mathrm{round}(R x_i/\gamma) + "
            r"\mathcal{N}_{\mathbb{Z}}(0, \sigma^2/\gamma^2) \bmod 2^b,$$ with discrete Gaussian noise in every coordinate. The server "
            r"sees the sum $s$ of the messages modulo $2^b$ and returns $\frac{\gamma}{n} R^\top s$. The mean has noise of variance about "
            r"$\sigma^2/n$ in each coordinate."
        ),
        use=(
            "Use it for the mean of vectors in a secure sum. With enough bits its error is close to that of a trusted server's Gaussian "
            "noise. With few bits `distributed-skellam` may have less error."
        ),
    ),
    Entry(
        name="distributed-skellam",
        title="Rotated, rounded vectors with Skellam noise from every client",
        paper="Agarwal, Kairouz, Liu 2021, The Skellam mechanism for differentially private federated learning",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(BITS, DEVIATIONS, ROTATION, ROTATION_SEED),
        build=_serve_numbers(_rounded("distributed-skellam", DistributedSkellamMechanism, calibrate_distributed_skellam, "local_variance")),
        mechanism=DistributedSkellamMechanism,
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(sum_bits),
        formula=(
            r"With $R$ a public random rotation, each of $n$ clients sends $$y_i = \mathrm{round}(R x_i/\gamma) + \mathrm{Pois}(\mu/2) - "
            r"\mathrm{Pois}(\mu/2) \bmod 2^b.$$ The server sees the sum $s$ of the messages modulo $2^b$ and returns $\frac{\gamma}{n} "
            r"R^\top s$. The sum has Skellam noise of variance $n \mu$, and the mean one of $\gamma^2 \mu/n$, in each coordinate."
        ),
        use=(
            "Use it for the mean of vectors in a secure sum with few bits for each coordinate: the sum's noise has an exact law however "
            "little each client adds."
        ),
    ),
    Entry(
        name="distributed-discrete-laplace",
        title="Rounded vectors, numbers or items, with shares of discrete Laplace noise from every client",
        paper="Goryczka, Xiong 2017, A comprehensive comparison of multiparty secure additions with differential privacy",
        domains=(NormBall, Interval, Categories),
        trust_model="secure-sum",
        adjacencies=("replace-one", "add-or-remove-one"),
        accounts=("pure", "rdp", "pld"),
        options=(LAPLACE_BITS,),
        build=build_discrete_laplace,
        mechanism=DistributedDiscreteLaplaceMechanism,
        norms=(1.0,),
        lower_bound=_laplace_lower_bound,
        candidates=_laplace_candidates,
        formula=(
            r"Each of $n$ clients rounds its vector to whole steps $\gamma$ without raising its $L_1$ norm, and sends $$y_i = "
            r"\mathrm{round}(x_i/\gamma) + P_i - P_i' \bmod 2^b,$$ with negative binomial numbers $P_i, P_i'$ of shape $1/n$ and "
            r"ratio $q = e^{-1/s}$ in every coordinate. The noise of the sum has the probability $\frac{1 - q}{1 + q}\, q^{|z|}$ at "
            r"$z$, and the mean a variance of $\frac{2 q}{(1 - q)^2} \left(\frac{\gamma}{n}\right)^2$ in each coordinate. With $D$ "
            r"steps of $L_1$ sensitivity, $\varepsilon = D/s$."
        ),
        use=(
            "Use it in a secure sum for a guarantee without delta: numbers, histograms, and vectors of the L1 ball. Over more than about "
            "eight rounds Gaussian noise with a delta has less error. State the task's `dropout` if clients may drop out."
        ),
    ),
    Entry(
        name="cpsgd",
        title="A few levels for each coordinate, and binomial noise from every client",
        paper="Agarwal, Suresh, Yu, Kumar, McMahan 2018, cpSGD: communication-efficient and differentially-private distributed SGD",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=ADJACENCIES,
        accounts=("theorem-1", "rdp", "near-gaussian"),
        options=(CPSGD_BITS, ROTATED, ROTATION_SEED),
        build=_serve_numbers(_cpsgd),
        mechanism=CpsgdMechanism,
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(sum_bits),
        formula=(
            r"A coordinate of $[-X, X]$ is rounded without bias to one of the levels $0, \ldots, k-1$. Each of $n$ clients sends its level "
            r"plus $\mathrm{Bin}(m, p)$, modulo $n(k - 1 + m) + 1$. The server subtracts $n m p$ from the sum $s$, and returns for each "
            r"coordinate $$\frac{2X}{k-1} \cdot \frac{s - n m p}{n} - X.$$ The noise of the mean has the variance "
            r"$\left(\frac{2X}{k-1}\right)^2 \frac{m p (1-p)}{n}$."
        ),
        use=(
            "Use it in a secure sum that must never wrap around, or to compare with published results. `distributed-discrete-gaussian` has "
            "a little less error in as many bits."
        ),
    ),
    Entry(
        name="poisson-binomial",
        title="A few biased coin tosses for each coordinate, which hide each other",
        paper="Chen, Özgür, Kairouz 2022, The Poisson binomial mechanism for unbiased federated learning with secure aggregation",
        domains=(NormBall, Interval),
        trust_model="secure-sum",
        adjacencies=("replace-one",),
        accounts=("pure", "rdp", "pld", "rdp-extremes"),
        options=(BITS, TRIALS, ROTATION_SEED),
        build=_serve_numbers(_poisson_binomial),
        mechanism=PoissonBinomialMechanism,
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=tried_bits(_toss_bits),
        formula=(
            r"The vector is written in a public tight frame of $N$ columns, with coefficients $z$, none above the level $K$ in absolute "
            r"value. For each of them a client sends $$Y \sim \mathrm{Bin}\!\left(L,\; \frac12 + \theta\, \frac{z}{K}\right), \qquad \hat "
            r"z = \frac{K}{\theta L n} \left(\sum Y - \frac{nL}{2}\right)$$ is the server's estimate of the mean coefficient, and the "
            r"frame gives back the vector."
        ),
        use=(
            "Use it in a secure sum whose clients should draw nothing but coin tosses: messages are bounded, the estimate has no noise "
            "beyond them, and sums never wrap around."
        ),
    ),
)
