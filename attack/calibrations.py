"""Calibrate, then account: the calibrated epsilon never exceeds its target."""

import math
import random
from pathlib import Path
from typing import Any

from ..analysis.catalogue.accounts import account, account_options, calibrate, calibrates, calibration_options
from ..analysis.catalogue.registry import accounted_names
from .cases import Arguments, Attack, refusal
from .parameters import REFUSALS, draw_adjacency, draw_parameters, draw_sampling, load_accounts, placed, sampling_of

# Both computations have the same parameters as floats, so only a composition on a grid may differ.
ROUNDING = 1e-9


def draw(rng: random.Random) -> Arguments:
    """Draw a mechanism, a target and the given parameters."""
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
    """Calibrate, and account for the calibrated parameters."""
    budget: dict[str, Any] = {"delta": delta, "rounds": rounds, "adjacency": adjacency, "sampling": sampling_of(sampling)}
    try:
        calibrated = calibrate(name, epsilon=epsilon, **budget, **placed(folder, given))
    except REFUSALS as error:
        raise refusal(error) from error
    assert 0 <= calibrated.epsilon <= epsilon, f"epsilon {calibrated.epsilon!r} for a target of {epsilon!r}"
    for value in calibrated.report.subject.details.values():
        assert not (isinstance(value, float) and math.isnan(value)), "a detail is not a number"
    details = {**placed(folder, given), **calibrated.report.subject.details}
    if "epsilon_per_round" in details:
        details["epsilon"] = details["epsilon_per_round"]
    asked = account_options(name)
    parameters: dict[str, Any] = {option.name: details[option.name] for option in asked if details.get(option.name) is not None}
    if all(option.name in parameters for option in asked if option.required):
        again = account(name, **budget, **parameters)
        assert again.epsilon <= epsilon * (1 + ROUNDING), f"from the parameters alone epsilon is {again.epsilon!r}, the target {epsilon!r}"


ATTACK = Attack("calibrations", draw, check, share=1.5, prepare=load_accounts)
