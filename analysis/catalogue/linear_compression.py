"""The registry's entries with linear compression: clients send sketches of their vectors (Chen, Choquette-Choo, Kairouz, Suresh 2022)."""

from dataclasses import replace
from typing import Any

from ...design.contracts.gaussian import gaussian_privacy
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM, NormBall
from ...design.contracts.privacy import Scalar
from ...design.contracts.registry import Accountable, Accounted, Entry, Option, Target, Values, usual_adjacency
from ...design.contracts.sketched_mechanism import CLIP_MARGIN, SketchedMechanism
from ...design.contracts.task import Task
from ...design.secure_sum.distributed_discrete_gaussian import discrete_gaussian_privacy
from ...design.secure_sum.sketched_sum import SketchedSecureSum
from ...design.transforms.count_sketch import MOST_ROWS, CountMeanSketch
from ...design.transforms.linear_sketch import LARGEST_DIMENSION
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.discrete_gaussian_divergence import discrete_gaussian_tau, rounded_norm
from ..calibration.sketches import (
    LARGEST_SLACK,
    TRANSFORMS,
    USUAL_ROWS,
    CalibratedSketch,
    SketchChoice,
    calibrate_central_sketch,
    calibrate_sketched_sum,
    calibrate_sparse_sum,
)
from .local import NOISE_MULTIPLIER
from .lower_bounds import central_lower_bound
from .secure_sum import BITS, BOTH, CLIP_NORM, GRANULARITY, LOCAL_SIGMA
from .shared_options import CLIENTS, DIMENSION, sum_bits

MANY_ROUNDS = 100
# Shares of the vectors' coordinates that sketches are tried with.
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
SPARSITY = Option("sparsity", int, "Coordinates of the mean that are expected not to be zero.", low=1, high=LARGEST_DIMENSION)
REFIT = Option("refit", bool, "Whether least squares follow the Lasso, whose estimates are too short.", True, flags="--refit/--no-refit")
SKETCH_PARAMETERS = (
    CLIENTS,
    replace(DIMENSION, name="padded_dimension", help="Number of coordinates of a rotated sketch."),
    SKETCH_CLIP,
    LOCAL_SIGMA,
    GRANULARITY,
)
SPARSE = (SPARSITY, replace(TRANSFORM, default="hadamard"), ROWS, SKETCH_DIMENSION, REFIT, SKETCH_SEED)
CHOICE = (TRANSFORM, ROWS, SKETCH_DIMENSION, SLACK, SKETCH_SEED)


def sketch_choice(options: Values) -> SketchChoice:
    """Return which sketch an entry's design choices ask for."""
    # Sparse sums have no slack.
    kept = {name: options[name] for name in ("transform", "rows", "sketch_dimension", "slack") if name in options}
    return SketchChoice(**kept, seed=options["sketch_seed"])


def _sketched(task: Task, options: Values) -> Mechanism:
    name = "sketched-discrete-gaussian"
    return calibrate_sketched_sum(
        task.ball(name, (2.0,)), task.clients, options["bits"], Target.of(task, name), sketch_choice(options)
    ).mechanism


def _central(task: Task, options: Values) -> Mechanism:
    name = "central-sketch"
    return calibrate_central_sketch(task.ball(name, (2.0,)), task.clients, Target.of(task, name), sketch_choice(options)).mechanism


def _sparse(task: Task, options: Values) -> Mechanism:
    name = "sparse-discrete-gaussian"
    ball, target = task.ball(name, (2.0,)), Target.of(task, name)
    return calibrate_sparse_sum(
        ball, task.clients, options["bits"], target, sketch_choice(options), options["sparsity"], refit=options["refit"]
    )


