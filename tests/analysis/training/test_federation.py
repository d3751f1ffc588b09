"""The engine against plain numpy.

Points under test: clipping, sampling, histories, and learning with and without a budget.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from quietbits.analysis.datasets.federated_data import Examples
from quietbits.analysis.random_streams import NumberedStreams
from quietbits.analysis.simulation.two_way_compression import simulate_participation
from quietbits.analysis.training.federation import Federation
from quietbits.analysis.training.task import TrainingTask
from quietbits.attack import trainings
from quietbits.design.federated.history_package import full_model_bytes, history_package_bytes
from quietbits.errors import ConvergenceError, InfeasibleError

Tasks = Callable[..., TrainingTask]
Federations = Callable[[TrainingTask], Federation]


def softmax_gradient(weights: np.ndarray, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the gradient of the mean loss of all examples, in the engine's order of parameters."""
    matrix, biases = weights[:640].reshape(64, 10), weights[640:]
    errors = softmax(inputs @ matrix + biases, axis=1)
    errors[np.arange(len(labels)), labels] -= 1
    return np.concatenate([(inputs.T @ errors).ravel(), errors.sum(axis=0)]) / len(labels)


def test_without_noise_and_rounding_it_is_gradient_descent(task: Tasks, federation: Federations) -> None:
    # Every client has one image, and all clients take part.
    run = federation(
        task("none", {"bits": 64}, clients=1442, clients_per_round=1442, rounds=8, precision=64, server="momentum", momentum=0.5)
    )
    run.run()
    everything = run.data.cohort(np.arange(1442)).examples
    weights, moment = np.zeros(650), np.zeros(650)
    for _ in range(8):
        moment = 0.5 * moment - softmax_gradient(weights, everything.inputs, everything.labels)
        weights = weights + moment
    np.testing.assert_allclose(run.state.parameters, weights, rtol=0, atol=1e-13)


def test_local_epochs_are_federated_averaging(task: Tasks, federation: Federations) -> None:
    # Each of 200 clients has 7 or 8 of the 1442 images.
    run = federation(task("none", {"bits": 64}, clients_per_round=200, rounds=3, precision=64, local_epochs=2, client_rate=0.3))
    run.run()
    weights = np.zeros(650)
    for _ in range(3):
        models = []
        for client in range(200):
            examples, model = run.data.client_examples(client), weights
            for _ in range(2):
                model = model - 0.3 * softmax_gradient(model, examples.inputs, examples.labels)
            models.append(model)
        weights = np.mean(models, axis=0)
    np.testing.assert_allclose(run.state.parameters, weights, rtol=0, atol=1e-12)


def test_batches_cover_a_clients_examples_once_an_epoch(task: Tasks, federation: Federations) -> None:
    # At a tiny rate the order does not matter: an epoch of batches moves the model as far as one step per batch.
    common = {"clients_per_round": 200, "rounds": 1, "precision": 64, "client_rate": 1e-6, "clients": 180, "local_epochs": 1}
    common["clients_per_round"] = 180
    whole, batches = (federation(task("none", {"bits": 64}, batch=batch, **common)) for batch in (None, 1))
    whole.run()
    batches.run()
    sizes = np.array([len(whole.data.client_examples(client)) for client in range(180)])
    ratio = np.linalg.norm(batches.state.parameters) / np.linalg.norm(whole.state.parameters)
    assert sizes.min() <= ratio <= sizes.max()


