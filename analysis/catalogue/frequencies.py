"""The registry's entries for the frequencies of items, in every trust model."""

from collections.abc import Callable

from ...design.contracts.calibration import per_round_epsilon
from ...design.contracts.domains import Categories
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task
from ...design.frequencies.randomised_response import FrequencyRandomisedResponse
from .local import PURE_ACCOUNTS
from .lower_bounds import frequency_lower_bound


def _pure(name: str, build: Callable[[float, int], Mechanism]) -> Callable[[Task, Values], Mechanism]:
    return lambda task, _: build(per_round_epsilon(task.budget), task.categories(name))


def _local(name: str, title: str, paper: str, build: Callable[[float, int], Mechanism]) -> Entry:
    """Return the entry of a purely private local mechanism without options."""
    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(Categories,),
        trust_model="local",
        adjacencies=("replace-one",),
        accounts=PURE_ACCOUNTS,
        options=(),
        build=_pure(name, build),
        lower_bound=lambda task: frequency_lower_bound(task, "local", unbiased=True),
    )


ENTRIES = (
    _local(
        "frequency-randomised-response",
        "Each client's item, or any other one",
        "Kairouz, Bonawitz, Ramage 2016, Discrete distribution estimation under local privacy",
        FrequencyRandomisedResponse,
    ),
)
