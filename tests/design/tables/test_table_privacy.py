"""Tests of privacy of letters.

Points under test: whole vectors against enumeration of all messages, upward rounding, and an exact pure epsilon.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from quietbits.design.contracts.accounts import pure_privacy
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_privacy import table_privacy
from quietbits.solvers.accounting.privacy_loss import dominating_privacy_loss
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon


@pytest.fixture(scope="module")
def table() -> LookupTable:
    return generalised_randomised_response(1.0, 2)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_every_pair_of_vectors_is_covered(table: LookupTable, norm: float) -> None:
    rounds, delta, dimension, radius = 2, 1e-2, 2, 2 / 3
    report = table_privacy(table, dimension=dimension, norm=norm, radius=radius).report(delta, rounds=rounds)
    rows = table.weights / table.total
    grid = np.arange(len(rows))
    worst = 0.0
    for vector, other in itertools.product(itertools.product(grid, repeat=dimension), repeat=2):
        if np.linalg.norm(np.subtract(vector, other) / 3, ord=norm) > radius + 1e-9:
            continue
        # The test enumerates all messages of all rounds.
        own, others = np.ones(1), np.ones(1)
        for index, changed in list(zip(vector, other, strict=True)) * rounds:
            own, others = np.outer(own, rows[index]).ravel(), np.outer(others, rows[changed]).ravel()
        worst = max(worst, float(np.maximum(own - math.exp(report.epsilon) * others, 0).sum()))
    assert worst <= delta
    assert [account.name for account in report.accounts] == ["pure", "rdp", *(["pld"] if norm == math.inf else [])]
    if norm == math.inf:
        # The bound is tight, as a slightly smaller epsilon would fail.
        assert worst > delta * 0.99
    assert (report.adjacency, report.trust_model) == ("replace-one", "local")


def test_one_coordinate_has_a_dominating_pair(table: LookupTable) -> None:
    report = table_privacy(table).report(1e-3, rounds=10)
    # Randomised response between many letters leaks less than between two letters.
    pure = pure_privacy(table.certificate.realised_epsilon).report(1e-3, rounds=10)
    assert report.epsilon_by("pld") < pure.epsilon_by("pld")
    assert report.epsilon_by("pld") < report.epsilon_by("rdp")


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.01, 300), (0.1, 300)])
def test_the_rounding_of_composed_losses_is_counted(epsilon: float, rounds: int) -> None:
    table = generalised_randomised_response(epsilon, 1)
    exact = partial(composed_pure_epsilon, table.certificate.realised_epsilon, rounds)
    losses = table_privacy(table).account("pld")
    for delta in (1e-6, 1e-8, 1e-10, 1e-11, 1e-12):
        # The bound is infinite if the account does not compute it.
        assert losses.bound(delta, rounds, None).epsilon >= exact(delta) * (1 - 1e-12)
    assert losses.bound(1e-6, rounds, None).epsilon == pytest.approx(exact(1e-6), rel=1e-4)
    # dp-accounting treats its Fourier transforms as exact, and is off in either direction, depending on the machine.
    theirs = dominating_privacy_loss(table.weights).self_compose(rounds)
    assert abs(theirs.get_epsilon_for_delta(1e-10) / exact(1e-10) - 1) > 1e-8
    # If delta is as small as the rounding error, the account proves no epsilon.
    assert math.isinf(losses.bound(1e-16, rounds, None).epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 11.3])
def test_the_pure_epsilon_of_one_number_is_that_of_the_certificate(epsilon: float) -> None:
    # The epsilon was once rounded upward by a relative 1e-12, above the budget of the table's design.
    table = generalised_randomised_response(epsilon, 3)
    assert table_privacy(table).epsilon(0.0) == table.certificate.realised_epsilon <= epsilon
    designed = design_mvu(epsilon, 2, 1, "l1")
    assert table_privacy(designed).epsilon(0.0) <= epsilon
    # Closer inputs reveal less, and more coordinates reveal more.
    near, far = (table_privacy(designed, radius=radius).epsilon(0.0) for radius in (0.4, 1.0))
    assert near < far
    assert table_privacy(table, dimension=3, norm=math.inf).epsilon(0.0) == pytest.approx(3 * table.certificate.realised_epsilon, rel=1e-9)


def test_vectors_are_close_in_the_l1_norm_of_one_unless_they_are_said_to_be_others(table: LookupTable) -> None:
    usual, given, wider, longer = (
        table_privacy(table, dimension=5, **changes).epsilon(1e-3)
        for changes in ({}, {"norm": 1.0, "radius": 1.0}, {"norm": 2.0}, {"radius": 2.0})
    )
    assert usual == given < min(wider, longer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda table: table_privacy(table, radius=0.0), "radius must be a number from 1e-09"),
        (lambda table: table_privacy(table, dimension=0), "dimension must be a whole number from 1"),
        (lambda table: table_privacy(table, norm=0.5), "norm must be a number from 1"),
    ],
)
def test_bad_arguments_are_refused(make: Callable[[LookupTable], object], message: str, table: LookupTable) -> None:
    with pytest.raises(ValueError, match=message):
        make(table)


def test_rows_that_can_be_told_apart_with_certainty_have_no_epsilon(table: LookupTable) -> None:
    certain = dataclasses.replace(table, weights=np.array([[4, 0], [2, 2]]), total=4)
    report = table_privacy(certain).report(1e-3)
    assert [account.name for account in report.accounts] == ["pure", "rdp"]
    assert report.epsilon == math.inf


def test_a_table_is_never_less_private_than_randomised_response_of_its_epsilon() -> None:
    """The grid of the table's losses once rounded 515 rounds above what the pure epsilon proves, and above a calibrated budget."""
    table = design_mvu(0.10478881418178514, 3, 3)
    realised = table.certificate.realised_epsilon
    for rounds in (2, 515):
        composed = composed_pure_epsilon(realised, rounds, 3.4e-7)
        assert table_privacy(table).report(3.4e-7, rounds=rounds).epsilon_by("pld") <= composed
