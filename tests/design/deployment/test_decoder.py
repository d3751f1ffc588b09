import math
import random
from typing import Any

import numpy as np
import pytest
from deployments import ITEMS, NAMES, OTHERS, WITH_INDEX, deployment_of_name, inputs_of, messages_of
from hypothesis import given, settings
from hypothesis import strategies as st

from quietbits.analysis.deployed_clients.deploy import deploy
from quietbits.design.deployment import decoder as module
from quietbits.design.deployment.decoder import FILLING, FOREIGN, LENGTH, REPEATED, ROUND, UNNAMED, VALUE, DecodedEstimate, Decoder
from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.message_files import records_of
from quietbits.design.deployment.wire_format import HEADER_BYTES, Header
from quietbits.errors import DataError, InfeasibleError

ONE_BYTE = ("table", "randomised-response")


def alone(deployment: Deployment, clients: int, round_number: int = 0) -> list[bytes]:
    """Return messages that travel alone."""
    messages, indices = messages_of(deployment, inputs_of(deployment, clients), round_number=round_number)
    content = records_of(deployment, messages, indices)
    size = deployment.record_bytes
    header = Header(deployment.hash_start, round_number).to_bytes()
    return [header + content[place : place + size] for place in range(0, len(content), size)]


def same(first: DecodedEstimate, second: DecodedEstimate) -> bool:
    """Return whether two estimates count the same messages."""
    equal = np.array_equal(first.mean, second.mean) and np.array_equal(first.standard_error, second.standard_error)
    return bool(equal) and first.accepted == second.accepted


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_garbage_never_changes_the_estimate(name: str, seed: int) -> None:
    deployment, rng = deployment_of_name(name, rounds=2), random.Random(seed)
    good = alone(deployment, 40)
    expected = deployment.decoder().add_alone(good).estimate()
    size = HEADER_BYTES + deployment.record_bytes
    mixed: list[tuple[int, bytes | None, str | None]] = [(place, message, None) for place, message in enumerate(good)]
    for _ in range(rng.randrange(1, 40)):
        message = bytearray(rng.choice(good))
        kind = rng.choice(("cut", "long", "none", "magic", "hash", "round", "noise", "filling", "repeated"))
        reason, changed = LENGTH, bytes(message)
        if kind == "cut":
            changed = changed[: rng.randrange(size)]
        elif kind == "long":
            changed += rng.randbytes(rng.randrange(1, 5))
        elif kind in ("magic", "hash"):
            message[rng.randrange(*((4, 12) if kind == "hash" else (0, 4)))] ^= rng.randrange(1, 256)
            reason, changed = FOREIGN, bytes(message)
        elif kind == "round":
            reason, changed = ROUND, changed[:12] + rng.randrange(1, 2**32).to_bytes(4, "big") + changed[16:]
        elif kind == "noise":
            reason, changed = FOREIGN, b"Q" + b"\0" + rng.randbytes(size - 2)
        elif kind == "filling":
            spare = -deployment.program.message_bits % 8
            if not spare:
                continue
            message[-1] |= 1 << rng.randrange(spare)
            reason, changed = FILLING, bytes(message)
        elif kind == "repeated":
            if not deployment.carries_index:
                continue
            # A repeated message comes after the first one.
            mixed.append((len(good), changed, REPEATED))
            continue
        mixed.append((rng.randrange(len(good)), None if kind == "none" else changed, reason))
    mixed.sort(key=lambda entry: entry[0])
    decoder = deployment.decoder()
    cut = rng.randrange(len(mixed) + 1)
    decoder.add_alone([message for _, message, _ in mixed[:cut]]).add_alone([message for _, message, _ in mixed[cut:]])
    estimate = decoder.estimate()
    assert same(estimate, expected)
    reasons = [reason for _, _, reason in mixed if reason is not None]
    assert estimate.refused == {reason: reasons.count(reason) for reason in set(reasons)}


@pytest.mark.parametrize("name", ["randomised-response", "hadamard", "projective", "subsets", "cube"])
def test_values_that_no_client_sends_are_refused(name: str) -> None:
    deployment = deployment_of_name(name)
    bits, size = deployment.program.message_bits, deployment.program.message_bytes
    values = np.arange(2**bits, dtype=np.uint64)
    rows = np.stack([np.frombuffer((int(value) << (-bits % 8)).to_bytes(size, "big"), dtype=np.uint8) for value in values])
    good = {bytes(row) for row in messages_of(deployment, inputs_of(deployment, 3000))[0]}
    decoder = deployment.decoder().add(rows)
    assert decoder.accepted == len(good)
    assert decoder.refused[VALUE] == 2**bits - len(good)


