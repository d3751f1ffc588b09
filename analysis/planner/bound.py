"""The proven bound beside a mechanism's error, or the reason for its absence."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...design.contracts.domains import Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.registry import Entry
from ...design.contracts.task import LARGEST_TARGET, SMALLEST_TARGET, Task
from ..catalogue.local import scalar_lower_bound, unbiased_lower_bound
from ..catalogue.lower_bounds import central_lower_bound, local_lower_bound, unbiased_central_lower_bound, unbiased_local_lower_bound

LowerBound = Callable[[Task], float | None]
# Bounds that hold only for unbiased mechanisms, each with the bound that also holds for biased mechanisms.
ALSO_OF_BIASED: dict[LowerBound, LowerBound] = {
    scalar_lower_bound: local_lower_bound,
    unbiased_lower_bound: local_lower_bound,
    unbiased_local_lower_bound: local_lower_bound,
    unbiased_central_lower_bound: central_lower_bound,
}
# A bound for vectors or items below this share of a trusted server's least error is too weak to judge a mechanism: the server's noise could
# be equally good. For a single number, Laplace noise is within a small factor of the bound.
WEAK = 0.1


@dataclass(frozen=True)
class ProvenBound:
    """A lower bound on the largest expected squared error over the domain.

    Attributes
    ----------
    value : float or None
        The bound; None if no proven bound applies to the mechanism, or the bound is too weak.
    reason : str or None
        Reason for the absence of a bound.
    """

    value: float | None
    reason: str | None = None


def largest_bound(entry: Entry, task: Task, mechanism: Mechanism) -> float | None:
    """Return the largest lower bound of an entry that applies to a mechanism, or None.

    A mechanism that may have a bias is compared with bounds that hold for biased mechanisms. A mechanism whose error is stated only for
    some populations has no bound. Bounds for pure privacy hold for purely private mechanisms, for any delta of the task; they use the
    epsilon of the mechanism's own messages.
    """
    if entry.populations is not None or not entry.private:
        return None
    lower_bound = _bound_for(entry, mechanism)
    bounds = [lower_bound(task)]
    epsilon = mechanism.guarantee.epsilon
    if mechanism.delta == 0 and epsilon <= LARGEST_TARGET:
        bounds.append(lower_bound(replace(task, epsilon=max(epsilon, SMALLEST_TARGET), delta=0.0, rounds=1)))
    return max((bound for bound in bounds if bound), default=None)


def proven_bound(entry: Entry, task: Task, mechanism: Mechanism, central: float | None) -> ProvenBound:
    """Return the largest bound (`largest_bound`), or the reason why no bound is given.

    Outside the local trust model, no bound is given for vectors or items if it is far below `central`, the least error of a trusted
    server: that error is then the better reference.
    """
    if entry.populations is not None:
        return ProvenBound(None, f"no proven bound: the error is stated for {' or '.join(entry.populations)} only")
    proven = largest_bound(entry, task, mechanism)
    many = not isinstance(task.domain, Interval)
    if many and proven is not None and central is not None and entry.trust_model != "local" and proven < WEAK * central:
        share = proven / central
        return ProvenBound(
            None, f"no proven bound to judge by: the known one is weak, {proven:.2g}, {share:.2g} of a trusted server's error"
        )
    if proven is not None:
        return ProvenBound(proven)
    if mechanism.delta > 0 and _bound_for(entry, mechanism)(replace(task, delta=0.0)):
        return ProvenBound(None, "no proven bound: the known one is for pure epsilon, and this guarantee has a delta")
    if task.sampling is not None:
        return ProvenBound(None, "no proven bound: none is known for sampled clients")
    if mechanism.bias_bound > 0:
        return ProvenBound(None, "no proven bound: those that are known are for unbiased mechanisms")
    return ProvenBound(None, "no proven bound for this domain and budget")


def _bound_for(entry: Entry, mechanism: Mechanism) -> LowerBound:
    """Return the bound of an entry for the bias that a mechanism may have."""
    return entry.lower_bound if mechanism.bias_bound == 0 else ALSO_OF_BIASED.get(entry.lower_bound, entry.lower_bound)
