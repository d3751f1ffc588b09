"""The mechanism that one builds, on a ball of vectors, from the parameters that calibration states."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from mechanism_cases import DELTA, Case, cases_of, given

from quietbits.analysis.calibration.sketches import SketchChoice
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.registry import Accounted, Entry, Target
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism

# Two that are padded to a power of two, one of them to nearly twice as many coordinates.
DIMENSIONS = (21, 513)


def ball_cases(entry: Entry, dimension: int) -> list[Case]:
    """Return a case for every adjacency of an entry whose calibration is told the dimension of a ball."""
    if entry.accounting.solve is None or "dimension" not in {one.name for one in entry.accounting.given}:
        return []
    balls = [case for case in cases_of(entry) if isinstance(case.domain, NormBall) and case.domain.norm == (entry.norms or (2.0,))[0]]
    # An odd number of a sketch's coordinates is padded, too.
    return [
        replace(
            case,
            domain=replace(case.domain, dimension=dimension),
            options={**case.options, **({"sketch_dimension": dimension // 4} if "sketch_dimension" in case.options else {})},
        )
        for case in balls
    ]


@functools.cache
def calibrated(case: Case, target: Target) -> tuple[Accounted, Mechanism | None]:
    """Return what calibration states, and the mechanism with these parameters; None where it has others as well."""
    assert case.entry.accounting.solve is not None
    chosen = given(case)
    subject = case.entry.accounting.solve(target, chosen)
    stated = {**chosen, **subject.details}
    named = {"epsilon": stated.get("epsilon_per_round"), **stated, "table": subject.table}
    named |= {"ball": case.domain, "delta": DELTA, "adjacency": case.adjacency}
    named |= OTHER_FIELDS.get(case.entry.name, lambda *_: {})(named)
    # The class does not depend on the dimension.
    (kind,) = {type(one.mechanism) for one in cases_of(case.entry) if one.domain == replace(case.domain, dimension=one.domain.dimension)}
    assert is_dataclass(kind)
    known = {one.name: named[one.name] for one in fields(kind) if one.init and named.get(one.name) is not None}
    needed = {one.name for one in fields(kind) if one.init and one.default is MISSING and one.default_factory is MISSING}
    return subject, kind(**known) if needed <= known.keys() else None


# From calibrated parameters to a mechanism's fields, where they have other names.


def _skellam(named: Mapping[str, Any]) -> dict[str, Any]:
    return {"noise_variance": named["variance"]}


def _sketch(named: Mapping[str, Any]) -> dict[str, Any]:
    choice = SketchChoice(named["transform"], named.get("rows"), seed=named["sketch_seed"])
    return {"sketch": choice.sketch(named["ball"].dimension, named["sketch_dimension"])}


def _sketched(named: Mapping[str, Any]) -> dict[str, Any]:
    inner = DistributedDiscreteGaussianMechanism(
        NormBall(named["sketch_dimension"], 2.0, named["sketch_clip"]),
        *(named[name] for name in ("clients", "bits", "granularity", "local_sigma", "delta")),
        rotation=named["rotation"],
        adjacency=named["adjacency"],
    )
    return {"inner": inner, **_sketch(named)}


OTHER_FIELDS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "skellam": _skellam,
    "sketched-discrete-gaussian": _sketched,
    "sparse-discrete-gaussian": _sketched,
    "central-sketch": _sketch,
}