@pytest.mark.parametrize("name", NAMES)
def test_merged_decoders_are_like_one(name: str) -> None:
    deployment = deployment_of_name(name)
    messages, indices = messages_of(deployment, inputs_of(deployment, 300))
    whole = deployment.decoder().add(messages, indices)
    cuts = (slice(0, 100), slice(100, 101), slice(101, 300), slice(0, 0))
    parts = [deployment.decoder().add(messages[cut], None if indices is None else indices[cut]) for cut in cuts]
    parts[0].refuse(LENGTH, 3)
    merged = deployment.decoder()
    for part in parts:
        merged.merge(part)
    assert same(merged.estimate(), whole.estimate())
    assert merged.refused == {LENGTH: 3}
    if indices is not None:
        merged.add(messages, indices)
        assert merged.refused == {LENGTH: 3, REPEATED: 300}


@pytest.mark.parametrize("name", NAMES)
def test_parts_and_kinds_are_like_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployment_of_name(name)
    messages, indices = messages_of(deployment, inputs_of(deployment, 300))
    messages = np.concatenate([messages, np.full((50, messages.shape[1]), 255, dtype=np.uint8)])
    indices = None if indices is None else np.arange(350, dtype=np.uint64)
    whole = deployment.decoder().add(messages, indices)
    assert sum(whole.refused.values()) > 0 or deployment.program.message_bits % 8 == 0
    monkeypatch.setattr(module, "COUNTED_BYTES", 0)
    monkeypatch.setattr(module, "FIELDS_AT_A_TIME", 64)
    assert Decoder(deployment).messages_at_a_time == 64 // deployment.program.fields
    parts = deployment.decoder().add(messages, indices)
    assert same(whole.estimate(), parts.estimate())
    assert whole.refused == parts.refused


def test_histograms_of_many_and_few_kinds_are_the_same() -> None:
    rng = np.random.default_rng(0)
    content = rng.integers(0, 8, 300_001).astype(np.uint8)
    content[200_000] = 77
    expected = np.bincount(content, minlength=256)
    for kinds in (np.arange(8), np.arange(200), np.arange(0)):
        assert (module._histogram(content, kinds.astype(np.uint8)) == expected).all()


def test_memory_is_bounded_for_messages_of_many_fields() -> None:
    for categories in (2, 1000, 2**17):
        decoder = deploy("unary-encoding", epsilon=1.0, categories=categories).decoder()
        assert decoder.messages_at_a_time * categories <= module.FIELDS_AT_A_TIME


@pytest.mark.parametrize("name", ONE_BYTE)
def test_identifiers_count_once(name: str) -> None:
    deployment = deployment_of_name(name)
    messages, _ = messages_of(deployment, inputs_of(deployment, 6))
    expected = deployment.decoder().add(messages[[0, 2, 3]]).estimate()
    decoder = deployment.decoder().add(messages[:4], None, ["a", "a", 1, "1"]).add(messages[4:], None, ["1", None])
    assert same(decoder.estimate(), expected)
    assert decoder.refused == {REPEATED: 2, UNNAMED: 1}


def test_a_refused_message_does_not_use_up_its_identifier() -> None:
    deployment = deployment_of_name("randomised-response")
    good, _ = messages_of(deployment, [0])
    bad = np.array([[255]], dtype=np.uint8)
    decoder = deployment.decoder().add(np.concatenate([bad, good]), None, ["a", "a"])
    assert (decoder.accepted, decoder.refused) == (1, {FILLING: 1})


def test_an_index_counts_once_also_under_two_identifiers() -> None:
    deployment = deployment_of_name(WITH_INDEX)
    messages, indices = messages_of(deployment, [0, 1, 2])
    assert indices is not None
    decoder = deployment.decoder().add(messages[[0, 0, 1]], indices[[0, 0, 1]], ["a", "b", "a"])
    assert (decoder.accepted, decoder.refused) == (1, {REPEATED: 2})


def test_a_merge_names_clients_of_both_and_changes_nothing() -> None:
    deployment = deployment_of_name(WITH_INDEX)
    messages, indices = messages_of(deployment, inputs_of(deployment, 9))
    assert indices is not None
    first, second = deployment.decoder().add(messages[:6], indices[:6]), deployment.decoder().add(messages[2:], indices[2:])
    before = first.estimate()
    with pytest.raises(
        DataError, match=r"got 4 that have sent to both, with the indices 2, 3, 4, \.\.\.: add their files to the same decoder"
    ):
        first.merge(second)
    assert same(first.estimate(), before)
    first.add(messages[6:], indices[6:])
    assert not first.refused


