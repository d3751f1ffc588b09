"""Privacy of every round.

Requirements: epsilon equals that of `account` for the same number of rounds, amplified or not, and is within the budget.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.catalogue.registry import build_mechanism, entry_named
from quietbits.analysis.training.baselines import baselines, entries
from quietbits.analysis.training.plan import accounted_rounds, check_training
from quietbits.analysis.training.setting import KEYS
from quietbits.analysis.training.task import TrainingTask
from quietbits.attack import trainings
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import Privacy
from quietbits.design.contracts.task import Task
from quietbits.design.federated.adaptive_clipping import combined_noise_multiplier
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.tables.mvu import design_mvu
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

Tasks = Callable[..., TrainingTask]


def test_epsilons_of_a_trusted_servers_noise_are_those_of_account(task: Tasks) -> None:
    plan = task("dp-fedavg", {"noise_multiplier": 2.0}, rounds=7).prepare(None)
    sampling = FixedSizeSampling(200, 40)
    accounted = entry_named("gaussian").account({"noise_multiplier": 2.0, "delta": 1e-5, "trust_model": "central"}, "replace-one", sampling)
    assert plan.epsilons.tolist() == [accounted.report(1e-5, rounds, sampling).epsilon for rounds in range(1, 8)]
    assert plan.trust_model == "central"


@pytest.mark.parametrize(("name", "options"), [("distributed-skellam", {"bits": 18}), ("cldp", {}), ("dp-rec", {})])
def test_epsilons_are_those_of_the_registrys_mechanism(name: str, options: dict[str, int], task: Tasks) -> None:
    plan = task(name, options, epsilon=6.0, rounds=4).prepare(None)
    local = entry_named(name).trust_model == "local"
    sampling = None if local else FixedSizeSampling(200, 40)
    mechanism = build_mechanism(name, Task(NormBall(650, 2.0), 40, 6.0, 1e-5, "replace-one", 4, sampling=sampling), options)
    privacy = mechanism.privacy()
    assert plan.epsilons.tolist() == [privacy.report(1e-5, "replace-one", rounds, sampling).epsilon for rounds in (1, 2, 3, 4)]
    assert plan.epsilons[-1] <= 6
    if local:
        amplified = Privacy("central", privacy.accounts).report(1e-5, "replace-one", 4, FixedSizeSampling(200, 40)).epsilon
        assert plan.amplified is not None
        assert plan.amplified[-1] == amplified < plan.epsilons[-1]
    else:
        assert plan.amplified is None


def test_a_budget_of_one_round_is_not_amplified(task: Tasks) -> None:
    plan = task("distributed-skellam", {"bits": 18}, round_epsilon=2.0, secret_sampling=False, rounds=3).prepare(None)
    assert 1.99 < plan.epsilons[0] <= 2
    assert plan.epsilons[0] < plan.epsilons[1] < plan.epsilons[2] < 6


@pytest.mark.parametrize(
    ("name", "options", "fields"),
    [
        ("dp-fedavg", {"noise_multiplier": 2.0}, {}),
        ("dp-fedavg", {"noise_multiplier": 2.0}, {"sampling": "poisson", "adjacency": "add-or-remove-one"}),
        ("distributed-skellam", {"bits": 18}, {"round_epsilon": 2.0}),
        ("distributed-skellam", {"bits": 18}, {"round_epsilon": 6.0, "clipping": "adaptive"}),
    ],
)
def test_one_training_is_accounted_for_whether_sampling_is_secret_or_not(
    name: str, options: dict[str, float], fields: dict[str, object], task: Tasks
) -> None:
    secret = task(name, options, rounds=6, **fields).prepare(None)
    seen = task(name, options, rounds=6, secret_sampling=False, **fields).prepare(None)
    assert secret.mechanism == seen.mechanism
    assert secret.unamplified is not None
    assert secret.unamplified.tolist() == seen.epsilons.tolist()
    assert (secret.epsilons < secret.unamplified).all()
    assert seen.unamplified is None


SKETCH = {"sketch_dimension": 165, "rows": 15, "bits": 16, "noise_multiplier": 0.5}


@pytest.mark.parametrize(
    ("name", "options"), [("distributed-discrete-gaussian", {"bits": 16, "noise_multiplier": 0.5}), ("sketched-discrete-gaussian", SKETCH)]
)
@pytest.mark.parametrize(
    "fields",
    [
        {"rounds": 4},
        {"rounds": 2, "clipping": "adaptive", "clip": 0.1},
        {"rounds": 2, "sampling": "poisson", "adjacency": "add-or-remove-one"},
    ],
)
def test_secure_sums_have_the_noise_that_is_given_and_keep_what_their_account_says(
    name: str, options: dict[str, float], fields: dict[str, Any], task: Tasks
) -> None:
    setting = task(name, options, **fields).training
    plan = task(name, options, **fields).prepare(None)
    mechanism: Any = plan.mechanism
    inner = getattr(mechanism, "inner", mechanism)
    # The sensitivity of sketches is their own clip norm.
    norms = inner.ball.clip_norm * (2 if setting.adjacency == "replace-one" else 1)
    assert inner.ball.clip_norm == pytest.approx(setting.clip * (1.1 if "sketch" in name else 1.0), rel=1e-12)
    assert math.sqrt(inner.clients) * inner.local_sigma == pytest.approx(0.5 * norms, rel=1e-12)
    # Every drawn client has a seat, except with negligible probability.
    if setting.sampling == "poisson":
        assert 70 < inner.clients == setting.cohorts.seats(setting.rounds, setting.delta) < 100
    else:
        assert inner.clients == 40
    if setting.sampling == "fixed":
        reports = [
            mechanism.privacy().report(setting.delta, setting.adjacency, rounds, FixedSizeSampling(200, 40))
            for rounds in range(1, setting.rounds + 1)
        ]
        of_sum = [report.epsilon for report in reports]
        if plan.count is None:
            assert plan.epsilons.tolist() == of_sum
        else:
            assert (plan.epsilons > of_sum).all()
    # Rounding costs slightly more privacy than Gaussian noise of this size alone.
    assert plan.unamplified is not None
    multiplier = 0.5 if plan.count is None else combined_noise_multiplier(0.5, plan.count.deviation, setting.adjacency)
    alone = gaussian_privacy(multiplier, setting.adjacency, "central").epsilon(setting.delta, setting.adjacency, setting.rounds)
    assert alone < plan.unamplified[-1] < 1.01 * alone


@pytest.mark.parametrize(
    "fields",
    [{}, {"clipping": "adaptive", "clip": 0.1}, {"sampling": "poisson", "adjacency": "add-or-remove-one"}],
)
def test_levels_of_eight_bits_keep_the_epsilon_of_floats(fields: dict[str, Any], task: Tasks) -> None:
    made = [task("dp-fedavg", options, rounds=3, epsilon=4.0, **fields).prepare(None) for options in ({}, {"bits": 8})]
    floats, levels = made
    assert levels.epsilons.tolist() == floats.epsilons.tolist()
    assert levels.epsilons[-1] <= 4.0
    assert levels.message_bits == floats.message_bits / 4 + 32


def test_a_given_noise_needs_no_budget_and_a_sketch_of_given_size(task: Tasks) -> None:
    with pytest.raises(ValueError, match=r"epsilon must be left out, or 'none', for distributed-discrete-gaussian with a noise_multiplier"):
        check_training(task("none", epsilon=1.0).training, "distributed-discrete-gaussian", {"noise_multiplier": 0.5})
    with pytest.raises(ValueError, match="sketch_dimension must be given with a noise_multiplier, got None"):
        check_training(task("none").training, "sketched-discrete-gaussian", {"noise_multiplier": 0.5})
    with pytest.raises(InfeasibleError, match="bits must be at least 5 to hold 4 deviations of 40 clients' rounding, got 3"):
        task("distributed-discrete-gaussian", {"noise_multiplier": 0.5, "bits": 3}).prepare(None)
    with pytest.raises(InfeasibleError, match=r"noise_multiplier must be at least 0\.\d+ in steps that fit 5 bits, got 0.001"):
        task("distributed-discrete-gaussian", {"noise_multiplier": 1e-3, "bits": 5}).prepare(None)
    # Only trainings have this option; other uses of the mechanism take a budget.
    assert "noise_multiplier" not in {option.name for option in entry_named("distributed-discrete-gaussian").options}


def test_guarantees_without_a_delta_are_refused_where_no_account_is_pure(task: Tasks) -> None:
    with pytest.raises(ValueError, match="delta must be above 0 for gaussian, got 0"):
        check_training(task("none", delta=0.0).training, "gaussian", {"noise_multiplier": 1.0})
    check_training(task("none", epsilon=1.0, delta=0.0).training, "cldp", {})


def test_other_adjacencies_are_refused_before_anything_is_run(task: Tasks) -> None:
    with pytest.raises(ValueError, match="adjacency must be replace-one for gaussian, got 'add-or-remove-one'"):
        check_training(task("none", adjacency="add-or-remove-one").training, "gaussian", {"noise_multiplier": 1.0})
    check_training(task("none", adjacency="add-or-remove-one").training, "none", {})


def test_noise_on_each_message_may_be_given(task: Tasks) -> None:
    plan = task("gaussian", {"noise_multiplier": 1.5}, rounds=3, sampling="passes").prepare(None)
    assert plan.trust_model == "local"
    # A fifth of the clients take part in each round, so three rounds are within one pass.
    assert plan.epsilons.tolist() == [gaussian_privacy(1.5).epsilon(1e-5)] * 3
    mechanism: Any = plan.mechanism
    assert mechanism.standard_deviation == 1.5 * 2 * task("gaussian", {"noise_multiplier": 1.5}).training.clip


def test_a_tables_own_epsilon_may_be_given(task: Tasks, tmp_path: Path) -> None:
    options = {"table_epsilon": 2.0, "bits_in": 5, "bits_out": 1, "metric": "l1"}
    plans = [task("mvu", options, rounds=2).prepare(folder) for folder in (None, tmp_path, tmp_path)]
    tables = [plan.mechanism.table for plan in plans]
    expected = design_mvu(2.0, 5, 1, "l1")
    assert all(table.weights.tolist() == expected.weights.tolist() for table in tables)
    assert all(table.epsilon == 2.0 for table in tables)
    privacy = VectorTableMechanism(expected, NormBall(650, 2.0), delta=1e-5).privacy()
    assert all(plan.epsilons.tolist() == [privacy.epsilon(1e-5, rounds=rounds) for rounds in (1, 2)] for plan in plans)


def test_what_is_for_budgets_alone_is_refused_beside_a_tables_epsilon(task: Tasks) -> None:
    given = {"table_epsilon": 2.0, "metric": "l1"}
    with pytest.raises(ValueError, match="round_epsilon must be left out, or 'none', for mvu with a table_epsilon, got 3"):
        check_training(task("none", round_epsilon=3.0).training, "mvu", given)
    with pytest.raises(ValueError, match="objective must be left out for mvu with a table_epsilon, got 'renyi': it is for a budget"):
        check_training(task("none").training, "mvu", {**given, "objective": "renyi"})
    with pytest.raises(InfeasibleError, match="bits_in must be at least 2 for mvu on a ball of norm 2, got 1"):
        task("mvu", {**given, "bits_in": 1}).prepare(None)
    with pytest.raises(ValueError, match="table_epsilon must be"):
        task("mvu", {**given, "table_epsilon": 0.0})
    # Only trainings have this option; other uses of the mechanism take a budget.
    assert "table_epsilon" not in {option.name for option in entry_named("mvu").options}


def test_what_sampling_does_not_amplify_is_stated_once(task: Tasks) -> None:
    for changed in ({"sampling": "passes"}, {"sampling": "with-replacement"}):
        assert task("dp-fedavg", {"noise_multiplier": 2.0}, rounds=3, **changed).prepare(None).unamplified is None
    assert task("cldp", round_epsilon=1.0).prepare(None).unamplified is None


def test_passes_compose_over_the_rounds_of_one_client(task: Tasks) -> None:
    plan = task("cldp", sampling="passes", round_epsilon=1.0, rounds=11, delta=0.0).prepare(None)
    # 40 of 200 clients take part in each round, so the sixth round begins the second pass. Without delta, epsilons add up.
    assert (plan.epsilons / plan.epsilons[0]).tolist() == pytest.approx([1.0] * 5 + [2.0] * 5 + [3.0], rel=1e-9)
    assert plan.amplified is None


def test_poisson_sampled_rounds_are_accounted_for_sparsely_and_never_too_low(task: Tasks) -> None:
    plan = task("dp-fedavg", {"noise_multiplier": 3.0}, sampling="poisson", adjacency="add-or-remove-one", rounds=9).prepare(None)
    asked = accounted_rounds(9, sparse=True)
    assert asked == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert accounted_rounds(30, sparse=True)[-4:] == [18, 22, 27, 30]
    report = plan.mechanism.privacy().report(1e-5, "add-or-remove-one", 9, PoissonSampling(0.2))
    assert plan.epsilons[-1] == report.epsilon
    assert (np.diff(plan.epsilons) >= 0).all()


def test_adaptive_clipping_pays_for_its_question(task: Tasks) -> None:
    fields = {"clipping": "adaptive", "sampling": "passes", "rounds": 5, "epsilon": 10.0}
    secure = task("distributed-discrete-gaussian", {"bits": 18}, **fields).prepare(None)
    assert secure.count is not None
    assert secure.epsilons[-1] <= 10
    assert secure.epsilons[-1] > 9.98
    assert secure.mechanism.privacy().epsilon(1e-5, "replace-one", 1) < 9.98
    assert secure.message_bits == secure.mechanism.bits_per_client + secure.count.bits
    trusted = task("dp-fedavg", **fields).prepare(None)
    assert trusted.count_deviation == 2.0
    assert 9.99 < trusted.epsilons[-1] <= 10
    with pytest.raises(InfeasibleError, match=r"epsilon must be above .* for adaptive clipping, whose count costs .* got 0\.1: allow more"):
        task("distributed-discrete-gaussian", {"bits": 18}, **(fields | {"epsilon": 0.1})).prepare(None)


def test_dp_rec_states_what_is_proven_and_what_is_published(task: Tasks) -> None:
    fields = {"sampling": "with-replacement", "clients": 100, "clients_per_round": 10, "rounds": 20}
    plan = task("dp-rec-training", {"clip_ratio": 0.5, "group_size": 65}, adjacency="add-or-remove-one", **fields).prepare(None)
    assert np.isinf(plan.epsilons).all()
    assert {"published", "conservative", "any-bits"} <= set(plan.others)
    assert plan.others["published"][-1] < plan.others["conservative"][-1] < np.inf
    proven = task("dp-rec-training", {"group_size": 65}, epsilon=40.0, **fields).prepare(None)
    assert 39.9 < proven.epsilons[-1] <= 40


def test_large_tensors_are_several_groups(task: Tasks) -> None:
    fields = {"sampling": "with-replacement", "clients": 100, "clients_per_round": 10, "rounds": 2, "adjacency": "add-or-remove-one"}
    plan = task("dp-rec-training", {"clip_ratio": 0.5, "largest_group": 300}, **fields).prepare(None)
    # The model has 640 weights and 10 biases.
    assert plan.mechanism.layout.sizes == (214, 213, 213, 10)
    with pytest.raises(ValueError, match="largest_group must be left out where group_size is given, got 300 and 65"):
        task("dp-rec-training", {"clip_ratio": 0.5, "largest_group": 300, "group_size": 65}, **fields).prepare(None)


def test_dp_rec_is_refused_where_its_draws_are_seen(task: Tasks) -> None:
    fields = {"sampling": "with-replacement", "secret_sampling": False}
    with pytest.raises(ValueError, match=r"secret_sampling must be true for dp-rec-training, .* draws that nobody sees, got False"):
        task("dp-rec-training", {"clip_ratio": 0.5}, **fields).prepare(None)


def test_what_keeps_no_budget_needs_none_and_others_say_so(task: Tasks) -> None:
    assert np.isinf(task("none").prepare(None).epsilons).all()
    with pytest.raises(ValueError, match="epsilon is missing: cldp needs it, or round_epsilon"):
        task("cldp").prepare(None)


def test_options_of_mechanisms_have_other_names_than_settings() -> None:
    names = {option.name for entry in entries().values() for option in entry.options}
    assert names & {*KEYS, "seed", "name", "checkpoint_every", "round", "accuracy", "run", "label"} == set()
    assert {entry.name for entry in baselines()} <= set(entries())


def test_a_plan_tells_with_what_its_mechanism_was_built(task: Tasks) -> None:
    plan = task("cpsgd", {"bits": 24}, epsilon=50.0, secret_sampling=False).prepare(None)
    assert isinstance(plan.mechanism, CpsgdMechanism)
    built = plan.built()
    assert (built["built_levels"], built["built_trials"]) == (plan.mechanism.levels, plan.mechanism.trials)
    assert "built_ball" not in built
    assert "built_delta" not in built


@pytest.mark.parametrize("name", ["dp-fedavg", "distributed-skellam"])
def test_a_sampling_that_does_not_amplify_for_the_adjacency_is_passed_over(name: str, task: Tasks) -> None:
    fields = {"epsilon": 6.0, "rounds": 3, "adjacency": "add-or-remove-one"}
    plan = task(name, {}, sampling="fixed", **fields).prepare(None)
    open_ = task(name, {}, sampling="fixed", secret_sampling=False, **fields).prepare(None)
    assert plan.epsilons.tolist() == open_.epsilons.tolist()
    assert 5.99 < plan.epsilons[-1] <= 6
    assert plan.unamplified is None


CLIPPED = {"clients": 1200, "clients_per_round": 12, "sampling": "poisson", "clipping": "adaptive", "adjacency": "add-or-remove-one"}


@pytest.mark.parametrize(
    ("name", "noise", "fields"),
    [
        ("distributed-discrete-gaussian", 1.0, {}),
        ("distributed-discrete-gaussian", None, {"epsilon": 1.0}),
        ("distributed-skellam", None, {"epsilon": 1.0}),
        ("distributed-discrete-gaussian", None, {"clients": 9000, "clients_per_round": 9, "epsilon": 0.1}),
        (
            "distributed-discrete-gaussian",
            None,
            {"clients": 2500, "clients_per_round": 25, "epsilon": 0.5, "sampling": "fixed", "adjacency": "replace-one"},
        ),
        ("distributed-discrete-gaussian", 1.0, {"rounds": 100}),
        ("cpsgd", None, {"clients": 5000, "clients_per_round": 500, "epsilon": 1.0, "sampling": "fixed", "adjacency": "replace-one"}),
    ],
)
def test_sum_and_count_about_one_sample_reveal_at_most_what_is_stated(
    name: str, noise: float | None, fields: dict[str, Any], tmp_path: Path
) -> None:
    # The joint loss of both releases by quadrature agrees with epsilon of the last round, and is within the budget.
    trainings.check(tmp_path, "losses", name, noise, {**CLIPPED, "rounds": 1, "delta": 1e-5, **fields}, 0)


def test_the_joint_epsilon_of_a_sampled_secure_sum_is_that_of_the_joint_noise(task: Tasks) -> None:
    fields = {**CLIPPED, "rounds": 1, "samples": 1}
    plan = task("distributed-discrete-gaussian", {"bits": 32, "noise_multiplier": 1.0}, **fields).prepare(None)
    # Amplifying sum and count separately and adding the results would wrongly give 0.372.
    assert plan.epsilons[0] == pytest.approx(0.574, abs=2e-3)
