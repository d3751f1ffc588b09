"""The registry's entries of trusted servers, the references of plans: exact noise on the sum of rounded inputs."""

from ...design.central.central_gaussian import CentralGaussianMechanism, calibrate_central_gaussian
from ...design.central.central_laplace import CentralLaplaceMechanism, calibrate_central_laplace
from ...design.central.central_noise import CentralItems, CentralNoise, CentralNumbers
from ...design.central.central_staircase import CentralStaircaseMechanism, calibrate_central_staircase
from ...design.central.subsampled_gaussian import (
    LARGEST_SHARE,
    SMALLEST_SHARE,
    SubsampledGaussianMechanism,
    calibrate_subsampled_gaussian,
)
from ...design.contracts.calibration import over_rounds
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Option, Values
from ...design.contracts.task import Task
from .lower_bounds import central_lower_bound, frequency_lower_bound

BOTH = ("replace-one", "add-or-remove-one")
BITS = Option(
    "bits",
    int,
    "Bits of a coordinate; by default as many as let rounding add a millionth to the error.",
    None,
    2,
    40,
    "bits",
    budget="coordinate",
)
TRIED_BITS = (8, 12, 16, 20)
LETTER_BITS = Option("letter_bits", int, "Bits of the letters, one for each coordinate that is sent.", 4, 2, 8, "bits")
SHARE = Option("coordinate_share", float, "Probability that a client sends a coordinate.", 0.125, SMALLEST_SHARE, LARGEST_SHARE)
CLIP_FACTOR = Option(
    "clip_factor", float, "Largest rotated coordinate over the root of its mean square, for a longest vector.", 4.0, 0.5, 100.0
)
ROTATION_SEED = Option("rotation_seed", int, "Public seed of the rotation.", 0, 0, 2**63 - 1)
# Bits of a coordinate, and shares of the coordinates, that plans try.
TRIED_SHARES = ((4, 0.5), (4, 0.125), (3, 1 / 32))


def _lower_bound(task: Task) -> float | None:
    """Bound the squared error of every mechanism of a trusted server from below."""
    return frequency_lower_bound(task, "central", unbiased=True) if isinstance(task.domain, Categories) else central_lower_bound(task)


def _for_inputs(task: Task, inner: Mechanism) -> Mechanism:
    """Return a mechanism for vectors as one for the task's inputs."""
    assert isinstance(inner, CentralNoise)  # noqa: S101 - each builder of this module returns one
    match task.domain:
        case Categories():
            return CentralItems(inner)
        case Interval():
            return CentralNumbers(inner, (task.domain.low, task.domain.high))
        case _:
            return inner


def _ball(task: Task, name: str, norms: tuple[float, ...] | None) -> NormBall:
    """Return the ball of the task's inputs as vectors."""
    match task.domain:
        case Categories():
            return NormBall(task.domain.size, 2.0 if norms is None else norms[0])
        case Interval():
            return NormBall(1, 2.0 if norms is None else norms[0], (task.domain.high - task.domain.low) / 2)
        case _:
            return task.ball(name, norms)


def _candidates(task: Task) -> list[Values]:
    """Return the usual grid and coarser ones; accounts of sampled rounds take too long to try several."""
    return [{}] if task.sampling is not None else [{}, *({"bits": bits} for bits in TRIED_BITS)]


def _gaussian(task: Task, options: Values) -> Mechanism:
    name, items = "central-gaussian", isinstance(task.domain, Categories)
    ball, budget = _ball(task, name, None), task.budget_of(name)
    return _for_inputs(task, calibrate_central_gaussian(ball, task.clients, options["bits"], budget, items=items))


def _laplace(task: Task, options: Values) -> Mechanism:
    ball = _ball(task, "central-laplace", (1.0,))

    def build(epsilon: float) -> Mechanism:
        return calibrate_central_laplace(ball, task.clients, options["bits"], epsilon, task.adjacency)

    return _for_inputs(task, over_rounds(task.budget, build))


