"""Numbers of docs/explanations/secure-sum.md."""

from functools import cache

import quietbits
from quietbits.analysis.catalogue.registry import build_mechanism

DELTA = 1e-6


@cache
def mechanism(dropout: float) -> quietbits.Mechanism:
    task = quietbits.Task(quietbits.NormBall(64, 2.0), 1000, 1.0, DELTA, "replace-one", dropout=dropout)
    return build_mechanism("distributed-discrete-gaussian", task)


def planned() -> float:
    return mechanism(0.2).privacy_of(1000).epsilon(DELTA)


def at_the_limit() -> float:
    return mechanism(0.2).privacy_of(800).epsilon(DELTA)


def half() -> float:
    return mechanism(0.2).privacy_of(400).epsilon(DELTA)


def unplanned() -> float:
    return mechanism(0.0).privacy_of(800).epsilon(DELTA)


def price() -> float:
    return mechanism(0.2).error().variance / mechanism(0.0).error().variance
