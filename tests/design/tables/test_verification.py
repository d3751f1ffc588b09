"""Every check of a table's file fails at the smallest violation of its condition."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from quietbits.design.tables.certificate import certified_table, with_lower_bound
from quietbits.design.tables.lookup_table import DualCertificate, LookupTable
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.verification import LARGEST_LETTER, LARGEST_POWER, MOST_BITS, verify_table
from quietbits.errors import TableError

BOUND_TOLERANCE = 1e-9
PRICE = 2 * math.e / (math.e - 1) ** 2
PLAIN = generalised_randomised_response(1.0, 1)
BOUNDED = with_lower_bound(PLAIN, DualCertificate((0.0, 0.0), (-PRICE, PRICE), (0.5, 0.5)))


def made(weights: Any, total: int, *, epsilon: float = 50.0, metric: str | None = None, letters: tuple[Fraction, ...] = ()) -> LookupTable:
    """Return a table of these weights, whose certificate states its facts."""
    array = np.array(weights, dtype=np.int64)
    alphabet = letters or tuple(Fraction(letter) for letter in range(array.shape[1]))
    provenance = record_provenance("by hand", 0, 0.0)
    facts = {"mechanism": "mvu", "metric": metric, "alphabet": alphabet, "provenance": provenance}
    return certified_table(epsilon=epsilon, weights=array, total=total, **facts)


def certificate_with(table: LookupTable, **changes: Any) -> LookupTable:
    return dataclasses.replace(table, certificate=dataclasses.replace(table.certificate, **changes))


def check_of(table: LookupTable) -> str:
    """Return the failed check of a table, or "" if none or only the last check failed."""
    try:
        assert verify_table(table) == table.certificate
    except TableError as error:
        return "" if error.check == "mechanism" else error.check
    return ""


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
def test_epsilon_is_at_least_what_the_weights_realise_to_the_last_digit(metric: str | None) -> None:
    for weights in ([[3, 1], [1, 3]], [[1, 3, 2, 2], [2, 2, 2, 2], [3, 3, 1, 1], [5, 1, 1, 1]]):
        table = made(weights, sum(weights[0]), metric=metric)
        realised = table.certificate.realised_epsilon
        assert check_of(dataclasses.replace(table, epsilon=realised)) == ""
        assert check_of(dataclasses.replace(table, epsilon=math.nextafter(realised, 0.0))) == "realised-epsilon"
        assert check_of(dataclasses.replace(table, epsilon=realised * (1 - 1e-10))) == "realised-epsilon"


@pytest.mark.parametrize("fact", ["realised_epsilon", "max_bias", "mean_variance", "worst_variance"])
@pytest.mark.parametrize("side", [0.0, math.inf])
def test_facts_are_stated_to_the_last_digit(fact: str, side: float) -> None:
    table = made([[3, 1], [2, 2]], 4)
    false = math.nextafter(getattr(table.certificate, fact), side)
    check = "certified-" + fact.replace("_", "-").replace("realised-", "").replace("max-", "")
    assert check_of(certificate_with(table, **{fact: false})) == check


def test_a_letter_that_one_input_never_gives_is_refused_wherever_it_is() -> None:
    assert check_of(made([[0, 4, 2, 2], [0, 2, 3, 3]], 8)) == ""
    assert check_of(dataclasses.replace(made([[1, 3], [1, 3]], 4), weights=np.array([[1, 3], [0, 4]]))) == "zero-beside-nonzero"
    for row, letter in ((0, 1), (1, 3)):
        weights = np.full((2, 4), 2)
        weights[row, letter], weights[row, 0] = 0, 4
        table = dataclasses.replace(made(np.full((2, 4), 2), 8), weights=weights)
        assert check_of(table) == "zero-beside-nonzero"


def test_rows_sum_to_the_total_exactly() -> None:
    table = made([[3, 1], [1, 3]], 4)
    for row in range(2):
        for change in (-1, 1):
            weights = table.weights.copy()
            weights[row, 0] += change
            assert check_of(dataclasses.replace(table, weights=weights)) == "row-sums"
    # The sums are right only modulo 2**64.
    weights = np.array([[2**62 + 2, 2**62 - 1, 2**62, 2**62 - 1]] * 2, dtype=np.int64)
    assert check_of(dataclasses.replace(made(np.ones((2, 4)), 4), weights=weights, total=4)) == "row-sums"
    assert check_of(dataclasses.replace(table, weights=np.array([[5, -1], [1, 3]]))) == "negative-weights"


@pytest.mark.parametrize("total", [1, 3, 6, 2**62 + 1, 2**63, 0, -4])
def test_totals_are_powers_of_two_that_a_sampler_can_draw(total: int) -> None:
    assert check_of(dataclasses.replace(made([[3, 1], [1, 3]], 4), total=total)) == "total"


def test_the_largest_and_the_smallest_total() -> None:
    assert check_of(made([[1, 1], [1, 1]], 2)) == ""
    assert check_of(made([[2**61, 2**61], [2**61 + 1, 2**61 - 1]], 2**62)) == ""


def test_shapes_are_those_of_the_bits() -> None:
    table = made(np.ones((2, 4)), 4)
    for changes in ({"bits_in": 2}, {"bits_out": 1}, {"bits_in": 0}, {"bits_out": MOST_BITS + 1}, {"alphabet": table.alphabet[:3]}):
        assert check_of(dataclasses.replace(table, **changes)) == "shape"
    for changes, ones in (({"bits_in": 0}, np.ones((1, 4))), ({"bits_in": MOST_BITS + 1}, np.ones((2 ** (MOST_BITS + 1), 4)))):
        with pytest.raises(TableError, match=f"bits_in and bits_out must be from 1 to {MOST_BITS}"):
            verify_table(dataclasses.replace(table, weights=ones.astype(np.int64), **changes))
    for bits in (0, MOST_BITS + 1):
        weights, alphabet = np.ones((2, 2**bits), dtype=np.int64), tuple(map(Fraction, range(2**bits)))
        with pytest.raises(TableError, match=f"bits_in and bits_out must be from 1 to {MOST_BITS}"):
            verify_table(dataclasses.replace(table, bits_out=bits, weights=weights, alphabet=alphabet))
    largest = np.ones((2**MOST_BITS, 2**MOST_BITS), dtype=np.int64)
    assert check_of(made(largest, 2**MOST_BITS)) == ""


def test_letters_are_sorted_and_bounded() -> None:
    assert check_of(made(np.ones((2, 2)), 2, letters=(Fraction(1), Fraction(1)))) == ""
    assert check_of(made(np.ones((2, 2)), 2, letters=(Fraction(1), Fraction(10**9 - 1, 10**9)))) == "alphabet"
    for sign in (-1, 1):
        letters = sorted((Fraction(sign * LARGEST_LETTER), Fraction(0)))
        assert check_of(made(np.ones((2, 2)), 2, letters=tuple(letters))) == ""
        beyond = sorted((sign * (LARGEST_LETTER + Fraction(1, 2)), Fraction(0)))
        assert check_of(dataclasses.replace(made(np.ones((2, 2)), 2), alphabet=tuple(beyond))) == "alphabet"


@pytest.mark.parametrize(
    "changes",
    [
        *({"epsilon": epsilon} for epsilon in (0.0, -1.0, math.nan, math.inf)),
        *({"adjacency": "add-or-remove-one"}, {"trust_model": "central"}, {"interval": (1.0, 1.0)}, {"interval": (0.0, math.inf)}),
        *({"metric": metric} for metric in ("l0.5", "l1.0", "x", f"l{LARGEST_POWER + 1}", f"l{LARGEST_POWER}.5")),
    ],
)
def test_parameters_are_those_of_a_table(changes: dict[str, Any]) -> None:
    assert check_of(dataclasses.replace(PLAIN, **changes)) == "parameters"


def test_the_lower_bound_is_what_its_dual_values_prove() -> None:
    assert check_of(BOUNDED) == ""
    bound, value = BOUNDED.certificate.lower_bound, BOUNDED.certificate.mean_variance
    assert bound is not None
    for share, expected in ((0.9, ""), (1.04, "lower-bound"), (3.0, "lower-bound")):
        claimed = bound * (1 + share * BOUND_TOLERANCE)
        table = certificate_with(BOUNDED, lower_bound=claimed, optimality_gap=(value - claimed) / value)
        assert check_of(table) == expected
    # A bound below the best possible is still true, and has a larger gap.
    less = certificate_with(BOUNDED, lower_bound=bound / 2, optimality_gap=(value - bound / 2) / value)
    assert check_of(less) == ""
    assert check_of(certificate_with(BOUNDED, lower_bound=bound / 2)) == "optimality-gap"
    for change in (-1.1 * BOUND_TOLERANCE, 1.1 * BOUND_TOLERANCE):
        assert check_of(certificate_with(BOUNDED, optimality_gap=BOUNDED.certificate.optimality_gap + change)) == "optimality-gap"
    assert check_of(certificate_with(BOUNDED, optimality_gap=None)) == "optimality-gap"


def test_a_bound_and_its_dual_values_stand_together() -> None:
    assert check_of(certificate_with(BOUNDED, dual=None)) == "lower-bound"
    assert check_of(certificate_with(BOUNDED, lower_bound=None)) == "lower-bound"
    assert check_of(certificate_with(PLAIN, lower_bound=0.1)) == "lower-bound"
    assert check_of(certificate_with(PLAIN, optimality_gap=0.1)) == "optimality-gap"
    assert check_of(certificate_with(PLAIN, objective="best")) == "certificate"


def test_a_bound_for_two_letters_is_the_closed_form() -> None:
    certificate = PLAIN.certificate
    assert certificate.letters_lower_bound is not None
    assert certificate.letters_gap is not None
    assert check_of(certificate_with(PLAIN, letters_lower_bound=None, letters_gap=None)) == ""
    false = certificate.letters_lower_bound * (1 + 1e-8)
    assert check_of(certificate_with(PLAIN, letters_lower_bound=false)) == "letters-lower-bound"
    for error in (-1e-8, 1e-8):
        assert check_of(certificate_with(PLAIN, letters_gap=certificate.letters_gap + error)) == "letters-gap"
    assert check_of(certificate_with(PLAIN, letters_lower_bound=None)) == "letters-gap"
    assert check_of(certificate_with(made(np.ones((2, 4)), 4), letters_lower_bound=0.1)) == "letters-lower-bound"


def test_a_bound_below_zero_is_true_and_may_claim_no_more_either() -> None:
    table = with_lower_bound(PLAIN, DualCertificate((0.0, 0.0), (PRICE, -PRICE), (0.5, 0.5)))
    bound, value = table.certificate.lower_bound, table.certificate.mean_variance
    assert bound is not None
    assert bound < 0
    for share, expected in ((0.0, ""), (0.9, ""), (1.04, "lower-bound")):
        claimed = bound + share * BOUND_TOLERANCE * abs(bound)
        assert check_of(certificate_with(table, lower_bound=claimed, optimality_gap=(value - claimed) / value)) == expected
