"""Audits of shuffled letters.

Points under test: the guarantee holds; audits measure most of it, and refute a claim that ignores the blanket.
"""

import dataclasses

import numpy as np
import pytest

from quietbits.analysis.audits.mechanism_audit import audit, neighbours
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.shuffled.shuffled_items import ShuffledRandomisedResponse
from quietbits.design.shuffled.shuffled_mechanism import CountedMechanism
from quietbits.design.shuffled.shuffled_table import ShuffledTableMechanism
from quietbits.design.tables.randomised_response import generalised_randomised_response

TABLE = ShuffledTableMechanism(generalised_randomised_response(3.0, 1), clients=10, delta=1e-2)
ITEMS = ShuffledRandomisedResponse(3.0, 4, clients=10, delta=1e-2)


# With two letters, the other clients hide a client best if they hold the middle value and send either letter equally often.
@pytest.mark.parametrize(
    ("mechanism", "others", "share"), [(TABLE, "zero", 0.3), (TABLE, "same", 0.5), (ITEMS, "zero", 0.8), (ITEMS, "same", 0.5)]
)
def test_the_guarantee_is_not_refuted_and_partly_found(mechanism: CountedMechanism, others: str, share: float) -> None:
    result = audit(mechanism, 200_000, np.random.default_rng(0), others=others, confidence=1 - 1e-6)
    assert share * result.claim.epsilon < result.measured.epsilon_lower_bound <= result.claim.epsilon
    assert not result.refuted


def test_half_of_the_guarantee_is_refuted() -> None:
    class Boastful(ShuffledRandomisedResponse):
        @property
        def guarantee(self) -> Guarantee:
            honest = super().guarantee
            return dataclasses.replace(honest, epsilon=0.6 * honest.epsilon)

    boastful = Boastful(3.0, 4, clients=10, delta=1e-2)
    assert audit(boastful, 200_000, np.random.default_rng(0), confidence=1 - 1e-6).refuted


def test_neighbours_differ_in_one_client() -> None:
    pair = neighbours(TABLE)
    assert pair.first.tolist() == [1.0] + [0.5] * 9
    assert pair.second.tolist() == [0.0] + [0.5] * 9
    assert neighbours(ITEMS, others="same").second.tolist() == [3] + [0] * 9
    with pytest.raises(ValueError, match="direction must be left out for numbers and items"):
        neighbours(TABLE, direction=[1.0])
