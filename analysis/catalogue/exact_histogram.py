"""The registry's entry for exact frequencies in a secure sum; it keeps no budget."""

from typing import Any

from ...arguments import MOST_CATEGORIES
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import AccountSubject, Entry, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Task
from ...design.frequencies.exact_histogram import (
    MOST_CLIENTS,
    MOST_ENTRIES,
    MOST_MEASUREMENTS,
    BernoulliCode,
    ExactHistogramMechanism,
    IdentityCode,
    exact_histogram_privacy,
)
from ...errors import InfeasibleError
from ...solvers.accounting.sampling import Sampling
from ...solvers.decoders.exact_histogram import LONGEST_TIME
from ...solvers.limits.histogram_code_size import MOST_CLIENTS as MOST_CODED_CLIENTS
from ...solvers.limits.histogram_code_size import code_size
from ...solvers.limits.histogram_entropy import uniform_histogram_entropy

NAME = "exact-histogram"
TITLE = "Columns of a linear code, from whose sum the server decodes the exact histogram; no privacy beyond the secure sum"
# Largest sizes for which decoding a code of rigorous size takes seconds (docs/how-to/exact-histograms.md).
FEW_CLIENTS, FEW_CATEGORIES = 30, 1000
CODE = Option(
    "code",
    str,
    f"By default the shorter one, bernoulli only for up to {FEW_CLIENTS} clients and {FEW_CATEGORIES} items, where decoding is fast.",
    None,
    choices=("bernoulli", "identity"),
)
MEASUREMENTS = Option(
    "measurements",
    int,
    "Numbers in a message of the Bernoulli code; by default enough for all histograms.",
    None,
    1,
    MOST_MEASUREMENTS,
)
FAILURE = Option("failure", float, "Probability over seeds that these are not enough, which decoding then says.", 0.01, 1e-12, 1 - 1e-12)
SEED = Option("code_seed", int, "Public seed of the Bernoulli code.", 0, 0, 2**63 - 1)
TIME_LIMIT = Option("time_limit", float, "Seconds that decoding may take.", 60.0, 0.0, LONGEST_TIME, "seconds")
OPTIONS = (CODE, MEASUREMENTS, FAILURE, SEED, TIME_LIMIT)


def _code(categories: int, clients: int, options: Values) -> BernoulliCode | IdentityCode:
    if clients > MOST_CLIENTS:
        raise InfeasibleError(f"clients must be at most {MOST_CLIENTS} for {NAME}, got {clients}")
    identity = IdentityCode(categories, clients)
    if options["code"] == "identity":
        return identity
    asked, measurements = options["code"] == "bernoulli" or options["measurements"] is not None, options["measurements"]
    if not asked and (clients > FEW_CLIENTS or categories > FEW_CATEGORIES):
        return identity
    if measurements is None:
        if clients > MOST_CODED_CLIENTS:
            raise InfeasibleError(f"measurements must be given for more than {MOST_CODED_CLIENTS} clients, got {clients} clients")
        measurements = code_size(clients, categories, options["failure"])
    if not asked and measurements >= categories:
        return identity
    if measurements * categories > MOST_ENTRIES:
        raise InfeasibleError(
            f"categories must be at most {MOST_ENTRIES // measurements} for a code of {measurements} measurements to be decoded, got "
            f"{categories}"
        )
    return BernoulliCode(categories, clients, measurements, options["code_seed"])


def _build(task: Task, options: Values) -> Mechanism:
    return ExactHistogramMechanism(_code(task.categories(NAME), task.clients, options), options["time_limit"])


def _account(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    neighbours = usual_adjacency(adjacency, sampling, ("replace-one",))
    categories, clients = values["categories"], values["clients"]
    details: dict[str, Any] = {"standard_error": 0.0}
    bits = None
    if categories is not None and clients is not None:
        code = _code(categories, clients, values)
        bits = code.bits_per_client
        details |= {
            "categories": categories,
            "clients": clients,
            "code": "identity" if isinstance(code, IdentityCode) else "bernoulli",
            "measurements": code.measurements,
            "modulus": code.modulus,
            "log2_histograms": uniform_histogram_entropy(categories, clients).lower,
        }
    return AccountSubject("exact histogram in a secure sum", exact_histogram_privacy(), neighbours, bits, details, clients=clients)


EXACT_HISTOGRAM = Entry(
    name=NAME,
    title=TITLE,
    paper="Chen, Özgür, Cormode, Bharadwaj 2023, The communication cost of security and privacy in federated frequency estimation",
    domains=(Categories,),
    trust_model="secure-sum",
    adjacencies=("replace-one",),
    accounts=("none",),
    options=OPTIONS,
    build=_build,
    noise=Noise(
        NAME,
        TITLE,
        (
            Option(
                "categories",
                int,
                "Number of items; without it, bits are not said.",
                None,
                1,
                MOST_CATEGORIES,
                "items",
            ),
            Option(
                "clients",
                int,
                "Number of clients; without it, bits are not said.",
                None,
                1,
                MOST_CLIENTS,
                "clients",
                at_most="population",
            ),
            *OPTIONS,
        ),
        _account,
    ),
    private=False,
    formula=(
        r"With a public matrix $S$ of entries 0 and 1, the client with item $x$ sends the column $S e_x$ modulo $M$. The server sees "
        r"$S \mu$ for the histogram $\mu$, and finds the only vector of whole numbers with $$S \mu = y, \qquad \mu \ge 0, \qquad "
        r"\sum_x \mu_x = n.$$ The identity code sends the histogram itself."
    ),
    use=("Use it where a secure sum is protection enough and counts must be exact. It adds no noise: epsilon is infinite."),
)
ENTRIES = (EXACT_HISTOGRAM,)
