"""The registry's entries of the shuffled trust model, whose messages have no senders."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import AccountSubject, Entry, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Budget, Task
from ...design.shuffled.calibration import local_epsilon, shuffled_designed_table, shuffled_response_table
from ...design.shuffled.code_calibration import calibrate_shuffled_code
from ...design.shuffled.shuffled_codes import (
    MOST_LETTER_BITS,
    MOST_SEED_BITS,
    ShuffledCodeMechanism,
    ShuffledRandomCoding,
    ShuffledRotatingSimplex,
)
from ...design.shuffled.shuffled_items import ShuffledRandomisedResponse
from ...design.shuffled.shuffled_privacy import SHUFFLED_ACCOUNTS
from ...design.shuffled.shuffled_table import ShuffledTableMechanism
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import generalised_randomised_response
from ...solvers.accounting.sampling import Sampling
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.divergences.shuffled_letters import MOST_CLIENTS
from .local import L2, REPLACE_ONE
from .lower_bounds import frequency_lower_bound, unbiased_central_lower_bound
from .shared_options import tried_bits, tried_message_bits
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
# With one letter more than inputs, the least variance of all tables is known and quickly computed.
MVU_OPTIONS = (replace(BITS_IN, default=3), replace(BITS_OUT, default=4))


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
    return shuffled_designed_table(lambda epsilon: design_mvu(epsilon, bits_in, bits_out, seed=DESIGN_SEED), clients, budget)


def _response(values: Values, clients: int, budget: Budget) -> LookupTable:
    bits = values["bits"]
    return shuffled_response_table(lambda epsilon: generalised_randomised_response(epsilon, bits), 2**bits, clients, budget)


def _account_response(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    table = generalised_randomised_response(values["epsilon"], values["bits"])
    subject = _subject(ShuffledTableMechanism(table, values["clients"], values["delta"]), values["epsilon"], adjacency)
    return replace(subject, details={**subject.details, "bits": values["bits"]})


def _build_items(task: Task, _: Values) -> Mechanism:
    categories, clients = task.categories("shuffled-frequency-randomised-response"), task.clients

    def made(epsilon: float) -> ShuffledRandomisedResponse:
        return ShuffledRandomisedResponse(epsilon, categories, clients, task.delta, task.budget.stated_survivors(clients))

    return made(local_epsilon(lambda epsilon: made(epsilon).privacy(), task.budget))


def _of_table(mechanism: ShuffledTableMechanism) -> Values:
    return {"epsilon": mechanism.table.epsilon, "clients": mechanism.clients}


def _of_response(mechanism: ShuffledTableMechanism) -> Values:
    return {**_of_table(mechanism), "bits": mechanism.table.bits_in}


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
        r"and of a corner. Each of the $k$ corners closest to the vector has the probability $e^{arepsilon_0}/(k e^{arepsilon_0} + M - "
        r"k)$, each other one $1/(k e^{arepsilon_0} + M - k)$. The server sees the messages without senders, and averages the corners "
        r"over $$rac{m}{c}, \qquad m = \sqrt{rac{M}{M-1}}\; rac{e^{arepsilon_0} - 1}{k e^{arepsilon_0} + M - k}\; "
        r"rac{S}{\chi_d},$$ with $S$, $\chi_d$ and $c$ as in `rotating-simplex`. $arepsilon_0$ is the largest that keeps the budget for "
        r"two vectors without a common closest corner, which are the worst."
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
        r"vector. Each of the $k$ vectors closest to its own has the probability $e^{arepsilon_0}/(k e^{arepsilon_0} + M - k)$, each "
        r"other one $1/(k e^{arepsilon_0} + M - k)$. With $S$ the mean of the sum of the $k$ largest of $M$ coordinates of random unit "
        r"vectors and $c$ the clip norm, a vector $s$ is decoded to $$rac{c}{m}\, s, \qquad m = rac{e^{arepsilon_0} - 1}{k "
        r"e^{arepsilon_0} + M - k}\; S.$$"
    ),
    use=(
        "Use it in place of `shuffled-rotating-simplex` in few dimensions, or for very many clients, where a simplex has too few corners. "
        "Clients take more time."
    ),
)
ENTRIES = (SHUFFLED_MVU, SHUFFLED_RESPONSE, SHUFFLED_ITEMS, SHUFFLED_SIMPLEX, SHUFFLED_CODING)
NOISES = (SHUFFLED_TABLE,)
