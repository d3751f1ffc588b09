"""The registry: every mechanism there is, by name, and what has an account without being one."""

from collections.abc import Mapping
from types import MappingProxyType

from ...arguments import check_choice
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Accountable, Entry, Values
from ...design.contracts.task import Task
from . import (
    exact_histogram,
    frequencies,
    frequency_sums,
    linear_compression,
    local,
    local_frequencies,
    relative_entropy,
    secure_sum,
    shuffled,
    tables,
    unit_vectors,
)
from .binomial import BINOMIAL

REGISTRY: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *tables.ENTRIES,
        *local.ENTRIES,
        *unit_vectors.ENTRIES,
        *secure_sum.ENTRIES,
        *linear_compression.ENTRIES,
        relative_entropy.DP_REC,
        *frequencies.ENTRIES,
        *local_frequencies.ENTRIES,
        *frequency_sums.ENTRIES,
        exact_histogram.EXACT_HISTOGRAM,
        *shuffled.ENTRIES,
    )
}
"""Entries by name: add one, and commands, sweeps and the conformance tests have it."""


def entry_named(name: str) -> Entry:
    """Return the entry of that name, or raise ValueError with the names that there are."""
    check_choice("mechanism", name, REGISTRY)
    return REGISTRY[name]


def build_mechanism(name: str, task: Task, options: Values = MappingProxyType({})) -> Mechanism:
    """Return the mechanism of a name with the least error that keeps a task's budget.

    Parameters
    ----------
    name : str
        A name of the registry (`quietbits mechanisms` lists them).
    task : Task
        What is wanted.
    options : mapping
        Design choices of the entry, by name; the others have their defaults.

    Raises
    ------
    ValueError
        If there is no such mechanism, or an option is not one of its own or out of range.
    InfeasibleError
        If the mechanism cannot serve the task; the message says what is needed.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> task = Task(NormBall(8, 2.0), clients=1000, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")
    >>> mechanism = build_mechanism("distributed-discrete-gaussian", task, {"bits": 16})
    >>> round(mechanism.guarantee.epsilon, 5), mechanism.bits_per_client, mechanism.guarantee.trust_model
    (1.0, 128.0, 'secure-sum')
    """
    return entry_named(name).build(task, options)


def accountables() -> Mapping[str, Accountable]:
    """Return everything that `quietbits account` knows, by name: the mechanisms, tables and binomial noise."""
    noise = (*tables.ACCOUNTABLES, shuffled.SHUFFLED_TABLE, BINOMIAL)
    return {**{name: entry.accounting for name, entry in REGISTRY.items()}, **{one.name: one for one in noise}}
