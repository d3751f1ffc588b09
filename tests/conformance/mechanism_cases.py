"""What the conformance suite tries an entry of the registry with: small tasks, cheap options, and its account's parameters."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_sketches import ITEM_SKETCHES, SKETCHES, SKETCHES_OF_ONE

from quietbits.arrays import FloatArray
from quietbits.design.contracts.domains import Categories, Domain, Interval
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.real_numbers import RealNumberMechanism
from quietbits.design.contracts.registry import AccountSubject, Entry, check_values
from quietbits.design.contracts.task import Task
from quietbits.design.tables.file import write_table

EPSILON, DELTA, CLIENTS = 4.0, 1e-3, 6
# Three coordinates are padded to four by mechanisms that pad.
DIMENSION, CLIP_NORM = 3, 2.0
INTERVAL = Interval(-1.0, 3.0)
CATEGORIES = Categories(5)
NORMS = (1.0, 2.0, math.inf)

# Options that make an entry cheap; the others have their defaults.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "mvu": {"bits_in": 2, "bits_out": 1, "metric": "l1"},
    "bitwise-randomised-response": {"bits": 2},
    "generalised-randomised-response": {"bits": 2},
    "minimal-random-coding": {"message_bits": 5},
    "minimal-random-coding-plain": {"message_bits": 5},
    "projunit": {"projected": 2},
    "fast-projunit": {"projected": 2},
    "shuffled-mvu": {"bits_in": 2, "bits_out": 3},
    "shuffled-randomised-response": {"bits": 2},
    "cpsgd": {"bits": 10},
    "poisson-binomial": {"bits": 4},
    "exact-histogram": {"code": "identity"},
    **SKETCHES,
    **ITEM_SKETCHES,
}
# And the same for 200 clients.
OPTIONS_OF_MANY: Mapping[str, Mapping[str, Any]] = {"cpsgd": {"bits": 14}, "poisson-binomial": {"bits": 9}}
# Parameters that calibration asks for and a task does not have; a number is a vector of one coordinate.
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "dp-rec": {"population": 1000, "clients_per_round": 10, "index_bits": 42},
}
# Where more bits of a kind are not always better: finer tables have more pairs of inputs to hide, and SQKR's randomised response more
# symbols to choose from; plain random coding reveals more with more candidates.
MORE_BITS_MAY_COST = (
    *("mvu", "bitwise-randomised-response", "generalised-randomised-response", "sqkr"),
    *("minimal-random-coding-plain", "shuffled-mvu", "shuffled-randomised-response"),
)
# Mechanisms that code one message after the other, and those that solve a program to decode.
SLOW = (
    *("dp-rec", "minimal-random-coding", "minimal-random-coding-plain"),
    *("poisson-private-representation", "projunit", "fast-projunit", "rotating-simplex"),
    *("sparse-discrete-gaussian", "sparse-discrete-gaussian-frequencies"),
)
# The share of epsilon that an audit finds at least, where it is less than a third: what is proven is a bound, or holds for the worst public
# points; and in messages of several coordinates it looks at one direction.
AUDITED_SHARES = {
    "dp-rec": 0.15,
    "poisson-private-representation": 0.15,
    "sketched-poisson-binomial": 0.05,
    "sparse-discrete-gaussian": 0.2,
    "sparse-discrete-gaussian-frequencies": 0.15,
    "sketched-discrete-gaussian-frequencies": 0.25,
    "sketched-skellam-frequencies": 0.15,
    "exact-histogram": 0.3,
}
# Columns of messages that are public randomness, which costs no bits.
SEEDED = ("minimal-random-coding", "minimal-random-coding-plain", "projunit", "fast-projunit", "rotating-simplex")
PUBLIC_COLUMNS = {"sqkr": slice(None, -1), "recursive-hadamard-response": slice(1), **dict.fromkeys(SEEDED, slice(1))}


def released(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism as it may be released: one on real numbers by name."""
    return replace(mechanism, allow_real_numbers=True) if isinstance(mechanism, RealNumberMechanism) else mechanism


def reason(call: Callable[[], object]) -> str:
    """Return why something is refused."""
    with pytest.raises(ValueError, match=" must ") as refused:
        call()
    return str(refused.value)


