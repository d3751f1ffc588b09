"""The registry's linear-compression entries (Chen, Choquette-Choo, Kairouz, Suresh 2022)."""

from dataclasses import replace
from typing import Any

from ...arguments import LARGEST_DIMENSION
from ...design.central.central_sketch import CentralSketchMechanism
from ...design.contracts.gaussian import gaussian_privacy
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from ...design.contracts.options import options_of
from ...design.contracts.registry import AccountSubject, Entry, InPlaceOfBudget, Noise, Option, Values, usual_adjacency
from ...design.contracts.sketched_mechanism import CLIP_MARGIN
from ...design.contracts.task import Task
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from ...design.secure_sum.distributed_skellam import DistributedSkellamMechanism, distributed_skellam_privacy
from ...design.secure_sum.sketch_calibration import (
    DECODERS,
    LARGEST_SLACK,
    TRANSFORMS,
    USUAL_ROWS,
    CalibratedSketch,
    SketchChoice,
    calibrate_central_sketch,
    calibrate_sketched_sum,
    calibrate_sparse_sum,
    sketched_sum_of_noise,
)
from ...design.secure_sum.sketched_sum import SketchedSecureSum
from ...design.transforms.count_sketch import MOST_ROWS
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.discrete_gaussian_divergence import discrete_gaussian_tau, rounded_norm
from .local import NOISE_MULTIPLIER
from .lower_bounds import central_lower_bound
from .secure_sum import BITS, BOTH
from .shared_options import SUM_NOISE, sum_bits

MANY_ROUNDS = 100
# Factors by which candidate sketches divide the number of coordinates.
SHARES = (2, 8, 32)
FLOAT_BITS = 64
PAPER = (
    "Chen, Choquette-Choo, Kairouz, Suresh 2022, The fundamental price of secure aggregation in differentially private federated learning"
)
SKETCH_BITS = replace(BITS, help="Bits of a coordinate of the sketch: sums are taken modulo 2**bits, or less.", budget="sketch")
SLACK = Option("slack", float, "Largest predicted error over that without a sketch.", 2.0, 1.0, LARGEST_SLACK)
ROWS = Option("rows", int, "Rows of a count-mean sketch; 15 by default.", None, 1, MOST_ROWS)
SKETCH_DIMENSION = Option(
    "sketch_dimension", int, "Coordinates of a sketch; by default the fewest within the slack.", None, 1, LARGEST_DIMENSION, "coordinates"
)
TRANSFORM = Option("transform", str, "How vectors are compressed.", "count-mean", choices=TRANSFORMS)
SKETCH_SEED = Option("sketch_seed", int, "Public seed of the sketch and of the rotation.", 0, 0, 2**63 - 1)
SKETCH_CLIP = Option(
    "sketch_clip", float, "L2 norm that sketches are clipped to.", CLIP_MARGIN, 1 / LARGEST_CLIP_NORM, LARGEST_CLIP_NORM, "vectors' units"
)
DECODER = Option(
    "decoder", str, "Whether the mean or the median over a count-mean sketch's rows is the estimate.", "mean", choices=DECODERS
)
SPARSITY = Option("sparsity", int, "Coordinates of the mean that are expected not to be zero.", low=1, high=LARGEST_DIMENSION)
REFIT = Option("refit", bool, "Whether least squares follow the Lasso, whose estimates are too short.", True, flags="--refit/--no-refit")
# The sum adds up rotated sketches, so the padded dimension of the sketch is a parameter, not the vectors' dimension.
SUMMED = {option.name: option for option in options_of(DistributedDiscreteGaussianMechanism)}
SKETCH_PARAMETERS = (
    SUMMED["clients"],
    replace(SUMMED["dimension"], name="padded_dimension", help="Number of coordinates of a rotated sketch."),
    SKETCH_CLIP,
    SUMMED["local_sigma"],
    SUMMED["granularity"],
)
SKELLAM_PARAMETERS = (
    *SKETCH_PARAMETERS[:3],
    *(option for option in options_of(DistributedSkellamMechanism) if option.name == "local_variance"),
    SUMMED["granularity"],
)
SPARSE = (SPARSITY, replace(TRANSFORM, default="hadamard"), ROWS, SKETCH_DIMENSION, REFIT, SKETCH_SEED)
CHOICE = (TRANSFORM, ROWS, SKETCH_DIMENSION, SLACK, SKETCH_SEED)


