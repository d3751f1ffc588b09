"""Local epsilons whose shuffled letters keep a budget on the safe side, and closely."""

import pytest

from quietbits.design.contracts.privacy import Privacy
from quietbits.design.contracts.task import Budget
from quietbits.design.shuffled.calibration import (
    LARGEST_LOCAL_EPSILON,
    likely_local_epsilon,
    local_epsilon,
    response_local_epsilon,
    shuffled_designed_table,
    shuffled_response_table,
)
from quietbits.design.shuffled.shuffled_items import response_rows, shuffled_response_privacy
from quietbits.design.shuffled.shuffled_table import shuffled_table_privacy
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling


@pytest.mark.parametrize(
    ("clients", "budget"),
    [
        (1000, Budget(0.1, 1e-6, "replace-one")),
        (1000, Budget(1.0, 1e-6, "replace-one")),
        (1000, Budget(1.0, 1e-6, "replace-one", rounds=4)),
        (300, Budget(3.0, 1e-3, "replace-one")),
    ],
    ids=str,
)
def test_the_local_epsilon_keeps_the_target(clients: int, budget: Budget) -> None:
    def epsilon_of(local: float) -> float:
        return shuffled_response_privacy(local, 4, clients).epsilon(budget.delta, rounds=budget.rounds)

    result = local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 4, clients), budget)
    assert 0 <= budget.epsilon - epsilon_of(result) <= 1e-3 * budget.epsilon
    assert epsilon_of(result * 1.01) > budget.epsilon


def test_a_secret_sample_allows_more() -> None:
    sampled = Budget(0.5, 1e-6, "replace-one", sampling=FixedSizeSampling(10_000, 1000))
    result = local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 4, 1000), sampled)
    assert result > 1.3 * local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 4, 1000), Budget(0.5, 1e-6, "replace-one"))
    assert shuffled_response_privacy(result, 4, 1000).epsilon(1e-6, sampling=sampled.sampling) <= 0.5


def test_tables_of_whole_numbers_keep_the_target() -> None:
    budget = Budget(0.5, 1e-6, "replace-one")
    response = shuffled_response_table(lambda epsilon: generalised_randomised_response(epsilon, 2), 4, 3000, budget)
    designed = shuffled_designed_table(lambda epsilon: design_mvu(epsilon, 2, 3), 3000, budget)
    for table, share in ((response, 1e-3), (designed, 3e-3)):
        assert 0 <= 0.5 - shuffled_table_privacy(table, 3000).epsilon(1e-6) <= share * 0.5
        assert table.epsilon > 2


def test_without_delta_a_letter_is_as_private_as_it_is_by_itself() -> None:
    assert local_epsilon(lambda _: pytest.fail("nothing is searched for"), Budget(2.0, 0.0, "replace-one", rounds=4)) == 0.5


def test_letters_that_say_nearly_everything_are_enough() -> None:
    assert (
        local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 4, 10), Budget(50.0, 1e-6, "replace-one")) == LARGEST_LOCAL_EPSILON
    )


def test_a_target_out_of_reach_says_what_is_needed() -> None:
    with pytest.raises(InfeasibleError, match=r"epsilon must be at least 0\.004 for 4 rounds, got 0\.001"):
        local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 4, 10), Budget(0.001, 0.0, "replace-one", rounds=4))
    with pytest.raises(InfeasibleError, match=r"the local epsilon would have to be below 0\.001"):
        local_epsilon(lambda epsilon: shuffled_response_privacy(epsilon, 4, 2), Budget(1e-5, 1e-12, "replace-one"))


@pytest.mark.parametrize("clients", [300, 10_000])
@pytest.mark.parametrize(("rounds", "distance"), [(1, 0.05), (4, 0.2)])
def test_the_search_starts_close_to_its_end(clients: int, rounds: int, distance: float) -> None:
    budget = Budget(1.0, 1e-6, "replace-one", rounds=rounds)
    start = likely_local_epsilon(lambda local: response_rows(local, 4), clients, budget)
    assert start == pytest.approx(response_local_epsilon(4, clients, budget), abs=distance)


def test_the_search_ends_at_the_same_place_from_anywhere() -> None:
    budget = Budget(1.0, 1e-6, "replace-one")

    def privacy(local: float) -> Privacy:
        return shuffled_response_privacy(local, 4, 1000)

    ends = [local_epsilon(privacy, budget, start=start) for start in (0.5, 2.0, LARGEST_LOCAL_EPSILON)]
    assert ends == pytest.approx([response_local_epsilon(4, 1000, budget)] * 3, rel=1e-3)
    assert all(privacy(local).epsilon(1e-6) <= 1.0 for local in ends)
