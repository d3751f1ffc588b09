"""Bytes in both directions.

Points under test: real packages, all draws of small federations, and many draws of a larger federation.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.simulation.two_way_compression import (
    TwoWayTotals,
    communication_totals,
    expected_bytes_down,
    simulate_participation,
)
from quietbits.design.federated.history_package import full_model_bytes, history_package_bytes
from quietbits.design.federated.model_history import ModelHistory, add_round, catch_up_package, synchronise
from quietbits.design.federated.server_optimiser import FedAdam, ServerOptimiser, ServerSGD

CHOICES = list(itertools.product([True, False], [True, False]))
DIMENSION = 10


def decode(message: bytes) -> np.ndarray:
    return np.full(DIMENSION, float(message[0]))


@pytest.mark.parametrize("optimiser", [ServerSGD(0.1), FedAdam(0.1)], ids=["sgd", "fedadam"])
@pytest.mark.parametrize(("with_replacement", "public_start"), CHOICES)
def test_bytes_are_those_of_packages_that_are_sent(optimiser: ServerOptimiser, with_replacement: bool, public_start: bool) -> None:
    population, clients, rounds, message_bytes = 12, 3, 40, 4
    first = optimiser.start(np.zeros(DIMENSION, dtype=np.float32))
    frame = simulate_participation(
        population,
        clients,
        rounds,
        4 * DIMENSION,
        message_bytes,
        np.random.default_rng(5),
        with_replacement=with_replacement,
        public_start=public_start,
        state_bytes=first.state_bytes,
    )
    rng, history = np.random.default_rng(5), ModelHistory(first, message_bytes)
    states = dict.fromkeys(range(population), first if public_start else None)
    everyone = rng.integers(0, population, size=(rounds, clients))
    if not with_replacement:
        rng = np.random.default_rng(5)
        everyone = np.stack([rng.choice(population, clients, replace=False, shuffle=False) for _ in range(rounds)])
    for drawn, row in zip(everyone.tolist(), frame.itertuples(), strict=True):
        results = {client: synchronise(history, states[client], decode, optimiser) for client in sorted(set(drawn))}
        before = dict(states)
        states |= {client: result.state for client, result in results.items()}
        assert row.round == history.state.rounds + 1
        assert row.clients == len(results)
        assert row.bytes_down == sum(result.bytes_down for result in results.values())
        assert row.full_models == sum(result.full_model for result in results.values())
        assert row.bytes_up == clients * message_bytes
        packages = [catch_up_package(history, None if before[client] is None else before[client].rounds) for client in results]
        assert row.replayed_messages == sum(len(item) for package in packages for item in getattr(package, "rounds", ()))
        assert row.uncompressed_bytes == len(results) * 4 * DIMENSION
        history = add_round(history, [bytes(message_bytes)] * clients, decode, optimiser)
    # Both kinds of packages occurred.
    assert 0 < frame["full_models"].sum() < frame["clients"].sum()


@pytest.mark.parametrize(("with_replacement", "public_start"), CHOICES)
@pytest.mark.parametrize(("population", "clients", "rounds"), [(2, 2, 3), (3, 2, 4), (3, 1, 5), (1, 1, 4)])
def test_the_expectation_is_the_mean_over_all_draws(
    population: int, clients: int, rounds: int, with_replacement: bool, public_start: bool
) -> None:
    # Packages of no round and of one round have 29 and 29 + 4 + 20 clients bytes; the model has 31 + 60 bytes, fewer than two rounds of two
    # messages.
    full = full_model_bytes(60)
    lengths = [min(history_package_bytes(gap, gap * clients, 20), full) for gap in range(rounds)]
    one_round = (
        list(itertools.product(range(population), repeat=clients))
        if with_replacement
        else list(itertools.permutations(range(population), clients))
    )
    totals = np.zeros(rounds)
    for draws in itertools.product(one_round, repeat=rounds):
        last: dict[int, int] = {}
        for moment, drawn in enumerate(draws):
            for client in set(drawn):
                never = lengths[moment] if public_start else full
                totals[moment] += lengths[moment - last[client]] if client in last else never
                last[client] = moment
    expected = expected_bytes_down(population, clients, rounds, 60, 20, with_replacement=with_replacement, public_start=public_start)
    assert expected == pytest.approx(totals / len(one_round) ** rounds, rel=1e-12)


@pytest.mark.parametrize(("with_replacement", "public_start"), CHOICES)
def test_simulations_average_to_the_expectation(with_replacement: bool, public_start: bool) -> None:
    # The 60 totals are independent: their mean is beyond 5 standard errors with probability about 1e-6; the seed is fixed.
    frames = [
        simulate_participation(
            500, 20, 100, 5000, 15, np.random.default_rng([6, number]), with_replacement=with_replacement, public_start=public_start
        )
        for number in range(60)
    ]
    differences = np.array([(frame["bytes_down"] - frame["expected_bytes_down"]).sum() for frame in frames])
    assert np.any(differences != 0)
    assert abs(differences.mean()) < 5 * differences.std(ddof=1) / np.sqrt(len(differences))
    assert min(frame["full_models"].sum() for frame in frames) > 0


def test_without_replacement_every_round_has_its_clients() -> None:
    frame = simulate_participation(50, 50, 20, 1000, 15, np.random.default_rng(7), with_replacement=False)
    assert set(frame["clients"]) == {50}
    # All clients take part in every round, so each downloads the model at first, and then the messages of one round.
    assert frame["bytes_down"].tolist() == [50 * 1031] + [50 * (29 + 4 + 750)] * 19
    assert frame["bytes_down"].tolist() == pytest.approx(frame["expected_bytes_down"].tolist(), rel=1e-12)


def test_totals_and_factors() -> None:
    frame = simulate_participation(100, 10, 30, 4000, 15, np.random.default_rng(8))
    totals = communication_totals(frame)
    sums = frame.sum()
    assert totals == TwoWayTotals(
        bytes_up=30 * 10 * 15,
        bytes_down=sums["bytes_down"],
        expected_bytes_down=pytest.approx(sums["expected_bytes_down"], rel=1e-14),
        full_models=sums["full_models"],
        replayed_messages=sums["replayed_messages"],
        uncompressed_bytes=4000 * sums["clients"],
    )
    hand = TwoWayTotals(bytes_up=10, bytes_down=40, expected_bytes_down=41.5, full_models=1, replayed_messages=9, uncompressed_bytes=1000)
    assert (hand.compression_up, hand.compression_down, hand.compression) == (100.0, 25.0, 40.0)


def test_a_public_start_never_costs_more_and_draws_are_the_same() -> None:
    sent, public = (
        simulate_participation(1000, 10, 50, 10**5, 15, np.random.default_rng(9), public_start=choice) for choice in (False, True)
    )
    assert sent["clients"].tolist() == public["clients"].tolist()
    assert (public["bytes_down"] < sent["bytes_down"]).all()
    assert public["full_models"].sum() == 0


def test_the_largest_federations_of_the_paper_fit() -> None:
    frame = simulate_participation(342_477, 60, 1500, 4 * 4_050_748, 14, np.random.default_rng(10), public_start=True)
    totals = communication_totals(frame)
    assert totals.bytes_up == 1500 * 60 * 14
    # Each of the 90 000 packages has at most 1500 rounds.
    assert totals.bytes_down < 90_000 * history_package_bytes(1500, 1500 * 60, 14)
    assert totals.bytes_down == pytest.approx(totals.expected_bytes_down, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population": 0}, "population must be a whole number from 1 to 1000000000, got 0"),
        ({"clients_per_round": 0}, "clients_per_round must be a whole number from 1 to 400000, got 0"),
        ({"clients_per_round": 11, "with_replacement": False}, "clients_per_round must be a whole number from 1 to 10, got 11"),
        ({"clients_per_round": 10**6}, "clients_per_round must be a whole number from 1 to 400000, got 1000000"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 1000000, got 0"),
        ({"model_bytes": 0}, "model_bytes must be a whole number from 1 to"),
        ({"message_bytes": 0}, "message_bytes must be a whole number from 1 to 1048576, got 0"),
        ({"state_bytes": 99}, "state_bytes must be a whole number from 100 to"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"population": 10, "clients_per_round": 3, "rounds": 50, "model_bytes": 100, "message_bytes": 5} | change
    with pytest.raises(ValueError, match=message):
        simulate_participation(**arguments, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        expected_bytes_down(**arguments)
