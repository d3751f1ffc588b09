"""Standard errors of every mechanism for items.

Points under test: z-scores over the items have an rms of 1, within sampling error.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.analysis.simulation.mean import aggregate_once
from quietbits.arrays import FloatArray, IntegerArray
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.mechanism import FrequencyMechanism
from quietbits.design.contracts.task import Task
from quietbits.design.frequencies.blocks import BlockMechanism
from quietbits.design.frequencies.sketched_frequencies import SketchedFrequencies

CLIENTS, ITEMS, RUNS = 8000, 400, 20
# Runs of hashed sketches, whose collisions are common to all items of a run.
HASHED_RUNS = 40
# With two clients per item, estimates and their computed variances share much of their noise.
FEW_CLIENTS, FEW_ITEMS, MORE_RUNS = 1000, 500, 30
# A tenth of the clients holds each of a few items, which exceed the noise unless their own variance is much larger.
FEW = 10
ENTRIES = {name: entry for name, entry in REGISTRY.items() if Categories in entry.domains and entry.private}
# Hashed sketches, whose collisions are part of the errors; without options these entries give every item its own bucket.
SKETCHES: Mapping[str, Mapping[str, Any]] = {
    "sketched-poisson-binomial": {"rows": 4, "width": 64},
    "sketched-discrete-gaussian-frequencies": {"rows": 3, "width": 100},
    "sketched-skellam-frequencies": {"rows": 2, "width": 128, "signed": True},
}
CASES = [
    *((name, epsilon, {}, population) for name in ENTRIES for epsilon, population in ((1.0, "zipf"), (3.0, "few"))),
    *((name, 1.0, options, "zipf") for name, options in SKETCHES.items()),
    ("sparse-discrete-gaussian-frequencies", 1.0, {"distinct_items": FEW}, "few"),
    ("sparse-discrete-gaussian-frequencies", 1.0, {"distinct_items": FEW, "signed": True}, "few"),
    *(("hadamard-response", epsilon, {"blocks": blocks}, "few") for epsilon, blocks in ((1.0, 16), (3.0, 2), (3.0, 64))),
    ("recursive-hadamard-response", 3.0, {"message_bits": 3}, "zipf"),
    ("projective-geometry-response", 7.0, {}, "zipf"),
]
# Calibrating a shuffler for a large epsilon takes long.
EPSILONS = {"local": (0.5, 5.0, 8.0), "shuffled": (0.5,)}
SPARSE = "sparse-discrete-gaussian-frequencies"
CASES_OF_FEW_CLIENTS = [
    *(
        (name, epsilon, {}, population)
        for name, entry in ENTRIES.items()
        for epsilon in EPSILONS.get(entry.trust_model, ())
        for population in ("zipf", "uniform")
    ),
    # The noise of sums does not depend on the clients' items. Whole counts with discrete Laplace noise are mostly exact at a large epsilon.
    *(
        (name, 1.0 if name == "distributed-discrete-laplace" else 8.0, {}, "zipf")
        for name, entry in ENTRIES.items()
        if entry.trust_model == "secure-sum"
    ),
    *((name, 8.0, options, "uniform") for name, options in SKETCHES.items()),
    # The clients hold more different items than the decoder expects.
    (SPARSE, 0.5, {"distinct_items": FEW}, "zipf"),
    (SPARSE, 8.0, {"distinct_items": FEW}, "uniform"),
    (SPARSE, 8.0, {"distinct_items": 4 * FEW}, "zipf"),
    (SPARSE, 8.0, {"distinct_items": FEW, "signed": True}, "zipf"),
]


def made(name: str, epsilon: float, options: Mapping[str, Any], categories: int = ITEMS, clients: int = CLIENTS) -> FrequencyMechanism:
    entry = REGISTRY[name]
    task = Task(Categories(categories), clients, epsilon, 0.0 if entry.trust_model == "local" else 1e-5, "replace-one")
    mechanism = build_mechanism(name, task, options)
    assert isinstance(mechanism, FrequencyMechanism)
    return mechanism


def held(population: str, rng: np.random.Generator, categories: int = ITEMS, clients: int = CLIENTS) -> IntegerArray:
    """Draw every client's item: by Zipf's law, uniformly, or from the few first items."""
    places = np.arange(categories)
    weights = {"zipf": 1 / (places + 1), "uniform": np.ones(categories), "few": (places < FEW).astype(float)}[population]
    return np.asarray(rng.choice(categories, clients, p=weights / weights.sum()))


def z_scores(mechanism: FrequencyMechanism, items: IntegerArray, rng: np.random.Generator) -> FloatArray:
    aggregate = aggregate_once(mechanism, items, rng)
    estimate = mechanism.estimate(aggregate, len(items))
    np.testing.assert_array_equal(estimate.decoded, mechanism.decode(aggregate, len(items)))
    return np.asarray((estimate.frequencies - mechanism.domain.total(items) / len(items)) / estimate.standard_errors)


def scores_of_runs(mechanism: FrequencyMechanism, population: str, clients: int, runs: int) -> FloatArray:
    """Return the z-scores of some runs, shape (runs, items)."""
    scores = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        # Standard errors count collisions as random over the sketch's seed, so each run has a new seed.
        of_run = mechanism.renewed(run) if isinstance(mechanism, SketchedFrequencies) and not mechanism.sketch.direct else mechanism
        assert isinstance(of_run, FrequencyMechanism)
        scores.append(z_scores(of_run, held(population, rng, mechanism.categories, clients), rng))
    return np.array(scores)


def check_rms(scores: FloatArray) -> None:
    means = np.square(scores).mean(axis=1)
    sampling = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    assert abs(np.mean(means) - 1) <= 4 * sampling


def check_precision(scores: FloatArray) -> None:
    # The relative error of the rms is half of that of its square.
    assert float(np.std(np.square(scores).mean(axis=1), ddof=1)) / math.sqrt(len(scores)) / 2 < 0.03


@pytest.mark.parametrize(("name", "epsilon", "options", "population"), CASES, ids=str)
def test_z_scores_over_items_have_an_rms_of_one(name: str, epsilon: float, options: Mapping[str, Any], population: str) -> None:
    runs = HASHED_RUNS if options is SKETCHES.get(name) else RUNS
    scores = scores_of_runs(made(name, epsilon, options), population, CLIENTS, runs)
    check_rms(scores)
    check_precision(scores)
    if population == "few":
        check_rms(scores[:, :FEW])


@pytest.mark.parametrize(("name", "epsilon", "options", "population"), CASES_OF_FEW_CLIENTS, ids=str)
def test_z_scores_have_an_rms_of_one_with_few_clients_an_item_and_more_items_than_are_decoded(
    name: str, epsilon: float, options: Mapping[str, Any], population: str
) -> None:
    mechanism = made(name, epsilon, options, FEW_ITEMS, FEW_CLIENTS)
    runs = MORE_RUNS if REGISTRY[name].trust_model == "local" else RUNS
    scores = scores_of_runs(mechanism, population, FEW_CLIENTS, runs)
    check_rms(scores)
    check_precision(scores)


def test_a_hashed_sketch_is_renewed_and_a_block_response_has_several_blocks_in_some_case() -> None:
    mechanisms = [made(name, epsilon, options) for name, epsilon, options, population in CASES if options or epsilon > 3]
    hashed = {type(mechanism) for mechanism in mechanisms if isinstance(mechanism, SketchedFrequencies) and not mechanism.sketch.direct}
    blocked = {type(mechanism) for mechanism in mechanisms if isinstance(mechanism, BlockMechanism) and mechanism.blocks > 1}
    assert (len(hashed), len(blocked)) == (4, 3)


def test_the_standard_errors_of_a_block_response_do_not_vary_with_the_noise_of_all_its_items() -> None:
    mechanism = made("hadamard-response", 1.0, {"blocks": 1})
    errors = []
    for run in range(5):
        rng = np.random.default_rng(run)
        items = held("zipf", rng)
        errors.append(mechanism.estimate(aggregate_once(mechanism, items, rng), CLIENTS).standard_errors)
    exact = mechanism.standard_errors(mechanism.domain.total(items) / CLIENTS, CLIENTS)
    # The sum of all estimates is off by 15 % of all clients, so it would be a wrong share of the only block.
    np.testing.assert_allclose(errors, np.tile(exact, (5, 1)), rtol=0.02)


def test_an_exact_mechanism_has_no_standard_errors() -> None:
    task = Task(Categories(5), 200, 1.0, 0.0, "replace-one")
    mechanism = build_mechanism("exact-histogram", task, {"code": "identity"})
    assert isinstance(mechanism, FrequencyMechanism)
    items = np.random.default_rng(0).choice(5, 200)
    estimate = mechanism.estimate(aggregate_once(mechanism, items, np.random.default_rng(1)), 200)
    np.testing.assert_allclose(estimate.frequencies, np.bincount(items, minlength=5) / 200, atol=1e-15)
    assert not estimate.standard_errors.any()


@pytest.mark.parametrize("wrong", [[-0.1, 1.1], [0.5, math.nan]])
def test_estimates_are_no_true_frequencies(wrong: list[float]) -> None:
    for name in ("frequency-randomised-response", "hadamard-response", "sketched-skellam-frequencies"):
        with pytest.raises(ValueError, match="frequencies must be numbers from 0 to 1, got"):
            made(name, 1.0, {}, 2).standard_errors(wrong, 10)