def _discrete_laplace(task: Task, _: Values) -> Mechanism:
    ball = _ball(task, "central-discrete-laplace", (1.0,))

    def build(epsilon: float) -> Mechanism:
        return calibrate_central_laplace(ball, task.clients, None, epsilon, task.adjacency, items=True)

    return _for_inputs(task, over_rounds(task.budget, build))


def _staircase(task: Task, options: Values) -> Mechanism:
    ball = _ball(task, "central-staircase", (1.0,))

    def build(epsilon: float) -> Mechanism:
        return calibrate_central_staircase(ball, task.clients, options["bits"], epsilon, task.adjacency)

    return _for_inputs(task, over_rounds(task.budget, build))


def _subsampled(task: Task, options: Values) -> Mechanism:
    ball, budget = task.ball("subsampled-gaussian", (2.0,)), task.budget_of("subsampled-gaussian")
    share, factor, seed = (options[name] for name in ("coordinate_share", "clip_factor", "rotation_seed"))
    return calibrate_subsampled_gaussian(ball, task.clients, options["letter_bits"], share, factor, budget, seed)


def _subsampled_candidates(task: Task) -> list[Values]:
    """Return usual shares of the coordinates, or the share that uses up the task's bits."""
    most = task.most_message_bits
    if most is None:
        return [{"letter_bits": bits, "coordinate_share": share} for bits, share in TRIED_SHARES]
    shares = {bits: most / (bits * (task.dimension + task.dimension % 2)) for bits in (2, 4)}
    return [
        {"letter_bits": bits, "coordinate_share": min(share, LARGEST_SHARE)} for bits, share in shares.items() if share >= SMALLEST_SHARE
    ]


