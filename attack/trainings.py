"""Whole trainings on small cases: joint losses, and a client's effect in the engine."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.datasets.federated_data import Examples, FederatedData
from ..analysis.training.baselines import training_entry
from ..analysis.training.federation import Federation
from ..analysis.training.plan import TrainingPlan, training_plan
from ..analysis.training.setting import TrainingSetting
from ..arrays import FloatArray
from ..design.contracts.mechanism import VectorMechanism
from ..design.federated.adaptive_clipping import AdaptiveClipping, combined_noise_multiplier
from ..design.federated.model_layers import ModelLayers, dense
from .cases import Arguments, Attack, Refused, refusal
from .parameters import REFUSALS, load_accounts

# The quadrature reaches this many deviations beyond the points, with this many steps per deviation.
DEVIATIONS, STEPS = 8.0, 16
# LOSS_STEP is the step of the grid of losses, times the root of the rounds; QUADRATURE_ERROR is the quadrature's error. Both are shares of
# the stated epsilon.
LOSS_STEP, QUADRATURE_ERROR = 5e-3, 0.01
LEFT_OUT, MOST_LOSSES = 1e-14, 2**23
# Noise that is the same for both neighbours may move a client by this share of the accounted distance.
ROUNDING = 1e-6
SUMS: Mapping[str, dict[str, Any]] = {
    "dp-fedavg": {},
    "distributed-discrete-gaussian": {"bits": 28},
    "distributed-skellam": {"bits": 24},
    "cpsgd": {"bits": 24},
}


def round_masses(adjacency: str, deviations: tuple[float, float | None], share: float) -> tuple[FloatArray, FloatArray]:
    """Return the masses of a round's release for two neighbours, on a grid.

    The client adds a clipped vector, in clip norms, and the answer -1/2. The neighbour adds nothing; or, under replace-one adjacency, the
    opposite vector and the answer 1/2. A client that takes the seat adds the same as the second neighbour. The deviations are those of the
    noise in sum and count; without a count the second deviation is None.
    """
    present = (1.0, -0.5)
    absent = (-1.0, 0.5) if adjacency == "replace-one" else (0.0, 0.0)

    def law(point: tuple[float, float]) -> FloatArray:
        parts = []
        for place, deviation in enumerate(deviations):
            if deviation is not None:
                ends = sorted((present[place], absent[place]))
                axis = np.arange(ends[0] - DEVIATIONS * deviation, ends[1] + DEVIATIONS * deviation, deviation / STEPS)
                parts.append(np.exp(-(((axis - point[place]) / deviation) ** 2) / 2) / (STEPS * math.sqrt(2 * math.pi)))
        return parts[0] if len(parts) == 1 else np.multiply.outer(*parts).ravel()

    return (1 - share) * law(absent) + share * law(present), law(absent)


def composed_delta(first: FloatArray, second: FloatArray, rounds: int, epsilon: float) -> float:
    """Return the approximate delta at an epsilon of rounds with the same masses.

    Losses are divided between two points of a grid, so that means stay.
    """
    step = LOSS_STEP * epsilon / math.sqrt(rounds)
    both = (first > 0) & (second > 0)
    # Ratios to the smallest masses exceed a double's range.
    places, masses = (np.log(first[both]) - np.log(second[both])) / step, first[both]
    # Very large losses, of almost no mass, are omitted.
    order = np.argsort(places)
    kept = order[np.cumsum(masses[order][::-1])[::-1] > LEFT_OUT]
    places, masses = places[kept], masses[kept]
    below = np.floor(places).astype(np.int64)
    lowest, spread = int(below.min()), int(np.ptp(below)) + 2
    if spread * rounds > MOST_LOSSES:
        raise Refused
    upper = masses * (places - below)
    gridded = np.bincount(below - lowest, masses - upper, spread) + np.bincount(below - lowest + 1, upper, spread)
    length = 1 << (spread * rounds).bit_length()
    composed = np.fft.irfft(np.fft.rfft(gridded, length) ** rounds, length)[: (spread - 1) * rounds + 1]
    losses = (np.arange(len(composed)) + rounds * lowest) * step
    # Masses within the transform's rounding error are omitted.
    counted = (losses > epsilon) & (composed > 1e-15)
    return math.fsum(composed[counted] * -np.expm1(epsilon - losses[counted]))


def training_delta(setting: TrainingSetting, plan: TrainingPlan, epsilon: float) -> float:
    """Return a training's delta at an epsilon by quadrature, for a pair of neighbours."""
    mechanism = plan.mechanism
    assert isinstance(mechanism, VectorMechanism)
    clients = plan.seats or setting.clients_per_round
    variance = mechanism.variance_bound / mechanism.ball.dimension * clients
    count = plan.count.deviation if plan.count is not None else plan.count_deviation
    cohorts = setting.cohorts
    certain = not setting.secret_sampling or setting.sampling == "passes"
    drawn = 1 - (1 - 1 / setting.clients) ** setting.clients_per_round
    share = 1.0 if certain else drawn if setting.sampling == "with-replacement" else setting.clients_per_round / setting.clients
    masses = round_masses(setting.adjacency, (math.sqrt(variance) / setting.clip, count), share)
    rounds = cohorts.participations(setting.rounds)
    return max(composed_delta(*pair, rounds, epsilon) for pair in (masses, masses[::-1]))


