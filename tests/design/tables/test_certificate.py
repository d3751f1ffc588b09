import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from quietbits.design.tables import certificate
from quietbits.design.tables.certificate import certify, objective_value, with_lower_bound
from quietbits.design.tables.lookup_table import DualCertificate, LettersProof
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_facts import RowMoments


def test_a_proof_is_replayed_once_for_each_objective_and_number_of_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    replays = itertools.count()
    monkeypatch.setattr(certificate, "replayed_bound", lambda *_: float(next(replays)))
    # No other test has this proof.
    proof = LettersProof(0.5, ((0.0, 0.0),), ((1.0, 1.0),), None, (), (), (), ())
    arguments = (proof, 4, 8, 1.0, "l1", "mean", None)
    others = (replace(proof, target=0.4), 5, 4, 2.0, "l2", "worst", (0.125,) * 8)
    changed = [(*arguments[:place], other, *arguments[place + 1 :]) for place, other in enumerate(others)]
    bounds = [certificate._proven_bound(*each) for each in (arguments, *changed, arguments, *changed)]
    assert bounds == [*range(8), *range(8)]


def test_binary_randomised_response_is_certified_optimal() -> None:
    table = generalised_randomised_response(1.0, 1)
    # The prices (-p, p) have slope zero at the letter E/(E-1) of the ray (1, E): p = 2 E / (E-1)**2.
    price = 2 * math.e / (math.e - 1) ** 2
    certified = with_lower_bound(table, DualCertificate((0.0, 0.0), (-price, price), (0.5, 0.5))).certificate
    assert certified.lower_bound == pytest.approx(math.e / (math.e - 1) ** 2, rel=1e-12)
    assert certified.optimality_gap == pytest.approx(0.0, abs=1e-12)
    assert certified.summary.endswith("; no table of any size is more than 0.0001 % better")
    loose = with_lower_bound(table, DualCertificate((0.0, 0.0), (0.0, 0.0), (0.5, 0.5))).certificate
    assert loose.lower_bound is not None
    assert loose.lower_bound < certified.lower_bound
    assert loose.optimality_gap == pytest.approx(1 - loose.lower_bound / certified.mean_variance)


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
@pytest.mark.parametrize("objective", ["mean", "worst", (1, 2, 3, 4, 4, 3, 2, 0)])
def test_a_table_of_one_bit_is_certified_optimal_for_its_letters(objective: str | tuple[int, ...], metric: str | None) -> None:
    table = design_mvu(1.0, 3, 1, metric, objective)
    facts = table.certificate
    assert facts.letters_lower_bound is not None
    assert facts.letters_gap is not None
    assert facts.lower_bound is not None
    assert 0 <= facts.letters_gap < 1e-8
    # The bound for any number of letters is far below.
    assert facts.lower_bound < 0.95 * facts.letters_lower_bound
    assert "; no table of as many letters is more than 0.0001 % better; no table of any size more than " in facts.summary


def test_a_poor_table_of_one_bit_has_a_gap_for_its_letters() -> None:
    """Letters at -1/2 and 3/2 realise E = 3, and have the least reach at E = 3.

    At E = 7 the least reach is 1/6.
    """
    facts = certify(WEIGHTS, ALPHABET, 4, epsilon=math.log(7), metric=None, objective="worst", prior=None, dual=None)
    assert facts.letters_lower_bound == pytest.approx(7 / 36, rel=1e-12)
    assert facts.letters_gap == pytest.approx(1 - 7 / 36 / 0.75, rel=1e-12)
    tight = certify(WEIGHTS, ALPHABET, 4, epsilon=math.log(3), metric=None, objective="worst", prior=None, dual=None)
    assert tight.letters_gap == pytest.approx(0, abs=1e-12)


