"""The registry's entries of the shuffled trust model: messages arrive without their senders."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...design.contracts.domains import Categories, Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Accountable, Accounted, Entry, Option, Target, Values, usual_adjacency
from ...design.contracts.task import Task
from ...design.shuffled.shuffled_items import LARGEST_EPSILON, ShuffledRandomisedResponse
from ...design.shuffled.shuffled_mechanism import ShuffledMechanism
from ...design.shuffled.shuffled_privacy import SHUFFLED_ACCOUNTS
from ...design.shuffled.shuffled_table import ShuffledTableMechanism
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import generalised_randomised_response
from ...solvers.accounting.sampling import Sampling
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ...solvers.shuffling.shuffled_letters import MOST_CLIENTS
from ..calibration.parameter import check_target
from ..calibration.shuffled import local_epsilon, shuffled_designed_table, shuffled_response_table
from .local import REPLACE_ONE
from .lower_bounds import frequency_lower_bound, unbiased_central_lower_bound
from .shared_options import tried_bits
from .tables import BITS_IN, BITS_OUT, DESIGN_SEED, RESPONSE_BITS, TABLE, table_of

# Adapts a table to a target: options, clients and target in, a table out.
TableFor = Callable[[Values, int, Target], LookupTable]

CLIENTS = Option(
    "clients", int, "Number of clients whose letters are shuffled.", low=1, high=MOST_CLIENTS, unit="clients", at_most="population"
)
LOCAL_EPSILON = Option("epsilon", float, "Pure privacy parameter of a letter by itself.", low=EPSILON_LOW, high=EPSILON_HIGH, unit="nats")
CATEGORIES = Option("categories", int, "Number of items.", low=2, high=2**31)
# A letter more than inputs: the least variance of all tables is known there, and quickly found.
MVU_OPTIONS = (replace(BITS_IN, default=3), replace(BITS_OUT, default=4))


def _accounted(mechanism: ShuffledMechanism, title: str, local: float, adjacency: str | None, **details: float) -> Accounted:
    return Accounted(
        f"{title}, {mechanism.clients} clients shuffled",
        mechanism.privacy(),
        usual_adjacency(adjacency, None, REPLACE_ONE),
        mechanism.bits_per_client,
        {"epsilon_per_round": local, "clients": mechanism.clients, "secure_sum_bits": mechanism.secure_sum_bits, **details},
    )


def _account_table(values: Values, adjacency: str | None, _: Sampling | None) -> Accounted:
    table = table_of(values["table"])
    mechanism = ShuffledTableMechanism(table, values["clients"], values["delta"])
    return _accounted(mechanism, f"{table.mechanism} table", table.certificate.realised_epsilon, adjacency)


def _table_entry(
    name: str,
    title: str,
    paper: str,
    options: tuple[Option, ...],
    table_for: TableFor,
    account: Accountable,
    candidates: Callable[[Task], Sequence[Values]],
) -> Entry:
    def calibrate(task: Task, values: Values) -> Mechanism:
        table = table_for(values, task.clients, Target.of(task))
        return ShuffledTableMechanism(table.with_interval(*task.interval(name)), task.clients, task.delta)

    def solve(target: Target, given: Values) -> Accounted:
        check_target(target)
        mechanism = ShuffledTableMechanism(table_for(given, given["clients"], target), given["clients"], target.delta)
        bits = {option.name: given[option.name] for option in options}
        subject = _accounted(mechanism, f"{mechanism.table.mechanism} table", mechanism.table.epsilon, target.adjacency, **bits)
        return replace(subject, table=mechanism.table)

    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Interval,),
        trust_model="shuffled",
        adjacencies=REPLACE_ONE,
        accounts=SHUFFLED_ACCOUNTS,
        options=options,
        calibrate=calibrate,
        accounting=replace(account, name=name, title=title, given=(CLIENTS, *options), solve=solve, close=False, designs=True),
        lower_bound=unbiased_central_lower_bound,
        candidates=candidates,
    )


def _tables_tried(task: Task) -> list[Values]:
    """Return tables, each of which is designed in seconds: those with a letter more than inputs are the best for their grid."""
    if task.most_bits is not None and task.most_bits < 2:
        return [{"bits_in": 2, "bits_out": 1}]
    tried = ({"bits_in": 2, "bits_out": 2}, {"bits_in": 3, "bits_out": 4}, {"bits_in": 4, "bits_out": 5})
    return [one for one in tried if task.most_bits is None or one["bits_out"] <= task.most_bits]


def _designed(values: Values, clients: int, target: Target) -> LookupTable:
    bits_in, bits_out = values["bits_in"], values["bits_out"]
    return shuffled_designed_table(lambda epsilon: design_mvu(epsilon, bits_in, bits_out, seed=DESIGN_SEED), clients, target)


def _response(values: Values, clients: int, target: Target) -> LookupTable:
    bits = values["bits"]
    return shuffled_response_table(lambda epsilon: generalised_randomised_response(epsilon, bits), 2**bits, clients, target)


def _account_response(values: Values, adjacency: str | None, _: Sampling | None) -> Accounted:
    table = generalised_randomised_response(values["epsilon"], values["bits"])
    mechanism = ShuffledTableMechanism(table, values["clients"], values["delta"])
    return _accounted(mechanism, f"{table.mechanism} table", values["epsilon"], adjacency, bits=values["bits"])


def _build_items(task: Task, _: Values) -> Mechanism:
    categories, clients = task.categories("shuffled-frequency-randomised-response"), task.clients
    return ShuffledRandomisedResponse(_items_epsilon(Target.of(task), categories, clients), categories, clients, task.delta)


def _items_epsilon(target: Target, categories: int, clients: int) -> float:
    return local_epsilon(lambda epsilon: ShuffledRandomisedResponse(epsilon, categories, clients).privacy(), target)


def _account_items(values: Values, adjacency: str | None, _: Sampling | None) -> Accounted:
    mechanism = ShuffledRandomisedResponse(values["epsilon"], values["categories"], values["clients"], values["delta"])
    return _accounted(mechanism, "Randomised response", values["epsilon"], adjacency, categories=values["categories"])


def _solve_items(target: Target, given: Values) -> Accounted:
    check_target(target)
    epsilon = _items_epsilon(target, given["categories"], given["clients"])
    return _account_items({**given, "epsilon": epsilon, "delta": target.delta}, target.adjacency, None)


SHUFFLED_TABLE = Accountable("shuffled", "Letters of a table that arrive shuffled, or counted", (TABLE, CLIENTS), _account_table)
SHUFFLED_MVU = _table_entry(
    "shuffled-mvu",
    "MVU for a number, its letters shuffled",
    "Chaudhuri, Guo, Rabbat 2022, Privacy-aware compression for federated data analysis; Balle, Bell, Gascón, Nissim 2019",
    MVU_OPTIONS,
    _designed,
    SHUFFLED_TABLE,
    _tables_tried,
)
SHUFFLED_RESPONSE = _table_entry(
    "shuffled-randomised-response",
    "Generalised randomised response on a grid, its letters shuffled",
    "Balle, Bell, Gascón, Nissim 2019, The privacy blanket of the shuffle model",
    (RESPONSE_BITS,),
    _response,
    replace(SHUFFLED_TABLE, parameters=(LOCAL_EPSILON, RESPONSE_BITS, CLIENTS), account=_account_response),
    tried_bits(lambda _: range(1, 7)),
)
_ITEMS_TITLE = "Each client's item, or any other one, shuffled"
SHUFFLED_ITEMS = Entry(
    name="shuffled-frequency-randomised-response",
    title=_ITEMS_TITLE,
    paper="Balle, Bell, Gascón, Nissim 2019, The privacy blanket of the shuffle model",
    domains=(Categories,),
    trust_model="shuffled",
    adjacencies=REPLACE_ONE,
    accounts=SHUFFLED_ACCOUNTS,
    options=(),
    calibrate=_build_items,
    accounting=Accountable(
        "shuffled-frequency-randomised-response",
        _ITEMS_TITLE,
        (replace(LOCAL_EPSILON, high=LARGEST_EPSILON), CATEGORIES, CLIENTS),
        _account_items,
        given=(CATEGORIES, CLIENTS),
        solve=_solve_items,
        close=False,
    ),
    lower_bound=lambda task: frequency_lower_bound(task, "central", unbiased=True),
)
ENTRIES = (SHUFFLED_MVU, SHUFFLED_RESPONSE, SHUFFLED_ITEMS)
ACCOUNTABLES = (SHUFFLED_TABLE,)
