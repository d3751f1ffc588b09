"""Composition of different mechanisms.

Points under test: one part's own accounts, equal parts as rounds, any order, exact enumeration, dp-accounting, adjacencies, sampling, and
refusals.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from quietbits.design.contracts.accounts import pure_privacy
from quietbits.design.contracts.composition import compose
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.privacy import Account, EpsilonBound, Privacy
from quietbits.design.local.laplace import laplace_privacy
from quietbits.design.secure_sum.binomial_account import BinomialNoise
from quietbits.design.secure_sum.distributed_discrete_gaussian import discrete_gaussian_privacy
from quietbits.design.secure_sum.distributed_skellam import distributed_skellam_privacy
from quietbits.design.secure_sum.poisson_binomial_mechanism import poisson_binomial_privacy
from quietbits.design.shuffled.shuffled_privacy import shuffled_privacy
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_privacy import table_privacy
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.composed_losses import LossPair, losses_of_masses
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling

REPLACE, ADD = "replace-one", "add-or-remove-one"
DELTA = 1e-6
# The share by which the convolution of losses on grids may exceed the exact epsilon.
SLACK = 1e-5
SMALL_SAMPLE = PoissonSampling(0.01)

KINDS: dict[str, Callable[[], Privacy]] = {
    "gaussian": lambda: gaussian_privacy(8.0),
    "laplace": lambda: laplace_privacy(0.2),
    "pure": lambda: pure_privacy(0.2),
    "discrete-gaussian": lambda: discrete_gaussian_privacy(1000, 16, 1.0, 0.5, 0.001, REPLACE),
    "skellam": lambda: distributed_skellam_privacy(1000, 16, 1.0, 0.3, 0.001, REPLACE),
    "poisson-binomial": lambda: poisson_binomial_privacy(1000, 4, 0.1, dimension=16),
    "shuffled": lambda: shuffled_privacy(generalised_randomised_response(1.0, 2).weights, 1.0, 1000),
    "table": lambda: table_privacy(generalised_randomised_response(0.5, 3)),
}


def epsilons(privacy: Privacy, delta: float = DELTA, adjacency: str | None = None, rounds: int = 1) -> dict[str, float]:
    return {account.name: account.bound.epsilon for account in privacy.report(delta, adjacency, rounds).accounts}


@pytest.mark.parametrize("name", KINDS)
def test_one_part_has_its_own_accounts(name: str) -> None:
    privacy = KINDS[name]()
    assert epsilons(compose([(privacy, 7, None)])) == epsilons(privacy, rounds=7)
    assert compose([(privacy, 7, None)]).trust_model == privacy.trust_model
    assert epsilons(compose([(privacy, 2, None)]), rounds=3) == epsilons(privacy, rounds=6)


def test_one_sampled_part_has_its_own_accounts() -> None:
    privacy = gaussian_privacy(1.0, ADD, "central")
    own = privacy.report(DELTA, ADD, 100, SMALL_SAMPLE)
    assert epsilons(compose([(privacy, 100, SMALL_SAMPLE)])) == {account.name: account.bound.epsilon for account in own.accounts}


@pytest.mark.parametrize("name", KINDS)
def test_equal_parts_are_rounds(name: str) -> None:
    privacy = KINDS[name]()
    assert epsilons(compose([(privacy, 2, None), (privacy, 1, None), (privacy, 4, None)])) == epsilons(privacy, rounds=7)
    if name != "shuffled":
        # Equal mechanisms that were made apart are convolved, to about the same epsilon.
        apart = compose([(privacy, 3, None), (KINDS[name](), 4, None)]).epsilon(DELTA)
        assert apart == pytest.approx(privacy.epsilon(DELTA, rounds=7), rel=2e-3)


def test_gaussian_parts_are_one_gaussian() -> None:
    parts = [(gaussian_privacy(multiplier), rounds, None) for multiplier, rounds in ((5.0, 3), (8.0, 10), (30.0, 100))]
    together = 1 / math.sqrt(3 / 25 + 10 / 64 + 100 / 900)
    exact = gaussian_epsilon(together, DELTA)
    assert exact <= compose(parts).epsilon(DELTA, account="pld") <= exact * (1 + 1e-8)


@pytest.mark.parametrize("adjacency", [None, REPLACE])
def test_order_does_not_matter(adjacency: str | None) -> None:
    parts = [(KINDS[name](), rounds, None) for name, rounds in (("laplace", 3), ("gaussian", 5), ("skellam", 2), ("poisson-binomial", 1))]
    several = [epsilons(compose(list(order), adjacency)) for order in itertools.permutations(parts)]
    for name in several[0]:
        assert max(answers[name] for answers in several) <= min(answers[name] for answers in several) * (1 + 1e-9)


def delta_of(pairs: list[tuple[np.ndarray, np.ndarray]], epsilon: float) -> float:
    """Return the exact delta of independent outputs, by enumeration of all of them in both directions."""
    first, second = np.ones(1), np.ones(1)
    for own, other in pairs:
        first, second = np.multiply.outer(first, own).ravel(), np.multiply.outer(second, other).ravel()
    return max(math.fsum(np.maximum(0, a - math.exp(epsilon) * b)) for a, b in ((first, second), (second, first)))


def test_two_discrete_mechanisms_are_enumerated() -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        # A table of two inputs has one pair of rows, and randomised response is the worst of all mechanisms of its epsilon.
        weights = rng.integers(1, 60, size=(2, 4))
        weights[:, 0] += 256 - weights.sum(axis=1)
        table = dataclasses.replace(generalised_randomised_response(1.0, 1), weights=weights, total=256)
        rows = weights / 256
        pure, uses = float(rng.uniform(0.1, 1.0)), int(rng.integers(1, 4))
        kept = 1 / (1 + math.exp(-pure))
        response = np.array([kept, 1 - kept])
        report = compose([(table_privacy(table), 2, None), (pure_privacy(pure), uses, None)])
        for delta in (1e-3, 0.05):
            for account in report.report(delta).accounts:
                for rows_of_pair in ((rows[0], rows[1]), (rows[1], rows[0])):
                    pairs = [rows_of_pair] * 2 + [(response, response[::-1])] * uses
                    assert delta_of(pairs, account.bound.epsilon) <= delta * (1 + 1e-9)
            tight = report.epsilon(delta, account="pld")
            largest = max(
                delta_of([rows_of_pair] * 2 + [(response, response[::-1])] * uses, tight * 0.99)
                for rows_of_pair in ((rows[0], rows[1]), (rows[1], rows[0]))
            )
            # A table's losses are on a grid of 500 steps, and cover both orders of its rows.
            assert tight == 0 or largest > delta * 0.8


def test_randomised_responses_of_different_epsilon_are_exact() -> None:
    first, second = 0.3, 0.8
    pairs = [(np.array([kept, 1 - kept]), np.array([1 - kept, kept])) for kept in (1 / (1 + math.exp(-first)), 1 / (1 + math.exp(-second)))]
    composed = compose([(pure_privacy(first), 3, None), (pure_privacy(second), 2, None)])
    for delta in (1e-4, 0.01, 0.2):
        epsilon = composed.epsilon(delta, account="pld")
        real = [pairs[0]] * 3 + [pairs[1]] * 2
        assert delta_of(real, epsilon) <= delta
        assert delta_of(real, epsilon * (1 - SLACK)) > delta


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_dp_accounting_agrees_on_gaussian_and_laplace_parts(delta: float) -> None:
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, from_laplace_mechanism

    gaussian, laplace = from_gaussian_mechanism(4.0), from_laplace_mechanism(5.0)
    theirs = gaussian.self_compose(6).compose(laplace.self_compose(10)).get_epsilon_for_delta(delta)
    ours = compose([(gaussian_privacy(4.0), 6, None), (laplace_privacy(0.2), 10, None)])
    assert ours.epsilon(delta, account="pld") == pytest.approx(theirs, rel=1e-5)
    assert ours.report(delta).best.name == "pld"  # type: ignore[union-attr]


def test_dp_accounting_agrees_on_a_sampled_part() -> None:
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, from_laplace_mechanism

    sampled = from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(200)
    theirs = sampled.compose(from_laplace_mechanism(2.0)).get_epsilon_for_delta(DELTA)
    ours = compose([(gaussian_privacy(1.0, ADD, "central"), 200, SMALL_SAMPLE), (laplace_privacy(0.5, adjacency=ADD), 1, None)])
    assert ours.epsilon(DELTA, ADD, account="pld") == pytest.approx(theirs, rel=1e-4)


def test_dp_accounting_agrees_on_renyi_divergences() -> None:
    from dp_accounting import GaussianDpEvent, LaplaceDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=[order for order in (1 + k / 20 for k in range(1, 2000)) if order < 64])
    accountant.compose(GaussianDpEvent(4.0), 6)
    accountant.compose(LaplaceDpEvent(5.0), 10)
    ours = compose([(gaussian_privacy(4.0), 6, None), (laplace_privacy(0.2), 10, None)]).epsilon(DELTA, account="rdp")
    assert ours == pytest.approx(accountant.get_epsilon(DELTA), rel=2e-3)


def test_nearly_gaussian_noise_is_convolved_with_other_losses() -> None:
    noise, laplace = KINDS["discrete-gaussian"](), laplace_privacy(0.2)
    own = noise.report(DELTA, rounds=5).account("near-gaussian").bound.epsilon
    # Gaussian noise of about the same epsilon instead.
    multiplier = next(z for z in np.geomspace(0.1, 1000, 4000) if gaussian_epsilon(z / math.sqrt(5), DELTA) <= own)
    reference = compose([(gaussian_privacy(float(multiplier)), 5, None), (laplace, 10, None)]).epsilon(DELTA)
    assert compose([(noise, 5, None), (laplace, 10, None)]).epsilon(DELTA, account="pld") == pytest.approx(reference, rel=5e-3)


def test_parts_without_losses_count_by_their_epsilon_and_delta() -> None:
    only = Account("own", REPLACE, lambda delta, rounds, _: EpsilonBound(0.3 * rounds if delta > 0 else math.inf))
    report = compose([(Privacy("central", (only,)), 1, None), (gaussian_privacy(10.0), 1, None)]).report(DELTA)
    answers = {account.name: account.bound for account in report.accounts}
    assert answers["basic"].epsilon == pytest.approx(0.3 + gaussian_epsilon(10.0, DELTA / 2), rel=1e-9)
    assert 0.3 < answers["pld"].epsilon < answers["basic"].epsilon
    assert answers["rdp"].reason == "a part has no Rényi divergences"
    # Many such parts compose as randomised responses, with half of delta for their failures.
    parts = [
        (Privacy("central", (Account("own", REPLACE, lambda delta, *_: EpsilonBound(0.01 if delta > 0 else math.inf)),)), 1, None)
        for _ in range(100)
    ]
    assert compose(parts).epsilon(DELTA, account="pld") == pytest.approx(composed_pure_epsilon(0.01, 100, DELTA / 2), rel=1e-3)


def test_assumptions_and_unproven_accounts_do_not_count() -> None:
    proven = Account("proven", REPLACE, lambda *_: EpsilonBound(2.0), at_delta_zero=True)
    others = (
        Account("published", REPLACE, lambda *_: EpsilonBound(0.1), proven=False),
        Account("conditional", REPLACE, lambda *_: EpsilonBound(0.1), assumes="all is well"),
    )
    parts = [(Privacy("central", (*others, proven)), 1, None), (pure_privacy(1.0), 1, None)]
    assert compose(parts).epsilon(0.0) == pytest.approx(3.0, rel=1e-14)
    with pytest.raises(InfeasibleError, match="part 1 must have a proven account without assumptions, got accounts for replace-one"):
        compose([(Privacy("central", others), 1, None), (pure_privacy(1.0), 1, None)])


def test_pure_epsilons_add_up_without_delta() -> None:
    report = compose([(pure_privacy(0.1), 3, None), (laplace_privacy(0.25), 2, None)]).report(0.0)
    assert report.best is not None
    assert (report.best.name, report.epsilon) == ("pure", pytest.approx(0.8, rel=1e-14))
    nothing = compose([(pure_privacy(0.1), 3, None), (gaussian_privacy(1.0), 2, None)]).report(0.0)
    assert math.isinf(nothing.epsilon)
    assert {account.bound.reason for account in nothing.accounts} == {
        "a part has no pure guarantee",
        "delta must be above 0 for this account",
    }


def test_trust_models_mix_to_the_one_that_trusts_most() -> None:
    local, central = pure_privacy(0.1), gaussian_privacy(10.0, REPLACE, "central")
    shuffled, summed = KINDS["shuffled"](), KINDS["poisson-binomial"]()
    assert compose([(central, 1, None), (local, 1, None)]).trust_model == "central"
    assert compose([(local, 1, None), (shuffled, 1, None)]).trust_model == "shuffled"
    assert compose([(summed, 1, None), (shuffled, 1, None), (local, 1, None)]).trust_model == "secure-sum"


def test_add_or_remove_one_counts_twice_for_replace_one() -> None:
    added, replaced = gaussian_privacy(10.0, ADD, "central"), gaussian_privacy(5.0, REPLACE, "central")
    other = laplace_privacy(0.3)
    mixed, plain = (epsilons(compose([(part, 4, None), (other, 2, None)])) for part in (added, replaced))
    # Removing and adding a vector is a shift of twice the length: the same noise for half the multiplier.
    assert plain["pld"] * (1 - SLACK) <= mixed["pld"] <= plain["pld"] * (1 + SLACK)
    assert plain["rdp"] <= mixed["rdp"] <= plain["rdp"] * 1.01
    assert plain["basic"] <= mixed["basic"]
    assert compose([(added, 4, None), (other, 2, None)]).adjacencies == (REPLACE,)
    # A single part is converted, too, if replace-one adjacency is asked for.
    alone = compose([(added, 4, None)], REPLACE)
    assert alone.epsilon(DELTA, REPLACE, account="pld") == pytest.approx(replaced.epsilon(DELTA, rounds=4), rel=SLACK)
    assert set(epsilons(alone)) == {"pure", "basic", "rdp", "pld"}
    assert compose([(laplace_privacy(0.2, adjacency=ADD), 3, None)], REPLACE).epsilon(0.0) == pytest.approx(1.2, rel=1e-12)


def test_sampled_rounds_of_both_kinds_meet_at_replace_one() -> None:
    poisson = (gaussian_privacy(1.0, ADD, "central"), 50, PoissonSampling(0.01))
    fixed = (gaussian_privacy(2.0, REPLACE, "central"), 50, FixedSizeSampling(1000, 10))
    composed = compose([poisson, fixed])
    assert composed.adjacencies == (REPLACE,)
    own = fixed[0].epsilon(DELTA, REPLACE, 50, fixed[2])
    assert own < composed.epsilon(DELTA) < own + 3 * poisson[0].epsilon(DELTA / 100, ADD, 50, poisson[2])


def test_what_cannot_be_converted_is_refused() -> None:
    replaced, added = pure_privacy(0.1), gaussian_privacy(1.0, ADD, "central")
    with pytest.raises(InfeasibleError, match="adjacency must be replace-one for part 2, got add-or-remove-one: a guarantee for replacing"):
        compose([(added, 1, None), (replaced, 1, None)], ADD)
    with pytest.raises(InfeasibleError, match="part 1 must have a proven account without assumptions, with 5 of 50 clients"):
        compose([(added, 1, FixedSizeSampling(50, 5)), (replaced, 1, None)])
    with pytest.raises(ValueError, match="adjacency must be one of replace-one, add-or-remove-one, got 'both'"):
        compose([(replaced, 1, None)], "both")


def test_samples_of_different_populations_are_refused() -> None:
    privacy = gaussian_privacy(1.0, REPLACE, "central")
    compose([(privacy, 1, FixedSizeSampling(100, 5)), (privacy, 1, FixedSizeSampling(100, 10)), (privacy, 1, None)])
    with pytest.raises(ValueError, match="population must be the same for all sampled parts, got 100 for part 1 and 200 for part 3"):
        compose([(privacy, 1, FixedSizeSampling(100, 5)), (privacy, 1, None), (privacy, 1, FixedSizeSampling(200, 5))])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ((gaussian_privacy(1.0), 1), r"part 2 must be \(privacy, rounds, sampling\)"),
        (("gaussian", 1, None), r"part 2 must be \(privacy, rounds, sampling\)"),
        ((gaussian_privacy(1.0), 0, None), "rounds of part 2 must be a whole number from 1 to"),
        ((gaussian_privacy(1.0), 1, 0.5), "sampling of part 2 must be PoissonSampling, FixedSizeSampling or None, got 0.5"),
        ((gaussian_privacy(1.0), 1, SMALL_SAMPLE), "sampling of part 2 must be left out in the local trust model"),
    ],
)
def test_bad_parts_are_named(part: tuple[Privacy, int, Sampling | None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compose([(pure_privacy(0.1), 1, None), part])
    with pytest.raises(ValueError, match="parts must be from 1 to 1000, got 0"):
        compose([])


def test_a_report_takes_no_sampling() -> None:
    for parts in ([(gaussian_privacy(1.0, ADD, "central"), 1, None)], [(gaussian_privacy(z, ADD, "central"), 1, None) for z in (1.0, 2.0)]):
        with pytest.raises(ValueError, match="sampling must be left out of a composition's report"):
            compose(parts).report(DELTA, sampling=SMALL_SAMPLE)


def test_real_numbers_of_a_part_are_stated() -> None:
    real = Privacy("central", gaussian_privacy(1.0, REPLACE, "central").accounts, allow_real_numbers=True)
    assert "real numbers only" in str(compose([(real, 1, None), (pure_privacy(0.1), 1, None)]).guarantee(DELTA))


def test_noise_far_from_gaussian_noise_is_composed_by_its_epsilon() -> None:
    noise = BinomialNoise(trials=20, probability=0.5, scale=1.0, dimension=1, l1=1.0, l2=1.0, linf=1.0).privacy()
    composed = compose([(noise, 1, None), (pure_privacy(0.2), 1, None)]).report(1e-3)
    assert math.isfinite(composed.account("pld").bound.epsilon)
    assert noise.epsilon(1e-3) < composed.epsilon <= noise.epsilon(5e-4) + 0.2 + 1e-9


def test_losses_too_large_have_a_reason() -> None:
    parts = [(gaussian_privacy(0.001), 1000, None), (pure_privacy(0.2), 1, None)]
    composed = compose(parts).report(1e-9)
    assert composed.account("pld").bound.reason == "the privacy losses are too expensive to convolve, or too large for delta"
    assert compose([(gaussian_privacy(1.0), 1, None), (pure_privacy(0.2), 1, None)]).report(1e-250).account("pld").bound.reason == (
        "delta must be at least 1e-200 to convolve privacy losses"
    )


def test_many_parts_are_convolved() -> None:
    gaussian = [(gaussian_privacy(50.0 + number), 1, None) for number in range(500)]
    together = 1 / math.sqrt(sum(1 / (50.0 + number) ** 2 for number in range(500)))
    assert compose(gaussian).epsilon(DELTA, account="pld") == pytest.approx(gaussian_epsilon(together, DELTA), rel=1e-8)
    # More parts of nearly Gaussian noise than are replaced one inside the other.
    sums = [(distributed_skellam_privacy(1000, 16, 1.0, 0.3 + number / 1000, 0.001, REPLACE), 1, None) for number in range(60)]
    composed = compose(sums).report(DELTA)
    assert composed.account("rdp").bound.epsilon < composed.account("pld").bound.epsilon < composed.account("basic").bound.epsilon
    few = compose(sums[:20]).report(DELTA)
    assert few.account("pld").bound.epsilon < few.account("rdp").bound.epsilon


def test_sampled_losses_that_are_too_expensive_are_replaced_by_epsilon() -> None:
    # More rounds than privacy losses are composed for.
    privacy, rounds, sampling = gaussian_privacy(5.0, ADD, "central"), 30_000, PoissonSampling(0.001)
    losses = privacy.account("pld").losses
    assert losses is not None
    assert losses(DELTA, rounds, sampling) is None
    composed = compose([(privacy, rounds, sampling), (laplace_privacy(0.2, adjacency=ADD), 1, None)]).report(DELTA)
    own = privacy.epsilon(DELTA, ADD, rounds, sampling)
    assert own < composed.account("pld").bound.epsilon < own + 0.25


def uneven_privacy(first: np.ndarray, second: np.ndarray) -> Privacy:
    """Return the account of a mechanism with two laws, whose losses differ between the directions; any client may have either input."""
    pairs = [(first, second), (second, first)]
    forth, back = (losses_of_masses(np.log(mass / other), mass) for mass, other in pairs)

    def bound(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        assert (rounds, sampling) == (1, None)
        if delta == 0:
            return EpsilonBound.nothing("a delta is needed")
        return EpsilonBound(max(forth.epsilon(delta), back.epsilon(delta)))

    account = Account("pld", REPLACE, bound, losses=lambda *_: LossPair(forth, back))
    return Privacy("local", (account,))


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.3])
def test_a_client_may_take_another_direction_in_each_part(delta: float) -> None:
    """Under replace-one adjacency the inputs of the parts are independent: one part may go forth where the other goes back."""
    first, second = np.array([0.6, 0.4 - 1e-3, 1e-3]), np.array([0.2, 0.5, 0.3])
    epsilon = compose([(uneven_privacy(first, second), 1, None), (uneven_privacy(first, second), 1, None)]).epsilon(delta, REPLACE)
    for one, other in itertools.product(((first, second), (second, first)), repeat=2):
        masses, others = np.outer(one[0], other[0]).ravel(), np.outer(one[1], other[1]).ravel()
        assert np.maximum(masses - math.exp(epsilon) * others, 0).sum() <= delta * (1 + 1e-9)
