"""What the conformance suite tries an entry of the registry with: small tasks, cheap options, and its account's parameters."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
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
from quietbits.design.contracts.registry import Accounted, Entry, check_values
from quietbits.design.contracts.task import Task
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.secure_sum.number_sum import NumberSum
from quietbits.design.tables.file import write_table
from quietbits.design.tables.table_mean import TableMeanMechanism

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
    "mvu": {"dimension": 1, "norm": "inf"},
    "poisson-binomial": {"trials": 2},
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
    return case.entry.build(case.task(**dict(changes)), {**case.options, **dict(options)})


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


# From a mechanism's fields to the parameters of its account, where they have other names.


def _table(mechanism: Mechanism, folder: Path) -> dict[str, Any]:
    assert isinstance(mechanism, TableMeanMechanism | VectorTableMechanism)
    path = folder / "table.json"
    write_table(mechanism.table, path)
    return {"table": path}


def _response(mechanism: Mechanism, _: Path) -> dict[str, Any]:
    assert isinstance(mechanism, TableMeanMechanism)
    return {"epsilon": mechanism.table.epsilon, "bits": mechanism.table.bits_in}


def _skellam(mechanism: Any, _: Path) -> dict[str, Any]:
    return {"variance": mechanism.noise_variance, "l1": mechanism.l1_sensitivity, "l2": mechanism.l2_sensitivity}


def _dp_rec(mechanism: Any, _: Path) -> dict[str, Any]:
    return {"population": 1, "clients_per_round": 1, "index_bits": sum(mechanism.layout.group_bits)}


def _sketched(mechanism: Any, _: Path) -> dict[str, Any]:
    return {"local_sigma": mechanism.inner.local_sigma, "granularity": mechanism.inner.granularity}


OTHER_NAMES: Mapping[str, Callable[[Any, Path], dict[str, Any]]] = {
    "mvu": _table,
    "bitwise-randomised-response": _response,
    "generalised-randomised-response": _response,
    "shuffled-mvu": _table,
    "shuffled-randomised-response": _response,
    "skellam": _skellam,
    "dp-rec": _dp_rec,
    "sketched-discrete-gaussian": _sketched,
    "sparse-discrete-gaussian": _sketched,
}


def _of_numbers(mechanism: NumberSum) -> dict[str, Any]:
    """Return the size of the ball and the parameters of the mechanism for vectors that numbers are sent by."""
    inner: Any = mechanism.inner
    return {
        "dimension": inner.ball.dimension,
        "clip": inner.ball.clip_norm,
        **{one.name: getattr(inner, one.name) for one in fields(inner)},
    }


def accounted(case: Case, mechanism: Mechanism, folder: Path) -> Accounted:
    """Return what `quietbits account` makes of a mechanism's own parameters."""
    known = {"clients": CLIENTS, **case.options, **_of_domain(case.domain)}
    names = [option.name for option in case.entry.accounting.parameters]
    values = {name: known[name] if name in known else getattr(mechanism, name, None) for name in names}
    if isinstance(mechanism, NumberSum):
        values |= {name: value for name, value in _of_numbers(mechanism).items() if name in names}
    values |= OTHER_NAMES.get(case.entry.name, lambda *_: {})(mechanism, folder)
    checked = check_values(case.entry.name, case.entry.accounting.parameters, {k: v for k, v in values.items() if v is not None})
    return case.entry.accounting.account(checked | {"delta": mechanism.delta}, case.adjacency, None)


def given(case: Case) -> dict[str, Any]:
    """Return what calibration is given beside its target."""
    known = {"clients": CLIENTS, **case.options, **GIVEN.get(case.entry.name, {}), **_of_domain(case.domain)}
    if isinstance(case.domain, Interval) and case.entry.trust_model == "secure-sum":
        known |= _of_domain(case.domain.ball(case.adjacency))
    options = case.entry.accounting.given
    return check_values(case.entry.name, options, {one.name: known[one.name] for one in options if one.name in known})


def _of_domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Categories):
        return {"categories": domain.size}
    if not isinstance(domain, NormBall):
        return {}
    return {"dimension": domain.dimension, "norm": f"{domain.norm:g}", "clip": domain.clip_norm}
