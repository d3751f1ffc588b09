"""The registry's entries of the shuffled trust model, whose messages have no senders."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall, parse_norm
from ...design.contracts.options import made, options_of, values_of
from ...design.contracts.registry import REQUIRED, AccountSubject, Entry, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Budget, Task
from ...design.relative_entropy.shared_randomness import MOST_SEED_BITS
from ...design.secure_sum.delegated_sum import DelegatedSum
from ...design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from ...design.secure_sum.distributed_discrete_laplace import ROUNDING_SHARE, DistributedDiscreteLaplaceMechanism
from ...design.shuffled.calibration import response_local_epsilon, shuffled_designed_table, shuffled_response_table
from ...design.shuffled.code_calibration import calibrate_shuffled_code
from ...design.shuffled.shuffled_codes import (
    MOST_LETTER_BITS,
    ShuffledCodeMechanism,
    ShuffledRandomCoding,
    ShuffledRotatingSimplex,
)
from ...design.shuffled.shuffled_items import ShuffledRandomisedResponse
from ...design.shuffled.shuffled_privacy import SHUFFLED_ACCOUNTS
from ...design.shuffled.shuffled_table import ShuffledTableMechanism
from ...design.shuffled.split_and_mix import LARGEST_EPSILON, SplitAndMix, mixing_delta
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import generalised_randomised_response
from ...design.transforms.rotation import rotated_dimension
from ...errors import InfeasibleError
from ...solvers.accounting.sampling import Sampling
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.divergences.discrete_gaussian_divergence import MOST_BITS
from ...solvers.divergences.shuffled_letters import MOST_CLIENTS
from ...solvers.divergences.shuffled_shares import MOST_MESSAGES, messages_for_distance
from ...solvers.numerics.bisection import first_true
from .local import L2, REPLACE_ONE
from .lower_bounds import central_lower_bound, frequency_lower_bound, unbiased_central_lower_bound
from .secure_sum import build_discrete_gaussian, build_discrete_laplace
from .shared_options import ROTATION, ROTATION_SEED, tried_bits, tried_message_bits
from .tables import BITS_IN, BITS_OUT, DESIGN_SEED, RESPONSE_BITS, TABLE, table_of
from .unit_vectors import ISIK, SHAH

# Function of options, clients and a budget that returns a table within the budget.
TableFor = Callable[[Values, int, Budget], LookupTable]

CLIENTS = Option(
    "clients", int, "Number of clients whose letters are shuffled.", low=1, high=MOST_CLIENTS, unit="clients", at_most="population"
)
LOCAL_EPSILON = Option("epsilon", float, "Pure privacy parameter of a letter by itself.", low=EPSILON_LOW, high=EPSILON_HIGH, unit="nats")
# A client's time grows with the number of letters, so that more letters must be asked for.
USUAL_CORNER_BITS, USUAL_CANDIDATE_BITS = 8, 10
CODE_BITS = Option(
    "message_bits",
    int,
    "Length of a message, of the numbers of codebook and letter; by default codebooks add at most 1/64 to the error.",
    None,
    1,
    MOST_LETTER_BITS + MOST_SEED_BITS,
    "bits",
)
CORNER_BITS = Option(
    "letter_bits",
    int,
    "log2 of the number of letters, at most log2(dimension + 1); by default the best number up to 8.",
    None,
    1,
    MOST_LETTER_BITS,
    "bits",
)
CANDIDATE_BITS = replace(CORNER_BITS, help="log2 of the number of letters; by default the best number up to 10.")
# Number of designed tables that are kept.
SHARED_TABLES = 32
# With one letter more than inputs, the least variance of all tables is known and quickly computed.
MVU_OPTIONS = (replace(BITS_IN, default=3), replace(BITS_OUT, default=4))

SPLIT_BITS = Option(
    "bits",
    int,
    "Bits of a coordinate in all messages together, padding included; by default the fewest whose rounding adds at most 1 % to the error.",
    None,
    2,
    MOST_BITS * MOST_MESSAGES,
    "bits",
    budget="coordinate",
)
SUM_NOISE = Option(
    "noise",
    str,
    "Noise of the sum: laplace for the L1 norm and items, gaussian for the L2 norm, either for numbers; by default laplace if possible.",
    None,
    choices=("laplace", "gaussian"),
)
# Share of delta for mixing where the sum needs a delta.
MIXING_SHARE = 0.01
# Bits of a coordinate of a sum with Gaussian noise in steps that are fine enough.
WIDEST = 48


def _account_table(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    table = table_of(values["table"])
    return _subject(ShuffledTableMechanism(table, values["clients"], values["delta"]), table.certificate.realised_epsilon, adjacency)


def _subject(mechanism: ShuffledTableMechanism, local: float, adjacency: str | None) -> AccountSubject:
    return AccountSubject(
        f"{mechanism.table.mechanism} table, {mechanism.clients} clients shuffled",
        mechanism.privacy(),
        usual_adjacency(adjacency, None, REPLACE_ONE),
        mechanism.bits_per_client,
        {"epsilon_per_round": local, "clients": mechanism.clients, **mechanism.facts()},
    )


def _table_entry(
    name: str,
    title: str,
    paper: str,
    options: tuple[Option, ...],
    table_for: TableFor,
    account: Noise,
    candidates: Callable[[Task], Sequence[Values]],
    *,
    formula: str,
    use: str,
) -> Entry:
    def build(task: Task, values: Values) -> Mechanism:
        table = table_for(values, task.clients, task.budget)
        interval = task.interval(name)
        return ShuffledTableMechanism(table.with_interval(*interval), task.clients, task.delta, task.budget.stated_survivors(task.clients))

    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Interval,),
        trust_model="shuffled",
        adjacencies=REPLACE_ONE,
        accounts=SHUFFLED_ACCOUNTS,
        options=options,
        build=build,
        noise=replace(account, name=name, title=title),
        lower_bound=unbiased_central_lower_bound,
        candidates=candidates,
        formula=formula,
        use=use,
    )


def _tables_tried(task: Task) -> list[Values]:
    """Return quickly designed tables; with more letters than inputs, they are optimal."""
    if task.most_bits is not None and task.most_bits < 2:
        return [{"bits_in": 2, "bits_out": 1}]
    tried = ({"bits_in": 2, "bits_out": 2}, {"bits_in": 3, "bits_out": 4}, {"bits_in": 4, "bits_out": 5})
    return [options for options in tried if task.most_bits is None or options["bits_out"] <= task.most_bits]


def _designed(values: Values, clients: int, budget: Budget) -> LookupTable:
    bits_in, bits_out = values["bits_in"], values["bits_out"]
    return shuffled_designed_table(lambda epsilon: _table_of_epsilon(epsilon, bits_in, bits_out), clients, budget)


@lru_cache(maxsize=SHARED_TABLES)
def _table_of_epsilon(epsilon: float, bits_in: int, bits_out: int) -> LookupTable:
    """Return the table of a local epsilon, which plans and calibrations of the same budget share."""
    return design_mvu(epsilon, bits_in, bits_out, seed=DESIGN_SEED)


def _response(values: Values, clients: int, budget: Budget) -> LookupTable:
    bits = values["bits"]
    return shuffled_response_table(lambda epsilon: generalised_randomised_response(epsilon, bits), 2**bits, clients, budget)


def _account_response(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    table = generalised_randomised_response(values["epsilon"], values["bits"])
    subject = _subject(ShuffledTableMechanism(table, values["clients"], values["delta"]), values["epsilon"], adjacency)
    return replace(subject, details={**subject.details, "bits": values["bits"]})


def _build_items(task: Task, _: Values) -> Mechanism:
    categories, clients = task.categories("shuffled-frequency-randomised-response"), task.clients

    local = response_local_epsilon(categories, task.survivors, task.budget)
    return ShuffledRandomisedResponse(local, categories, clients, task.delta, task.budget.stated_survivors(clients))


def _of_table(mechanism: ShuffledTableMechanism) -> Values:
    return {"epsilon": mechanism.table.epsilon, "clients": mechanism.clients}


def _of_response(mechanism: ShuffledTableMechanism) -> Values:
    return {**_of_table(mechanism), "bits": mechanism.table.bits_in}


def build_split_and_mix(task: Task, values: Values) -> Mechanism:
    """Return the secure sum of least error for a task, in the fewest shares that keep the budget."""
    name = "split-and-mix"
    budget, domain, noise = task.budget_of(name), task.domain, values["noise"]
    usual = "gaussian" if isinstance(domain, NormBall) and task.ball(name, (1.0, 2.0)).norm == 2 else "laplace"
    if noise not in (None, usual) and not isinstance(domain, Interval):
        raise InfeasibleError(f"noise must be {usual} for {domain}, got {noise}")
    laplace = (noise or usual) == "laplace"
    # A pure sum leaves all of delta to mixing.
    pure = laplace and budget.rounds == 1 and budget.sampling is None and budget.method in (None, "pure")
    mixing = budget.delta * (1.0 if pure else MIXING_SHARE)
    coordinates = task.dimension if laplace else rotated_dimension(values["rotation"], task.dimension)
    if budget.epsilon > LARGEST_EPSILON:
        raise InfeasibleError(f"epsilon must be at most {LARGEST_EPSILON:g} for {name}, got {budget.epsilon:g}")
    distance = min(1.0, mixing / mixing_delta(budget.epsilon, coordinates, budget.rounds))
    sums = replace(task, delta=0.0 if pure else budget.delta - mixing, bits=None, message_bits=None)
    rotation = {"rotation": values["rotation"], "rotation_seed": values["rotation_seed"]}

    def messages(width: int) -> int:
        return messages_for_distance(task.survivors, 2**width, distance)

    def inner(width: int | None) -> SecureSumMechanism:
        """Return the secure sum modulo 2**width, or by default in the fewest bits with little rounding."""
        if laplace:
            return _sum(build_discrete_laplace(sums, {"bits": width}))
        if width is None:
            most = inner(WIDEST).error().of_mean(task.clients) * (1 + ROUNDING_SHARE)
            width = first_true(1, WIDEST, lambda width: _error_within(inner, width, most))
        return _sum(build_discrete_gaussian(sums, {"bits": width, "deviations": None, **rotation}))

    if values["bits"] is None:
        built = inner(None)
    else:
        # Padding has its share of the bits.
        allowed = values["bits"] * task.dimension // coordinates
        chosen = first_true(1, MOST_BITS + 1, lambda width: width * messages(width) > allowed) - 1
        if chosen == 0 or not _error_within(inner, chosen, math.inf):
            fewest = first_true(chosen + 1, MOST_BITS, lambda width: _error_within(inner, width, math.inf))
            needed = -(-fewest * messages(fewest) * coordinates // task.dimension)
            raise InfeasibleError(f"bits must be at least {needed} in all messages of a coordinate, got {values['bits']}")
        built = inner(chosen)
    vectors = built.vector_mechanism
    split = SplitAndMix(vectors, messages((vectors.modulus - 1).bit_length()), budget.delta)  # type: ignore[arg-type,attr-defined]
    return replace(built, inner=split) if isinstance(built, DelegatedSum) else split  # type: ignore[type-var]


def _error_within(inner: Callable[[int], SecureSumMechanism], width: int, most: float) -> bool:
    """Return whether a sum modulo 2**width exists and has an error of at most a bound."""
    try:
        mechanism = inner(width)
    except InfeasibleError as error:
        if not str(error).startswith("bits must be"):
            raise
        return False
    return mechanism.error().of_mean(mechanism.clients) <= most


def _sum(mechanism: Mechanism) -> SecureSumMechanism:
    assert isinstance(mechanism, SecureSumMechanism)  # noqa: S101 - what the builders of secure sums return
    return mechanism


# Mechanisms of the sums, by the norm of their vectors.
SUMS: Mapping[float, type[SecureSumMechanism]] = {1.0: DistributedDiscreteLaplaceMechanism, 2.0: DistributedDiscreteGaussianMechanism}
MESSAGES = Option("messages", int, "Shares of each coordinate, in as many messages.", 8, 1, MOST_MESSAGES)


def _split_parameters() -> tuple[Option, ...]:
    """Return the parameters of both kinds of sums; those of one kind have no default."""
    laplace, gaussian = ({option.name: option for option in options_of(kind)} for kind in SUMS.values())
    shared = [replace(option, default="1") if option.name == "norm" else option for option in laplace.values() if option.name in gaussian]
    alone = [
        replace(option, default=None, help=f"{option.help.removesuffix('.')}, for the {norm} norm; none by default.")
        for norm, options, others in (("L1", laplace, gaussian), ("L2", gaussian, laplace))
        for option in options.values()
        if option.name not in others
    ]
    together = replace(SPLIT_BITS, default=REQUIRED, help="Bits of a coordinate in all messages together, a multiple of their number.")
    return (*(together if option.name == "bits" else option for option in shared), MESSAGES, *alone)


def _account_split(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    norm = parse_norm(values["norm"])
    if norm not in SUMS:
        raise ValueError(f"norm must be 1 or 2 for split-and-mix, got {values['norm']}")
    kind = SUMS[norm]
    width, rest = divmod(values["bits"], values["messages"])
    if rest or not 1 <= width <= MOST_BITS:
        raise ValueError(f"bits must be a multiple of messages, at most {MOST_BITS} for each of {values['messages']}, got {values['bits']}")
    given = {**values, "bits": width}
    missing = [option.name for option in options_of(kind) if given.get(option.name) is None and option.required]
    if missing:
        raise ValueError(f"{missing[0]} must be given for split-and-mix with norm {norm:g}, got none")
    neighbours = usual_adjacency(adjacency, None, REPLACE_ONE)
    inner = made(kind, {**{name: value for name, value in given.items() if value is not None}, "adjacency": neighbours})
    split = SplitAndMix(inner, values["messages"], values["delta"])
    return AccountSubject(
        f"Shares of {inner.clients} clients mixed, L{norm:g} norm",
        split.privacy(),
        neighbours,
        split.bits_per_client,
        {**split.facts()},
        None,
        split.ball,
        inner.clients,
    )


def _of_split(mechanism: Mechanism) -> Values:
    split = mechanism.vector_mechanism
    assert isinstance(split, SplitAndMix)  # noqa: S101 - what the entry builds
    return {**values_of(split.inner), "messages": split.messages, "bits": split.messages * (split.modulus - 1).bit_length()}


def _split_candidates(task: Task) -> list[Values]:
    return [{}, {"noise": "gaussian"}] if isinstance(task.domain, Interval) else [{}]


def _split_lower_bound(task: Task) -> float | None:
    if isinstance(task.domain, Categories):
        return frequency_lower_bound(task, "central", unbiased=True)
    return central_lower_bound(task)


SHUFFLED_TABLE = Noise(
    "shuffled", "Letters of a table that arrive shuffled, or counted", (TABLE, CLIENTS), _account_table, parameters_of=_of_table
)
SHUFFLED_MVU = _table_entry(
    "shuffled-mvu",
    "MVU for a number, its letters shuffled",
    "Chaudhuri, Guo, Rabbat 2022, Privacy-aware compression for federated data analysis; Balle, Bell, Gascón, Nissim 2019",
    MVU_OPTIONS,
    _designed,
    SHUFFLED_TABLE,
    _tables_tried,
    formula=(
        r"Each of $n$ clients sends a letter of an MVU table designed for a local epsilon $\varepsilon_0$. The server sees the number "
        r"of each letter and averages their values. $\varepsilon_0$ is the largest with $$\sup_E\; P(E) - e^\varepsilon Q(E) \le "
        r"\delta$$ for the numbers of letters $P$ and $Q$ of any two neighbouring data sets, by the least proven account."
    ),
    use=(
        "Use it for numbers where a shuffler, or a secure sum of counts, hides who sent which letter. Clients then need a far smaller "
        "noise than in the local trust model."
    ),
)
SHUFFLED_RESPONSE = _table_entry(
    "shuffled-randomised-response",
    "Generalised randomised response on a grid, its letters shuffled",
    "Balle, Bell, Gascón, Nissim 2019, The privacy blanket of the shuffle model",
    (RESPONSE_BITS,),
    _response,
    replace(SHUFFLED_TABLE, parameters=(LOCAL_EPSILON, RESPONSE_BITS, CLIENTS), account=_account_response, parameters_of=_of_response),
    tried_bits(lambda _: range(1, 7)),
    formula=(
        r"Each of $n$ clients sends its grid index by generalised randomised response at a local epsilon $\varepsilon_0$: unchanged "
        r"with probability $e^{\varepsilon_0}/(e^{\varepsilon_0} + B - 1)$. The server sees the number of each of the $B = 2^b$ "
        r"letters and averages their values. A message is a uniformly random letter, whatever the input, with probability "
        r"$$\frac{B}{e^{\varepsilon_0} + B - 1},$$ and these messages hide the others: the privacy blanket."
    ),
    use=(
        "Use it for numbers in the shuffled trust model where a table in closed form is wanted. The number of bits trades rounding "
        "against noise."
    ),
)
SHUFFLED_ITEMS = Entry(
    name="shuffled-frequency-randomised-response",
    title="Each client's item, or any other one, shuffled",
    paper="Balle, Bell, Gascón, Nissim 2019, The privacy blanket of the shuffle model",
    domains=(Categories,),
    trust_model="shuffled",
    adjacencies=REPLACE_ONE,
    accounts=SHUFFLED_ACCOUNTS,
    options=(),
    build=_build_items,
    mechanism=ShuffledRandomisedResponse,
    lower_bound=lambda task: frequency_lower_bound(task, "central", unbiased=True),
    formula=(
        r"Each of $n$ clients sends its item by randomised response on $k$ items at a local epsilon $\varepsilon_0$. The server sees "
        r"the number of messages of each item. From the share $s_x$ of $x$ the frequency is estimated as $$\hat f(x) = "
        r"\frac{(e^{\varepsilon_0} + k - 1)\, s_x - 1}{e^{\varepsilon_0} - 1}.$$ A message is a uniformly random item with probability "
        r"$k/(e^{\varepsilon_0} + k - 1)$, and these messages hide the others."
    ),
    use=("Use it for frequencies of items where a shuffler, or a secure sum of counts, hides who sent which message."),
)
SPLIT_TITLE = "Random shares of a secure sum's message, mixed by a shuffler"
SPLIT_AND_MIX = Entry(
    name="split-and-mix",
    title=SPLIT_TITLE,
    paper="Balle, Bell, Gascón, Nissim 2020, Private summation in the multi-message shuffle model",
    domains=(Interval, NormBall, Categories),
    trust_model="shuffled",
    adjacencies=REPLACE_ONE,
    accounts=("pure", "rdp", "pld", "near-gaussian"),
    options=(SPLIT_BITS, SUM_NOISE, ROTATION, ROTATION_SEED),
    build=build_split_and_mix,
    noise=Noise("split-and-mix", SPLIT_TITLE, _split_parameters(), _account_split, parameters_of=_of_split),
    norms=(1.0, 2.0),
    lower_bound=_split_lower_bound,
    candidates=_split_candidates,
    formula=(
        r"Each of $n$ clients computes its message $y_i$ to a secure sum modulo $q$, with its share of the noise, and sends $m$ messages "
        r"for each coordinate: uniformly random shares with $$s_{i1} + \ldots + s_{im} \equiv y_i \pmod q.$$ The server sees the $nm$ "
        r"shares of all clients in random order, and adds them up. They are within a distance $\eta$ of shares that show only the sum, and "
        r"an $(\varepsilon, \delta)$ guarantee of $d$ coordinates of the sum becomes $(\varepsilon, \delta + (1 + e^\varepsilon) d "
        r"\eta)$, where about $$\eta \approx \frac12 \sqrt{\frac{q\, n^2}{\binom{nm}{m}}}.$$"
    ),
    use=(
        "Use it where a shuffler is available and secure aggregation is not: its error is that of a secure sum, in several messages for "
        "each coordinate. All messages of a client must arrive, as the loss of a single message destroys the sum."
    ),
)


def _code_entry(
    name: str, title: str, paper: str, kind: type[ShuffledCodeMechanism], letter_bits: Option, usual: int, *, formula: str, use: str
) -> Entry:
    def build(task: Task, values: Values) -> Mechanism:
        return calibrate_shuffled_code(
            kind,
            task.ball(name, L2),
            task.clients,
            task.budget,
            usual_letter_bits=usual,
            letter_bits=values["letter_bits"],
            message_bits=values["message_bits"],
            most_bits=task.most_message_bits,
        )

    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(NormBall,),
        trust_model="shuffled",
        adjacencies=REPLACE_ONE,
        accounts=SHUFFLED_ACCOUNTS,
        options=(CODE_BITS, letter_bits),
        build=build,
        mechanism=kind,
        norms=L2,
        lower_bound=unbiased_central_lower_bound,
        candidates=tried_message_bits((8, 12, 16, 20), MOST_LETTER_BITS + MOST_SEED_BITS),
        formula=formula,
        use=use,
    )


SHUFFLED_SIMPLEX = _code_entry(
    "shuffled-rotating-simplex",
    "Rotating simplex: one of the closest corners of a public random simplex, shuffled",
    f"{ISIK}; Balle, Bell, Gascón, Nissim 2019",
    ShuffledRotatingSimplex,
    CORNER_BITS,
    USUAL_CORNER_BITS,
    formula=(
        r"Each of $n$ clients draws one of $2^s$ public rotations of a simplex of $M = 2^b$ corners, and sends the numbers of the rotation "
        r"and of a corner. Each of the $k$ corners closest to the vector has the probability $e^{\varepsilon_0}/(k e^{\varepsilon_0} + M - "
        r"k)$, each other one $1/(k e^{\varepsilon_0} + M - k)$. The server sees the messages without senders, and averages the corners "
        r"over $$\frac{m}{c}, \qquad m = \sqrt{\frac{M}{M-1}}\; \frac{e^{\varepsilon_0} - 1}{k e^{\varepsilon_0} + M - k}\; "
        r"\frac{S}{\chi_d},$$ with $S$, $\chi_d$ and $c$ as in `rotating-simplex`. $\varepsilon_0$ is the largest that keeps the budget "
        r"for two vectors without a common closest corner, which are the worst."
    ),
    use=(
        "Use it for vectors of the L2 ball where a shuffler hides who sent which message. It has no bias over the public seed of a round, "
        "which must be new in each round."
    ),
)
SHUFFLED_CODING = _code_entry(
    "shuffled-random-coding",
    "The number of a close public random candidate, shuffled",
    f"{SHAH}; Balle, Bell, Gascón, Nissim 2019",
    ShuffledRandomCoding,
    CANDIDATE_BITS,
    USUAL_CANDIDATE_BITS,
    formula=(
        r"Each of $n$ clients draws one of $2^s$ public lists of $M = 2^b$ random unit vectors, and sends the numbers of the list and of a "
        r"vector. Each of the $k$ vectors closest to its own has the probability $e^{\varepsilon_0}/(k e^{\varepsilon_0} + M - k)$, each "
        r"other one $1/(k e^{\varepsilon_0} + M - k)$. With $S$ the mean of the sum of the $k$ largest of $M$ coordinates of random unit "
        r"vectors and $c$ the clip norm, a vector $s$ is decoded to $$\frac{c}{m}\, s, \qquad m = \frac{e^{\varepsilon_0} - 1}{k "
        r"e^{\varepsilon_0} + M - k}\; S.$$"
    ),
    use=(
        "Use it in place of `shuffled-rotating-simplex` in few dimensions, or for very many clients, where a simplex has too few corners. "
        "Clients take more time."
    ),
)
ENTRIES = (SHUFFLED_MVU, SHUFFLED_RESPONSE, SHUFFLED_ITEMS, SPLIT_AND_MIX, SHUFFLED_SIMPLEX, SHUFFLED_CODING)
NOISES = (SHUFFLED_TABLE,)
