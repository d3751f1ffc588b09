"""Costs of masks: against the masks that a sum really expands, and the paper's rule."""

import math

import numpy as np
import pytest

from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.mask_cost import mask_cost, rate_at_equal_cost
from quietbits.design.secure_sum.pairwise_masks import MaskSource


@pytest.mark.parametrize(("clients", "neighbours", "dropped"), [(12, 4, []), (12, 4, [3]), (9, 8, [0, 5]), (6, 3, [])])
def test_as_many_masks_are_expanded(monkeypatch: pytest.MonkeyPatch, clients: int, neighbours: int, dropped: list[int]) -> None:
    length, expanded = 7, []
    expand = MaskSource._expand

    def counted(self: MaskSource, *arguments: object) -> np.ndarray:
        expanded.append(self.length)
        return expand(self, *arguments)

    monkeypatch.setattr(MaskSource, "_expand", counted)
    secure_sum = SecureSum(clients, length, 2**16, neighbours=neighbours, threshold=1)
    secure_sum.total([np.ones((clients, length), dtype=int)], np.random.default_rng(0), dropped=dropped)
    cost = mask_cost(clients, length, neighbours, len(dropped))
    # Pair masks between two missing clients are in no message: the server's cost is a bound then.
    assert clients * cost.client <= sum(expanded) <= cost.total
    if len(dropped) < 2:
        assert sum(expanded) == cost.total
    assert cost.total == clients * cost.client + cost.server


def test_the_papers_rule() -> None:
    assert rate_at_equal_cost(1000, 100) == pytest.approx(15.0, rel=1e-12)
    assert rate_at_equal_cost(100, 1000) == pytest.approx(1 / 15, rel=1e-12)
    assert rate_at_equal_cost(50, 50) == 1.0


def test_the_rule_is_that_of_masks_with_log_n_neighbours() -> None:
    # 4 log2(n) neighbours, and a client's own mask, which the rule leaves out.
    costs = []
    for clients in (128, 1024, 8192):
        length = round(2**20 / rate_at_equal_cost(clients, 128))
        costs.append(clients * mask_cost(clients, length, 4 * round(math.log2(clients))).client)
    assert costs == pytest.approx([costs[0]] * 3, rel=0.05)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"clients must be a whole number from 2 .*, got 0"):
        mask_cost(0, 10, 2)
    with pytest.raises(ValueError, match="neighbours must be a whole number from 1 to 9"):
        mask_cost(10, 10, 10)
    with pytest.raises(ValueError, match="neighbours must be even for 9 clients"):
        mask_cost(9, 10, 3)
    with pytest.raises(ValueError, match="dropped must be a whole number from 0 to 10"):
        mask_cost(10, 10, 2, dropped=11)
    with pytest.raises(ValueError, match="reference_clients must be a whole number from 2"):
        rate_at_equal_cost(10, 1)
