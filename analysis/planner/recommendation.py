"""The choice of designs: shortest messages near the least error, frontiers, recommendations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .record import PlannedMechanism, TriedDesign

# Factor of a client's time from which it decides between equally short messages: measured times vary, and plans must not.
FASTER = 10.0


def shortest_design(designs: Sequence[TriedDesign], tolerance: float, most_error: float = math.inf) -> TriedDesign:
    """Return the design of the shortest message whose error is near the least.

    Parameters
    ----------
    designs : sequence of TriedDesign
        At least one design. Biased designs count only if there are no others.
    tolerance : float
        Excess over the least error that a design may have.
    most_error : float
        Largest error of the average of all rounds, which applies if some design keeps it.
    """
    allowed = _unbiased(designs)
    least = min(design.predicted_error_of_rounds for design in allowed)
    most = min((1 + tolerance) * least, max(most_error, least))
    return min((design for design in allowed if design.predicted_error_of_rounds <= most), key=_size)


def recommended_design(mechanisms: Iterable[PlannedMechanism], tolerance: float) -> tuple[str, TriedDesign, float] | None:
    """Return the recommended mechanism's name and design, and the largest allowed error.

    The design has the shortest message among all designs of releasable mechanisms whose errors are within the tolerance of the least.
    Among equally short messages, a mechanism that was timed at its design and takes a tenth of the others' time wins. Biased designs count
    only if there are no others. The result is None without a releasable mechanism.
    """
    pairs = [(mechanism, design) for mechanism in mechanisms if not mechanism.on_real_numbers for design in mechanism.tried]
    if not pairs:
        return None
    allowed = _unbiased([design for _, design in pairs])
    most = (1 + tolerance) * min(design.predicted_error_of_rounds for design in allowed)
    within = [pair for pair in pairs if any(pair[1] is design for design in allowed) and pair[1].predicted_error_of_rounds <= most]
    fewest = min(design.bits_per_coordinate for _, design in within)
    tied = [pair for pair in within if pair[1].bits_per_coordinate == fewest]
    mechanism, chosen = min(tied, key=lambda pair: pair[1].predicted_error_of_rounds)
    faster = [pair for pair in tied if FASTER * _seconds(*pair) <= _seconds(mechanism, chosen) < math.inf]
    mechanism, chosen = min(faster, key=lambda pair: _seconds(*pair), default=(mechanism, chosen))
    return mechanism.name, chosen, most


def _seconds(mechanism: PlannedMechanism, design: TriedDesign) -> float:
    """Return the time of a client, which is known of the design that the plan shows."""
    is_timed = mechanism.client_seconds is not None and mechanism.options == design.options
    return mechanism.client_seconds or math.inf if is_timed else math.inf


def marked(mechanisms: Iterable[PlannedMechanism], recommended: Iterable[str]) -> tuple[PlannedMechanism, ...]:
    """Return mechanisms with their recommendations, and marks of their trust models' frontiers."""
    every, names = list(mechanisms), set(recommended)
    return tuple(replace(item, recommended=item.name in names, on_frontier=_is_on_frontier(item, every)) for item in every)


def _is_on_frontier(mechanism: PlannedMechanism, mechanisms: Iterable[PlannedMechanism]) -> bool:
    if not _is_releasable(mechanism):
        return False
    own = _bits_and_error(mechanism)
    others = (item for item in mechanisms if _is_releasable(item) and item.trust_model == mechanism.trust_model)
    return not any(other != own and other[0] <= own[0] and other[1] <= own[1] for other in map(_bits_and_error, others))


def _is_releasable(mechanism: PlannedMechanism) -> bool:
    return mechanism.feasible and not mechanism.on_real_numbers


def _bits_and_error(mechanism: PlannedMechanism) -> tuple[float, float]:
    return mechanism.bits_per_client or 0.0, mechanism.predicted_error_of_rounds or 0.0


def _unbiased(designs: Sequence[TriedDesign]) -> Sequence[TriedDesign]:
    return [design for design in designs if design.unbiased] or designs


def _size(design: TriedDesign) -> tuple[float, float]:
    return design.bits_per_coordinate, design.predicted_error_of_rounds
