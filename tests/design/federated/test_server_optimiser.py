"""Steps of the server's optimiser.

Points under test: steps by hand and in rational arithmetic, equal last bits, and refusals.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.federated.model_state import ModelState
from quietbits.design.federated.server_optimiser import FedAdam, ServerOptimiser, ServerSGD

OPTIMISERS: list[ServerOptimiser] = [ServerSGD(0.3), ServerSGD(0.3, momentum=0.9), FedAdam(0.03)]
KINDS = [np.float32, np.float64]
PINNED = {
    np.float32: ["d5e142f73a36", "a55744680a82", "ada31da37fe1"],
    np.float64: ["da4b96cf00a0", "3d1ff4f68ef5", "f4beaa963659"],
}


def run(optimiser: ServerOptimiser, start: np.ndarray, updates: np.ndarray) -> ModelState:
    state = optimiser.start(start)
    for update in updates:
        state = optimiser.step(state, update)
    return state


def rounded(value: Fraction | float, kind: type) -> Fraction:
    """Return the IEEE 754 rounding of an exact number to a floating-point type."""
    return Fraction(float(kind(float(value))))


@given(
    st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=6),
    st.floats(-100, 100, width=32),
    st.sampled_from([0.0, 0.5, 0.9]),
)
def test_sgd_in_float32_rounds_each_operation_once(updates: list[float], start: float, momentum: float) -> None:
    # The double nearest to a sum or product of two float32 numbers rounds to the float32 nearest to the exact result: 53 >= 2 * 24 + 2
    # bits.
    rate, decay = (rounded(number, np.float32) for number in (0.3, momentum))
    model, moment = Fraction(start), Fraction(0)
    for update in updates:
        moment = rounded(rounded(decay * moment, np.float32) + Fraction(update), np.float32)
        model = rounded(model + rounded(rate * moment, np.float32), np.float32)
    state = run(ServerSGD(0.3, momentum), np.array([start], dtype=np.float32), np.array(updates)[:, None])
    assert Fraction(float(state.parameters[0])) == model
    assert state.rounds == len(updates)


@pytest.mark.parametrize("kind", KINDS)
def test_fedadam_is_the_papers_algorithm(kind: type) -> None:
    updates = np.random.default_rng(1).normal(size=(5, 3))
    state = run(FedAdam(0.1, first_decay=0.8, second_decay=0.95, adaptivity=0.01), np.ones(3, dtype=kind), updates)
    for column in range(3):
        first, second, model = 0.0, 0.01**2, 1.0
        for update in updates[:, column]:
            first = 0.8 * first + 0.2 * update
            second = 0.95 * second + 0.05 * update**2
            model += 0.1 * first / (math.sqrt(second) + 0.01)
        expected = [model, first, second]
        result = [array[column] for array in (state.parameters, *state.moments)]
        # A step takes about fifteen operations on numbers near 1.
        assert result == pytest.approx(expected, rel=30 * float(np.finfo(kind).eps))


@pytest.mark.parametrize("kind", KINDS)
def test_pinned_bits(kind: type) -> None:
    # The digests were recorded once: every machine and library must give the same bits.
    updates = (np.arange(-128, 128).reshape(4, 64) / 128.0) ** 3
    # The models start at zero, so that additions keep the last bits of a step.
    digests = [run(optimiser, np.zeros(64, dtype=kind), updates).checksum().hex()[:12] for optimiser in OPTIMISERS]
    assert digests == PINNED[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["sgd", "momentum", "fedadam"])
def test_a_step_changes_nothing_in_place_and_treats_each_coordinate_separately(optimiser: ServerOptimiser, kind: type) -> None:
    updates = np.random.default_rng(2).normal(size=(3, 1000))
    start = np.random.default_rng(3).normal(size=1000).astype(kind)
    first = run(optimiser, start, updates[:2])
    before = first.to_bytes()
    second = optimiser.step(first, updates[2])
    assert first.to_bytes() == before
    assert second.parameters.dtype == kind
    assert not second.parameters.flags.writeable
    assert not any(moment.flags.writeable for moment in second.moments)
    # Vector instructions and the scalar code for an array's last elements must agree.
    for part in (slice(0, 1), slice(3, 10), slice(991, 1000)):
        alone = run(optimiser, start[part], updates[:, part])
        assert alone.parameters.tobytes() == second.parameters[part].tobytes()


def test_a_state_keeps_copies() -> None:
    numbers = np.ones(2, dtype=np.float32)
    state = ModelState(0, numbers, (numbers,))
    numbers[0] = 5.0
    assert state.parameters.tolist() == state.moments[0].tolist() == [1.0, 1.0]


def test_bytes_are_little_endian_and_in_order() -> None:
    state = ModelState(0, np.array([1.0, -2.0], dtype=np.float32), (np.array([0.5, 0.0], dtype=np.float32),))
    assert state.to_bytes().hex() == "0000803f" + "000000c0" + "0000003f" + "00000000"
    assert state.state_bytes == len(state.to_bytes()) == 16
    other = ModelState(0, state.parameters.astype(">f4").astype(np.float32), state.moments)
    assert other.checksum() == state.checksum()


def test_the_checksum_tells_states_apart() -> None:
    numbers = np.array([1.0, 0.0], dtype=np.float32)
    states = [
        ModelState(0, numbers),
        ModelState(1, numbers),
        ModelState(0, numbers, (numbers,)),
        ModelState(0, np.array([1.0, -0.0], dtype=np.float32)),
        ModelState(0, np.array([1.0, 0.0, 1.0, 0.0], dtype=np.float32)),
        ModelState(0, numbers.astype(float)),
        ModelState(0, np.frombuffer(numbers.tobytes(), dtype=float)),
    ]
    assert len({state.checksum() for state in states}) == len(states)
    assert ModelState(0, numbers.copy()).checksum() == states[0].checksum()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ServerSGD(0.0), "learning_rate must be a number from 1e-06 to 1e\\+06, got 0.0"),
        (lambda: ServerSGD(1.0, momentum=1.5), "momentum must be a number from 0 to 1, got 1.5"),
        (lambda: FedAdam(-1.0), "learning_rate must be a number from"),
        (lambda: FedAdam(1.0, first_decay=2), "first_decay must be a number from 0 to 1, got 2"),
        (lambda: FedAdam(1.0, second_decay=-1), "second_decay must be a number from 0 to 1, got -1"),
        (lambda: FedAdam(1.0, adaptivity=0), "adaptivity must be a number from 1e-12 to 1e\\+06, got 0"),
        (
            lambda: ServerSGD(1.0).start([0, 0]),
            "parameters must be float32 or float64 numbers, shape .*, got int64 and \\(2,\\)",
        ),
        (lambda: ServerSGD(1.0).start(np.ones((2, 2))), "parameters must be .* got float64 and \\(2, 2\\)"),
        (lambda: ServerSGD(1.0).start(np.ones(0)), "parameters must be .* got float64 and \\(0,\\)"),
        (lambda: ServerSGD(1.0).start([math.nan]), "parameters must hold finite numbers only"),
        (lambda: ModelState(-1, np.ones(2)), "rounds must be a whole number from 0 to 4294967295, got -1"),
        (lambda: ModelState(0, np.ones(2), (np.ones(3),)), "moments must be float64, shape \\(2,\\), like the parameters, got float64"),
        (lambda: ModelState(0, np.ones(1), (np.array([math.inf]),)), "moments must hold finite numbers only"),
    ],
)
def test_invalid_states_and_optimisers_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("optimiser", "other"), [(ServerSGD(1.0), FedAdam(1.0)), (ServerSGD(1.0, 0.5), ServerSGD(1.0)), (FedAdam(1.0), ServerSGD(1.0, 0.5))]
)
def test_a_state_of_another_optimiser_is_refused(optimiser: ServerOptimiser, other: ServerOptimiser) -> None:
    with pytest.raises(ValueError, match=r"state must have [012] moments for this optimiser, got [012]"):
        optimiser.step(other.start(np.ones(2)), np.ones(2))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["sgd", "momentum", "fedadam"])
def test_bad_updates_are_refused(optimiser: ServerOptimiser) -> None:
    state = optimiser.start(np.ones(2, dtype=np.float32))
    with pytest.raises(ValueError, match=r"mean_update must have the shape \(2,\), got \(3,\)"):
        optimiser.step(state, np.ones(3))
    with pytest.raises(ValueError, match="mean_update must hold finite numbers only"):
        optimiser.step(state, np.array([1.0, math.nan]))
    with pytest.raises(ValueError, match="mean_update as float32 must hold finite numbers only, got inf"):
        optimiser.step(state, np.array([1.0, 1e39]))


@pytest.mark.parametrize("optimiser", [ServerSGD(10.0), ServerSGD(1.0, 1.0), FedAdam(1.0)], ids=["sgd", "momentum", "fedadam"])
def test_overflow_is_refused(optimiser: ServerOptimiser) -> None:
    with pytest.raises(ValueError, match="must hold finite numbers only, got inf"):
        run(optimiser, np.zeros(2, dtype=np.float32), np.array([[1.0, 3e38], [1.0, 3e38]]))
