"""The registry's entries of the local trust model, whose messages are private by themselves."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...arguments import LARGEST_DIMENSION
from ...design.contracts.calibration import SMALLEST_PURE_EPSILON, calibrate_parameter, over_rounds, per_round_epsilon
from ...design.contracts.domains import Interval
from ...design.contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall, parse_norm
from ...design.contracts.registry import AccountSubject, Entry, InPlaceOfBudget, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Budget, Task
from ...design.local.cldp import CLDPMechanism, index_bits, vector_cldp_mechanism
from ...design.local.laplace import LARGEST_PURE_EPSILON, LaplaceMechanism, VectorLaplaceMechanism, laplace_privacy
from ...design.local.sqkr import SQKRMechanism, sqkr_mechanism
from ...design.local.vector_gaussian import VectorGaussianMechanism, calibrate_noise_multiplier, noise_adjacency
from ...design.local.vector_skellam import SkellamMechanism, skellam_mechanism, skellam_privacy
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.accounting.sampling import FixedSizeSampling, Sampling
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW, ratio_constraint
from ...solvers.bounds.staircase import staircase_bound
from .lower_bounds import local_lower_bound, unbiased_local_lower_bound
from .shared_options import MESSAGE_NOISE, PURE_EPSILON, TRUST_MODEL, tried_bits, tried_message_bits

REPLACE_ONE = ("replace-one",)
PURE_ACCOUNTS = ("pure", "rdp", "pld")
CLDP_DRAWS = Option(
    "draws",
    int,
    "Draws of one private vector in a message, on the L2 ball: 1 as published, the dimension as Chaudhuri, Guo, Rabbat 2022 have it.",
    1,
    1,
    LARGEST_DIMENSION,
    "draws",
)
SKELLAM_BITS = Option("bits", int, "Bits per coordinate.", 16, 2, 32, "bits", budget="coordinate")
SQKR_BITS = Option("message_bits", int, "Bits of the message; by default the best number.", None, 1, 16, "bits")
# Number of bits of the grid for computing the least average variance of all unbiased mechanisms.
BOUND_BITS = 3


def scalar_lower_bound(task: Task) -> float | None:
    """Return a lower bound on the squared error of unbiased, purely private local mechanisms.

    The largest variance over the interval is at least the average over a grid, which is at least the certified optimum with unlimited
    letters (`staircase_bound`).
    """
    if not isinstance(task.domain, Interval) or task.delta > 0 or not EPSILON_LOW <= task.epsilon / task.rounds <= EPSILON_HIGH:
        return None
    inputs = 2**BOUND_BITS
    constraint = ratio_constraint(task.epsilon / task.rounds, BOUND_BITS, None)
    bound = staircase_bound(BOUND_BITS, constraint, np.full(inputs, 1 / inputs)).lower_bound
    return bound * (task.domain.high - task.domain.low) ** 2 / task.clients


def unbiased_lower_bound(task: Task) -> float | None:
    """Return the lower bound for numbers or vectors; numbers with a delta count as vectors."""
    if not isinstance(task.domain, Interval):
        return unbiased_local_lower_bound(task)
    certified = scalar_lower_bound(task)
    return unbiased_local_lower_bound(replace(task, domain=task.domain.ball(task.adjacency))) if certified is None else certified


def _cldp(task: Task, options: Values) -> Mechanism:
    if isinstance(task.domain, Interval):
        if options["draws"] != 1:
            raise ValueError(f"draws must be 1 for CLDP on numbers, got {options['draws']}: only the L2 ball has a private vector")
        return CLDPMechanism(per_round_epsilon(task.budget), task.interval("cldp"))
    ball = task.ball("cldp", (1.0, 2.0, math.inf))
    return over_rounds(task.budget, lambda epsilon: vector_cldp_mechanism(epsilon, ball, options["draws"]))


def _cldp_draws(task: Task) -> list[Values]:
    """Return one draw and, on the L2 ball, the most draws that the bits and dimension allow."""
    if not isinstance(task.domain, NormBall) or task.domain.norm != 2:
        return [{}]
    dimension = task.domain.dimension
    most = dimension if task.bits is None else min(dimension, math.floor(task.bits * dimension / index_bits(dimension)))
    return [{}] if most < 2 else [{}, {"draws": most}]


def _laplace(task: Task, _: Values) -> Mechanism:
    if isinstance(task.domain, Interval):
        interval = task.interval("laplace")
        return over_rounds(task.budget, lambda epsilon: LaplaceMechanism(epsilon, interval, delta=task.delta))
    ball = task.ball("laplace")
    return over_rounds(task.budget, lambda epsilon: VectorLaplaceMechanism(epsilon, ball, task.delta))


def _account_laplace(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    epsilon = values["epsilon"]
    # The server sees which clients report, so sampled clients are accounted for as Laplace noise of a trusted server.
    adjacencies = REPLACE_ONE if sampling is None else ("add-or-remove-one",)
    if isinstance(sampling, FixedSizeSampling):
        raise ValueError(f"sampling must be Poisson sampling for laplace, of which alone an account is known, got {str(sampling)!r}")
    neighbours = usual_adjacency(adjacency, sampling, adjacencies)
    trust_model = "local" if sampling is None else "central"
    dimension, norm = values.get("dimension") or 1, parse_norm(values.get("norm") or "1")
    return AccountSubject(
        f"Laplace noise, epsilon {epsilon:g} per round",
        laplace_privacy(epsilon, adjacency=neighbours, trust_model=trust_model, dimension=dimension, norm=norm),
        neighbours,
        details={"epsilon_per_round": epsilon},
    )


def _solve_laplace(budget: Budget, _: Values) -> Values:
    def epsilon_of(epsilon: float) -> float:
        subject = _account_laplace({"epsilon": epsilon}, budget.adjacency, budget.sampling)
        return subject.report(budget.delta, budget.rounds, budget.sampling).epsilon_by(budget.method)

    low, high = SMALLEST_PURE_EPSILON, LARGEST_PURE_EPSILON
    return {"epsilon": calibrate_parameter(epsilon_of, budget, low=low, high=high, name="epsilon per round", pure=True)}


def _of_laplace(mechanism: LaplaceMechanism | VectorLaplaceMechanism) -> Values:
    if isinstance(mechanism, LaplaceMechanism):
        return {"epsilon": mechanism.epsilon}
    return {"epsilon": mechanism.epsilon, "dimension": mechanism.ball.dimension, "norm": f"{mechanism.ball.norm:g}"}


def _gaussian(task: Task, _: Values) -> Mechanism:
    ball, budget = task.ball("gaussian"), task.budget_of("gaussian")
    return VectorGaussianMechanism(calibrate_noise_multiplier(budget, "local"), budget.delta, ball)


def _gaussian_of_noise(task: Task, options: Values) -> Mechanism:
    return VectorGaussianMechanism(options[MESSAGE_NOISE.name], task.check_delta("gaussian"), task.ball("gaussian"))


def _account_gaussian(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    multiplier, trust_model = values["noise_multiplier"], _trust_model(values, sampling)
    neighbours = noise_adjacency(adjacency, sampling, trust_model)
    return AccountSubject(
        f"Gaussian noise, noise multiplier {multiplier:g}",
        gaussian_privacy(multiplier, neighbours, trust_model),
        neighbours,
        details={"noise_multiplier": multiplier},
    )


def _solve_gaussian(budget: Budget, given: Values) -> Values:
    return {"noise_multiplier": calibrate_noise_multiplier(budget, _trust_model(given, budget.sampling))}


def _trust_model(values: Values, sampling: Sampling | None) -> str:
    return values.get("trust_model") or ("local" if sampling is None else "central")


def _skellam(task: Task, options: Values) -> Mechanism:
    ball, delta = task.ball("skellam", (2.0,)), task.check_delta("skellam")
    return over_rounds(task.budget, lambda epsilon: skellam_mechanism(epsilon, delta, ball, options["bits"]))


def _account_skellam(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    variance, l1, l2 = values["variance"], values["l1"], values["l2"]
    return AccountSubject(
        f"Skellam noise, variance {variance:g}, sensitivities {l1:g} (L1) and {l2:g} (L2)",
        skellam_privacy(variance, l1, l2, values.get("trust_model") or "local"),
        usual_adjacency(adjacency, None, REPLACE_ONE),
        details={"variance": variance, "l1": l1, "l2": l2},
    )


def _of_skellam(mechanism: SkellamMechanism) -> Values:
    return {"variance": mechanism.noise_variance, "l1": mechanism.l1_sensitivity, "l2": mechanism.l2_sensitivity}


def _sqkr(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return sqkr_mechanism(epsilon, ball) if options["message_bits"] is None else SQKRMechanism(epsilon, options["message_bits"], ball)


def pure_vector(
    name: str, build: Callable[[float, NormBall, Values], Mechanism], norms: tuple[float, ...]
) -> Callable[[Task, Values], Mechanism]:
    """Return a builder of purely private vector mechanisms from the epsilon of each round."""
    return lambda task, options: build(per_round_epsilon(task.budget), task.ball(name, norms), options)


L2 = (2.0,)
NOISE_MULTIPLIER = Option(
    "noise_multiplier",
    float,
    "Standard deviation over the L2 sensitivity for the adjacency.",
    low=SMALLEST_MULTIPLIER,
    high=LARGEST_MULTIPLIER,
)
GIRGIS = "Girgis, Data, Diggavi, Kairouz, Suresh 2021, Shuffled model of differential privacy in federated learning"

CLDP = Entry(
    name="cldp",
    title="CLDP: the sign of one number about the input, by randomised response",
    paper=GIRGIS,
    domains=(Interval, NormBall),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(CLDP_DRAWS,),
    build=_cldp,
    norms=(1.0, 2.0, math.inf),
    lower_bound=unbiased_lower_bound,
    candidates=_cldp_draws,
    formula=(
        r"A number, as $t$ in $[-1, 1]$, becomes the bit 1 with probability $(1 + Ct)/2$, where $C = (e^\varepsilon - "
        r"1)/(e^\varepsilon + 1)$. The bit is decoded to $1/C$ or $-1/C$: $$\mathrm{Var} = \frac{1}{C^2} - t^2.$$ A vector sends a "
        r"random index and such a bit. The number is the coordinate there for the $L_\infty$ ball, an entry of the Walsh-Hadamard "
        r"transform for $L_1$, and a coordinate of a private vector around the input for $L_2$."
    ),
    use=(
        "Use it for numbers that must fit into one bit, in closed form. For vectors it serves L1, L2 and L-infinity balls with an "
        "index and a bit; on the L2 ball `rotating-simplex` has less error."
    ),
)
LAPLACE = Entry(
    name="laplace",
    title="Laplace noise on every coordinate, uncompressed",
    paper="Dwork, McSherry, Nissim, Smith 2006, Calibrating noise to sensitivity in private data analysis",
    domains=(Interval, NormBall),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(),
    build=_laplace,
    noise=Noise(
        "laplace",
        "Laplace noise, its scale the L1 sensitivity over epsilon",
        (
            PURE_EPSILON,
            Option("dimension", int, "Number of coordinates; matters for norms above 1 only.", 1, 1, LARGEST_DIMENSION, "coordinates"),
            Option("norm", str, "p of the ball of the vectors.", "1", numeric=True),
        ),
        _account_laplace,
        solve=_solve_laplace,
        parameters_of=_of_laplace,
        pure=True,
        adjacencies=ADJACENCIES,
        offered=lambda _, sampling, __: REPLACE_ONE if sampling is None else ("add-or-remove-one",),
    ),
    lower_bound=unbiased_lower_bound,
    on_real_numbers=True,
    formula=(
        r"With $\Delta_1$ the largest $L_1$ distance of two inputs, every coordinate is sent with noise: $$y = x + "
        r"\mathrm{Lap}\!\left(\frac{\Delta_1}{\varepsilon}\right), \qquad \mathrm{Var} = \frac{2 \Delta_1^2}{\varepsilon^2} \text{ for "
        r"each coordinate}.$$"
    ),
    use=("Use it in comparisons, as the reference for pure privacy without compression."),
)
GAUSSIAN = Entry(
    name="gaussian",
    title="Gaussian noise on every coordinate, uncompressed",
    paper="Balle, Wang 2018, Improving the Gaussian mechanism for differential privacy",
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=("rdp", "rdp-classic", "pld"),
    options=(),
    build=_gaussian,
    noise=Noise(
        "gaussian",
        "Gaussian noise, also with sampled clients",
        (NOISE_MULTIPLIER, TRUST_MODEL),
        _account_gaussian,
        given=(TRUST_MODEL,),
        solve=_solve_gaussian,
        parameters_of=lambda mechanism: {"noise_multiplier": mechanism.noise_multiplier},
        adjacencies=ADJACENCIES,
        offered=lambda values, sampling, _: REPLACE_ONE if _trust_model(values, sampling) == "local" else ADJACENCIES,
    ),
    lower_bound=unbiased_local_lower_bound,
    on_real_numbers=True,
    in_place_of_budget=InPlaceOfBudget(MESSAGE_NOISE, _gaussian_of_noise),
    formula=(
        r"With $\Delta_2$ the largest $L_2$ distance of two inputs, the client sends $y = x + \mathcal{N}(0, z^2 \Delta_2^2 I)$. For "
        r"one round, $z$ is the least noise multiplier with $$\Phi\!\left(\frac{1}{2z} - \varepsilon z\right) - e^\varepsilon\, "
        r"\Phi\!\left(-\frac{1}{2z} - \varepsilon z\right) \le \delta.$$"
    ),
    use=("Use it in comparisons, as the reference for local noise without compression, for balls of every norm."),
)
SKELLAM = Entry(
    name="skellam",
    title="Skellam noise on rounded coordinates, modulo a power of two",
    paper="Agarwal, Kairouz, Liu 2021, The Skellam mechanism for differentially private federated learning",
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=("rdp",),
    options=(SKELLAM_BITS,),
    build=_skellam,
    noise=Noise(
        "skellam",
        "Skellam noise on whole numbers",
        (
            Option("variance", float, "Variance of a coordinate's noise, in squared steps.", low=1e-100, high=1e100),
            Option("l1", float, "L1 sensitivity, in steps.", low=1e-100, high=1e100),
            Option("l2", float, "L2 sensitivity, in steps.", low=1e-100, high=1e100),
            TRUST_MODEL,
        ),
        _account_skellam,
        parameters_of=_of_skellam,
    ),
    norms=L2,
    lower_bound=local_lower_bound,
    candidates=tried_bits(lambda _: range(8, 21, 2)),
    formula=(
        r"The vector is rounded to multiples of the granularity $\gamma$ without bias, and gets the difference of two Poisson numbers "
        r"in every coordinate: $$y = \mathrm{round}(x/\gamma) + \mathrm{Pois}(\mu/2) - \mathrm{Pois}(\mu/2) \bmod 2^b,$$ which is "
        r"decoded to $\gamma y$. The noise has the variance $\gamma^2 \mu$ in each coordinate."
    ),
    use=(
        "Use it for vectors of the L2 ball whose clients add all the noise themselves, where the noise must be drawn exactly in whole "
        "numbers. In comparisons it stands for Gaussian noise."
    ),
)
SQKR = Entry(
    name="sqkr",
    title="SQKR: bits of a Kashin representation at public random coordinates",
    paper="Chen, Kairouz, Özgür 2020, Breaking the communication-privacy-accuracy trilemma",
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(SQKR_BITS,),
    build=pure_vector("sqkr", _sqkr, L2),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
    candidates=tried_message_bits((1, 2), int(SQKR_BITS.high)),
    formula=(
        r"The vector has coefficients $a$ in a public frame, none above the level $K$ in absolute value. Each of $b$ public random "
        r"coefficients becomes a bit, up with probability $(1 + a/K)/2$. With $C = (e^\varepsilon - 1)/(e^\varepsilon + 2^b - 1)$, the "
        r"symbol of all $b$ bits is kept with probability $C$, and replaced by a uniformly random one otherwise. With $N$ the size of "
        r"the frame, a sign at a coefficient is decoded to $$\pm \frac{N K}{b\, C}.$$"
    ),
    use=(
        "Use it for vectors of the L2 ball in a few bits where the server must decode many clients quickly: it adds up signs by "
        "coordinate and decodes once. `rotating-simplex` has less error at small numbers of bits."
    ),
)

ENTRIES: tuple[Entry, ...] = (CLDP, LAPLACE, GAUSSIAN, SKELLAM, SQKR)
