"""The registry's entries for frequencies in a secure sum: noisy sketches or histograms."""

from collections.abc import Callable
from dataclasses import replace

from ...arguments import MOST_ITEMS, check_integer
from ...design.contracts.domains import Categories
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.registry import Entry, Option, Values
from ...design.contracts.task import Budget, Task
from ...design.frequencies.item_sketch import MOST_ROWS
from ...design.frequencies.noisy_sketch import SketchedDiscreteGaussianFrequencies, SketchedSkellamFrequencies
from ...design.frequencies.sketch_calibration import (
    LARGEST_MESSAGE,
    LARGEST_SLACK,
    ItemSketchChoice,
    calibrate_discrete_gaussian_frequencies,
    calibrate_skellam_frequencies,
    calibrate_sketched_tosses,
    predicted_error,
)
from ...design.frequencies.sketched_frequencies import SketchedFrequencies
from ...design.frequencies.sketched_poisson_binomial import SketchedPoissonBinomialFrequencies
from ...design.frequencies.sparse_frequencies import PURSUIT_ROWS, SparseFrequencies, calibrate_sparse_frequencies
from ...solvers.divergences.poisson_binomial_divergence import MOST_TRIALS
from .lower_bounds import frequency_lower_bound

PAPER = "Chen, Özgür, Cormode, Bharadwaj 2023, The communication cost of security and privacy in federated frequency estimation"
ITEMS = Option("categories", int, "Number of items.", low=2, high=MOST_ITEMS, unit="items")
ROWS = Option("rows", int, "Rows of the sketch; by default those with the least predicted error.", None, 1, MOST_ROWS)
WIDTH = Option(
    "width",
    int,
    "Buckets of a row; from the number of items on, a histogram; by default the fewest within the slack.",
    None,
    2,
    MOST_ITEMS,
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
# The published sketch has signs.
TOSSED = (*(replace(option, default=True) if option is SIGNED else option for option in CHOICE), TRIALS)
DISTINCT = Option(
    "distinct_items",
    int,
    "Different items that are held, at most; by default as many as clients or items.",
    None,
    1,
    MOST_ITEMS,
)
SPARSE = (
    DISTINCT,
    replace(ROWS, default=PURSUIT_ROWS, help="Rows of the sketch."),
    replace(WIDTH, help="Buckets of a row; by default as many as the different items need, or a histogram, where that is shorter."),
    SIGNED,
    SEED,
)

Calibrate = Callable[[int, int, Budget, Values], SketchedFrequencies]


def _choice(options: Values) -> ItemSketchChoice:
    named = ("rows", "width", "message_bits", "slack", "concentration", "failure", "signed")
    return ItemSketchChoice(**{name: options[name] for name in named}, seed=options["sketch_seed"])


def _discrete_gaussian(categories: int, clients: int, budget: Budget, options: Values) -> SketchedFrequencies:
    return calibrate_discrete_gaussian_frequencies(categories, clients, budget, _choice(options))


def _skellam(categories: int, clients: int, budget: Budget, options: Values) -> SketchedFrequencies:
    return calibrate_skellam_frequencies(categories, clients, budget, _choice(options))


def _tosses(categories: int, clients: int, budget: Budget, options: Values) -> SketchedFrequencies:
    return calibrate_sketched_tosses(categories, clients, budget, _choice(options), options["trials"])


def _sparse(categories: int, clients: int, budget: Budget, options: Values) -> SketchedFrequencies:
    named = {name: options[name] for name in ("distinct_items", "rows", "width", "signed")}
    return calibrate_sparse_frequencies(categories, clients, budget, **named, seed=options["sketch_seed"])


def _entry(
    name: str,
    title: str,
    paper: str,
    calibrate: Calibrate,
    mechanism: type[SketchedFrequencies],
    *,
    accounts: tuple[str, ...],
    adjacencies: tuple[str, ...] = ADJACENCIES,
    options: tuple[Option, ...] = CHOICE,
    planned_with: tuple[str, ...] = (),
    unbiased: bool = True,
    formula: str,
    use: str,
) -> Entry:
    def build(task: Task, values: Values) -> SketchedFrequencies:
        categories = check_integer("categories", task.categories(name), low=2, high=MOST_ITEMS)
        return calibrate(categories, task.clients, task.budget_of(name), values)

    def predict(task: Task, values: Values) -> Values:
        built = build(task, values)
        error = predicted_error(built.sketch, built.item_variance / built.clients, values["concentration"], values["failure"])
        return {"predicted_error": error.squared, "predicted_largest_error": error.largest}

    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Categories,),
        trust_model="secure-sum",
        adjacencies=adjacencies,
        accounts=accounts,
        options=options,
        build=build,
        mechanism=mechanism,
        lower_bound=lambda task: frequency_lower_bound(task, "secure-sum", unbiased=False),
        planned_with=planned_with,
        predict=predict if unbiased else lambda *_: {},
        formula=formula,
        use=use,
    )


