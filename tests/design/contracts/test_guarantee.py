import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from quietbits.design.contracts.guarantee import Guarantee
from quietbits.errors import InfeasibleError


def test_one_readable_line() -> None:
    guarantee = Guarantee(0.5, delta=1e-6, adjacency="add-or-remove-one", trust_model="secure-sum")
    assert str(guarantee) == "epsilon = 0.5, delta = 1e-06, add-or-remove-one adjacency, secure-sum trust model"
    metric = Guarantee(1.0, adjacency="replace-one", trust_model="local", metric="l2")
    assert "x |y - y'|^2" in str(metric)


@pytest.mark.parametrize(
    ("field", "value"),
    [("epsilon", -1.0), ("epsilon", float("nan")), ("delta", 1.5), ("adjacency", "neighbours"), ("trust_model", "nobody")],
)
def test_indefinite_guarantees_are_refused(field: str, value: object) -> None:
    fields: dict[str, Any] = {"epsilon": 1.0, "adjacency": "replace-one", "trust_model": "local", field: value}
    with pytest.raises(ValueError, match=f"^{field} must be"):
        Guarantee(**fields)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 1.0, 7.7, 20.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-12, 1e-6])
def test_add_or_remove_one_counts_twice_towards_replace_one_rounded_up(epsilon: float, delta: float) -> None:
    counted = Guarantee(epsilon, "add-or-remove-one", "secure-sum", delta=delta).towards("replace-one")
    assert (counted.epsilon, counted.adjacency, counted.trust_model) == (2 * epsilon, "replace-one", "secure-sum")
    with mpmath.workdps(50):
        exact = (1 + mpmath.exp(mpmath.mpf(epsilon))) * mpmath.mpf(delta)
        assert min(exact, 1) <= mpmath.mpf(counted.delta) <= exact * (1 + mpmath.mpf("3e-15"))


def test_two_neighbours_of_a_tight_mechanism_attain_what_is_counted() -> None:
    # If two inputs are each (e, d)-close to a third input in both directions, the mass beyond e^(2 e) is at most (1 + e^e) d.
    epsilon, delta = math.log(2), Fraction(1, 100)
    factor = Fraction(2)
    present = Fraction(1, 10)
    absent = factor * present + delta
    other = factor * absent + delta
    counted = Guarantee(epsilon, "add-or-remove-one", "secure-sum", delta=float(delta)).towards("replace-one")
    assert float(other - factor**2 * present) == pytest.approx(counted.delta, rel=1e-12)


def test_large_epsilons_and_replace_one_guarantees_are_not_turned_into_promises() -> None:
    assert Guarantee(1000.0, "add-or-remove-one", "central", delta=1e-30).towards("replace-one").delta == 1.0
    assert Guarantee(math.inf, "add-or-remove-one", "central").towards("replace-one").epsilon == math.inf
    guarantee = Guarantee(1.0, "replace-one", "local")
    assert guarantee.towards("replace-one") == guarantee
    with pytest.raises(InfeasibleError, match="adjacency must be replace-one, of which the guarantee is, got add-or-remove-one"):
        guarantee.towards("add-or-remove-one")
