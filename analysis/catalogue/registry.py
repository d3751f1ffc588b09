"""The registry: every mechanism there is, by name, and what has an account without being one."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MappingProxyType

from ...arguments import check_listed
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Accountable, Entry, Values
from ...design.contracts.task import Task
from .loaded_by_name import LoadedByName

# Which file has which entries, and what else has an account, in the order in which they are listed.
ENTRIES: Mapping[str, tuple[str, ...]] = {
    "tables": (
        "mvu",
        "bitwise-randomised-response",
        "generalised-randomised-response",
    ),
    "local": (
        "cldp",
        "laplace",
        "gaussian",
        "skellam",
        "sqkr",
    ),
    "unit_vectors": (
        "privunit",
        "privunit-g",
        "projunit",
        "fast-projunit",
        "rotating-simplex",
        "minimal-random-coding",
        "minimal-random-coding-plain",
        "poisson-private-representation",
    ),
    "secure_sum": (
        "distributed-discrete-gaussian",
        "distributed-skellam",
        "cpsgd",
        "poisson-binomial",
    ),
    "linear_compression": (
        "sketched-discrete-gaussian",
        "sparse-discrete-gaussian",
        "central-sketch",
    ),
    "relative_entropy": ("dp-rec",),
    "frequencies": ("frequency-randomised-response",),
    "local_frequencies": (
        "hadamard-response",
        "recursive-hadamard-response",
        "projective-geometry-response",
        "unary-encoding",
        "subset-selection",
    ),
    "frequency_sums": (
        "sketched-poisson-binomial",
        "sketched-discrete-gaussian-frequencies",
        "sketched-skellam-frequencies",
        "sparse-discrete-gaussian-frequencies",
    ),
    "exact_histogram": ("exact-histogram",),
    "shuffled": (
        "shuffled-mvu",
        "shuffled-randomised-response",
        "shuffled-frequency-randomised-response",
    ),
}
ACCOUNTABLES: Mapping[str, tuple[str, ...]] = {"tables": ("table", "vector"), "shuffled": ("shuffled",), "binomial": ("binomial",)}


def _entries(file: str) -> tuple[Entry, ...]:
    entries: tuple[Entry, ...] = import_module(f".{file}", __package__).ENTRIES
    return entries


def _accountables(file: str) -> tuple[Accountable, ...]:
    noise: tuple[Accountable, ...] = import_module(f".{file}", __package__).ACCOUNTABLES
    return noise


REGISTRY: MutableMapping[str, Entry] = LoadedByName(ENTRIES, _entries)
"""Entries by name: add one, and commands, sweeps and the conformance tests have it. Each is loaded with its file when it is asked for."""


def entry_named(name: str) -> Entry:
    """Return the entry of that name, or raise ValueError with the closest names and the command that lists all."""
    check_listed("mechanism", name, REGISTRY, "quietbits mechanisms")
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


class _Accountables(Mapping[str, Accountable]):
    """The accounting of all mechanisms, and what else has one."""

    _others = LoadedByName(ACCOUNTABLES, _accountables)

    def __getitem__(self, name: str) -> Accountable:
        return self._others[name] if name in self._others else REGISTRY[name].accounting

    def __iter__(self) -> Iterator[str]:
        yield from REGISTRY
        yield from self._others

    def __len__(self) -> int:
        return len(REGISTRY) + len(self._others)


def accountables() -> Mapping[str, Accountable]:
    """Return everything that `quietbits account` knows, by name: the mechanisms, tables and binomial noise."""
    return _Accountables()