SPARSE_FREQUENCIES = _entry(
    "sparse-discrete-gaussian-frequencies",
    "Sketches of items with discrete Gaussian noise from every client, from which the server decodes a few items",
    f"{PAPER}; Needell, Tropp 2009, CoSaMP",
    _sparse,
    SparseFrequencies,
    accounts=("rdp", "near-gaussian"),
    options=SPARSE,
    planned_with=("distinct_items",),
    unbiased=False,
    formula=(
        r"Each of $n$ clients sends the noisy sketch $y = k\, S e_x + \mathcal{N}_{\mathbb{Z}}(0, \sigma^2)$ of its item modulo $M$, "
        r"as by `sketched-discrete-gaussian-frequencies`. From the mean $\hat s$ of the sketches, the server finds the few items above "
        r"the noise, and solves $$\min_f \lVert \hat s - k\, S f \rVert_2^2$$ over these items alone."
    ),
    use=("Use it in a secure sum where all clients together hold few different items of a long list. Other items are estimated as zero."),
)
ENTRIES = (
    _entry(
        "sketched-poisson-binomial",
        "Coin tosses for the Hadamard transforms of an item's count sketch, which hide each other",
        PAPER,
        _tosses,
        SketchedPoissonBinomialFrequencies,
        accounts=("pure", "rdp"),
        adjacencies=("replace-one",),
        options=TOSSED,
        formula=(
            r"Each of $t$ rows of a count sketch puts the item $x$ into bucket $h(x)$ of $w$, with a sign $s(x)$, and is transformed by a "
            r"Hadamard matrix $H$. For every entry $j$ of a row the client sends $$Y_j \sim \mathrm{Bin}\!\left(L,\; \frac12 + \theta\, "
            r"s(x)\, H_{j, h(x)}\right).$$ The server sees the sums, transforms them back, and averages over rows. Two items differ in "
            r"$w/2$ entries of a row in which their buckets differ."
        ),
        use=("Use it for frequencies in a secure sum whose clients should draw nothing but coin tosses. The sums never wrap around."),
    ),
    _entry(
        "sketched-discrete-gaussian-frequencies",
        "Sketches of items, or a histogram, with discrete Gaussian noise from every client",
        "Kairouz, Liu, Steinke 2021, The distributed discrete Gaussian mechanism for federated learning with secure aggregation",
        _discrete_gaussian,
        SketchedDiscreteGaussianFrequencies,
        accounts=("rdp", "near-gaussian"),
        formula=(
            r"Each of $n$ clients adds $k$ steps, with a sign if signed, to the bucket of its item in each of $t$ rows of $w$ buckets, and "
            r"adds discrete Gaussian noise to every bucket: $$y = k\, S e_x + \text{noise} \bmod M.$$ The server sees the sum. An item's "
            r"frequency is the mean of its buckets over the rows, without the share of collisions; with one row and a bucket for each item "
            r"the sum is a noisy histogram. Two items' sketches are $k \sqrt{2t}$ apart at most, without signs."
        ),
        use=(
            "Use it for frequencies of items in a secure sum. Its sketch is as short as `slack` permits, and is the histogram itself "
            "where that is shorter."
        ),
    ),
    _entry(
        "sketched-skellam-frequencies",
        "Sketches of items, or a histogram, with Skellam noise from every client",
        "Agarwal, Kairouz, Liu 2021, The Skellam mechanism for differentially private federated learning",
        _skellam,
        SketchedSkellamFrequencies,
        accounts=("rdp", "near-gaussian"),
        formula=(
            r"Each of $n$ clients adds $k$ steps, with a sign if signed, to the bucket of its item in each of $t$ rows of $w$ buckets, and "
            r"adds Skellam noise to every bucket: $$y = k\, S e_x + \text{noise} \bmod M.$$ The server sees the sum. An item's frequency "
            r"is the mean of its buckets over the rows, without the share of collisions; with one row and a bucket for each item the sum "
            r"is a noisy histogram. Two items' sketches are $k \sqrt{2t}$ apart at most, without signs."
        ),
        use=(
            "Use it for frequencies of items in a secure sum where each client's noise is small: Skellam noise has an exact law in the "
            "sum, whatever its size."
        ),
    ),
    SPARSE_FREQUENCIES,
)
