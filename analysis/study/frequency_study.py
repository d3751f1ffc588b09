"""Private frequencies of a column of items, with their errors, true values and lower bounds."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ...arguments import check_integer
from ...arrays import FloatArray
from ...design.contracts.domains import Categories
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import FrequencyEstimate, FrequencyMechanism
from ...design.contracts.registry import Values
from ...design.contracts.task import Task
from ...errors import InfeasibleError
from ...progress import OnStep, silent
from ..catalogue.central_reference import central_squared_error
from ..catalogue.registry import REGISTRY, entry_named
from ..random_streams import named_stream
from ..simulation.mean import aggregate_once
from ..simulation.two_round_frequencies import sized_by_count, two_round_frequencies
from .experiment import experiment_notice
from .item_column import TAKEN, ItemColumn

MOST_SHOWN = 10**6
# Number of reported steps of a study: the round, the comparison with true frequencies, and the bounds.
STEPS = 3
# Number of buckets of a hashed domain, which measures the cost of an unknown list of items.
UNKNOWN_BUCKETS = 2**20


@dataclass(frozen=True)
class ItemEstimate:
    """Estimated frequency of an item.

    Attributes
    ----------
    item : str
        Name of the item.
    frequency, standard_error : float
        Unbiased estimate, which may be below 0, and its standard error (`FrequencyMechanism.estimate`); an exact estimate has the error
        0.0.
    true_frequency : float
        True frequency, which is not private.
    exceeds_noise : bool
        Whether the estimate exceeds the threshold for noise (`FrequencyEstimate.exceeds_noise`).
    """

    item: str
    frequency: float
    standard_error: float
    true_frequency: float
    exceeds_noise: bool


@dataclass(frozen=True)
class ItemCount:
    """Result of a first round that counts different items.

    Attributes
    ----------
    distinct_items : float
        Estimated number of different items.
    upper : int
        Largest number of items of the second round's mechanism.
    epsilon, bits_per_client : float
        Cost of the first round alone; the study's own costs are those of both rounds.
    """

    distinct_items: float
    upper: int
    epsilon: float
    bits_per_client: float


@dataclass(frozen=True, eq=False)
class FrequencyStudy:
    """Estimated frequencies of all items, and their cost.

    Attributes
    ----------
    column : ItemColumn
        The data.
    mechanism, title : str
        Name in the registry, and title in words.
    options : mapping
        Design choices.
    items : tuple of ItemEstimate
        The most frequent items by estimate.
    guarantee : Guarantee
        Proven guarantee of the estimate; it does not cover a list of items taken from the data.
    bits_per_client : float
        Number of bits of a message.
    squared_error, largest_error : float
        Squared L2 distance and largest distance of an item's frequency between decoded and true frequencies; some mechanisms truncate and
        project decoded frequencies.
    predicted_squared_error, zero_squared_error : float
        Error that the mechanism states, and error of uniform frequencies.
    central_squared_error, lower_bound : float or None
        Least error of a trusted server, and the proven lower bound; None if unavailable.
    unknown_domain_ratio : float or None
        Ratio of an item's standard error with 2**20 public hash buckets to its standard error with the list. None if the list was not taken
        from the data, the mechanism cannot serve this number of buckets, or estimates have no error.
    count : ItemCount or None
        Result of the first of two rounds; None for a single round.
    """

    column: ItemColumn
    mechanism: str
    title: str
    options: Mapping[str, Any]
    items: tuple[ItemEstimate, ...]
    guarantee: Guarantee
    bits_per_client: float
    squared_error: float
    largest_error: float
    predicted_squared_error: float
    zero_squared_error: float
    central_squared_error: float | None
    lower_bound: float | None
    unknown_domain_ratio: float | None
    count: ItemCount | None = None

    @property
    def notice(self) -> str:
        """Reason why the study is no private release."""
        return experiment_notice("true frequencies and errors")

    def document(self) -> dict[str, Any]:
        """Return the study as a JSON document; infinite numbers are null."""
        epsilon = self.guarantee.epsilon
        return {
            "notice": self.notice,
            "mechanism": self.mechanism,
            "options": dict(self.options),
            "column": self.column.name,
            "source": self.column.source,
            "clients": len(self.column.items),
            "categories": self.column.categories,
            "numbering": self.column.numbering,
            "items": [asdict(item) for item in self.items],
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "delta": self.guarantee.delta,
            "adjacency": self.guarantee.adjacency,
            "trust_model": self.guarantee.trust_model,
            "bits_per_client": self.bits_per_client,
            "squared_error": self.squared_error,
            "largest_error": self.largest_error,
            "predicted_squared_error": self.predicted_squared_error,
            "zero_squared_error": self.zero_squared_error,
            "central_squared_error": self.central_squared_error,
            "lower_bound": self.lower_bound,
            "unknown_domain_ratio": self.unknown_domain_ratio,
            "count": None if self.count is None else asdict(self.count),
        }


def study_frequencies(
    column: ItemColumn,
    mechanism: str,
    epsilon: float,
    delta: float = 0.0,
    *,
    adjacency: str | None = None,
    options: Values = MappingProxyType({}),
    count_share: float | None = None,
    top: int = 20,
    seed: int = 0,
    on_step: OnStep = silent,
) -> FrequencyStudy:
    """Let the clients of a column report their items, and estimate all frequencies.

    Parameters
    ----------
    column : ItemColumn
        One item per client.
    mechanism : str
        A mechanism of the registry for categories.
    epsilon, delta : float
        Budget of the round, without effect on a mechanism without privacy.
    adjacency : str or None
        Adjacency; None for the mechanism's first adjacency.
    options : mapping
        Design choices of the mechanism.
    count_share : float or None
        Share of epsilon for a first round, which counts different items and so determines the size of the second round's sketch
        (`two_round_frequencies`); None for one round.
    top : int
        Number of listed items.
    seed : int
        Root seed of the experiment; a release calls the mechanism's `encode` with `secure_words`.
    on_step : callable
        ``on_step(done, total, text)``, called before each of the steps and at the end.

    Raises
    ------
    ValueError
        If the mechanism is not for categories, or a value is out of range; if `count` has options, or the mechanism does not use it.
    InfeasibleError
        If the mechanism cannot serve the task; the message states the requirement.
    """
    entry, clients = entry_named(mechanism), len(column.items)
    if Categories not in entry.domains:
        raise ValueError(f"mechanism must be one for items, got {mechanism!r}, whose clients hold other inputs")
    domain = Categories(column.categories)
    task = Task(domain, clients, epsilon, delta, adjacency or entry.adjacencies[0])
    top = check_integer("top", top, low=1, high=MOST_SHOWN)
    on_step(0, STEPS, f"running {mechanism} on {clients} clients")
    estimated = (
        _one_round(column, task, mechanism, options, seed)
        if count_share is None
        else _two_rounds(column, task, mechanism, options, count_share, seed)
    )
    on_step(1, STEPS, "comparing estimates with the true frequencies")
    built, guarantee = estimated.mechanism, estimated.guarantee
    true, decoded = domain.total(column.items) / clients, estimated.estimate.decoded
    estimate, errors = estimated.estimate.frequencies, estimated.estimate.standard_errors
    exceeds = estimated.estimate.exceeds_noise()
    order = np.argsort(-estimate, kind="stable")[:top].tolist()
    asked = replace(guarantee, epsilon=epsilon, delta=delta) if entry.private else guarantee
    unknown_domain_ratio = _unknown_domain(column, mechanism, task, options, float(np.median(errors)))
    on_step(2, STEPS, "computing bounds")
    study = FrequencyStudy(
        column=column,
        mechanism=mechanism,
        title=entry.title,
        options=dict(options),
        items=tuple(
            ItemEstimate(
                column.names.get(item, f"bucket {item}"),
                float(estimate[item]),
                float(errors[item]),
                float(true[item]),
                bool(exceeds[item]),
            )
            for item in order
        ),
        guarantee=guarantee,
        bits_per_client=estimated.bits_per_client,
        squared_error=float(np.sum((decoded - true) ** 2)),
        largest_error=float(np.max(np.abs(decoded - true))),
        predicted_squared_error=_predicted(built, column, true),
        zero_squared_error=float(np.sum((true - domain.middle) ** 2)),
        central_squared_error=central_squared_error(domain, clients, replace(asked, trust_model="central")),
        lower_bound=entry.lower_bound(task),
        unknown_domain_ratio=unknown_domain_ratio,
        count=estimated.count,
    )
    on_step(STEPS, STEPS, "done")
    return study


@dataclass(frozen=True, eq=False)
class _Estimated:
    mechanism: FrequencyMechanism
    estimate: FrequencyEstimate
    guarantee: Guarantee
    bits_per_client: float
    count: ItemCount | None = None


def _one_round(column: ItemColumn, task: Task, name: str, options: Values, seed: int) -> _Estimated:
    built = entry_named(name).mechanism_for(task, options)
    if not isinstance(built, FrequencyMechanism):
        raise ValueError(f"mechanism must be one for the frequencies of items, got {name!r}")
    words = named_stream(seed, f"frequencies: {column.name}, {name}")
    estimate = built.estimate(aggregate_once(built, column.items, words), task.clients)
    return _Estimated(built, estimate, built.guarantee, built.bits_per_client)


def _two_rounds(column: ItemColumn, task: Task, name: str, options: Values, share: float, seed: int) -> _Estimated:
    entry = entry_named(name)
    if not sized_by_count(entry):
        sized = " or ".join(other for other, others in REGISTRY.items() if sized_by_count(others))
        raise ValueError(f"mechanism must be {sized} for count_share, as no other is sized by a count, got {name!r}")
    if options:
        raise ValueError(f"options must not be given with count_share: the sketch is chosen by the count, got {', '.join(options)}")
    rounds = two_round_frequencies(
        column.items, column.categories, task.epsilon, task.delta, adjacency=task.adjacency, entry=entry, count_share=share, seed=seed
    )
    first, said = rounds.count, rounds.counted
    count = ItemCount(said.distinct_items, said.upper, first.epsilon, first.bits_per_client)
    return _Estimated(rounds.mechanism, rounds.estimate, rounds.guarantee, rounds.bits_per_client, count)


def _predicted(mechanism: FrequencyMechanism, column: ItemColumn, true: FloatArray) -> float:
    return mechanism.predicted_error(true, float(mechanism.variance(column.items).mean())).of_mean(len(column.items))


def _unknown_domain(column: ItemColumn, mechanism: str, task: Task, options: Values, error: float) -> float | None:
    """Return the ratio of an item's standard error with a hashed domain to its standard error."""
    if column.numbering != TAKEN or error == 0:
        return None
    wide = Task(Categories(UNKNOWN_BUCKETS), task.clients, task.epsilon, task.delta, task.adjacency)
    try:
        built = entry_named(mechanism).mechanism_for(wide, options)
    except InfeasibleError:
        # A mechanism that cannot serve this number of items has no such cost.
        return None
    assert isinstance(built, FrequencyMechanism)  # noqa: S101 - as in `_one_round`
    return math.sqrt(built.other_variance / task.clients) / error