def test_other_tables_have_no_bound_for_their_letters() -> None:
    arguments = {"metric": None, "objective": "mean", "prior": None, "dual": None}
    biased = certify(WEIGHTS, (Fraction(0), Fraction(1)), 4, epsilon=1.2, **arguments)
    four = certify(np.ones((2, 4), dtype=np.int64), tuple(map(Fraction, range(4))), 4, epsilon=1.2, **arguments)
    beyond = certify(WEIGHTS, ALPHABET, 4, epsilon=50.0, **arguments)
    # Without bias, four letters still have none, nor has a table with a row of one letter, which keeps no epsilon.
    letters = tuple(Fraction(quarters, 4) for quarters in (-3, -1, 5, 7))
    unbiased = certify(np.array([[3, 3, 1, 1], [1, 1, 3, 3]]), letters, 8, epsilon=1.2, **arguments)
    certain = certify(np.array([[4, 0], [2, 2]]), (Fraction(0), Fraction(2)), 4, epsilon=1.2, **arguments)
    assert (unbiased.max_bias, certain.max_bias, certain.worst_variance, certain.realised_epsilon) == (0.0, 0.0, 1.0, math.inf)
    assert {facts.letters_lower_bound for facts in (biased, four, beyond, unbiased, certain)} == {None}
    assert {facts.letters_gap for facts in (biased, four, beyond, unbiased, certain)} == {None}


WEIGHTS, ALPHABET = np.array([[3, 1], [1, 3]]), (Fraction(-1, 2), Fraction(3, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "median"}, "objective must be one of mean, worst, prior, got 'median'"),
        ({"objective": "prior"}, "prior must be given for the objective 'prior'"),
        ({"prior": (0.5, 0.5)}, "prior must be given for the objective 'prior' and for no other"),
        ({"objective": "prior", "prior": (0.5, 0.6)}, "prior must be 2 non-negative numbers that sum to one"),
        ({"objective": "prior", "prior": (-0.5, 1.5)}, "prior must be 2 non-negative numbers that sum to one"),
        ({"objective": "prior", "prior": (math.nan, 1.0)}, "prior must be 2 non-negative numbers that sum to one"),
        ({"objective": "prior", "prior": (1.0, 0.0, 0.0)}, "prior must be 2 non-negative numbers that sum to one"),
        ({"dual": DualCertificate((0.0,), (0.0,), (1.0,))}, "dual must hold 2 values of each kind, got 1 and 1"),
        ({"dual": DualCertificate((0.0, 0.0), (0.0, 0.0), (0.6, 0.6))}, "dual.input_weights must be 2 non-negative numbers"),
        ({"dual": DualCertificate((0.0, 0.0), (0.0, 0.0), (0.4, 0.4))}, "dual.input_weights must be 2 non-negative numbers"),
        ({"dual": DualCertificate((0.0, 0.0), (0.0, 0.0), (0.4, 0.6))}, "dual.input_weights must be those of the objective 'mean'"),
    ],
)
def test_certificates_refuse_what_does_not_belong_together(changes: dict[str, object], message: str) -> None:
    arguments = {"epsilon": 1.2, "metric": None, "objective": "mean", "prior": None, "dual": None, **changes}
    with pytest.raises(ValueError, match=message):
        certify(WEIGHTS, ALPHABET, 4, **arguments)


def test_a_biased_table_has_no_lower_bound() -> None:
    dual = DualCertificate((0.0, 0.0), (0.0, 0.0), (0.5, 0.5))
    with pytest.raises(ValueError, match="dual must be left out for a table with bias"):
        certify(WEIGHTS, (Fraction(0), Fraction(1)), 4, epsilon=1.2, metric=None, objective="mean", prior=None, dual=dual)