def _account_sketched(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
    names = ("clients", "padded_dimension", "sketch_clip", "local_sigma", "granularity")
    clients, padded, clip, sigma, granularity = (values[name] for name in names)
    neighbours = usual_adjacency(adjacency, sampling, BOTH)
    return Accounted(
        f"distributed discrete Gaussian, {clients} clients, dimension {padded}, clip norm {clip:g}, of sketches",
        discrete_gaussian_privacy(clients, padded, clip, sigma, granularity, neighbours),
        neighbours,
        details={
            "clients": clients,
            "local_sigma": sigma,
            "granularity": granularity,
            "tau": discrete_gaussian_tau(clients, sigma / granularity),
            "rounded_norm": rounded_norm(clip, granularity, padded),
            "padded_dimension": padded,
            "sketch_clip": clip,
        },
        # The reference of a trusted server is for the vectors, whose dimension and norm are not known here.
        clients=clients,
    )


def _account_central(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
    multiplier, neighbours = values["noise_multiplier"], usual_adjacency(adjacency, sampling, BOTH)
    return Accounted(
        f"Gaussian noise on a sum of sketches, noise multiplier {multiplier:g}",
        gaussian_privacy(multiplier, neighbours, "central"),
        neighbours,
        details={"noise_multiplier": multiplier},
    )


def _with_errors(subject: Accounted, found: CalibratedSketch[Any], options: Values) -> Accounted:
    """Add what calibration has found, and what the error is to be measured by."""
    mechanism: SketchedMechanism = found.mechanism
    ball, sketch = mechanism.ball, mechanism.sketch
    details: dict[str, Scalar] = {
        "dimension": ball.dimension,
        "clip": ball.clip_norm,
        "transform": options["transform"],
        "sketch_dimension": sketch.sketch_dimension,
        "rows": sketch.rows if isinstance(sketch, CountMeanSketch) else None,
        "compression_rate": ball.dimension / sketch.sketch_dimension,
        "sketch_clip": mechanism.sketch_clip,
        "compressed_error": found.compressed_error,
        "plain_error": found.plain_error,
        f"compressed_error_of_{MANY_ROUNDS}_rounds": found.compressed_error / MANY_ROUNDS,
        "worst_squared_error": mechanism.error().of_mean(found.mechanism.clients),
        "bias_bound": mechanism.bias_bound,
        "clipping_probability": mechanism.clipping_probability,
    }
    return replace(subject, bits_per_client=mechanism.bits_per_client, details={**subject.details, **details}, ball=ball)


def _solve_sketched(target: Target, given: Values) -> Accounted:
    ball = NormBall(given["dimension"], 2.0, given["clip"])
    found = calibrate_sketched_sum(ball, given["clients"], given["bits"], target, sketch_choice(given))
    return _with_errors(_stated(found.mechanism, target), found, given)


def _solve_sparse(target: Target, given: Values) -> Accounted:
    ball = NormBall(given["dimension"], 2.0, given["clip"])
    found = calibrate_sparse_sum(
        ball, given["clients"], given["bits"], target, sketch_choice(given), given["sparsity"], refit=given["refit"]
    )
    subject = _stated(found, target)
    details: dict[str, Scalar] = {
        "dimension": ball.dimension,
        "clip": ball.clip_norm,
        "sparsity": found.sparsity,
        "transform": given["transform"],
        "sketch_dimension": found.sketch_dimension,
        "sketch_clip": found.sketch_clip,
        "penalty": found.penalty,
        # If the mean is as sparse as expected, and its coordinates are found.
        "oracle_squared_error": found.worst_variance / found.clients,
        "worst_squared_error": found.error().of_mean(found.clients),
        "clipping_probability": found.clipping_probability,
    }
    return replace(subject, bits_per_client=found.bits_per_client, details={**subject.details, **details}, ball=ball)


def _stated(mechanism: SketchedSecureSum, target: Target) -> Accounted:
    """Return the account of a mechanism's own parameters, and which rotation they are for: another one pads otherwise."""
    inner: Any = mechanism.inner
    values = {"clients": inner.clients, "padded_dimension": inner.padded_dimension, "sketch_clip": mechanism.sketch_clip}
    noise = {"local_sigma": inner.local_sigma, "granularity": inner.granularity}
    subject = _account_sketched({**values, **noise}, target.adjacency, target.sampling)
    return replace(subject, details={**subject.details, "rotation": inner.rotation})


def _solve_central(target: Target, given: Values) -> Accounted:
    ball = NormBall(given["dimension"], 2.0, given["clip"])
    found = calibrate_central_sketch(ball, given["clients"], target, sketch_choice(given))
    values = {"noise_multiplier": found.mechanism.noise_multiplier}
    subject = _account_central(values, target.adjacency, target.sampling)
    return replace(_with_errors(subject, found, given), clients=given["clients"])


def _sizes(task: Task, bits: int) -> list[int]:
    """Return lengths of sketches worth trying whose coordinates have a number of bits: one that uses the task's up, or a few shares."""
    # An even number of whole rows: nothing is padded.
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


ENTRIES = (
    Entry(
        name="sketched-discrete-gaussian",
        title="Sketches of the vectors in a secure sum with discrete Gaussian noise from every client",
        paper=PAPER,
        domains=(NormBall,),
        trust_model="secure-sum",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(SKETCH_BITS, *CHOICE),
        calibrate=_sketched,
        accounting=Accountable(
            "sketched-discrete-gaussian",
            "The distributed discrete Gaussian mechanism on sketches",
            SKETCH_PARAMETERS,
            _account_sketched,
            given=(CLIENTS, DIMENSION, CLIP_NORM, SKETCH_BITS, *CHOICE),
            solve=_solve_sketched,
            close=False,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=_sketched_candidates,
    ),
    Entry(
        name="sparse-discrete-gaussian",
        title="Sketches in a secure sum with discrete Gaussian noise, from which the server decodes a sparse mean",
        paper=PAPER,
        domains=(NormBall,),
        trust_model="secure-sum",
        adjacencies=BOTH,
        accounts=("rdp", "near-gaussian"),
        options=(SKETCH_BITS, *SPARSE),
        calibrate=_sparse,
        accounting=Accountable(
            "sparse-discrete-gaussian",
            "The distributed discrete Gaussian mechanism on measurements of a sparse mean",
            SKETCH_PARAMETERS,
            _account_sketched,
            given=(CLIENTS, DIMENSION, CLIP_NORM, SKETCH_BITS, *SPARSE),
            solve=_solve_sparse,
            close=False,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        populations=("sparse-mean",),
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
        calibrate=_central,
        accounting=Accountable(
            "central-sketch",
            "Gaussian noise of a trusted server on sketches",
            (NOISE_MULTIPLIER,),
            _account_central,
            given=(CLIENTS, DIMENSION, CLIP_NORM, *CHOICE),
            solve=_solve_central,
        ),
        norms=(2.0,),
        lower_bound=central_lower_bound,
        candidates=_central_candidates,
        on_real_numbers=True,
    ),
)
