"""Cases of the conformance suite: an entry with a small task and cheap options."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.real_numbers import RealNumberMechanism
from ...design.contracts.registry import AccountSubject, Entry, Values, check_values
from ...design.contracts.task import Task
from ...design.tables.file import write_table

EPSILON, DELTA, CLIENTS = 4.0, 1e-3, 6
# Dimension of the cases' vectors, which mechanisms with padding extend to four coordinates.
DIMENSION, CLIP_NORM = 3, 2.0
INTERVAL = Interval(-1.0, 3.0)
CATEGORIES = Categories(5)
NORMS = (1.0, 2.0, math.inf)


@dataclass(frozen=True)
class Trial:
    """Settings of the suite for a mechanism.

    The defaults fit cheap mechanisms without required options.

    Attributes
    ----------
    options : mapping
        Design choices that make the mechanism cheap; the others have their defaults.
    options_of_many, options_of_two : mapping
        Design choices that differ for 200 clients, and for two clients with one number each.
    given : mapping
        Parameters that `calibrate` needs and a task does not have.
    of_account : callable
        Function that returns the parameters of `account` other than those of the mechanism and of the task.
    more_bits_may_cost : bool
        Whether a longer message may have a larger error.
    slow : bool
        Whether a round takes long, so that the suite draws fewer rounds.
    repetitions : int or None
        Number of releases of each input in the audit; None for 20,000, or for 2,000 if `slow` is set.
    audited_share : float
        Share of the claimed epsilon that the audit must reach.
    public_columns : slice
        Columns of the messages that are public randomness, which costs no bits.
    """

    options: Values = field(default_factory=dict)
    options_of_many: Values = field(default_factory=dict)
    options_of_two: Values = field(default_factory=dict)
    given: Values = field(default_factory=dict)
    of_account: Callable[[Any], Values] = lambda _: {}
    more_bits_may_cost: bool = False
    slow: bool = False
    repetitions: int | None = None
    audited_share: float = 0.35
    public_columns: slice = field(default_factory=lambda: slice(0))


USUAL = Trial()


def released(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism, with real numbers allowed explicitly if its guarantee needs them."""
    return replace(mechanism, allow_real_numbers=True) if isinstance(mechanism, RealNumberMechanism) else mechanism


def reason(call: Callable[[], object]) -> str:
    """Return the reason of a refusal."""
    with pytest.raises(ValueError, match=" must ") as refused:
        call()
    return str(refused.value)


@dataclass(frozen=True)
class Case:
    """An entry with a domain and an adjacency that it offers."""

    entry: Entry
    domain: Domain
    adjacency: str
    trial: Trial = field(default=USUAL, compare=False)

    def __str__(self) -> str:
        """Return the names of the mechanism, the domain and the adjacency."""
        domain = f"l{self.domain.norm:g}" if isinstance(self.domain, NormBall) else type(self.domain).__name__.lower()
        return f"{self.entry.name}-{domain}-{self.adjacency}"

    def task(self, **changes: Any) -> Task:
        """Return the task of the case, with changes."""
        return replace(Task(self.domain, CLIENTS, EPSILON, DELTA, self.adjacency), **changes)

    def built(self, options: Mapping[str, Any] | None = None, **changes: Any) -> Mechanism:
        """Return the mechanism for a changed task or changed options."""
        return _built(self, tuple((options or {}).items()), tuple(changes.items()))

    @property
    def options(self) -> Values:
        """Design choices of the trial."""
        return self.trial.options

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism for the task."""
        return self.built()

    @property
    def of_many(self) -> Mechanism:
        """The mechanism for 200 clients, without full enumeration.

        Local mechanisms ignore other clients.
        """
        if self.entry.trust_model == "local":
            return self.mechanism
        return self.built(self.trial.options_of_many, clients=200)

    @property
    def small(self) -> Mechanism:
        """The mechanism for two clients with a number each, the easiest case for an audit."""
        domain = replace(self.domain, dimension=1) if isinstance(self.domain, NormBall) else self.domain
        return self.built(self.trial.options_of_two, domain=domain, clients=2)

    def inputs(self, clients: int) -> FloatArray:
        """Return inputs from the middle of the domain to its edge, and beyond the edge."""
        rng = np.random.default_rng(1)
        if isinstance(self.domain, Categories):
            return np.resize([0, 0, 0, self.domain.size - 1, *rng.integers(0, self.domain.size, 20)], clients)
        if isinstance(self.domain, Interval):
            low, high = self.domain.low, self.domain.high
            return np.resize([low, high, (low + high) / 2, low - 1, *rng.uniform(low, high, 20)], clients)
        vectors = rng.normal(size=(20, self.domain.dimension))
        lengths = np.append([0.0, 1.0, 1.0, 3.0], np.linspace(0, 1, 16))
        scaled = vectors * (lengths * self.domain.clip_norm / self.domain.norms(vectors))[:, None]
        # `corner` has equal coordinates and the largest allowed norm; the unit vector below has a single coordinate of that norm.
        corner = np.full(self.domain.dimension, self.domain.clip_norm / self.domain.dimension ** (1 / self.domain.norm))
        return np.resize([corner, -corner, self.domain.clip_norm * np.eye(1, self.domain.dimension)[0], *scaled], (clients, *corner.shape))

    def clipped(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return inputs clipped to the domain."""
        return self.domain.clip(inputs)

    def mean(self, inputs: NDArray[Any]) -> FloatArray:
        """Return the estimated quantity: the mean of the clipped inputs, or the items' frequencies."""
        return self.domain.total(self.clipped(inputs)) / len(inputs)