def test_chunks_change_rounding_only(task: Tasks, federation: Federations, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = federation(task("none", {"bits": 64}, precision=64, model="mlp-8", local_epochs=1))
    whole.run()
    monkeypatch.setattr("quietbits.analysis.training.federation.CHUNK_NUMBERS", 1)
    monkeypatch.setattr("quietbits.analysis.training.federation.FEW_CLIENTS", 3)
    monkeypatch.setattr("quietbits.analysis.training.federation.KEPT_NUMBERS", 0)
    parts = federation(task("none", {"bits": 64}, precision=64, model="mlp-8", local_epochs=1))
    parts.run()
    np.testing.assert_allclose(parts.state.parameters, whole.state.parameters, rtol=0, atol=1e-12)


@pytest.mark.parametrize("clipping", ["flat", "per-layer"])
def test_no_client_moves_the_model_farther_than_the_clip_norm(clipping: str, task: Tasks, federation: Federations) -> None:
    # There is one client, with noise far below the clip norm. At first only the last layer of an MLP has a gradient.
    fields = {"clients": 1442, "clients_per_round": 1, "rounds": 1, "clip": 0.01, "clipping": clipping, "precision": 64, "model": "mlp-8"}
    run = federation(task("dp-fedavg", {"noise_multiplier": 1e-3}, sampling="passes", **fields))
    before = run.state.parameters
    run.run()
    moved = np.linalg.norm(run.state.parameters - before)
    share = 1.0 if clipping == "flat" else np.sqrt(90 / (90 + 65 * 8))
    assert moved == pytest.approx(0.01 * share, rel=0.02)


@pytest.mark.parametrize(("name", "options"), [("dp-fedavg", {"noise_multiplier": 1.0}), ("distributed-discrete-gaussian", {"bits": 20})])
def test_adaptive_clipping_follows_the_median(name: str, options: dict[str, int], task: Tasks, federation: Federations) -> None:
    budget = {"epsilon": 2000.0} if name == "distributed-discrete-gaussian" else {}
    fields = {"clients": 1442, "clients_per_round": 400, "rounds": 25, "clip": 0.6, "server_rate": 1e-6, "sampling": "passes"}
    run = federation(task(name, options, clipping="adaptive", **fields, **budget))
    run.run()
    data = run.data.cohort(np.arange(1442)).examples
    norms = np.linalg.norm([softmax_gradient(np.zeros(650), data.inputs[[i]], data.labels[[i]]) for i in range(300)], axis=1)
    assert run.records["clip_norm"][0] == 0.6
    assert run.records["clip_norm"][-1] == pytest.approx(np.median(norms), rel=0.1)


@pytest.mark.parametrize("sampling", ["fixed", "passes", "with-replacement", "poisson"])
def test_a_client_that_is_emptied_moves_the_count_by_a_half(sampling: str, task: Tasks) -> None:
    fields = {"clients": 10, "clients_per_round": 10, "clip": 0.1, "sampling": sampling, "adjacency": "add-or-remove-one"}
    training = task("dp-fedavg", {"noise_multiplier": 1.0}, clipping="adaptive", rounds=1, **fields)
    data = training.training.federated_data(0)
    # Both runs have the same noise. All updates are longer than the clip norm, so their answers are -1/2.
    client = int(training.training.cohorts.draw(1, NumberedStreams(0, f"training, clients: {training.training.cohorts}").at(1))[0])

    def emptied(number: int) -> Examples:
        examples = data.client_examples(number)
        return Examples(examples.inputs[:0], examples.labels[:0]) if number == client else examples

    fractions = []
    for clients in (data, replace(data, client_examples=emptied, cohort_examples=None)):
        run = Federation(training.training, training.prepare(None), clients, 0, "neighbours")
        run.run()
        fractions.append(0.5 - math.log(run._clipping.clip_norm / 0.1) / 0.2)
    # A client that reports on its norm would answer yes, and move the count by 1.
    assert (fractions[1] - fractions[0]) * 10 == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
@pytest.mark.parametrize("clipping", ["flat", "adaptive"])
def test_neighbours_are_no_farther_apart_than_is_accounted_for(adjacency: str, clipping: str, tmp_path: Path) -> None:
    for seed in range(5):
        for sampling in ("fixed", "passes", "with-replacement", "poisson"):
            fields = {"clients": 6, "clients_per_round": 4, "rounds": 1, "delta": 1e-5, "sampling": sampling, "adjacency": adjacency}
            trainings.check(tmp_path, "neighbours", "dp-fedavg", 1.0, fields | {"clipping": clipping, "clip": 0.3}, seed)


@pytest.mark.parametrize("name", ["none", "quantised"])
def test_what_is_not_private_is_never_clipped(name: str, task: Tasks, federation: Federations) -> None:
    runs = [federation(task(name, clip=0.01, clipping=clipping)) for clipping in ("flat", "per-layer", "adaptive")]
    for run in runs:
        run.run()
    flat, *others = runs
    assert np.linalg.norm(flat.state.parameters - federation(task(name)).state.parameters) > 0.1
    for run in others:
        np.testing.assert_array_equal(run.state.parameters, flat.state.parameters)
        assert run.records["clip_norm"] == [0.01] * 5


def test_adaptive_clipping_is_refused_where_its_question_is_not_private(task: Tasks) -> None:
    with pytest.raises(InfeasibleError, match="clipping must be flat or per-layer with cldp, got 'adaptive'"):
        task("cldp", clipping="adaptive", round_epsilon=1.0).prepare(None)


@pytest.mark.parametrize(
    ("name", "options", "fields", "floor"),
    [
        ("none", {}, {}, 0.9),
        ("quantised", {}, {}, 0.9),
        ("dp-fedavg", {"noise_multiplier": 5.0}, {}, 0.8),
        ("distributed-skellam", {"bits": 16}, {"epsilon": 20.0, "sampling": "passes"}, 0.8),
        ("sign-gaussian", {}, {"round_epsilon": 20.0, "server_rate": 0.3}, 0.7),
        ("mvu", {"bits_in": 3, "bits_out": 1, "metric": "l1"}, {"round_epsilon": 20.0, "server_rate": 0.3}, 0.4),
    ],
)
def test_learning_happens(
    name: str, options: dict[str, object], fields: dict[str, float], floor: float, task: Tasks, federation: Federations
) -> None:
    run = federation(task(name, options, clients=1442, clients_per_round=600, rounds=30, evaluate_every=30, **fields))
    run.run()
    assert run.accuracy() == run.records["accuracy"][-1] >= floor
    assert np.isnan(run.records["accuracy"][:-1]).all()


@pytest.mark.parametrize(("name", "fields"), [("none", {}), ("cldp", {"epsilon": 10.0})])
@pytest.mark.filterwarnings("error")
def test_a_model_that_diverges_is_named_with_its_round(name: str, fields: dict[str, float], task: Tasks, federation: Federations) -> None:
    run = federation(task(name, model="mlp-8-8", local_epochs=20, client_rate=1e6, server_rate=1e6, clip=1e12, rounds=30, **fields))
    with pytest.raises(
        ConvergenceError, match=r"the model diverged in round \d+ of 30: lower server_rate or client_rate, or clip; \w+ must hold finite"
    ):
        run.run()
    assert np.isfinite(run.state.parameters).all()


@pytest.mark.parametrize("name", ["dp-fedavg", "sign-gaussian"])
def test_almost_no_budget_leaves_the_model_at_chance(name: str, task: Tasks, federation: Federations) -> None:
    run = federation(task(name, {"noise_multiplier": 3e3}, clients=1442, clients_per_round=600, rounds=10))
    run.run()
    assert run.plan.epsilons[-1] < 0.02
    # The ten models are nearly noise, so each classifies a tenth of 355 images correctly, within a few hundredths.
    assert np.mean(run.records["accuracy"]) < 0.2


def test_every_kind_of_sampling_trains_and_counts_bytes(task: Tasks, federation: Federations) -> None:
    for sampling in ("fixed", "poisson", "with-replacement", "passes"):
        run = federation(task("none", sampling=sampling))
        run.run()
        clients = np.array(run.records["participants"])
        assert (np.array(run.records["bytes_up"]) == clients * 4 * 650).all()
        assert run.records["bytes_down"] == run.records["bytes_up"]
        assert (clients == 40).all() == (sampling in ("fixed", "passes"))


@pytest.mark.parametrize("budget", [{"epsilon": 5.0}, {"round_epsilon": 3.0}])
def test_poisson_sampling_of_a_secure_sum_fills_its_seats(budget: dict[str, float], task: Tasks, federation: Federations) -> None:
    first_task = task("distributed-skellam", {"bits": 18}, sampling="poisson", adjacency="add-or-remove-one", rounds=2, **budget)
    run = federation(first_task)
    run.run()
    seats = run.plan.seats
    assert seats is not None
    assert seats > 40
    assert set(run.records["messages"]) == {seats}
    assert np.array(run.records["participants"]).std() > 0
    assert np.isfinite(run.state.parameters).all()


@pytest.mark.parametrize("sampling", ["poisson", "with-replacement"])
@pytest.mark.parametrize(
    ("mechanism", "options", "budget"),
    [
        ("dp-fedavg", {"noise_multiplier": 1.0}, {}),
        ("central-sketch", {"sketch_dimension": 105, "rows": 5}, {"epsilon": 5.0}),
        ("central-gaussian", {}, {"epsilon": 5.0}),
    ],
)
def test_a_trusted_server_takes_as_many_clients_as_come(
    mechanism: str, options: dict[str, float], budget: dict[str, float], sampling: str, task: Tasks, federation: Federations
) -> None:
    adjacency = "add-or-remove-one" if sampling == "poisson" else "replace-one"
    run = federation(task(mechanism, options, sampling=sampling, adjacency=adjacency, rounds=2, clients=60, **budget))
    run.run()
    assert np.std(run.records["participants"]) > 0
    assert np.isfinite(run.state.parameters).all()


def test_what_nobody_may_see_is_not_handed_on(task: Tasks) -> None:
    for mechanism in ("distributed-skellam", "dp-fedavg"):
        with pytest.raises(ValueError, match="download must be model"):
            task(mechanism, download="history", epsilon=5.0).prepare(None)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("name", ["none", "quantised"])
def test_what_is_not_private_says_so_for_both_adjacencies(name: str, adjacency: str, task: Tasks) -> None:
    assert np.isinf(task(name, adjacency=adjacency).prepare(None).epsilons).all()


@pytest.mark.parametrize("sampling", ["with-replacement", "fixed"])
def test_histories_are_as_long_as_their_packages(sampling: str, task: Tasks, federation: Federations) -> None:
    first_task = task(
        "rotating-simplex",
        {"message_bits": 4},
        download="history",
        sampling=sampling,
        rounds=30,
        round_epsilon=4.0,
        clients=20,
        clients_per_round=5,
    )
    run = federation(first_task)
    run.run()
    exact, sent, cohorts = {}, [0], first_task.training.cohorts
    for number in range(1, 31):
        clients = np.unique(cohorts.draw(number, run._draws.at(number)))
        lengths = [history_package_bytes(number - 1 - exact.get(c, 0), sent[-1] - sent[exact.get(c, 0)], 1) for c in clients.tolist()]
        assert run.records["bytes_down"][number - 1] == sum(min(length, full_model_bytes(2600)) for length in lengths)
        exact |= dict.fromkeys(clients.tolist(), number - 1)
        sent.append(sent[-1] + len(clients))


def test_histories_cost_what_the_simulation_of_participation_expects(task: Tasks, federation: Federations) -> None:
    fields = {"clients": 100, "clients_per_round": 10, "rounds": 60, "sampling": "fixed"}
    run = federation(task("rotating-simplex", {"message_bits": 4}, download="history", round_epsilon=4.0, **fields))
    run.run()
    frame = simulate_participation(100, 10, 60, 2600, 1, np.random.default_rng(0), with_replacement=False, public_start=True)
    assert sum(run.records["bytes_down"]) == pytest.approx(frame["expected_bytes_down"].sum(), rel=0.1)


def test_dp_rec_learns_within_bytes_that_are_those_of_its_messages(task: Tasks, federation: Federations) -> None:
    fields = {"sampling": "with-replacement", "download": "history", "clients": 50, "clients_per_round": 20, "rounds": 8, "clip": 0.5}
    run = federation(task("dp-rec-training", {"clip_ratio": 2.0, "group_size": 65}, local_epochs=1, client_rate=1.0, **fields))
    run.run()
    # A message has 10 groups of 7 bits, and a seed of 64 bits.
    assert run.records["bytes_up"] == [20 * 17] * 8
    assert max(run.records["bytes_down"]) < 20 * 2600
    # Unproven accounts are for the other adjacency, and have separate names.
    assert {"published", "conservative", "any-bits"} == set(run.plan.others)
    with pytest.raises(ValueError, match="sampling must be with-replacement for dp-rec-training"):
        task("dp-rec-training", {"clip_ratio": 2.0}).prepare(None)


def test_messages_of_different_lengths_are_counted_one_by_one(task: Tasks, federation: Federations) -> None:
    run = federation(task("poisson-private-representation", round_epsilon=6.0, rounds=1, clients=60, clients_per_round=60))
    run.run()
    mechanism = run.plan.mechanism
    assert run.records["bytes_up"][0] > 60
    assert mechanism.bits_per_client < 8
    lengths = mechanism.bits_of_messages(mechanism.encode(np.zeros((500, 650)), np.random.default_rng(0)))
    assert lengths.min() < mechanism.bits_per_client < lengths.max()
