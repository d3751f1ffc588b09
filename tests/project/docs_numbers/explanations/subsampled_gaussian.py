"""Numbers of docs/explanations/subsampled-gaussian.md."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

CLIENTS = 10_000
TASK = Task(NormBall(2**17, 2.0), CLIENTS, 4.0, 1e-6, "add-or-remove-one", rounds=10)
# Bits of a coordinate that is sent, and shares of the coordinates.
SAMPLES = ((2, 1 / 64), (3, 1 / 32), (4, 1 / 32), (4, 1 / 16), (4, 1 / 8), (4, 1 / 2))


def error(mechanism: Mechanism) -> float:
    return mechanism.error().of_mean(CLIENTS)


@cache
def unsampled(task: Task) -> float:
    return error(build_mechanism("central-gaussian", task))


def sampled(bits: int, share: float, task: Task = TASK) -> Mechanism:
    options: dict[str, Any] = {"letter_bits": bits, "coordinate_share": share}
    return build_mechanism("subsampled-gaussian", task, options)


def share_rows() -> Iterator[list[str]]:
    """Return bits a coordinate, the sample, its error, and the error over that of unsampled noise."""
    for bits, share in SAMPLES:
        mechanism = sampled(bits, share)
        per_coordinate, own = mechanism.bits_per_client / 2**17, error(mechanism)
        yield [f"{per_coordinate:.4g}", f"{share:.4g}", f"{2**bits - 1}", f"{own:.4g}", f"{own / unsampled(TASK):.2f}"]


def ceiling() -> float:
    return error(sampled(4, 0.5)) / unsampled(TASK)


def central_sketch() -> float:
    sketch = build_mechanism("central-sketch", TASK, {"sketch_dimension": 4096, "rows": 1})
    return error(sketch) / unsampled(TASK)


def short() -> float:
    task = replace(TASK, domain=NormBall(4096, 2.0), rounds=1)
    return error(sampled(4, 0.125, task)) / unsampled(task)
