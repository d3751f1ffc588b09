"""The registry: every mechanism by its name, and tables and noise that have an account."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from ...arguments import check_listed
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Entry, Noise, Values
from ...design.contracts.task import Task
from ...loaded_by_name import LoadedByName
from .plug_ins import Registry

# Files of all entries, and of noise that has an account but no mechanism, in the order of listing.
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
        "distributed-discrete-laplace",
        "cpsgd",
        "poisson-binomial",
    ),
    "linear_compression": (
        "sketched-discrete-gaussian",
        "sketched-skellam",
        "sparse-discrete-gaussian",
        "central-sketch",
    ),
    "central": (
        "central-gaussian",
        "central-laplace",
        "central-discrete-laplace",
        "central-staircase",
        "subsampled-gaussian",
    ),
    "relative_entropy": ("dp-rec",),
    "local_frequencies": (
        "frequency-randomised-response",
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
        "split-and-mix",
        "shuffled-rotating-simplex",
        "shuffled-random-coding",
    ),
}
# Entries with which others are compared.
CENTRAL_REFERENCES = tuple(name for name in ENTRIES["central"] if name.startswith("central-"))
NOISES: Mapping[str, tuple[str, ...]] = {"tables": ("table", "vector"), "shuffled": ("shuffled",), "binomial": ("binomial",)}


def _entries(file: str) -> tuple[Entry, ...]:
    entries: tuple[Entry, ...] = import_module(f".{file}", __package__).ENTRIES
    return entries


def _noises(file: str) -> tuple[Noise, ...]:
    noises: tuple[Noise, ...] = import_module(f".{file}", __package__).NOISES
    return noises


BUILT_IN: Mapping[str, Entry] = LoadedByName(ENTRIES, _entries)
"""Entries of quietbits itself: papers' figures and columns of tables depend on no plug-in."""
NOISE: Mapping[str, Noise] = LoadedByName(NOISES, _noises)
"""Tables and binomial noise, which have an account without being mechanisms."""
REGISTRY = Registry(BUILT_IN, reserved=NOISE)
"""Entries by name, with those of installed packages: register one, and commands, plans, sweeps and trainings have it."""


def entry_named(name: str) -> Entry:
    """Return the entry of a name; a ValueError suggests the closest names."""
    check_listed("mechanism", name, REGISTRY, "quietbits mechanisms")
    return REGISTRY[name]


def build_mechanism(name: str, task: Task, options: Values = MappingProxyType({})) -> Mechanism:
    """Return the named mechanism with the least error that keeps a task's budget.

    Parameters
    ----------
    name : str
        A name of the registry (`quietbits mechanisms` lists them).
    task : Task
        The task.
    options : mapping
        Design choices of the entry, by name; the others have their defaults.

    Raises
    ------
    ValueError
        If there is no such mechanism, or an option is unknown to it or out of range.
    InfeasibleError
        If the mechanism cannot serve the task; the message states the requirement.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> task = Task(NormBall(8, 2.0), clients=1000, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")
    >>> mechanism = build_mechanism("distributed-discrete-gaussian", task, {"bits": 16})
    >>> round(mechanism.guarantee.epsilon, 5), mechanism.bits_per_client, mechanism.guarantee.trust_model
    (1.0, 128.0, 'secure-sum')
    """
    return entry_named(name).mechanism_for(task, options)


def accounted_names() -> tuple[str, ...]:
    """Return the names that `quietbits account` accepts: mechanisms, tables and binomial noise."""
    return *REGISTRY, *NOISE
