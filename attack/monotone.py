"""Monotone accounts: more noise, fewer rounds or a larger delta never raise epsilon."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..analysis.catalogue.accounts import account_options, account_subject
from ..analysis.catalogue.registry import REGISTRY, accounted_names
from ..design.shuffled.shuffled_privacy import CLONES
from .cases import Arguments, Attack, Refused, refusal
from .parameters import REFUSALS, draw_adjacency, draw_parameters, draw_sampling, draw_value, load_accounts, placed, sampling_of

# Roots, grids of losses and compositions may err by this share and this amount, as in the conformance tests.
RELATIVE, ABSOLUTE = 1e-5, 1e-9
# A larger HIDING parameter reveals less, and a larger REVEALING parameter reveals more.
HIDING = ("noise_multiplier", "variance", "scale", "local_sigma", "local_variance", "clients")
REVEALING = ("epsilon", "theta", "clip", "l1", "l2", "linf", "clip_ratio")
# More survivors hide more, but divide discrete Laplace noise into smaller shares.
SURVIVORS, SHARING = "survivors", "distributed-discrete-laplace"
# Its noise is stated over the clip norm, so that a longer clip norm has more noise beside the largest coordinate.
OVER_CLIP = "subsampled-gaussian"
# Accounts that state a published figure for one round.
PUBLISHED = (CLONES,)
# More trials mean more noise in these mechanisms; a Poisson-binomial's trials are its messages.
NOISY_TRIALS = ("cpsgd", "binomial")


def draw(rng: random.Random) -> Arguments:
    """Draw two questions; `more` never has a smaller answer than `less`."""
    name = rng.choice([name for name in accounted_names() if name not in REGISTRY or REGISTRY[name].private])
    adjacency = draw_adjacency(rng, name)
    parameters = draw_parameters(rng, account_options(name))
    survivors = next((option for option in account_options(name) if option.name == SURVIVORS), None)
    if survivors is not None and rng.random() < 0.5:
        parameters[SURVIVORS] = draw_value(rng, survivors)
    hiding: tuple[str, ...] = (*HIDING, "trials") if name in NOISY_TRIALS else HIDING
    hiding = (*hiding, SURVIVORS) if name != SHARING else hiding
    revealing: tuple[str, ...] = (*REVEALING, SURVIVORS) if name == SHARING else REVEALING
    if name == OVER_CLIP:
        revealing = (*(parameter for parameter in revealing if parameter != "clip"), "coordinate_clip")
    question: dict[str, Any] = {
        "parameters": parameters,
        "rounds": rng.choice((1, 1, 2, int(10 ** rng.uniform(0, 4)))),
        "delta": 10 ** rng.uniform(-10, -1),
        "sampling": draw_sampling(rng, name, adjacency),
    }
    changes = ["rounds", "delta", *(parameter for parameter in parameters if parameter in (*hiding, *revealing))]
    changed = rng.choice(changes + (["sampling"] * 2 if question["sampling"] is not None else []))
    factor = rng.choice((1 + 1e-6, 1.001, 1.1, 2.0, 10.0))
    harder: dict[str, Any] = dict(question)
    if changed == "rounds":
        harder["rounds"] = question["rounds"] + rng.choice((1, 1, question["rounds"]))
    elif changed == "delta":
        harder["delta"] = question["delta"] / factor
    elif changed == "sampling":
        harder["sampling"] = _more(question["sampling"], factor)
    else:
        question, harder = _scaled(question, changed, factor, hides=changed in hiding)
    return {"name": name, "adjacency": adjacency, "less": question, "more": harder}


def _more(sampling: list[float] | None, factor: float) -> list[float] | None:
    """Return a larger sample; the largest sample has all clients, like no sampling."""
    if sampling is None or factor > 2:
        return None
    if len(sampling) == 1:
        return [min(1.0, sampling[0] * factor)]
    return [sampling[0], min(sampling[0], sampling[1] + 1)]


def _scaled(question: dict[str, Any], name: str, factor: float, *, hides: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two questions that differ in a parameter, the smaller answer's question first."""
    value = question["parameters"][name]
    larger = max(value + 1, int(value * factor)) if isinstance(value, int) else value * factor
    other = {**question, "parameters": {**question["parameters"], name: larger}}
    return (other, question) if hides else (question, other)


def check(folder: Path, name: str, adjacency: str, less: dict[str, Any], more: dict[str, Any]) -> None:
    """Ask both questions of all accounts."""
    try:
        small, large = (_answers(folder, name, adjacency, **question) for question in (less, more))
    except REFUSALS as error:
        raise refusal(error) from error
    both = [account for account in small if account in large and math.isfinite(small[account]) and math.isfinite(large[account])]
    if (less["rounds"] == 1) != (more["rounds"] == 1):
        # A published figure of one round stays as it is, while several rounds compose with less slack.
        both = [account for account in both if account not in PUBLISHED]
    for account in both:
        assert small[account] <= large[account] * (1 + RELATIVE) + ABSOLUTE, f"{account}: {small[account]!r} is above {large[account]!r}"
    if not both:
        raise Refused


def _answers(
    folder: Path, name: str, adjacency: str, parameters: Mapping[str, Any], rounds: int, delta: float, sampling: list[float] | None
) -> dict[str, float]:
    # A mechanism that depends on delta is made for the same delta.
    subject = account_subject(name, placed(folder, parameters), 1e-3, adjacency, sampling_of(sampling))
    report = subject.report(delta, rounds, sampling_of(sampling)).privacy
    epsilons = {"epsilon": report.epsilon, **{answer.name: answer.bound.epsilon for answer in report.accounts}}
    for account, epsilon in epsilons.items():
        assert epsilon >= 0, f"{account} says {epsilon!r}"
    return epsilons


ATTACK = Attack("monotone", draw, check, share=2.0, prepare=load_accounts)