def test_each_objective_is_its_figure_of_the_variances() -> None:
    moments = RowMoments((Fraction(0), Fraction(1)), (Fraction(3), Fraction(5)))
    assert objective_value(moments, "mean", None) == 4.0
    assert objective_value(moments, "worst", None) == 5.0
    assert objective_value(moments, "prior", (0.75, 0.25)) == 3.5
    # Weights that nearly sum to 1 are divided by their sum.
    nearly = (Fraction(0.75), Fraction(0.25 + 5e-10))
    assert objective_value(moments, "prior", (0.75, 0.25 + 5e-10)) == float((3 * nearly[0] + 5 * nearly[1]) / sum(nearly))


@pytest.mark.parametrize("count", [0, 1, 3, 6, 9])
def test_rows_and_letters_are_powers_of_two(count: int) -> None:
    with pytest.raises(ValueError, match=f"a table must have 2, 4, 8, ... rows and letters, got {count}"):
        certificate._bits(count)


def test_the_worst_case_bound_takes_any_input_weights() -> None:
    table = generalised_randomised_response(1.0, 1)
    dual = DualCertificate((0.2, 0.2), (-0.4, 0.6), (0.4, 0.6))
    worst = certify(table.weights, table.alphabet, table.total, epsilon=1.0, metric=None, objective="worst", prior=None, dual=dual)
    assert worst.lower_bound is not None
    assert worst.lower_bound <= worst.worst_variance


def test_the_bound_for_a_prior_is_that_of_its_own_weights() -> None:
    table = generalised_randomised_response(1.0, 1)

    def bound(prior: tuple[float, float], input_weights: tuple[float, float]) -> float | None:
        dual = DualCertificate((0.0, 0.0), (-0.9, 0.9), input_weights)
        facts = {"epsilon": 1.0, "metric": None, "objective": "prior", "prior": prior, "dual": dual}
        return certify(table.weights, table.alphabet, table.total, **facts).lower_bound

    assert bound((0.75, 0.25), (0.75, 0.25)) != bound((0.5, 0.5), (0.5, 0.5))
    with pytest.raises(ValueError, match=r"dual\.input_weights must be those of the objective 'prior'"):
        bound((0.75, 0.25), (0.5, 0.5))


@pytest.mark.parametrize(("excess", "refused"), [(0.9e-9, False), (-0.9e-9, False), (1.2e-9, True), (-1.2e-9, True)])
def test_input_weights_sum_to_one_but_for_rounding(excess: float, refused: bool) -> None:
    dual = DualCertificate((0.0, 0.0), (0.0, 0.0), (0.5, 0.5 + excess))
    table = generalised_randomised_response(1.0, 1)
    facts = {"epsilon": 1.0, "metric": None, "objective": "mean", "prior": None, "dual": dual}
    if refused:
        with pytest.raises(ValueError, match=r"dual\.input_weights must be 2 non-negative numbers"):
            certify(table.weights, table.alphabet, table.total, **facts)
    else:
        assert certify(table.weights, table.alphabet, table.total, **facts).dual == dual


@pytest.mark.parametrize("sign", [-1, 1])
def test_each_input_weight_is_the_objective_s_own(sign: int) -> None:
    # All weights but the first are off by less than the allowed rounding error.
    weights = (0.125 + sign * 6.3e-9, *[0.125 - sign * 0.9e-9] * 7)
    dual = DualCertificate((0.0,) * 8, (0.0,) * 8, weights)
    with pytest.raises(ValueError, match=r"dual\.input_weights must be those of the objective 'mean'"):
        certificate.lower_bound(dual, 8, epsilon=1.0, metric=None, objective="mean", prior=None)


def test_a_table_is_for_the_unit_interval_unless_it_is_said_and_may_have_a_bias() -> None:
    provenance = record_provenance("by hand", 0, 0.0)
    facts = {"mechanism": "mvu", "metric": None, "provenance": provenance}
    table = certificate.certified_table(epsilon=1.2, weights=WEIGHTS, total=4, alphabet=(Fraction(0), Fraction(1)), **facts)
    assert table.interval == (0.0, 1.0)
    assert table.certificate.max_bias == 0.25
