from typing import Any

import pytest

from quietbits.design.contracts.guarantee import Guarantee


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
