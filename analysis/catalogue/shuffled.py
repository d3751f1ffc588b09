"""The registry's entries of the shuffled trust model, whose messages have no senders."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import AccountSubject, Entry, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Budget, Task
from ...design.shuffled.calibration import local_epsilon, shuffled_designed_table, shuffled_response_table
from ...design.shuffled.shuffled_items import ShuffledRandomisedResponse
from ...design.shuffled.shuffled_privacy import SHUFFLED_ACCOUNTS
from ...design.shuffled.shuffled_table import ShuffledTableMechanism
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import generalised_randomised_response
from ...solvers.accounting.sampling import Sampling
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.divergences.shuffled_letters import MOST_CLIENTS
from .local import REPLACE_ONE
from .lower_bounds import frequency_lower_bound, unbiased_central_lower_bound
from .shared_options import tried_bits
from .tables import BITS_IN, BITS_OUT, DESIGN_SEED, RESPONSE_BITS, TABLE, table_of

# Function of options, clients and a budget that returns a table within the budget.
TableFor = Callable[[Values, int, Budget], LookupTable]

CLIENTS = Option(
    "clients", int, "Number of clients whose letters are shuffled.", low=1, high=MOST_CLIENTS, unit="clients", at_most="population"
)
LOCAL_EPSILON = Option("epsilon", float, "Pure privacy parameter of a letter by itself.", low=EPSILON_LOW, high=EPSILON_HIGH, unit="nats")
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
ENTRIES = (SHUFFLED_MVU, SHUFFLED_RESPONSE, SHUFFLED_ITEMS)
NOISES = (SHUFFLED_TABLE,)
