"""The reference of every comparison: the error of a trusted server's best exact noise.

The mechanisms are entries of the registry, built for the same domain, clients and budget.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from ...design.contracts.domains import Domain
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.task import LARGEST_TARGET, SMALLEST_TARGET, Task
from .registry import BUILT_IN, CENTRAL_REFERENCES

KEPT = 256


@dataclass(frozen=True, eq=False)
class CentralReference:
    """A mechanism of a trusted server for a task, or the reason for its absence.

    Attributes
    ----------
    name, title : str
        Names of the registry's entry.
    mechanism : Mechanism or None
        The mechanism.
    error : float or None
        Its largest expected squared error of a round's mean over the domain; it is nearly the same for all inputs.
    reason : str or None
        Why there is no mechanism.
    """

    name: str
    title: str
    mechanism: Mechanism | None
    error: float | None
    reason: str | None = None


def central_references(domain: Domain, clients: int, guarantee: Guarantee, rounds: int = 1) -> tuple[CentralReference, ...]:
    """Return the mechanisms of a trusted server for a domain, the least error first.

    Parameters
    ----------
    domain : Domain
        Domain of the clients' inputs.
    clients : int
        Number of clients.
    guarantee : Guarantee
        The guarantee of all rounds together, whose trust model has no effect.
    rounds : int
        Number of rounds.

    Examples
    --------
    >>> from quietbits.design.contracts.domains import Categories
    >>> references = central_references(Categories(100), 10_000, Guarantee(1.0, "replace-one", "central", delta=1e-6))
    >>> [(reference.name, round(reference.error, 9)) for reference in references]
    [('central-discrete-laplace', 7.835e-06), ('central-gaussian', 3.5696e-05)]
    """
    return _references(domain, clients, guarantee.epsilon, guarantee.delta, guarantee.adjacency, rounds)


def central_squared_error(domain: Domain, clients: int, guarantee: Guarantee, rounds: int = 1) -> float | None:
    """Return the squared error of a round's mean with a trusted server's best noise (`central_references`).

    The result is None if no mechanism of a trusted server serves.
    """
    errors = [reference.error for reference in central_references(domain, clients, guarantee, rounds)]
    return min((error for error in errors if error is not None), default=None)


@lru_cache(KEPT)
def _references(domain: Domain, clients: int, epsilon: float, delta: float, adjacency: str, rounds: int) -> tuple[CentralReference, ...]:
    references = list[CentralReference]()
    for name in CENTRAL_REFERENCES:
        entry = BUILT_IN[name]
        if not isinstance(domain, entry.domains):
            continue
        try:
            if not SMALLEST_TARGET <= epsilon <= LARGEST_TARGET:
                raise ValueError(f"epsilon must be from {SMALLEST_TARGET:g} to {LARGEST_TARGET:g}, got {epsilon:g}")
            mechanism = entry.mechanism_for(Task(domain, clients, epsilon, delta, adjacency, rounds=rounds))
        except ValueError as error:
            references.append(CentralReference(name, entry.title, None, None, str(error)))
        else:
            references.append(CentralReference(name, entry.title, mechanism, mechanism.error().of_mean(clients)))
    return tuple(sorted(references, key=lambda reference: math.inf if reference.error is None else reference.error))
