"""The noisy sum of sketches with threshold and memory.

Points under test: the memory keeps the small coordinates and costs no privacy, and runs resume.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.training.checkpoint import Checkpoint
from quietbits.analysis.training.federation import Federation
from quietbits.analysis.training.task import TrainingTask
from quietbits.analysis.training.thresholded_sketch import ThresholdedSketchedSum

Tasks = Callable[..., TrainingTask]
Federations = Callable[[TrainingTask], Federation]
SKETCH = {"sketch_dimension": 165, "rows": 15, "bits": 16, "noise_multiplier": 0.025}


def test_the_guarantee_and_the_messages_are_those_of_the_sketch(task: Tasks) -> None:
    plain = task("sketched-discrete-gaussian", SKETCH).prepare(None)
    result = task("thresholded-sketch", {**SKETCH, "threshold": 2.0}).prepare(None)
    assert result.epsilons.tolist() == plain.epsilons.tolist()
    assert result.message_bits == plain.message_bits
    assert result.trust_model == "secure-sum"
    mechanism: Any = result.mechanism
    assert replace(mechanism, threshold=1.0).threshold == 1.0
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 100, got -1"):
        replace(mechanism, threshold=-1.0)


def test_one_round_decodes_what_is_kept(task: Tasks) -> None:
    mechanism: Any = task("thresholded-sketch", {**SKETCH, "threshold": 1.5}).prepare(None).mechanism
    assert isinstance(mechanism, ThresholdedSketchedSum)
    aggregate = mechanism.aggregate(mechanism.encode(np.full((40, 650), 0.03), np.random.default_rng(0)))
    sketch = mechanism.measured_mean(aggregate, 40)
    kept = np.where(np.abs(sketch) >= 1.5 * np.sqrt(np.mean(sketch**2)), sketch, 0.0)
    assert 0 < np.count_nonzero(kept) < 60
    np.testing.assert_array_equal(mechanism.decode(aggregate, 40), mechanism.sketch.decode(kept))


def test_all_rounds_together_move_the_model_by_all_sketches_but_the_memory(task: Tasks, federation: Federations) -> None:
    """The server's steps and the last memory add up to the sum of the rounds' noisy sketches."""
    run = federation(task("thresholded-sketch", {**SKETCH, "threshold": 1.0}, rounds=6, precision=64, server_rate=1e-6))
    mechanism: Any = run.plan.mechanism.renewed(run._sketch_seed or 0)
    sketches = []
    mean = Federation._mean

    def recording(self: Federation, messages: Any, factor: float) -> Any:
        sketches.append(messages.total(165) * factor)
        return mean(self, messages, factor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Federation, "_mean", recording)
        run.run()
    assert np.count_nonzero(run._memory) > 50
    moved = mechanism.sketch.decode(np.sum(sketches, axis=0) - run._memory)
    np.testing.assert_allclose(run.state.parameters, 1e-6 * moved, rtol=1e-9, atol=1e-18)


def test_the_sketch_stays_and_other_seeds_have_another(task: Tasks, federation: Federations) -> None:
    seeds = {federation(task("thresholded-sketch", SKETCH, seed=seed))._sketch_seed for seed in (0, 0, 1)}
    assert len(seeds) == 2
    assert federation(task("sketched-discrete-gaussian", SKETCH))._sketch_seed is None


def test_an_interrupted_run_keeps_its_memory(task: Tasks, federation: Federations, tmp_path: Path) -> None:
    made = task("thresholded-sketch", SKETCH, rounds=6, clipping="adaptive", clip=0.1)
    whole, first = federation(made), federation(replace(made, training=replace(made.training, rounds=3)))
    whole.run()
    first.run(Checkpoint(tmp_path / "run.npz", 3, b"key"))
    assert first._memory.any()
    second = federation(made)
    second.run(Checkpoint(tmp_path / "run.npz", 3, b"key"))
    np.testing.assert_array_equal(second.state.parameters, whole.state.parameters)
    np.testing.assert_array_equal(second._memory, whole._memory)


def test_learning_survives_thresholding(task: Tasks, federation: Federations) -> None:
    common = {"rounds": 30, "clients_per_round": 200, "server_rate": 2.0}
    accuracies = []
    for threshold in (0.0, 1.0):
        run = federation(task("thresholded-sketch", {**SKETCH, "threshold": threshold}, **common))
        run.run()
        accuracies.append(run.accuracy())
    assert min(accuracies) > 0.5