def draw(rng: random.Random) -> Arguments:
    """Draw a small training, and the kind of check."""
    name = rng.choice(list(SUMS))
    clients = round(10 ** rng.uniform(1, 4))
    sampling = rng.choice(("poisson", "poisson", "fixed", "fixed", "passes", "with-replacement"))
    fields: dict[str, Any] = {
        "clients": clients,
        "clients_per_round": max(1, round(clients * 10 ** rng.uniform(-3, 0))),
        "sampling": sampling,
        "adjacency": rng.choice(("add-or-remove-one", "add-or-remove-one" if sampling == "poisson" else "replace-one")),
        "rounds": rng.choice((1, 1, 2, round(10 ** rng.uniform(0, 2)))),
        "delta": 10 ** rng.uniform(-8, -2),
        "clipping": rng.choice(("flat", "adaptive", "adaptive", "adaptive")),
        "clip": 10 ** rng.uniform(-2, 1),
        "secret_sampling": rng.random() < 0.9,
    }
    look = rng.choice(("losses", "losses", "neighbours"))
    if look == "neighbours":
        few = rng.randint(2, 12)
        fields |= {"clients": few, "clients_per_round": rng.randint(1, few), "rounds": 1}
        return {"look": look, "name": "dp-fedavg", "noise": 10 ** rng.uniform(-1, 0.5), "fields": fields, "seed": rng.randint(0, 10**6)}
    noise = 10 ** rng.uniform(-0.3, 0.7) if name in ("dp-fedavg", "distributed-discrete-gaussian") and rng.random() < 0.5 else None
    if noise is None:
        fields |= {rng.choice(("epsilon", "epsilon", "round_epsilon")): 10 ** rng.uniform(-0.5, 1)}
    return {"look": look, "name": name, "noise": noise, "fields": fields, "seed": 0}


def check(
    folder: Path,  # noqa: ARG001 - nothing is written
    look: str,
    name: str,
    noise: float | None,
    fields: dict[str, Any],
    seed: int,
) -> None:
    """Compare the stated epsilon, or the noise, with the truth for a pair of neighbours."""
    given = {**SUMS[name], **({} if noise is None else {"noise_multiplier": noise})}
    options = {option.name: given.get(option.name, option.default) for option in training_entry(name).options}
    samples = 1 if fields["clients"] > 1000 else None
    try:
        setting = TrainingSetting(**fields, samples=samples, precision=64)
        plan = training_plan(setting, name, options, ModelLayers("small", (dense(3, 2),)))
    except REFUSALS as error:
        raise refusal(error) from error
    if look == "neighbours":
        _check_neighbours(setting, plan, seed)
        return
    epsilon, target = float(plan.epsilons[-1]), fields.get("epsilon")
    if not math.isfinite(epsilon) or epsilon == 0:
        raise Refused
    assert target is None or epsilon <= target, f"epsilon {epsilon!r} is above the budget {target!r}"
    delta = training_delta(setting, plan, epsilon * (1 + QUADRATURE_ERROR))
    assert delta <= setting.delta, f"epsilon is stated as {epsilon!r} at {setting.delta!r}, where delta is {delta!r}"


def _check_neighbours(setting: TrainingSetting, plan: TrainingPlan, seed: int) -> None:
    """Compare two neighbours' releases, with the same noise, to the noise of sum and count."""
    rng = np.random.default_rng(seed)
    parts = [_examples(rng, int(rng.integers(0, 3))) for _ in range(setting.clients)]
    changed, seen = int(rng.integers(setting.clients)), _examples(rng, 50)
    emptied = setting.adjacency == "add-or-remove-one"
    if emptied and len(parts[changed]) == 0:
        parts[changed] = _examples(rng, 1)
    others = [*parts]
    others[changed] = _examples(rng, 0 if emptied else int(rng.integers(0, 3)))
    runs = []
    for clients in (parts, others):
        data = FederatedData(setting.clients, 3, 2, seen, clients.__getitem__)
        run = Federation(setting, plan, data, seed, "neighbours")
        run.run()
        runs.append(run)
    first, second = runs
    moved = np.linalg.norm(first.state.parameters - second.state.parameters) * setting.clients_per_round
    mechanism: Any = plan.mechanism
    distances = [float(moved) / mechanism.noise_deviation]
    bound = 1 / mechanism.noise_multiplier
    if setting.clipping == "adaptive":
        assert plan.count_deviation is not None
        clips = [run.clip_norm for run in runs]
        distances.append(
            math.log(clips[0] / clips[1]) / AdaptiveClipping().learning_rate * setting.clients_per_round / plan.count_deviation
        )
        bound = 1 / combined_noise_multiplier(mechanism.noise_multiplier, plan.count_deviation, setting.adjacency)
    distance = math.hypot(*distances)
    assert distance <= bound * (1 + ROUNDING), f"neighbours are {distance!r} deviations apart, accounted for are {bound!r}: {distances}"


def _examples(rng: np.random.Generator, number: int) -> Examples:
    return Examples(rng.normal(size=(number, 3)) * 10 ** rng.uniform(-2, 2), rng.integers(0, 2, size=number))


ATTACK = Attack("trainings", draw, check, share=1.5, prepare=load_accounts)
