"""Exact enumeration of small compositions, whose epsilon no account may understate."""

import functools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.composition.account import account_composition
from ..analysis.composition.spec import AccountedPart, Composition
from ..design.contracts.guarantee import ADJACENCIES
from .cases import Arguments, Attack, refusal
from .exact_accounts import LAWS, MOST_OUTCOMES, ROUNDING, TAIL, Pair
from .parameters import REFUSALS, load_accounts, sampling_of

REPLACE, ADD = ADJACENCIES
# Sums of integer noise, which a client moves by whole steps, and mechanisms for replace-one adjacency alone.
SUMS = ("distributed-discrete-gaussian", "distributed-skellam")
RESPONSES = ("cpsgd", "poisson-binomial", "shuffled-frequency-randomised-response")
RANDOMISED_RESPONSE = "cldp"
MOST_PARTS = 4


def draw(rng: random.Random) -> Arguments:
    """Draw some parts, each with its rounds, adjacency and sampling."""
    target, population = rng.choice(ADJACENCIES), rng.choice((100, 1000))
    parts: list[dict[str, Any]] = []
    outcomes = 1
    for _ in range(rng.randint(1, MOST_PARTS)):
        part = _draw_part(rng, target, population)
        outcomes *= len(_pair(part, target).first) ** part["rounds"]
        if outcomes > MOST_OUTCOMES:
            break
        parts.append(part)
    if not parts:
        parts.append({"name": RANDOMISED_RESPONSE, "law": {"epsilon": 1.0}, "adjacency": REPLACE, "sampling": None, "rounds": 2})
        target = REPLACE
    return {"parts": parts, "adjacency": target, "delta": 10 ** rng.uniform(-9, -0.5)}


def _draw_part(rng: random.Random, target: str, population: int) -> dict[str, Any]:
    name = rng.choice(SUMS if target == ADD else (*SUMS, *SUMS, *RESPONSES, RANDOMISED_RESPONSE))
    clients, noise = rng.randint(1, 6), 10 ** rng.uniform(-0.5, 0.8)
    laws: dict[str, dict[str, Any]] = {
        "distributed-discrete-gaussian": {"clients": clients, "sigma": noise, "steps": rng.randint(1, 3)},
        "distributed-skellam": {"clients": clients, "variance": noise**2, "steps": rng.randint(1, 3)},
        "cpsgd": {"clients": clients, "trials": int(10 ** rng.uniform(1, 2)), "probability": 0.5, "levels": rng.randint(2, 3)},
        "poisson-binomial": {"clients": clients, "trials": rng.randint(1, 8), "theta": rng.uniform(0.001, 0.499), "others": 1.0},
        "shuffled-frequency-randomised-response": {"clients": rng.randint(2, 60), "epsilon": noise, "others": rng.random()},
        RANDOMISED_RESPONSE: {"epsilon": rng.uniform(0.05, 2)},
    }
    # A sum for add-or-remove-one adjacency counts for replace-one adjacency, too.
    adjacency = target if target == ADD or name not in SUMS else rng.choice(ADJACENCIES)
    share = rng.choice((None, None, rng.uniform(0.05, 1.0))) if name in SUMS else None
    sampling = None if share is None else [share] if adjacency == ADD else [population, max(1, round(population * share))]
    return {"name": name, "law": laws[name], "adjacency": adjacency, "sampling": sampling, "rounds": rng.choice((1, 1, 2))}


def _parameters(part: dict[str, Any]) -> tuple[Pair, dict[str, Any]]:
    """Return the laws for the part's own neighbours, and its parameters."""
    name, law = part["name"], part["law"]
    if name == RANDOMISED_RESPONSE:
        kept = 1 / (1 + math.exp(-law["epsilon"]))
        return Pair(np.array([kept, 1 - kept]), np.array([1 - kept, kept])), dict(law)
    return LAWS[name](**law, adjacency=part["adjacency"]) if name in SUMS else LAWS[name](**law)


def _pair(part: dict[str, Any], target: str) -> Pair:
    """Return the laws of an observation of a round for two neighbours of the target adjacency."""
    pair, _ = _parameters(part)
    sampling = part["sampling"]
    share = 1.0 if sampling is None else sampling[0] if len(sampling) == 1 else sampling[1] / sampling[0]
    if part["adjacency"] == target:
        return pair.sampled(share)
    # Without either client the noise is alone; the two clients move it in opposite directions.
    steps = part["law"]["steps"]
    alone = np.concatenate([np.zeros(steps), pair.first])
    above, below = np.concatenate([np.zeros(steps), pair.second]), np.concatenate([pair.first, np.zeros(steps)])
    return Pair((1 - share) * alone + share * above, (1 - share) * alone + share * below)


def check(
    folder: Path,  # noqa: ARG001 - nothing is written
    parts: list[dict[str, Any]],
    adjacency: str,
    delta: float,
) -> None:
    """Compare every guaranteed account of the composition with the exact delta at its epsilon."""
    stated = [
        AccountedPart.of(
            part["name"], rounds=part["rounds"], sampling=sampling_of(part["sampling"]), adjacency=part["adjacency"], **_parameters(part)[1]
        )
        for part in parts
    ]
    try:
        report = account_composition(Composition(tuple(stated)), delta=delta, adjacency=adjacency).privacy
    except REFUSALS as error:
        raise refusal(error) from error
    together = functools.reduce(Pair.product, [_pair(part, adjacency) for part in parts for _ in range(part["rounds"])])
    for answer in report.accounts:
        if answer.proven and answer.assumes is None and answer.adjacency == adjacency and math.isfinite(answer.bound.epsilon):
            real = together.delta(answer.bound.epsilon)
            assert real <= delta * (1 + ROUNDING) + TAIL, (
                f"{answer.name} says {answer.bound.epsilon!r} at {delta!r}, where delta is {real!r}"
            )


ATTACK = Attack("compositions", draw, check, prepare=load_accounts)