def test_decoders_of_other_deployments_and_rounds_are_not_merged() -> None:
    deployment = deployment_of_name("table", rounds=2)
    for other in (deployment.decoder(1), deployment_of_name("table").decoder(), deployment_of_name("number").decoder()):
        with pytest.raises(DataError, match="must be of the same deployment and round"):
            deployment.decoder().merge(other)


def test_wrong_arguments_are_refused() -> None:
    table, indexed = deployment_of_name("table"), deployment_of_name(WITH_INDEX)
    row, index = np.zeros((1, 1), dtype=np.uint8), np.zeros(1, dtype=np.uint64)
    cases: list[tuple[Any, str]] = [
        (lambda: table.decoder().add(np.zeros((1, 2), dtype=np.uint8)), r"messages must have the shape \(messages, 1\), got \(1, 2\)"),
        (lambda: table.decoder().add(row, index), "clients must be left out"),
        (lambda: indexed.decoder().add(row), "clients must be given"),
        (lambda: indexed.decoder().add(row, np.zeros(2, dtype=np.uint64)), "clients must have an entry for each of 1 messages, got 2"),
        (lambda: table.decoder().add(row, None, ["a", "b"]), "identifiers must have an entry for each of 1 messages, got 2"),
        (lambda: table.decoder(1), "round_number must be"),
        (lambda: table.decoder(-1), "round_number must be"),
        (lambda: table.decoder().estimate(), "messages must include one that is accepted, got none of 0"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_shuffled_messages_have_no_sender() -> None:
    deployment = deploy("shuffled-frequency-randomised-response", epsilon=1.0, delta=1e-6, clients=1000, categories=4)
    with pytest.raises(ValueError, match="identifiers must be left out: messages of the shuffled trust model have lost their senders"):
        deployment.decoder().add(np.zeros((1, 1), dtype=np.uint8), None, ["a"])


def test_fewer_shuffled_messages_than_planned_have_a_weaker_guarantee() -> None:
    deployment = deploy("shuffled-frequency-randomised-response", epsilon=1.0, delta=1e-6, clients=1000, categories=4)
    messages = np.zeros((2000, 1), dtype=np.uint8)
    of_all, of_few, of_more = (deployment.decoder().add(messages[:count]).estimate().guarantee for count in (1000, 300, 2000))
    assert of_few == deployment.with_clients(300).privacy_words
    assert deployment.with_clients(300).epsilon > 1.5
    assert of_all == of_more == deployment.privacy_words


def test_a_secure_sum_has_no_messages() -> None:
    deployment = deploy("distributed-skellam", epsilon=3.0, delta=1e-6, clients=100, dimension=4, bits=16)
    with pytest.raises(InfeasibleError, match="decode its sum instead"):
        deployment.decoder()


def test_what_remains_of_the_budget() -> None:
    deployment = deployment_of_name("randomised-response", rounds=3)
    messages, _ = messages_of(deployment, [0, 1, 2])
    estimates = [deployment.decoder(number).add(messages).estimate() for number in range(3)]
    assert [estimate.rounds_left for estimate in estimates] == [2, 1, 0]
    assert [estimate.epsilon_left for estimate in estimates] == pytest.approx([3.0, 1.5, 0.0])
    assert estimates[0].document()["round"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_standard_errors_are_right(name: str) -> None:
    """All clients hold the same input at an end of the domain, so that the error is the mechanism's alone."""
    deployment, clients, repetitions = deployment_of_name(name), 250, 60
    value: Any = {"table": 3.0, "number": 3.0}.get(name, 1 if name in ITEMS else [1.0, 0.0, 0.0])
    truth = np.eye(deployment.description().categories or 0)[value] if name in ITEMS else np.asarray(value)
    messages, indices = messages_of(deployment, [value] * clients * repetitions, seed=1)
    scores = []
    for start in range(0, clients * repetitions, clients):
        part = slice(start, start + clients)
        estimate = deployment.decoder().add(messages[part], None if indices is None else indices[part]).estimate()
        if name in OTHERS and np.ndim(estimate.mean) == 1:
            scores.append(float(np.linalg.norm(estimate.mean - truth)) / float(estimate.standard_error))
        else:
            scores += np.atleast_1d((np.asarray(estimate.mean) - truth) / estimate.standard_error).tolist()
    mean_square = float(np.mean(np.square(scores)))
    # The mean of 60 squares of normal numbers has the standard deviation sqrt(2 / 60); the bounds are four of them away.
    spread = 4 * math.sqrt(2 / repetitions)
    # Vectors have the standard error of the worst input, which is an upper bound.
    assert (0.2 if name in OTHERS and name != "number" else 1 - spread) < mean_square < 1 + spread
