"""Budgets of compared rows decide on references, flags and the best rows."""

import math
from typing import Any

import pandas as pd

from quietbits.analysis.sweeps.budgets import (
    NO_EPSILON,
    best_rows,
    budget_warnings,
    differing_guarantees,
    guarantee_sentence,
    with_flags,
)

ROW: dict[str, Any] = {"epsilon": 1.0, "realised_epsilon": 1.0, "delta": 1e-5, "realised_delta": 1e-5}
ROW |= {"adjacency": "replace-one", "trust_model": "local", "clients": 10, "error": 1.0}


def rows_of(*changes: dict[str, Any]) -> pd.DataFrame:
    return with_flags(pd.DataFrame([{"label": f"m{place}"} | ROW | change for place, change in enumerate(changes)]))


def test_rows_that_keep_their_whole_budget_have_no_flag() -> None:
    rows = rows_of({}, {"realised_epsilon": 0.995}, {"epsilon": 2.0, "realised_epsilon": 2.0})
    assert rows["flag"].tolist() == ["", "", ""]
    assert not rows["is_reference"].any()
    assert budget_warnings(rows, ("epsilon", "delta")) == ()


def test_what_keeps_less_of_a_budget_is_flagged() -> None:
    rows = rows_of({}, {"realised_epsilon": 0.7}, {"realised_delta": 0.0}, {"realised_epsilon": 0.5, "realised_delta": 0.0})
    assert rows["flag"].tolist() == ["", "ε = 0.7", "δ = 0", "ε = 0.5, δ = 0"]
    less, delta = budget_warnings(rows, ("epsilon", "delta"))
    assert "smaller epsilon" in less
    assert "(m1 and m3)" in less
    assert "(m2 and m3)" in delta


def test_a_delta_that_all_rows_keep_needs_no_flag() -> None:
    assert rows_of({"realised_delta": 0.0}, {"realised_delta": 0.0})["flag"].tolist() == ["", ""]
    # Rows of another budget belong to another comparison.
    assert rows_of({"realised_delta": 0.0}, {"delta": 1e-6, "realised_delta": 1e-6})["flag"].tolist() == ["", ""]


def test_what_has_no_finite_epsilon_is_a_reference_and_never_best() -> None:
    rows = rows_of({"error": 0.0, "realised_epsilon": math.inf, "realised_delta": 0.0}, {"error": 2.0}, {"error": 3.0})
    assert rows["flag"].tolist() == [NO_EPSILON, "", ""]
    assert rows["is_reference"].tolist() == [True, False, False]
    assert best_rows(rows, "error", ("clients",)).tolist() == [False, True, False]
    assert best_rows(rows, "error", ("clients",), largest=True).tolist() == [False, False, True]
    assert budget_warnings(rows, ("clients",)) == ("Without a finite epsilon, and so only references: m0.",)
    assert guarantee_sentence(rows[:1]) == "No row has a finite epsilon."


def test_the_best_is_that_of_equal_guarantees_and_settings() -> None:
    rows = rows_of(
        {"error": 5.0},
        {"error": 4.0},
        *({"error": error, "trust_model": "secure-sum"} for error in (3.0, 2.0)),
        {"error": 1.0, "adjacency": "add-or-remove-one"},
        {"error": 0.5, "epsilon": 8.0, "realised_epsilon": 8.0},
        {"error": 0.1, "clients": 20},
        {"error": math.nan},
    )
    # A row without a row to compare with is not called best.
    assert best_rows(rows, "error", ("clients",)).tolist() == [False, True, False, True, False, False, False, False]
    assert differing_guarantees(rows, ("clients",)) == ("epsilon", "adjacency", "trust_model")
    assert differing_guarantees(rows, ("clients", "epsilon")) == ("adjacency", "trust_model")
    assert differing_guarantees(rows, ("error",)) == ()
    (sentence,) = budget_warnings(rows, ("clients", "epsilon"))
    assert sentence == "Rows differ in adjacency and trust model: compare only those of the same adjacency and trust model."
    assert guarantee_sentence(rows) == (
        "Guarantees: replace-one and add-or-remove-one adjacency, local and secure-sum trust models, epsilon 1 and 8, delta 1e-05."
    )


def test_many_epsilons_are_a_range() -> None:
    rows = rows_of(*({"epsilon": float(epsilon), "realised_epsilon": float(epsilon)} for epsilon in range(1, 9)))
    assert "epsilon 1 to 8, delta" in guarantee_sentence(rows)