@functools.cache
def _built(case: Case, options: tuple[tuple[str, Any], ...], changes: tuple[tuple[str, Any], ...]) -> Mechanism:
    return case.entry.mechanism_for(case.task(**dict(changes)), {**case.options, **dict(options)})


def cases_of(entry: Entry, trial: Trial = USUAL) -> list[Case]:
    """Return a case for every domain, norm and adjacency of an entry."""
    balls: list[Domain] = [NormBall(DIMENSION, norm, CLIP_NORM) for norm in entry.norms or NORMS]
    tried: Mapping[type, list[Domain]] = {Interval: [INTERVAL], NormBall: balls, Categories: [CATEGORIES]}
    domains = [domain for kind in entry.domains for domain in tried[kind]]
    return [Case(entry, domain, adjacency, trial) for domain in domains for adjacency in entry.adjacencies]


def one_adjacency(entry: Entry, trial: Trial = USUAL) -> list[Case]:
    """Return a case for every domain and norm, alternating adjacencies."""
    every = cases_of(entry, trial)
    domains = list(dict.fromkeys(case.domain for case in every))
    return [case for case in every if case.adjacency == entry.adjacencies[domains.index(case.domain) % len(entry.adjacencies)]]


def one_domain(entry: Entry, trial: Trial = USUAL) -> list[Case]:
    """Return a case for every adjacency, each with another domain if several exist."""
    every = cases_of(entry, trial)
    domains = list(dict.fromkeys(case.domain for case in every))
    return [case for case in every if case.domain == domains[entry.adjacencies.index(case.adjacency) % len(domains)]]


class Tried:
    """The entries of a suite and their trials; a subclass sets `entries` and may set `trial_of`."""

    entries: tuple[Entry, ...] = ()

    def trial_of(self, entry: Entry) -> Trial:  # noqa: ARG002 - for derived classes
        """Return the settings for testing a mechanism."""
        return USUAL

    def cases_of(self, entry: Entry) -> list[Case]:
        """Return the cases of a mechanism."""
        return cases_of(entry, self.trial_of(entry))


def account_values(case: Case, mechanism: Mechanism, folder: Path) -> dict[str, Any]:
    """Return the parameters that `quietbits account` needs for a mechanism."""
    names = [option.name for option in case.entry.account_options]
    table = getattr(mechanism, "table", None)
    values = {"clients": CLIENTS, **case.options, **_of_domain(case.domain), **case.entry.parameters_of(mechanism)}
    if table is not None:
        values |= {"table": folder / "table.json"}
        write_table(table, values["table"])
    values |= {**case.trial.of_account(mechanism), "epsilon": mechanism.facts().get("epsilon_per_round", values.get("epsilon"))}
    return {name: values[name] for name in names if values.get(name) is not None}


def accounted(case: Case, mechanism: Mechanism, folder: Path) -> AccountSubject:
    """Return the report of `quietbits account` for a mechanism's own parameters."""
    checked = check_values(case.entry.name, case.entry.account_options, account_values(case, mechanism, folder))
    return case.entry.account(checked | {"delta": mechanism.delta}, case.adjacency, None)


def given(case: Case) -> dict[str, Any]:
    """Return the inputs of calibration without its budget: the case's task and options."""
    values = {"clients": CLIENTS, **case.options, **case.trial.given, **_of_domain(case.domain)}
    options = case.entry.calibration_options
    return check_values(case.entry.name, options, {option.name: values[option.name] for option in options if option.name in values})


def _of_domain(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Categories):
        return {"categories": domain.size}
    if isinstance(domain, Interval):
        return {"low": domain.low, "high": domain.high}
    return {"dimension": domain.dimension, "norm": f"{domain.norm:g}", "clip": domain.clip_norm}
