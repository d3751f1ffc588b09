"""The registry's entries for the frequencies of items in a secure sum: sketches, or histograms, with noise from every client."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...arguments import check_integer
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.privacy import Privacy, Scalar
from ...design.contracts.registry import Accountable, Accounted, Entry, Option, Target, Values, usual_adjacency
from ...design.contracts.task import Task
from ...design.frequencies.item_sketch import MOST_CATEGORIES, MOST_ROWS, ItemSketch
from ...design.frequencies.noisy_sketch import (
    LARGEST_VARIANCE,
    LEAST_VARIANCE,
    MOST_STEPS,
    discrete_gaussian_items_privacy,
    skellam_items_privacy,
    squared_distance,
)
from ...design.frequencies.sketched_frequencies import SketchedFrequencies
from ...design.frequencies.sketched_poisson_binomial import differing_coordinates, sketched_tosses_privacy
from ...design.frequencies.sparse_frequencies import PURSUIT_ROWS, SparseFrequencies
from ...design.noise.discrete_gaussian import LARGEST_SIGMA
from ...design.secure_sum.poisson_binomial_mechanism import SMALLEST_THETA
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.discrete_gaussian_divergence import SMALLEST_SIGMA
from ...solvers.divergences.poisson_binomial_divergence import LARGEST_THETA, MOST_TRIALS
from ..calibration.frequency_sums import (
    ADJACENCIES,
    calibrate_discrete_gaussian_frequencies,
    calibrate_skellam_frequencies,
    calibrate_sketched_tosses,
)
from ..calibration.item_sketches import LARGEST_MESSAGE, LARGEST_SLACK, ItemSketchChoice, predicted_error
from ..calibration.sparse_frequencies import calibrate_sparse_frequencies
from .lower_bounds import frequency_lower_bound
from .shared_options import CLIENTS

PAPER = "Chen, Özgür, Cormode, Bharadwaj 2023, The communication cost of security and privacy in federated frequency estimation"
ITEMS = Option("categories", int, "Number of items.", low=2, high=MOST_CATEGORIES, unit="items")
ROWS = Option("rows", int, "Rows of the sketch; by default those with the least predicted error.", None, 1, MOST_ROWS)
WIDTH = Option(
    "width",
    int,
    "Buckets of a row; from the number of items on, a histogram; by default the fewest within the slack.",
    None,
    2,
    MOST_CATEGORIES,
)
MESSAGE_BITS = Option(
    "message_bits", float, "Bits of a message at most, instead of the slack.", None, 1.0, LARGEST_MESSAGE, "bits", budget="message"
)
SLACK = Option("slack", float, "Largest predicted squared error over that of a histogram of all items.", 2.0, 1.0, LARGEST_SLACK)
CONCENTRATION = Option("concentration", float, "Sum of squared frequencies that is expected; 1 is the worst.", 1.0, 1e-12, 1.0)
FAILURE = Option("failure", float, "Probability with which the largest error may be above its prediction.", 0.05, 1e-12, 1 - 1e-12)
SIGNED = Option("signed", bool, "Whether hashed items have signs, as the median over rows needs.", False, flags="--signed/--unsigned")
SEED = Option("sketch_seed", int, "Public seed of the sketch.", 0, 0, 2**63 - 1)
TRIALS = Option("trials", int, "Tosses of each client for each coordinate; by default as many as are of use.", None, 1, MOST_TRIALS)
CHOICE = (ROWS, WIDTH, MESSAGE_BITS, SLACK, CONCENTRATION, FAILURE, SIGNED, SEED)
# The paper's sketch has signs.
TOSSED = (*(replace(one, default=True) if one is SIGNED else one for one in CHOICE), TRIALS)
DISTINCT = Option(
    "distinct_items",
    int,
    "Different items that are held, at most; by default as many as clients or items.",
    None,
    1,
    MOST_CATEGORIES,
)
SPARSE = (
    DISTINCT,
    replace(ROWS, default=PURSUIT_ROWS, help="Rows of the sketch."),
    replace(WIDTH, help="Buckets of a row; by default as many as the different items need, or a histogram, where that is shorter."),
    SIGNED,
    SEED,
)

OF_SKETCH = (
    CLIENTS,
    ITEMS,
    replace(ROWS, default=1, help="Rows of the sketch."),
    replace(WIDTH, help="Buckets of a row; by default one for each item: a histogram."),
    SIGNED,
    SEED,
)
STEPS = Option("steps", int, "What an item adds to a bucket.", low=1, high=MOST_STEPS)
STEP_SIGMA = Option(
    "local_sigma", float, "Parameter of each client's noise, in whole numbers.", low=SMALLEST_SIGMA, high=LARGEST_SIGMA, unit="steps"
)
STEP_VARIANCE = Option(
    "local_variance", float, "Variance of each client's noise on a bucket.", low=LEAST_VARIANCE, high=LARGEST_VARIANCE, unit="steps squared"
)
OF_TOSSES = (
    *(replace(one, default=True) if one is SIGNED else one for one in OF_SKETCH),
    replace(TRIALS, default=1, help="Tosses of each client for each coordinate."),
    Option("theta", float, "Distance of a toss's probability from 1/2.", low=SMALLEST_THETA, high=LARGEST_THETA),
)

Calibrate = Callable[[int, int, Target, Values], SketchedFrequencies]


def _choice(options: Values) -> ItemSketchChoice:
    named = ("rows", "width", "message_bits", "slack", "concentration", "failure", "signed")
    return ItemSketchChoice(**{name: options[name] for name in named}, seed=options["sketch_seed"])


def _discrete_gaussian(categories: int, clients: int, target: Target, options: Values) -> SketchedFrequencies:
    return calibrate_discrete_gaussian_frequencies(categories, clients, target, _choice(options))


def _skellam(categories: int, clients: int, target: Target, options: Values) -> SketchedFrequencies:
    return calibrate_skellam_frequencies(categories, clients, target, _choice(options))


def _tosses(categories: int, clients: int, target: Target, options: Values) -> SketchedFrequencies:
    return calibrate_sketched_tosses(categories, clients, target, _choice(options), options["trials"])


def _sparse(categories: int, clients: int, target: Target, options: Values) -> SketchedFrequencies:
    named = {name: options[name] for name in ("distinct_items", "rows", "width", "signed")}
    return calibrate_sparse_frequencies(categories, clients, target, **named, seed=options["sketch_seed"])


def _sketch(values: Values) -> ItemSketch:
    categories, width = values["categories"], values["width"]
    width = categories if width is None else width
    # Items that are not hashed have no signs.
    return ItemSketch(categories, values["rows"], width, values["sketch_seed"], values["signed"] and width < categories)


def _of_sketch(found: SketchedFrequencies, parameters: tuple[Option, ...]) -> dict[str, Any]:
    """Return the parameters by which a mechanism is accounted for."""
    sketch = found.sketch
    own = {"rows": sketch.rows, "width": sketch.width, "signed": sketch.signed, "sketch_seed": sketch.seed}
    return {one.name: own[one.name] if one.name in own else getattr(found, one.name) for one in parameters}


def _discrete_gaussian_privacy(values: Values, adjacency: str) -> tuple[Privacy, dict[str, Scalar]]:
    sketch = _sketch(values)
    distance = squared_distance(sketch, adjacency)
    privacy = discrete_gaussian_items_privacy(values["clients"], sketch.rows, distance, values["steps"], values["local_sigma"], adjacency)
    return privacy, {"squared_distance": distance}


def _skellam_privacy(values: Values, adjacency: str) -> tuple[Privacy, dict[str, Scalar]]:
    sketch = _sketch(values)
    distance = squared_distance(sketch, adjacency)
    privacy = skellam_items_privacy(values["clients"], sketch.rows, distance, values["steps"], values["local_variance"], adjacency)
    return privacy, {"squared_distance": distance}


def _tosses_privacy(values: Values, _: str) -> tuple[Privacy, dict[str, Scalar]]:
    differing = differing_coordinates(_sketch(values))
    privacy = sketched_tosses_privacy(values["clients"], values["trials"], values["theta"], differing)
    return privacy, {"differing_coordinates": differing}


def _entry(
    name: str,
    title: str,
    paper: str,
    calibrate: Calibrate,
    privacy: Callable[[Values, str], tuple[Privacy, dict[str, Scalar]]],
    *,
    parameters: tuple[Option, ...],
    accounts: tuple[str, ...],
    adjacencies: tuple[str, ...] = ADJACENCIES,
    options: tuple[Option, ...] = CHOICE,
    planned_with: tuple[str, ...] = (),
) -> Entry:
    def build(task: Task, values: Values) -> Mechanism:
        categories = check_integer("categories", task.categories(name), low=2, high=MOST_CATEGORIES)
        return calibrate(categories, task.clients, Target.of(task, name), values)

    def account(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
        neighbours = usual_adjacency(adjacency, sampling, adjacencies)
        proven, computed = privacy(values, neighbours)
        details: dict[str, Scalar] = {one.name: values[one.name] for one in parameters} | computed
        return Accounted(f"{title}, {values['clients']} clients", proven, neighbours, details=details)

    def solve(target: Target, values: Values) -> Accounted:
        neighbours = usual_adjacency(target.adjacency, target.sampling, adjacencies)
        found = calibrate(values["categories"], values["clients"], replace(target, adjacency=neighbours), values)
        subject = account(_of_sketch(found, parameters), neighbours, target.sampling)
        return replace(
            subject, bits_per_client=found.bits_per_client, details={**subject.details, **_facts(found, values)}, clients=found.clients
        )

    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Categories,),
        trust_model="secure-sum",
        adjacencies=adjacencies,
        accounts=accounts,
        options=options,
        calibrate=build,
        accounting=Accountable(name, title, parameters, account, given=(ITEMS, CLIENTS, *options), solve=solve, close=False),
        lower_bound=lambda task: frequency_lower_bound(task, "secure-sum", unbiased=False),
        planned_with=planned_with,
    )


def _facts(found: SketchedFrequencies, values: Values) -> dict[str, Any]:
    """Return what the sketch is, and what it costs."""
    sketch = found.sketch
    noise = found.item_variance / found.clients
    if isinstance(found, SparseFrequencies):
        predicted = {"distinct_items": found.distinct_items, "oracle_squared_error": found.worst_variance / found.clients}
    else:
        error = predicted_error(sketch, noise, values["concentration"], values["failure"])
        predicted = {"predicted_error": error.squared, "predicted_largest_error": error.largest}
    return {
        "categories": found.categories,
        "rows": sketch.rows,
        "width": sketch.width,
        "histogram": sketch.direct,
        "row_excess": found.row_excess,
        "modulus": found.modulus,
        "noise_deviation": noise**0.5,
        **predicted,
    }


ENTRIES = (
    _entry(
        "sketched-poisson-binomial",
        "Coin tosses for the Hadamard transforms of an item's count sketch, which hide each other",
        PAPER,
        _tosses,
        _tosses_privacy,
        parameters=OF_TOSSES,
        accounts=("pure", "rdp"),
        adjacencies=("replace-one",),
        options=TOSSED,
    ),
    _entry(
        "sketched-discrete-gaussian-frequencies",
        "Sketches of items, or a histogram, with discrete Gaussian noise from every client",
        "Kairouz, Liu, Steinke 2021, The distributed discrete Gaussian mechanism for federated learning with secure aggregation",
        _discrete_gaussian,
        _discrete_gaussian_privacy,
        parameters=(*OF_SKETCH, STEPS, STEP_SIGMA),
        accounts=("rdp", "near-gaussian"),
    ),
    _entry(
        "sketched-skellam-frequencies",
        "Sketches of items, or a histogram, with Skellam noise from every client",
        "Agarwal, Kairouz, Liu 2021, The Skellam mechanism for differentially private federated learning",
        _skellam,
        _skellam_privacy,
        parameters=(*OF_SKETCH, STEPS, STEP_VARIANCE),
        accounts=("rdp", "near-gaussian"),
    ),
    _entry(
        "sparse-discrete-gaussian-frequencies",
        "Sketches of items with discrete Gaussian noise from every client, from which the server decodes a few items",
        f"{PAPER}; Needell, Tropp 2009, CoSaMP",
        _sparse,
        _discrete_gaussian_privacy,
        parameters=(*OF_SKETCH, STEPS, STEP_SIGMA),
        accounts=("rdp", "near-gaussian"),
        options=SPARSE,
        planned_with=("distinct_items",),
    ),
)
