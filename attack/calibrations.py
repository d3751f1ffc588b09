"""Calibrate, then account: the epsilon of what calibration finds is at most the target, in its report and from its parameters alone."""

import math
import random
from pathlib import Path
from typing import Any

from ..analysis.catalogue.accounts import account, account_options, calibrate, calibrates, calibration_options
from ..analysis.catalogue.registry import accounted_names
from .cases import Arguments, Attack, refusal
from .parameters import REFUSALS, draw_adjacency, draw_parameters, draw_sampling, load_accounts, placed, sampling_of

# Parameters are the same floats; a composition on a grid depends on nothing else.
ROUNDING = 1e-9


def draw(rng: random.Random) -> Arguments:
    """Draw a mechanism, a target and what is given."""
    name = rng.choice([name for name in accounted_names() if calibrates(name)])
    adjacency = draw_adjacency(rng, name)
    return {
        "name": name,
        "epsilon": 10 ** rng.uniform(-2, 1.2),
        "delta": 10 ** rng.uniform(-10, -1),
        "rounds": rng.choice((1, 1, 2, 10, int(10 ** rng.uniform(0, 4)))),
        "adjacency": adjacency,
        "sampling": draw_sampling(rng, name, adjacency),
        "given": draw_parameters(rng, calibration_options(name)),
    }


def check(
    folder: Path,
    name: str,
    epsilon: float,
    delta: float,
    rounds: int,
    adjacency: str,
    sampling: list[float] | None,
    given: dict[str, Any],
) -> None:
    """Calibrate, and account for what was found."""
    budget: dict[str, Any] = {"delta": delta, "rounds": rounds, "adjacency": adjacency, "sampling": sampling_of(sampling)}
    try:
        found = calibrate(name, epsilon=epsilon, **budget, **placed(folder, given))
    except REFUSALS as error:
        raise refusal(error) from error
    assert 0 <= found.epsilon <= epsilon, f"epsilon {found.epsilon!r} for a target of {epsilon!r}"
    for value in found.report.subject.details.values():
        assert not (isinstance(value, float) and math.isnan(value)), "a detail is not a number"
    details = {**placed(folder, given), **found.report.subject.details}
    if "epsilon_per_round" in details:
        details["epsilon"] = details["epsilon_per_round"]
    asked = account_options(name)
    parameters: dict[str, Any] = {one.name: details[one.name] for one in asked if details.get(one.name) is not None}
    if all(one.name in parameters for one in asked if one.required):
        again = account(name, **budget, **parameters)
        assert again.epsilon <= epsilon * (1 + ROUNDING), f"from the parameters alone epsilon is {again.epsilon!r}, the target {epsilon!r}"


ATTACK = Attack("calibrations", draw, check, share=1.5, prepare=load_accounts)