ENTRIES = (
    Entry(
        name="central-gaussian",
        title="Discrete Gaussian noise that a trusted server adds",
        paper="Canonne, Kamath, Steinke 2020, The discrete Gaussian for differential privacy",
        domains=(NormBall, Interval, Categories),
        trust_model="central",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(BITS,),
        build=_gaussian,
        candidates=_candidates,
        mechanism=CentralGaussianMechanism,
        lower_bound=_lower_bound,
        formula=(
            r"Each of $n$ clients rounds the coordinates of its vector to whole steps $\gamma$ at random. A trusted server returns "
            r"$$\hat x = \frac{\gamma}{n} \left(\sum_i \mathrm{round}(x_i/\gamma) + \mathcal{N}_{\mathbb{Z}}(0, z^2 "
            r"\Delta_2^2)\right).$$ Here $\Delta_2$ is the $L_2$ sensitivity of the rounded sum, and $\mathcal{N}_{\mathbb{Z}}$ discrete "
            r"Gaussian noise."
        ),
        use=(
            "Use it where clients trust the server and a delta is allowed, above all for vectors of the L2 ball and over many rounds. It "
            "is the reference for mechanisms with less trust."
        ),
    ),
    Entry(
        name="central-laplace",
        title="Discrete Laplace noise on a grid that a trusted server adds",
        paper="Dwork, McSherry, Nissim, Smith 2006, Calibrating noise to sensitivity in private data analysis",
        domains=(NormBall, Interval),
        trust_model="central",
        adjacencies=BOTH,
        accounts=("pure", "rdp", "pld"),
        options=(BITS,),
        build=_laplace,
        candidates=_candidates,
        mechanism=CentralLaplaceMechanism,
        norms=(1.0,),
        lower_bound=_lower_bound,
        formula=(
            r"Each of $n$ clients rounds its vector to whole steps $\gamma$ without raising its $L_1$ norm. A trusted server returns "
            r"$$\hat x = \frac{\gamma}{n} \left(\sum_i \mathrm{round}(x_i/\gamma) + Z\right),$$ with $\Pr[Z = z] \propto e^{-|z| "
            r"\varepsilon/D}$ in each coordinate, and $D$ steps of $L_1$ sensitivity."
        ),
        use=(
            "Use it where clients trust the server and the guarantee must have no delta, for numbers and vectors of the L1 ball. For a "
            "number at an epsilon above about 3, `central-staircase` has far less error."
        ),
    ),
    Entry(
        name="central-discrete-laplace",
        title="Discrete Laplace noise that a trusted server adds to a histogram",
        paper="Ghosh, Roughgarden, Sundararajan 2012, Universally utility-maximizing privacy mechanisms",
        domains=(Categories,),
        trust_model="central",
        adjacencies=BOTH,
        accounts=("pure", "rdp", "pld"),
        options=(),
        build=_discrete_laplace,
        mechanism=CentralLaplaceMechanism,
        norms=None,
        lower_bound=_lower_bound,
        formula=(
            r"A trusted server counts the items of $n$ clients, and returns the frequencies $$\hat f(x) = \frac{c(x) + Z_x}{n}, \qquad "
            r"\Pr[Z_x = z] \propto e^{-|z| \varepsilon/D}.$$ A client that changes its item moves two counts by one each: $D = 2$. A "
            r"client that is added or removed moves one: $D = 1$."
        ),
        use=(
            "Use it for frequencies where clients trust the server: it needs no delta, and over a few rounds it has less error than "
            "Gaussian noise."
        ),
    ),
    Entry(
        name="central-staircase",
        title="Staircase noise on a number that a trusted server adds",
        paper="Geng, Viswanath 2016, The optimal noise-adding mechanism in differential privacy",
        domains=(Interval,),
        trust_model="central",
        adjacencies=BOTH,
        accounts=("pure", "rdp", "pld"),
        options=(BITS,),
        build=_staircase,
        candidates=_candidates,
        mechanism=CentralStaircaseMechanism,
        lower_bound=_lower_bound,
        formula=(
            r"Each of $n$ clients rounds its number to whole steps $\gamma$ at random. A trusted server adds whole noise to the sum, with "
            r"$$\Pr[Z = z] \propto \exp\!\left(-\varepsilon \left\lfloor \frac{|z| + D - r}{D} \right\rfloor\right),$$ where $D$ is the "
            r"sensitivity in steps. The width $r$ of the first stair has the least variance."
        ),
        use=(
            "Use it for a number where clients trust the server and the guarantee must have no delta. At a small epsilon it equals "
            "`central-laplace`; at epsilon 10 its error is 24 times smaller."
        ),
    ),
    Entry(
        name="subsampled-gaussian",
        title="Few bits of a secret sample of coordinates, to whose sum a trusted server adds Gaussian noise",
        paper=(
            "Chen, Song, Özgür, Kairouz 2023, Privacy amplification via compression: achieving the optimal "
            "privacy-accuracy-communication trade-off in distributed mean estimation"
        ),
        domains=(NormBall,),
        trust_model="central",
        adjacencies=("add-or-remove-one",),
        accounts=("rdp",),
        options=(LETTER_BITS, SHARE, CLIP_FACTOR, ROTATION_SEED),
        build=_subsampled,
        candidates=_subsampled_candidates,
        mechanism=SubsampledGaussianMechanism,
        norms=(2.0,),
        lower_bound=_lower_bound,
        formula=(
            r"All clients rotate their vectors by the same random rotation $R$, clip coordinates to $b$, and round them to whole steps "
            r"$\gamma$ at random. Client $i$ sends coordinate $j$ if the secret coin $B_{ij}$ with probability $q$ says so. A trusted "
            r"server returns $$\hat x = \frac{\gamma}{q n} R^{-1} \left(\sum_i B_i \odot \mathrm{round}(R x_i/\gamma) + "
            r"\mathcal{N}_{\mathbb{Z}/s}(0, (q z c/\gamma)^2)\right),$$ with discrete Gaussian noise on fractions $1/s$ of a step."
        ),
        use=(
            "Use it for long vectors over many rounds, where clients trust the server or an enclave and noise exceeds the error of "
            "sampling: messages are then shorter than a bit a coordinate at nearly the error of `central-gaussian`. With many clients or "
            "short vectors, sampling costs more than the noise."
        ),
    ),
)