def sketch_choice(options: Values) -> SketchChoice:
    """Return the sketch of an entry's design choices."""
    # Sparse sums have no slack.
    kept = {name: options[name] for name in ("transform", "rows", "sketch_dimension", "slack") if name in options}
    return SketchChoice(**kept, seed=options["sketch_seed"])


def _calibrated_sum(task: Task, options: Values, name: str, noise: str) -> CalibratedSketch[SketchedSecureSum]:
    ball, budget, decoder = task.ball(name, (2.0,)), task.budget_of(name), options["decoder"]
    return calibrate_sketched_sum(ball, task.clients, options["bits"], budget, sketch_choice(options), noise=noise, decoder=decoder)


def _calibrated_gaussian(task: Task, options: Values) -> CalibratedSketch[SketchedSecureSum]:
    return _calibrated_sum(task, options, "sketched-discrete-gaussian", "discrete-gaussian")


def _calibrated_skellam(task: Task, options: Values) -> CalibratedSketch[SketchedSecureSum]:
    return _calibrated_sum(task, options, "sketched-skellam", "skellam")


def _sketched_of_noise(task: Task, options: Values) -> Mechanism:
    ball, budget = task.ball("sketched-discrete-gaussian", (2.0,)), task.budget_of("sketched-discrete-gaussian")
    choice, noise_multiplier = sketch_choice(options), options[SUM_NOISE.name]
    return sketched_sum_of_noise(ball, task.clients, options["bits"], budget, choice, noise_multiplier, options["decoder"])


def _calibrated_central(task: Task, options: Values) -> CalibratedSketch[CentralSketchMechanism]:
    ball, budget = task.ball("central-sketch", (2.0,)), task.budget_of("central-sketch")
    return calibrate_central_sketch(ball, task.clients, budget, sketch_choice(options))


def _errors(calibrated: CalibratedSketch[Any]) -> dict[str, float]:
    """Return the squared error at the largest mean, with and without a sketch."""
    compressed = calibrated.compressed_error
    return {
        "compressed_error": compressed,
        "plain_error": calibrated.plain_error,
        f"compressed_error_of_{MANY_ROUNDS}_rounds": compressed / MANY_ROUNDS,
    }


def _sparse(task: Task, options: Values) -> Mechanism:
    name = "sparse-discrete-gaussian"
    ball, budget = task.ball(name, (2.0,)), task.budget_of(name)
    return calibrate_sparse_sum(
        ball, task.clients, options["bits"], budget, sketch_choice(options), options["sparsity"], refit=options["refit"]
    )


