"""A client's mod and the server's strategy in one process.

Points under test: decoding, guarantees and refusals.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_in_trials import OPTIONS
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg

from quietbits import REGISTRY, InfeasibleError, NormBall, Task
from quietbits.analysis.federation.client_mod import PrivateUpdateMod
from quietbits.analysis.federation.planned_round import CARRIED_TRUST_MODELS
from quietbits.analysis.federation.privacy_ledger import PrivacyLedger
from quietbits.analysis.federation.round_plan import RoundPlan
from quietbits.analysis.federation.strategy import PrivateMeanStrategy

from .conftest import LEDGER, Loop

SUMS = ("distributed-discrete-gaussian", "distributed-skellam", "poisson-binomial", "sketched-discrete-gaussian")


def task(mechanism: str, clients: int = 5, **changes: Any) -> Task:
    return replace(Task(NormBall(8, 2.0, 2.0), clients, 8.0, 1e-3, REGISTRY[mechanism].adjacencies[0]), **changes)


def strategy(mechanism: str, stated: Task | None = None, options: Mapping[str, Any] | None = None, **settings: Any) -> PrivateMeanStrategy:
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=2, min_available_nodes=2)
    return PrivateMeanStrategy(inner, mechanism, stated or task(mechanism), options or {}, **settings)


def limited(epsilon: float, folder: Path, adjacency: str = "add-or-remove-one") -> PrivateUpdateMod:
    return PrivateUpdateMod(largest_epsilon=epsilon, adjacency=adjacency, ledger=folder / LEDGER)


def arrays(record: ArrayRecord) -> np.ndarray:
    return np.concatenate([array.ravel() for array in record.to_numpy_ndarrays()])


@pytest.mark.parametrize("mechanism", SUMS)
def test_a_sum_without_drop_outs_is_the_mean_within_its_stated_error(mechanism: str, model: ArrayRecord) -> None:
    # A large budget makes the noise small, and the remaining error is the stated error.
    wide = task(mechanism, epsilon=500.0)
    federation = strategy(mechanism, wide, OPTIONS.get(mechanism))
    result = federation.start(Loop({1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4, 5: 0.5}), model, num_rounds=1)
    report = federation.reports[0]
    assert (report.stayed, report.invited, report.refusal) == (5, 5, None)
    assert report.guarantee is not None
    assert report.guarantee.epsilon <= 500.0
    built = RoundPlan("", mechanism, wide, OPTIONS.get(mechanism, {})).built()
    # By Markov's inequality, the squared error exceeds 100 times its mean with probability at most 1/100.
    allowed = math.sqrt(100 * built.error().of_mean(5))
    assert np.linalg.norm(arrays(result.arrays) - 0.3) < allowed
    assert result.train_metrics_clientapp[1]["clients"] == 5
    assert result.train_metrics_clientapp[1]["epsilon"] == report.guarantee.epsilon


def test_the_masked_sum_is_decoded_exactly_as_the_mechanisms_own(model: ArrayRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = dict(enumerate((0.1, -0.2, 0.3, 0.4, -0.5, 0.6), start=1))
    seeded = {node: np.random.default_rng(node) for node in steps}
    order = iter([1, 2, 3, 4, 5, 6])
    monkeypatch.setattr("quietbits.analysis.federation.client_mod.secure_words", None)
    original = PrivateUpdateMod._train

    def with_words(self: PrivateUpdateMod, *arguments: Any) -> Message:
        monkeypatch.setattr("quietbits.analysis.federation.client_mod.secure_words", seeded[next(order)])
        return original(self, *arguments)

    monkeypatch.setattr(PrivateUpdateMod, "_train", with_words)
    options = {"rotation_seed": 3}
    # Node 4 trains, and its message is lost; the task counts on the noise of five clients.
    loop = Loop(steps)
    federation = strategy("distributed-discrete-gaussian", options=options)
    sent = loop.send_and_receive

    def losing(messages: Any, *, timeout: float | None = None) -> list[Message]:
        return [
            item for item in sent(messages, timeout=timeout) if item.metadata.src_node_id != 4 or "quietbits.message" not in item.content
        ]

    monkeypatch.setattr(loop, "send_and_receive", losing)
    monkeypatch.setattr("random.sample", lambda nodes, count: list(nodes)[:count])
    result = federation.start(loop, model, num_rounds=1)
    mechanism = RoundPlan("", "distributed-discrete-gaussian", task("distributed-discrete-gaussian"), options).built()
    messages = np.concatenate(
        [mechanism.encode(np.full((1, 8), step), np.random.default_rng(node)) for node, step in steps.items() if node != 4]
    )
    np.testing.assert_allclose(arrays(result.arrays), mechanism.decode(mechanism.aggregate(messages), 5), rtol=1e-12)
    assert federation.reports[0].guarantee == mechanism.guarantee


@pytest.mark.parametrize("mechanism", SUMS)
def test_the_guarantee_is_that_of_those_who_stayed(mechanism: str, model: ArrayRecord) -> None:
    federation = strategy(mechanism, options=OPTIONS.get(mechanism), largest_epsilon=1000.0)
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), lost=lambda node, stage: (node, stage) == (2, "train"))
    federation.start(loop, model, num_rounds=1)
    report = federation.reports[0]
    plan = RoundPlan("", mechanism, task(mechanism), OPTIONS.get(mechanism, {}))
    assert report.stayed == 4
    assert report.guarantee == plan.guarantee(plan.built_for(4), 1)
    assert report.guarantee.epsilon > plan.built().guarantee.epsilon
    assert report.wrap_probability == plan.built_for(4).coordinate_wrap_probability
    assert federation.guarantee() == report.guarantee


def test_a_round_whose_noise_has_left_is_refused_before_its_sum_is_seen(model: ArrayRecord) -> None:
    federation = strategy("distributed-discrete-gaussian", on_refusal="skip")
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), lost=lambda node, stage: (node, stage) == (2, "train"))
    result = federation.start(loop, model, num_rounds=1)
    assert len(result.arrays) == 0
    assert federation.reports[0].guarantee is None
    assert re.search(
        r"epsilon must be at most 8 over 1 rounds, got [\d.]+ with the noise of the 4 of 5 clients that stayed", str(federation.reports[0])
    )
    assert "reveal" not in {stage for _, stage in loop.stages}
    assert federation.guarantee().epsilon == 0.0
    with pytest.raises(InfeasibleError, match="round 1, distributed-discrete-gaussian, 4 of 5 clients: refused: epsilon"):
        strategy("distributed-discrete-gaussian").start(Loop(loop.steps, lost=loop.lost), model, num_rounds=1)


@pytest.mark.parametrize("stage", ["keys", "letters", "train", "reveal"])
def test_too_few_clients_at_any_stage_are_a_refusal(stage: str, model: ArrayRecord) -> None:
    federation = strategy("distributed-skellam", largest_epsilon=1000.0, on_refusal="skip")
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), lost=lambda node, at: node != 5 and at == stage)
    federation.start(loop, model, num_rounds=1)
    assert "to recover masks, got" in str(federation.reports[0].refusal)


@pytest.mark.parametrize("stage", ["keys", "letters", "reveal"])
def test_one_client_may_leave_at_any_other_stage(stage: str, model: ArrayRecord) -> None:
    wide = task("distributed-skellam", epsilon=500.0)
    federation = strategy("distributed-skellam", wide, largest_epsilon=1000.0)
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), lost=lambda node, at: node == 5 and at == stage)
    result = federation.start(loop, model, num_rounds=1)
    stayed = 5 if stage == "reveal" else 4
    assert federation.reports[0].stayed == stayed
    # The error is at most eight times the stated error, which noise of eight degrees of freedom exceeds with probability 1e-10; a leftover
    # mask is far larger.
    stated = RoundPlan("", "distributed-skellam", wide).built_for(stayed).error().of_mean(stayed)
    assert np.sum((arrays(result.arrays) - 0.1) ** 2) < 8 * stated


def local_mechanisms() -> list[str]:
    return [name for name, entry in REGISTRY.items() if NormBall in entry.domains and entry.trust_model == "local"]


@pytest.mark.parametrize("mechanism", local_mechanisms())
def test_every_local_mechanism_is_carried_as_messages(mechanism: str, model: ArrayRecord) -> None:
    entry = REGISTRY[mechanism]
    norm = 2.0 if entry.norms is None or 2.0 in entry.norms else entry.norms[0]
    stated = task(mechanism, domain=NormBall(8, norm, 2.0))
    allowed = entry.on_real_numbers
    federation = strategy(mechanism, stated, OPTIONS.get(mechanism), allow_real_numbers=allowed)
    mod = PrivateUpdateMod(allow_real_numbers=allowed)
    loop = Loop(dict.fromkeys((1, 2, 3, 4), 0.1), mod=mod, lost=lambda node, stage: (node, stage) == (3, "train"))
    result = federation.start(loop, model, num_rounds=1)
    report = federation.reports[0]
    assert report.stayed == 3
    plan = RoundPlan("", mechanism, stated, OPTIONS.get(mechanism, {}), allow_real_numbers=allowed)
    assert report.guarantee == plan.guarantee(plan.built(), 1)
    assert report.guarantee.epsilon <= 8.0
    for guarantee in (report.guarantee, federation.guarantee()):
        assert ("of real numbers only (allow_real_numbers)" in str(guarantee)) == allowed
    assert np.isfinite(arrays(result.arrays)).all()


@pytest.mark.parametrize("mechanism", [name for name in local_mechanisms() if REGISTRY[name].on_real_numbers])
def test_mechanisms_on_real_numbers_are_carried_only_if_both_sides_allow_it(mechanism: str, model: ArrayRecord) -> None:
    said = f"mechanism must send whole numbers where messages are released, got '{mechanism}'"
    with pytest.raises(ValueError, match=said):
        strategy(mechanism)
    loop = Loop({1: 0.1, 2: 0.1})
    federation = strategy(mechanism, options=OPTIONS.get(mechanism), allow_real_numbers=True, on_refusal="skip")
    federation.start(loop, model, num_rounds=1)
    assert federation.reports[0].stayed == 0
    assert all(said in error for error in loop.errors)


def test_nothing_but_the_message_leaves_the_client(model: ArrayRecord) -> None:
    loop = Loop(dict.fromkeys((1, 2, 3), 0.1))
    strategy("sqkr").start(loop, model, num_rounds=1)
    assert len(loop.contents) == 3
    for content in loop.contents:
        assert {name: list(record) for name, record in content.items()} == {"quietbits": ["form"], "quietbits.message": ["message"]}


def test_a_client_answers_no_training_message_without_a_mechanism(model: ArrayRecord) -> None:
    loop = Loop({1: 0.1})
    message = Message(RecordDict({"arrays": model, "config": ConfigRecord()}), dst_node_id=1, message_type="train")
    loop.send_and_receive([message])
    assert "message must state a mechanism" in loop.errors[0]


def test_a_client_refuses_what_it_does_not_accept(model: ArrayRecord, tmp_path: Path) -> None:
    careful = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), mod=limited(7.0, tmp_path))
    federation = strategy("distributed-discrete-gaussian", on_refusal="skip")
    federation.start(careful, model, num_rounds=1)
    assert "must be at least 3 of 5 to recover masks, got 0 that sent their messages" in str(federation.reports[0].refusal)
    assert "epsilon must be at most 7 for this client over all its tasks, add-or-remove-one adjacency, got 8" in careful.errors[-1]


def test_a_client_refuses_a_large_failure_probability(model: ArrayRecord) -> None:
    loop = Loop({1: 0.1, 2: 0.1})
    federation = strategy("skellam", task("skellam", delta=0.02), on_refusal="skip")
    federation.start(loop, model, num_rounds=1)
    assert "clients must be at least 1 of 2 to decode a mean, got 0 that sent their messages" in str(federation.reports[0].refusal)
    assert loop.errors[-1] == "quietbits: delta must be at most 0.01 for this client, got 0.02"


def test_no_client_reveals_a_sum_of_fewer_than_it_accepts(model: ArrayRecord, tmp_path: Path) -> None:
    loop = Loop(
        dict.fromkeys((1, 2, 3, 4, 5), 0.1),
        mod=limited(8.001, tmp_path),
        lost=lambda node, stage: (node, stage) == (2, "train"),
    )
    federation = strategy("distributed-discrete-gaussian", largest_epsilon=1000.0, on_refusal="skip")
    federation.start(loop, model, num_rounds=1)
    assert "must be at least 3 of 5 to recover masks, got 0 that gave their shares" in str(federation.reports[0].refusal)


@pytest.mark.parametrize("repeated", [False, True])
def test_no_client_is_told_of_more_survivors_than_there_are(
    repeated: bool, model: ArrayRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server lies about the survivors: it names clients twice, or uses another plan of the same name.
    loop = Loop(
        dict.fromkeys((1, 2, 3, 4, 5), 0.1),
        mod=limited(8.001, tmp_path),
        lost=lambda node, stage: (node, stage) == (2, "train"),
    )
    sent = loop.send_and_receive

    def lying(messages: Any, *, timeout: float | None = None) -> list[Message]:
        for message in messages:
            reported = message.content.config_records["quietbits"]
            if reported["stage"] == "reveal":
                letter = json.loads(str(reported["letter"]))
                if repeated:
                    reported["letter"] = json.dumps({"survivors": letter["survivors"] + letter["survivors"][:1]})
                else:
                    plan = json.loads(str(reported["plan"]))
                    reported["plan"] = json.dumps(plan | {"task": plan["task"] | {"epsilon": 1.0}}, sort_keys=True)
        return sent(messages, timeout=timeout)

    monkeypatch.setattr(loop, "send_and_receive", lying)
    federation = strategy("distributed-discrete-gaussian", largest_epsilon=1000.0, on_refusal="skip")
    federation.start(loop, model, num_rounds=1)
    assert "must be at least 3 of 5 to recover masks, got 0 that gave their shares" in str(federation.reports[0].refusal)
    assert ("epsilon must be at most" if repeated else "plan must be the one") in loop.errors[-1]


def test_rounds_beyond_the_task_are_refused_by_server_and_client(model: ArrayRecord) -> None:
    two = task("skellam", rounds=2)
    federation = strategy("skellam", two, on_refusal="skip")
    loop = Loop(dict.fromkeys((1, 2, 3), 0.1))
    federation.start(loop, model, num_rounds=3)
    assert [report.refusal is None for report in federation.reports] == [True, True, False]
    assert federation.guarantee().epsilon <= 8.0
    assert federation.guarantee().epsilon > federation.reports[0].guarantee.epsilon
    # Another server, without the records of the first, meets the same clients.
    forgetful = strategy("skellam", two, on_refusal="skip")
    forgetful.start(loop, model, num_rounds=1)
    assert "clients must be at least 1 of 3 to decode a mean, got 0 that sent their messages" in str(forgetful.reports[0].refusal)
    assert "this client has spent its budget" in loop.errors[-1]


def test_a_message_counts_when_it_leaves_and_not_when_its_masks_are_taken_off(model: ArrayRecord) -> None:
    # Client 3 never gets the request to reveal its shares, and the sum contains its message.
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), lost=lambda node, stage: (node, stage) == (3, "reveal"))
    two = task("distributed-skellam", rounds=2)
    federation = strategy("distributed-skellam", two)
    federation.start(loop, model, num_rounds=2)
    assert [report.stayed for report in federation.reports] == [5, 5]
    assert [int(context.state["quietbits.state"]["rounds"]) for context in loop.contexts.values()] == [2] * 5
    # A server that has lost its records finds no client that takes part in a third round.
    forgetful = strategy("distributed-skellam", two, on_refusal="skip")
    forgetful.start(loop, model, num_rounds=1)
    assert "must be at least 3 of 5 to recover masks, got 0 that sent their messages" in str(forgetful.reports[0].refusal)
    assert [error for error in loop.errors if "this client has spent its budget" in error] == loop.errors[-5:]


def test_a_message_counts_though_it_is_lost_on_its_way(model: ArrayRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(dict.fromkeys((1, 2, 3), 0.1))
    sent = loop.send_and_receive
    monkeypatch.setattr(loop, "send_and_receive", lambda messages, timeout=None: sent(messages, timeout=timeout)[:2])
    federation = strategy("sqkr")
    federation.start(loop, model, num_rounds=1)
    assert federation.reports[0].stayed == 2
    assert [int(context.state["quietbits.state"]["rounds"]) for context in loop.contexts.values()] == [1] * 3


def test_no_server_gets_more_than_a_clients_budget_by_changing_its_task(model: ArrayRecord, tmp_path: Path) -> None:
    mod = PrivateUpdateMod(largest_epsilon=1.0, ledger=tmp_path / LEDGER)
    answered = []
    for rounds in (1, 2, 3, 4, 5, 6):
        # New contexts stand for a restart of the clients.
        loop = Loop(dict.fromkeys((1, 2, 3), 0.1), mod=mod)
        asked = task("sqkr", epsilon=0.4, rounds=rounds)
        federation = strategy("sqkr", asked, on_refusal="skip")
        federation.start(loop, model, num_rounds=rounds)
        answered.append(sum(report.refusal is None for report in federation.reports))
    # Two tasks cost 0.4 each; a third task would bring the sum above 1.
    assert answered == [1, 2, 0, 0, 0, 0]
    assert "epsilon must be at most 1 for this client over all its tasks, replace-one adjacency, got 1.1" in loop.errors[-1]
    spent = PrivacyLedger(tmp_path / LEDGER.format_map({"partition-id": 2}), 1.0, 0.01, "replace-one").spent()
    plans = [RoundPlan("", "sqkr", task("sqkr", epsilon=0.4, rounds=rounds)) for rounds in (1, 2)]
    assert [guarantee.epsilon for guarantee in spent] == [plan.guarantee(plan.built(), plan.rounds).epsilon for plan in plans]


def test_the_same_task_is_paid_for_again_in_another_run(model: ArrayRecord, tmp_path: Path) -> None:
    mod = limited(3.9, tmp_path, "replace-one")
    two = task("sqkr", epsilon=1.0, rounds=2)
    stayed = []
    for run_rounds in (1, 2, 2, 2, 2):
        loop = Loop(dict.fromkeys((1, 2), 0.1), mod=mod)
        federation = strategy("sqkr", two, on_refusal="skip")
        federation.start(loop, model, num_rounds=run_rounds)
        stayed += [report.stayed for report in federation.reports]
    # Three entries of two messages each fit; a fourth entry would make eight messages.
    assert stayed == [2] * 6 + [0] * 3


def test_masked_messages_are_paid_for_before_they_leave_and_again_for_fewer_survivors(model: ArrayRecord, tmp_path: Path) -> None:
    mod = limited(1000.0, tmp_path)
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), mod=mod, lost=lambda node, stage: stage == "reveal" and node == 2)
    sent, stated = loop.send_and_receive, task("distributed-skellam")
    ledger = PrivacyLedger(tmp_path / LEDGER.format_map({"partition-id": 3}), 1000.0, 0.01, "add-or-remove-one")
    seen = []

    def losing(messages: Any, *, timeout: float | None = None) -> list[Message]:
        answers = sent(messages, timeout=timeout)
        if any("quietbits.message" in answer.content for answer in answers):
            seen.extend(guarantee.epsilon for guarantee in ledger.spent())
            return [answer for answer in answers if answer.metadata.src_node_id != 2]
        return answers

    loop.send_and_receive = losing  # type: ignore[method-assign]
    federation = strategy("distributed-skellam", stated, largest_epsilon=1000.0)
    federation.start(loop, model, num_rounds=1)
    plan = RoundPlan("", "distributed-skellam", stated)
    everyone, others = (plan.guarantee(plan.built_for(clients), 1).epsilon for clients in (5, 4))
    assert (seen, federation.reports[0].stayed) == ([everyone], 4)
    assert [guarantee.epsilon for guarantee in ledger.spent()] == [others]
    assert others > everyone


def test_a_budget_for_one_adjacency_is_not_compared_with_a_guarantee_for_another(model: ArrayRecord, tmp_path: Path) -> None:
    # epsilon = 8 for add-or-remove-one adjacency is 16 for replace-one adjacency, at (1 + e^8) times its delta.
    for mechanism, adjacency, said in (
        (
            "distributed-skellam",
            "replace-one",
            "epsilon must be at most 15 for this client over all its tasks, replace-one adjacency, got 16",
        ),
        ("sqkr", "add-or-remove-one", "adjacency must be replace-one, of which the guarantee is, got add-or-remove-one"),
    ):
        loop = Loop(dict.fromkeys((1, 2, 3), 0.1), mod=limited(15.0, tmp_path, adjacency))
        strategy(mechanism, task(mechanism, clients=3, delta=1e-9), on_refusal="skip").start(loop, model, num_rounds=1)
        assert said in loop.errors[-1]


@pytest.mark.parametrize(
    ("ledger", "said"),
    [("there/is/no/folder.sqlite", "in a folder that exists"), ("of-{somebody}.sqlite", "node's configuration, step, partition-id, got")],
)
def test_no_message_leaves_without_its_record(ledger: str, said: str, model: ArrayRecord, tmp_path: Path) -> None:
    loop = Loop({1: 0.1, 2: 0.1}, mod=PrivateUpdateMod(largest_epsilon=100.0, ledger=tmp_path / ledger))
    federation = strategy("sqkr", on_refusal="skip")
    federation.start(loop, model, num_rounds=1)
    assert federation.reports[0].stayed == 0
    assert said in loop.errors[-1]


def test_a_budget_needs_a_record() -> None:
    for settings in ({"largest_epsilon": 1.0}, {"ledger": "spent.sqlite"}):
        with pytest.raises(ValueError, match="ledger must be a file if largest_epsilon is given, and only then"):
            PrivateUpdateMod(**settings)


def test_server_optimisers_work_on_the_private_mean(model: ArrayRecord) -> None:
    inner = FedAdam(fraction_evaluate=0.0, eta=0.1)
    federation = PrivateMeanStrategy(inner, "distributed-skellam", task("distributed-skellam", clients=3, epsilon=500.0))
    result = federation.start(Loop(dict.fromkeys((1, 2, 3), 0.1)), model, num_rounds=1)
    assert 0 < arrays(result.arrays).min() <= arrays(result.arrays).max() < 0.2


@pytest.mark.parametrize("message", [ArrayRecord([np.zeros(3)]), ArrayRecord([np.zeros((2, 8))]), ArrayRecord([np.full((1, 8), np.nan)])])
def test_what_is_not_one_message_counts_as_a_client_that_left(
    message: ArrayRecord, model: ArrayRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(dict.fromkeys((1, 2, 3), 0.1), mod=PrivateUpdateMod(allow_real_numbers=True))
    sent = loop.send_and_receive

    def spoiling(messages: Any, *, timeout: float | None = None) -> list[Message]:
        answers = sent(messages, timeout=timeout)
        for answer in answers[:1]:
            answer.content["quietbits.message"] = message
        return answers

    monkeypatch.setattr(loop, "send_and_receive", spoiling)
    federation = strategy("gaussian", allow_real_numbers=True)
    federation.start(loop, model, num_rounds=1)
    assert federation.reports[0].stayed == 2


def test_a_client_with_another_mechanism_does_not_take_part() -> None:
    plan = RoundPlan("1", "laplace", task("laplace", domain=NormBall(8, 1.0, 2.0)), allow_real_numbers=True).probed()
    plan.check()
    other = replace(plan, probe=(plan.probe[0] * 1.001, *plan.probe[1:]))
    with pytest.raises(ValueError, match="versions of libraries differ"):
        other.check()
    assert RoundPlan.from_document(plan.document()) == plan


@pytest.mark.parametrize("mechanism", [name for name, entry in REGISTRY.items() if entry.trust_model not in CARRIED_TRUST_MODELS])
def test_mechanisms_that_need_a_shuffler_or_trust_are_refused(mechanism: str) -> None:
    with pytest.raises(ValueError, match="mechanism must be of the trust model local or secure-sum"):
        strategy(mechanism)


def test_what_is_not_for_this_model_is_refused(model: ArrayRecord) -> None:
    with pytest.raises(ValueError, match="task must be for 8 coordinates, as many as the model has, got 9"):
        strategy("sqkr", task("sqkr", domain=NormBall(9, 2.0))).start(Loop({1: 0.1, 2: 0.1}), model, num_rounds=1)
    with pytest.raises(ValueError, match="on_refusal must be"):
        strategy("sqkr", on_refusal="hide")


def test_levels_that_depend_on_the_number_of_clients_are_refused_before_anyone_trains(model: ArrayRecord) -> None:
    federation = strategy("cpsgd", options={"rotated": True}, on_refusal="skip", largest_epsilon=1000.0)
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1), lost=lambda node, stage: (node, stage) == (2, "keys"))
    federation.start(loop, model, num_rounds=1)
    assert "clients must be 5, on which the messages depend, got 4" in str(federation.reports[0].refusal)
    assert "train" not in {stage for _, stage in loop.stages}


@pytest.mark.parametrize(
    ("stage", "said"),
    [("keys", {"sealing": "no key"}), ("letters", {}), ("letters", ["none"]), ("reveal", {"self_seeds": {}, "masking_keys": {}})],
)
def test_a_client_that_answers_nonsense_counts_as_one_that_left(
    stage: str, said: object, model: ArrayRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(dict.fromkeys((1, 2, 3, 4, 5), 0.1))
    sent = loop.send_and_receive

    def spoiling(messages: Any, *, timeout: float | None = None) -> list[Message]:
        asked = {str(message.content.config_records["quietbits"]["stage"]) for message in messages}
        answers = sent(messages, timeout=timeout)
        if asked == {stage}:
            answers[0].content.config_records["quietbits"]["letter"] = json.dumps(said)
        return answers

    monkeypatch.setattr(loop, "send_and_receive", spoiling)
    federation = strategy("distributed-skellam", largest_epsilon=1000.0)
    federation.start(loop, model, num_rounds=1)
    assert federation.reports[0].stayed == (5 if stage == "reveal" else 4)


@pytest.mark.parametrize("liars", [1, 2])
def test_a_false_share_is_replaced_or_refused_and_its_node_named(liars: int, model: ArrayRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(dict.fromkeys((1, 2, 3), 0.1))
    sent = loop.send_and_receive

    def spoiling(messages: Any, *, timeout: float | None = None) -> list[Message]:
        answers = sent(messages, timeout=timeout)
        for answer in answers[:liars]:
            said = json.loads(str(answer.content.config_records["quietbits"].get("letter", "{}")))
            if "self_seeds" in said:
                shares = {**said, "self_seeds": dict.fromkeys(said["self_seeds"], "01" * 66)}
                answer.content.config_records["quietbits"]["letter"] = json.dumps(shares)
        return answers

    monkeypatch.setattr(loop, "send_and_receive", spoiling)
    wide = task("distributed-skellam", clients=3, epsilon=500.0)
    federation = strategy("distributed-skellam", wide, on_refusal="skip")
    result = federation.start(loop, model, num_rounds=1)
    report = federation.reports[0]
    asked = [node for node, stage in loop.stages if stage == "reveal"]
    assert report.false_shares == tuple(sorted(asked[:liars]))
    assert f"false shares from the nodes {sorted(asked[:liars])}" in str(report)
    if liars == 1:
        # Two of three clients suffice, and the mean is right within eight times its stated error.
        stated = RoundPlan("", "distributed-skellam", wide).built().error().of_mean(3)
        assert np.sum((arrays(result.arrays) - 0.1) ** 2) < 8 * stated
    else:
        assert len(result.arrays) == 0
        assert "must come from at least 2 clients, got 1 right ones" in str(report.refusal)