@dataclass(frozen=True)
class Case:
    """An entry, with a domain and an adjacency that it offers."""

    entry: Entry
    domain: Domain
    adjacency: str
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        domain = f"l{self.domain.norm:g}" if isinstance(self.domain, NormBall) else type(self.domain).__name__.lower()
        return f"{self.entry.name}-{domain}-{self.adjacency}"

    def task(self, **changes: Any) -> Task:
        return replace(Task(self.domain, CLIENTS, EPSILON, DELTA, self.adjacency), **changes)

    def built(self, options: Mapping[str, Any] | None = None, **changes: Any) -> Mechanism:
        """Return the mechanism for a changed task or changed options."""
        return _built(self, tuple((options or {}).items()), tuple(changes.items()))

    @property
    def is_slow(self) -> bool:
        return self.entry.name in SLOW

    @property
    def mechanism(self) -> Mechanism:
        return self.built()

    @property
    def of_many(self) -> Mechanism:
        """The mechanism for 200 clients, where not everything is enumerated; a message that is private by itself knows of no others."""
        if self.entry.trust_model == "local":
            return self.mechanism
        return self.built(OPTIONS_OF_MANY.get(self.entry.name), clients=200)

    @property
    def small(self) -> Mechanism:
        """The mechanism for two clients with one number each, on which an audit has most to see."""
        domain = replace(self.domain, dimension=1) if isinstance(self.domain, NormBall) else self.domain
        return self.built(SKETCHES_OF_ONE.get(self.entry.name), domain=domain, clients=2)

    def inputs(self, clients: int) -> FloatArray:
        """Inputs from the middle of the domain to its edge, and beyond."""
        rng = np.random.default_rng(1)
        if isinstance(self.domain, Categories):
            return np.resize([0, 0, 0, self.domain.size - 1, *rng.integers(0, self.domain.size, 20)], clients)
        if isinstance(self.domain, Interval):
            low, high = self.domain.low, self.domain.high
            return np.resize([low, high, (low + high) / 2, low - 1, *rng.uniform(low, high, 20)], clients)
        vectors = rng.normal(size=(20, self.domain.dimension))
        lengths = np.append([0.0, 1.0, 1.0, 3.0], np.linspace(0, 1, 16))
        scaled = vectors * (lengths * self.domain.clip_norm / self.domain.norms(vectors))[:, None]
        # A corner, at which coordinates are as large or as many as they can be.
        corner = np.full(self.domain.dimension, self.domain.clip_norm / self.domain.dimension ** (1 / self.domain.norm))
        return np.resize([corner, -corner, self.domain.clip_norm * np.eye(1, self.domain.dimension)[0], *scaled], (clients, *corner.shape))

    def clipped(self, inputs: FloatArray) -> FloatArray:
        return self.domain.clip(inputs)

    def mean(self, inputs: FloatArray) -> FloatArray:
        """What is estimated: the mean of the clipped inputs, or the frequencies of items."""
        return self.domain.total(self.clipped(inputs)) / len(inputs)


@functools.cache
def _built(case: Case, options: tuple[tuple[str, Any], ...], changes: tuple[tuple[str, Any], ...]) -> Mechanism:
    return case.entry.mechanism_for(case.task(**dict(changes)), {**case.options, **dict(options)})


def cases_of(entry: Entry) -> list[Case]:
    """Return a case for every domain, norm and adjacency of an entry."""
    balls = [NormBall(DIMENSION, norm, CLIP_NORM) for norm in entry.norms or NORMS]
    domains: list[Domain] = [
        domain for kind in entry.domains for domain in ({Interval: [INTERVAL], NormBall: balls, Categories: [CATEGORIES]}[kind])
    ]
    return [Case(entry, domain, adjacency, OPTIONS.get(entry.name, {})) for domain in domains for adjacency in entry.adjacencies]


def one_adjacency(entry: Entry) -> list[Case]:
    """Return a case for every domain and norm, with either adjacency in turn: for what does not depend on it but by the amount of noise."""
    found = cases_of(entry)
    domains = list(dict.fromkeys(case.domain for case in found))
    return [case for case in found if case.adjacency == entry.adjacencies[domains.index(case.domain) % len(entry.adjacencies)]]


def one_domain(entry: Entry) -> list[Case]:
    """Return a case for every adjacency, each with another domain if there are several: for accounts, which see sensitivities alone."""
    found = cases_of(entry)
    domains = list(dict.fromkeys(case.domain for case in found))
    return [case for case in found if case.domain == domains[entry.adjacencies.index(case.adjacency) % len(domains)]]


def cases(entries: Iterable[Entry]) -> list[Case]:
    return [case for entry in entries for case in cases_of(entry)]


def account_values(case: Case, mechanism: Mechanism, folder: Path) -> dict[str, Any]:
    """Return the parameters with which `quietbits account` is asked about a mechanism."""
    names = [option.name for option in case.entry.account_options]
    table = getattr(mechanism, "table", None)
    known = {"clients": CLIENTS, **case.options, **_of_domain(case.domain), **case.entry.parameters_of(mechanism)}
    if table is not None:
        known |= {"table": folder / "table.json"}
        write_table(table, known["table"])
    if case.entry.name == "dp-rec":
        # Its account is that of a training.
        dp_rec: Any = mechanism
        known |= {"clip_ratio": dp_rec.clip_ratio, "population": 1, "clients_per_round": 1, "index_bits": sum(dp_rec.layout.group_bits)}
    epsilon = {"epsilon": mechanism.facts().get("epsilon_per_round", known.get("epsilon"))}
    known |= epsilon
    return {name: known[name] for name in names if known.get(name) is not None}


def accounted(case: Case, mechanism: Mechanism, folder: Path) -> AccountSubject:
    """Return what `quietbits account` makes of a mechanism's own parameters."""
    checked = check_values(case.entry.name, case.entry.account_options, account_values(case, mechanism, folder))
    return case.entry.account(checked | {"delta": mechanism.delta}, case.adjacency, None)


def given(case: Case) -> dict[str, Any]:
    """Return what calibration is given beside its budget: the case's task and options."""
    known = {"clients": CLIENTS, **case.options, **GIVEN.get(case.entry.name, {}), **_of_domain(case.domain)}
    if isinstance(case.domain, Interval) and case.entry.domains[0] is NormBall:
        known |= _of_domain(case.domain.ball(case.adjacency))
    options = case.entry.calibration_options
    return check_values(case.entry.name, options, {one.name: known[one.name] for one in options if one.name in known})


def _of_domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Categories):
        return {"categories": domain.size}
    if not isinstance(domain, NormBall):
        return {}
    return {"dimension": domain.dimension, "norm": f"{domain.norm:g}", "clip": domain.clip_norm}
