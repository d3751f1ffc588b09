"""Splits give every example to exactly one client, as unevenly as requested."""

import numpy as np
import pytest

from quietbits.analysis.datasets.splits import Split, dirichlet_split, iid_split, ordered_split

LABELS = np.arange(1003) % 10


def sizes(split: Split) -> list[int]:
    return [len(split.part(client)) for client in range(split.clients)]


@pytest.mark.parametrize("split", [iid_split(1003, 20, 0), *(dirichlet_split(LABELS, 20, alpha, 0) for alpha in (0.01, 1.0, 1e6))])
def test_every_example_is_dealt_out_once_to_equal_clients(split: Split) -> None:
    assert sorted(split.order) == list(range(1003))
    assert np.concatenate([split.part(client) for client in range(20)]).tolist() == split.order.tolist()
    assert sizes(split) == [51] * 3 + [50] * 17


def test_a_smaller_alpha_gives_clients_fewer_classes() -> None:
    def classes(alpha: float) -> float:
        split = dirichlet_split(LABELS, 20, alpha, 0)
        return float(np.mean([len(set(LABELS[split.part(client)])) for client in range(20)]))

    assert classes(0.01) < 3 < classes(0.5) < 9 < classes(1e6)


def test_classes_need_not_be_numbered_from_zero() -> None:
    assert (dirichlet_split(LABELS, 7, 1.0, 3).order == dirichlet_split(LABELS * 5 + 2, 7, 1.0, 3).order).all()


def test_a_seed_makes_a_split() -> None:
    for make in (lambda seed: iid_split(100, 3, seed), lambda seed: dirichlet_split(LABELS[:100], 3, 1.0, seed)):
        assert (make(4).order == make(4).order).all()
        assert (make(4).order != make(5).order).any()


def test_clients_have_as_many_examples_as_is_said_in_their_order() -> None:
    split = ordered_split([3, 0, 1])
    assert [split.part(client).tolist() for client in range(split.clients)] == [[0, 1, 2], [], [3]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: iid_split(10, 11, 0), "clients must be a whole number from 1 to 10, got 11"),
        (lambda: dirichlet_split(LABELS, 10, 0.001, 0), "alpha must be a number from 0.01 to 1e+06, got 0.001"),
        (lambda: ordered_split([0, 0]), "sizes must have one example at least, got none"),
        (lambda: iid_split(10, 2, 0).part(2), "client must be a whole number from 0 to 1, got 2"),
    ],
)
def test_a_bad_argument_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        call()
    assert str(raised.value) == message
