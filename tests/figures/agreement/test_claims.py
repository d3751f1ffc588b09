"""Claims of papers agree or differ by the numbers of a table, or are not judged if the table is too small."""

import math

import pandas as pd
import pytest

from quietbits.figures.agreement.claims import (
    AGREES,
    BEYOND,
    DIFFERS,
    NOT_COMPARABLE,
    PARTLY,
    TOO_SMALL,
    Need,
    PaperClaim,
    above,
    at_least,
    at_most,
    below,
    overall,
    within,
)
from quietbits.figures.agreement.lookup import FIGURE_CLAIMS
from quietbits.figures.findings import Finding
from quietbits.figures.listing import LISTING

ON_DATA = Need(lambda table: "" if "data" in table else "MNIST", NOT_COMPARABLE)


def claim(*needs: Need) -> PaperClaim:
    return PaperClaim(
        statement="A has over twice the error of B.",
        source="figure 1",
        measure=Finding("Error of A over that of B", lambda table: table["a"] / table["b"]),
        criterion=above(2),
        reason="B is clipped.",
        evidence=(Finding("Clipped share", lambda table: table["clipped"]),),
        needs=needs,
    )


def table(*ratios: float) -> pd.DataFrame:
    return pd.DataFrame({"a": ratios, "b": 1.0, "clipped": 0.5, "clients": 100})


@pytest.mark.parametrize(
    ("ratios", "agreement", "outcome", "reason"),
    [
        ((3.0, 4.0), AGREES, "Error of A over that of B: 3 to 4; above 2 in 2 of 2 settings.", ""),
        ((1.0, 4.0), PARTLY, "Error of A over that of B: 1 to 4; above 2 in 1 of 2 settings.", "B is clipped. Clipped share: 0.5."),
        ((1.0, 2.0), DIFFERS, "Error of A over that of B: 1 to 2; above 2 in 0 of 2 settings.", "B is clipped. Clipped share: 0.5."),
        ((1.0,), DIFFERS, "Error of A over that of B: 1; not above 2.", "B is clipped. Clipped share: 0.5."),
        ((math.nan,), TOO_SMALL, "", "The table has no setting of: Error of A over that of B."),
        ((), TOO_SMALL, "", "The table has no setting of: Error of A over that of B."),
    ],
)
def test_a_claim_is_judged_by_the_numbers_of_the_table(ratios: tuple[float, ...], agreement: str, outcome: str, reason: str) -> None:
    judgement = claim().judged(table(*ratios))
    assert (judgement.agreement, judgement.outcome, judgement.reason) == (agreement, outcome, reason)


def test_a_claim_that_holds_in_a_small_table_is_not_judged() -> None:
    judgement = claim(at_least("clients", 1000)).judged(table(3.0))
    assert (judgement.agreement, judgement.outcome) == (TOO_SMALL, "Error of A over that of B: 3.")
    assert judgement.reason == "The claim needs clients of at least 1,000 (the table has 100)."
    assert claim(at_least("clients", 100)).judged(table(3.0)).agreement == AGREES
    assert claim(at_least("rounds", 1)).judged(table(3.0)).agreement == TOO_SMALL


def test_a_part_without_a_column_is_not_judged() -> None:
    judgement = claim().judged(table(3.0).drop(columns="b"))
    assert (judgement.agreement, judgement.reason) == (TOO_SMALL, "The table has no column 'b'.")


def test_other_data_are_not_comparable_however_large_the_table() -> None:
    assert claim(ON_DATA, at_least("clients", 1000)).judged(table(3.0)).agreement == NOT_COMPARABLE
    assert claim(ON_DATA).judged(table(3.0).assign(data="mnist")).agreement == AGREES


def test_criteria_include_their_ends_as_they_say() -> None:
    numbers = pd.Series([0.5, 1.0, 1.0 + 1e-12, 2.0]).to_numpy()
    assert above(1).holds(numbers).tolist() == [False, False, True, True]
    assert below(1).holds(numbers).tolist() == [True, False, False, False]
    assert at_most(1).holds(numbers).tolist() == [True, True, True, False]
    assert within(1, 2).holds(numbers).tolist() == [False, True, True, True]


def test_a_figure_agrees_only_if_all_its_claims_do() -> None:
    agrees, partly, differs, small = (claim().judged(table(*ratios)) for ratios in ((3.0,), (1.0, 3.0), (1.0,), ()))
    assert overall([agrees, agrees]) == AGREES
    assert overall([differs, differs]) == DIFFERS
    assert overall([agrees, differs]) == overall([agrees, small]) == overall([partly, differs]) == PARTLY
    assert overall([differs, small]) == DIFFERS
    assert overall([small]) == TOO_SMALL
    assert overall([]) == BEYOND


def test_every_figure_has_claims_or_is_beyond_the_papers() -> None:
    assert set(FIGURE_CLAIMS) == set(LISTING)
    for name, figure in FIGURE_CLAIMS.items():
        assert (figure.paper == "beyond the papers") == (not figure.claims), name
        assert bool(figure.claims) == bool(figure.place), name
        for paper_claim in figure.claims:
            assert paper_claim.statement.endswith("."), name
            assert paper_claim.source, name


def test_an_empty_table_is_judged_of_no_claim() -> None:
    """Every claim states what it needs, or has no setting: an empty table never agrees."""
    for name, figure in FIGURE_CLAIMS.items():
        for paper_claim in figure.claims:
            for need in paper_claim.needs:
                assert need.lacking(pd.DataFrame({"data": []})), (name, paper_claim.statement)


@pytest.mark.parametrize("figure", ["price-rounds", "price-needed-bits"])
@pytest.mark.parametrize(("dimension", "agreement"), [(10_001, AGREES), (10_000, TOO_SMALL)])
def test_claims_of_high_dimensions_are_judged_by_those_alone(dimension: int, figure: str, agreement: str) -> None:
    rows = {"clients": 100, "epsilon": 1.0, "dimension": dimension, "rounds": 1, "mechanism": "bounds"}
    errors = {"predicted_squared_error": 2.0, "zero": 1.0, "sufficient_bits": 100.0}
    assert FIGURE_CLAIMS[figure].claims[0].judged(pd.DataFrame([rows | errors])).agreement == agreement