def _account_sketched(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    names = ("clients", "padded_dimension", "sketch_clip", "local_sigma", "granularity")
    clients, padded, clip, sigma, granularity = (values[name] for name in names)
    neighbours = usual_adjacency(adjacency, sampling, BOTH)
    return AccountSubject(
        f"distributed discrete Gaussian, {clients} clients, dimension {padded}, clip norm {clip:g}, of sketches",
        discrete_gaussian_privacy(clients, padded, clip, sigma, granularity, neighbours),
        neighbours,
        details={
            **{name: values[name] for name in names},
            "tau": discrete_gaussian_tau(clients, sigma / granularity),
            "rounded_norm": rounded_norm(clip, granularity, padded),
        },
        # The central reference needs the vectors' dimension and norm, which the subject does not state.
        clients=clients,
    )


def _of_sketched(mechanism: SketchedSecureSum) -> Values:
    inner: Any = mechanism.inner
    own = {name: getattr(inner, name) for name in ("clients", "padded_dimension", "local_sigma", "granularity")}
    return {**own, "sketch_clip": mechanism.sketch_clip}


def _account_skellam(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    clients, padded, clip, variance, granularity = (values[parameter.name] for parameter in SKELLAM_PARAMETERS)
    neighbours = usual_adjacency(adjacency, sampling, BOTH)
    return AccountSubject(
        f"distributed Skellam, {clients} clients, dimension {padded}, clip norm {clip:g}, of sketches",
        distributed_skellam_privacy(clients, padded, clip, variance, granularity, neighbours),
        neighbours,
        details={**values, "rounded_norm": rounded_norm(clip, granularity, padded)},
        clients=clients,
    )


def _of_skellam(mechanism: SketchedSecureSum) -> Values:
    inner: Any = mechanism.inner
    return {parameter.name: getattr(inner, parameter.name, mechanism.sketch_clip) for parameter in SKELLAM_PARAMETERS}


def _account_central(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    multiplier, neighbours = values["noise_multiplier"], usual_adjacency(adjacency, sampling, BOTH)
    return AccountSubject(
        f"Gaussian noise on a sum of sketches, noise multiplier {multiplier:g}",
        gaussian_privacy(multiplier, neighbours, "central"),
        neighbours,
        details={"noise_multiplier": multiplier},
    )


def _sizes(task: Task, bits: int) -> list[int]:
    """Return candidate sketch lengths, which use up the task's bits or divide the coordinates."""
    # A sketch of an even number of whole rows needs no padding.
    unit = 2 * USUAL_ROWS
    longest = task.dimension - 1
    most = task.most_message_bits
    sizes = [longest // share for share in SHARES] if most is None else [min(longest, int(most / bits))]
    return [size // unit * unit for size in sizes if size >= unit]


def _sketched_candidates(task: Task) -> list[Values]:
    tried = [{"bits": bits, "sketch_dimension": size} for bits in sum_bits(task)[2:6] for size in _sizes(task, bits)]
    return [{}, *tried]


def _central_candidates(task: Task) -> list[Values]:
    return [{}, *({"sketch_dimension": size} for size in _sizes(task, FLOAT_BITS))]


SKETCHED_NOISE = Noise(
    "sketched-discrete-gaussian",
    "The distributed discrete Gaussian mechanism on sketches",
    SKETCH_PARAMETERS,
    _account_sketched,
    parameters_of=_of_sketched,
)
SKETCHED = Entry(
    name="sketched-discrete-gaussian",
    title="Sketches of the vectors in a secure sum with discrete Gaussian noise from every client",
    paper=PAPER,
    domains=(NormBall,),
    trust_model="secure-sum",
    adjacencies=BOTH,
    accounts=("rdp", "near-gaussian"),
    options=(SKETCH_BITS, *CHOICE, DECODER),
    build=lambda task, options: _calibrated_gaussian(task, options).mechanism,
    noise=SKETCHED_NOISE,
    predict=lambda task, options: _errors(_calibrated_gaussian(task, options)),
    norms=(2.0,),
    lower_bound=central_lower_bound,
    candidates=_sketched_candidates,
    in_place_of_budget=InPlaceOfBudget(SUM_NOISE, _sketched_of_noise),
    formula=(
        r"All clients share a sketch matrix $S$ of $m$ rows. Each sends the message of `distributed-discrete-gaussian` for $S x_i$, "
        r"clipped. The server decodes the sum once: $\hat x = S^\top \hat s$. A count-mean sketch adds the error $$\mathbb{E} \lVert "
        r"S^\top S \bar x - \bar x \rVert^2 = \frac{d - 1}{m} \lVert \bar x \rVert^2$$ over its seed, which all clients of a round "
        r"have in common."
    ),
    use=(
        "Use it in a secure sum where noise exceeds the signal: many coordinates, few clients or a small epsilon. The sketch then is "
        "far shorter than the vector, at no more than `slack` times the error."
    ),
)
SKELLAM = Entry(
    name="sketched-skellam",
    title="Sketches of the vectors in a secure sum with Skellam noise from every client",
    paper=PAPER,
    domains=(NormBall,),
    trust_model="secure-sum",
    adjacencies=BOTH,
    accounts=("rdp", "near-gaussian"),
    options=(SKETCH_BITS, *CHOICE, DECODER),
    build=lambda task, options: _calibrated_skellam(task, options).mechanism,
    noise=Noise(
        "sketched-skellam",
        "The distributed Skellam mechanism on sketches",
        SKELLAM_PARAMETERS,
        _account_skellam,
        parameters_of=_of_skellam,
    ),
    predict=lambda task, options: _errors(_calibrated_skellam(task, options)),
    norms=(2.0,),
    lower_bound=central_lower_bound,
    candidates=_sketched_candidates,
    formula=(
        r"All clients share a sketch matrix $S$ of $m$ rows. Each sends the message of `distributed-skellam` for $S x_i$, clipped. The "
        r"server decodes the sum once, by the mean over the rows of a count-mean sketch, $\hat x = S^\top \hat s$, or by the median."
    ),
    use=(
        "Use it in place of `sketched-discrete-gaussian` where sums of noise must have one law for any number of clients, as the published "
        "training of linear compression does."
    ),
)
ENTRIES = (
    SKETCHED,
    SKELLAM,
    Entry(
        name="sparse-discrete-gaussian",
        title="Sketches in a secure sum with discrete Gaussian noise, from which the server decodes a sparse mean",
        paper=PAPER,
        domains=(NormBall,),
        trust_model="secure-sum",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(SKETCH_BITS, *SPARSE),
        build=_sparse,
        noise=replace(
            SKETCHED_NOISE,
            name="sparse-discrete-gaussian",
            title="The distributed discrete Gaussian mechanism on measurements of a sparse mean",
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        populations=("sparse-mean",),
        formula=(
            r"All clients share a sketch matrix $S$ of $m$ rows. Each sends the message of `distributed-discrete-gaussian` for $S x_i$, "
            r"clipped. The server decodes the mean $\hat s$ of the sketches by the Lasso, $$\min_x \frac{1}{2m} \lVert \hat s - S x "
            r"\rVert_2^2 + \lambda \lVert x \rVert_1,$$ and refits the chosen coordinates by least squares."
        ),
        use=("Use it in a secure sum where the mean has few coordinates other than zero. For other means no useful error is promised."),
    ),
    Entry(
        name="central-sketch",
        title="Sketches of the vectors, to whose sum a trusted server adds Gaussian noise",
        paper=PAPER,
        domains=(NormBall,),
        trust_model="central",
        adjacencies=BOTH,
        accounts=("rdp", "rdp-classic", "pld"),
        options=CHOICE,
        build=lambda task, options: _calibrated_central(task, options).mechanism,
        noise=Noise(
            "central-sketch",
            "Gaussian noise of a trusted server on sketches",
            (NOISE_MULTIPLIER,),
            _account_central,
            parameters_of=lambda mechanism: {"noise_multiplier": mechanism.noise_multiplier},
        ),
        predict=lambda task, options: _errors(_calibrated_central(task, options)),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=_central_candidates,
        on_real_numbers=True,
        formula=(
            r"All clients share a sketch matrix $S$ of $m$ rows, and send $S x_i$, clipped to the norm $c$. A trusted server adds Gaussian "
            r"noise of standard deviation $z c$ to each coordinate of the sum ($2 z c$ for replace-one adjacency), and decodes $$\hat x = "
            r"\frac1n S^\top \left(\sum_i S x_i + \mathcal{N}(0, z^2 c^2 I)\right).$$"
        ),
        use=("Use it in comparisons, as the error of a sketch without the rounding and wrapping of a secure sum."),
    ),
)
