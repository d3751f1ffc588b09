"""Accounts of cpSGD over rounds, and its calibration to a number of bits.

The tests run against other algorithms and enumeration.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

import quietbits
from quietbits.analysis.catalogue.accounts import account, calibrate
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.registry import AccountReport
from quietbits.design.contracts.task import Budget
from quietbits.design.secure_sum.cpsgd import CLOSE, CpsgdMechanism, calibrate_cpsgd
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.accounting.sampling import FixedSizeSampling, likely_participations

MECHANISM = CpsgdMechanism(NormBall(100, 2.0, 3.0), clients=1000, levels=33, trials=2000, delta=1e-5, rotated=True)


def accounted(mechanism: CpsgdMechanism, rounds: int = 1) -> AccountReport:
    named = {name: getattr(mechanism, name) for name in ("clients", "levels", "trials", "probability", "rotated", "delta")}
    ball = mechanism.ball
    return account("cpsgd", dimension=ball.dimension, clip=ball.clip_norm, rounds=rounds, adjacency=mechanism.adjacency, **named)


def theorem(mechanism: CpsgdMechanism, rounds: int) -> float:
    return mechanism.privacy().report(mechanism.delta, rounds=rounds).epsilon_by("theorem-1")


def test_one_round_is_what_the_mechanism_says() -> None:
    report = accounted(MECHANISM)
    result, near = MECHANISM.renyi_epsilon(1e-5), MECHANISM.gaussian_epsilon(1e-5)
    assert result is not None
    assert near is not None
    assert report.epsilon_by("theorem-1") == MECHANISM.theorem_epsilon(1e-5)
    by_divergences = report.privacy.account("rdp").bound
    assert (by_divergences.epsilon, by_divergences.order) == (result.epsilon, result.order)
    assert report.epsilon_by("near-gaussian") == near
    assert report.epsilon == MECHANISM.guarantee.epsilon == min(result.epsilon, near)
    details = report.subject.details
    assert (details["padded_dimension"], details["dimension"]) == (128, 100)
    assert details["modulus"] == 1000 * 2032 + 1
    # The bits count per coordinate of the vector, including padded coordinates.
    assert details["bits_per_coordinate"] == 128 * math.log2(1000 * 2032 + 1) / 100
    assert details["bits_before_aggregation"] == math.log2(2033)
    assert details["worst_squared_error"] <= details["squared_error_bound"]


def test_the_gaussian_reference_is_that_of_the_same_promise() -> None:
    report = accounted(MECHANISM)
    reference = central_gaussian_error(MECHANISM.ball, 1000, report.epsilon, 1e-5, "replace-one")
    assert report.central_squared_error == report.document()["squared_error_gaussian"] == reference
    assert report.subject.details["worst_squared_error"] > reference
    # Seven rounds of Gaussian noise are one round with a seventh of the variance.
    rounds = accounted(MECHANISM, 7)
    single = central_gaussian_error(MECHANISM.ball, 1000, rounds.epsilon, 1e-5, "replace-one")
    assert rounds.central_squared_error == pytest.approx(7 * single)
    assert accounted(dataclasses.replace(MECHANISM, trials=10**11)).central_squared_error is None


def test_rounds_of_the_theorem_are_composed() -> None:
    single = MECHANISM.theorem_epsilon(1e-5 / 40)
    assert theorem(MECHANISM, 20) == composed_pure_epsilon(single, 20, 5e-6) < 20 * single
    # For this number of rounds, the account adds up the epsilons.
    assert theorem(MECHANISM, 10**7) == 10**7 * MECHANISM.theorem_epsilon(1e-5 / (2 * 10**7))


def test_rounds_of_renyi_divergences_add_up() -> None:
    # The large noise is nearly Gaussian of the same variance, whose rounds have a known epsilon.
    mechanism = CpsgdMechanism(NormBall(4, 2.0), clients=1000, levels=2**12 + 1, trials=10**9, delta=1e-6)
    report = mechanism.privacy().report(1e-6, rounds=50)
    multiplier = math.sqrt(1000 * 10**9) / 2 / 2**12
    orders = DEFAULT_ORDERS[:-1]
    gaussian = RenyiCurve(orders, [order / (2 * multiplier**2) for order in orders]).composed(50).epsilon(1e-6)
    assert gaussian.epsilon < report.epsilon_by("rdp") < 1.02 * gaussian.epsilon
    # Without orders, the account is that of the Gaussian noise itself.
    exact = gaussian_epsilon(multiplier / math.sqrt(50), 1e-6)
    assert exact < report.epsilon_by("near-gaussian") < 1.02 * exact < report.epsilon_by("rdp")


def test_where_the_theorem_does_not_hold_the_account_says_why() -> None:
    report = accounted(CpsgdMechanism(NormBall(4, 2.0), clients=100, levels=3, trials=14, delta=1e-5))
    result = report.privacy.account("theorem-1").bound
    assert math.isinf(result.epsilon)
    assert result.reason is not None
    assert result.reason.startswith("trials must be at least ")
    assert result.reason.endswith("got 1400")
    assert report.epsilon == report.epsilon_by("rdp")


def test_uneven_trials_have_less_epsilon_by_divergences() -> None:
    report = accounted(dataclasses.replace(MECHANISM, probability=0.1))
    assert math.isfinite(report.epsilon_by("theorem-1"))
    assert report.epsilon == report.epsilon_by("rdp") < report.epsilon_by("near-gaussian") / 1.2
    # The rounded vectors of the account are those of the comparison with Gaussian noise.
    fair = accounted(dataclasses.replace(MECHANISM, probability=0.5, trials=round(MECHANISM.trials * 0.36)))
    assert 0.98 < report.epsilon / fair.epsilon < 1.25


def test_no_account_at_all_is_an_error() -> None:
    with pytest.raises(InfeasibleError, match=r"trials must be at least \d+ for Theorem 1 of cpSGD to hold"):
        accounted(CpsgdMechanism(NormBall(4, 2.0), clients=2, levels=3, trials=4, delta=1e-5))
    with pytest.raises(ValueError, match=r"rounds must be a whole number from 1 to .*, got 0"):
        accounted(MECHANISM, 0)


@pytest.mark.parametrize("rounds", [1, 100])
def test_sampled_rounds_are_those_of_the_same_mechanism(rounds: int) -> None:
    # The end of the levels of rotated vectors depends on the mechanism's delta, not on that of one sampled round.
    mechanism = CpsgdMechanism(NormBall(1024, 2.0), 1000, 33, 20_000, 1e-5, rotated=True)
    report = mechanism.privacy().report(1e-5, rounds=rounds, sampling=FixedSizeSampling(1000, 500))
    delta = 1e-5 / 0.5 if rounds == 1 else 1e-5 / (2 * rounds) / 0.5
    everyone = {"theorem-1": mechanism.theorem_epsilon(delta), "near-gaussian": mechanism.gaussian_epsilon(delta)}
    for name, epsilon in everyone.items():
        single = math.log1p(0.5 * math.expm1(epsilon))
        expected = single if rounds == 1 else composed_pure_epsilon(single, rounds, 5e-6)
        # Accounts of the rounds in which the client takes part hold for a sample, too.
        own = mechanism.privacy().account(name).bound(5e-6, likely_participations(0.5, rounds, 5e-6), None).epsilon
        assert report.epsilon_by(name) == pytest.approx(min(expected, own), rel=1e-9)
    if rounds > 1:
        few = likely_participations(0.5, rounds, 5e-6)
        assert report.epsilon_by("rdp") == mechanism.privacy().report(5e-6, rounds=few).epsilon_by("rdp")


def test_sampled_rounds_that_only_renyi_divergences_account_for() -> None:
    few = CpsgdMechanism(NormBall(4, 2.0), 100, 2, 8, 1e-4).privacy()
    sampling = FixedSizeSampling(100, 50)
    assert math.isinf(few.report(1e-4, sampling=sampling).epsilon_by("near-gaussian"))
    assert few.report(1e-4, rounds=2, sampling=sampling).epsilon == few.report(1e-4, rounds=2).epsilon < math.inf


@pytest.mark.parametrize(
    ("clients", "dimension", "bits", "epsilon", "rotated", "method", "adjacency"),
    [
        (20, 4, 9, 3.0, False, None, "replace-one"),
        (100, 16, 12, 3.0, True, "rdp", "add-or-remove-one"),
        (1000, 8, 14, 3.0, False, None, "replace-one"),
        (1000, 8, 15, 3.0, False, "near-gaussian", "replace-one"),
        (50, 6, 16, 2.0, True, "theorem-1", "replace-one"),
        (300, 6, 16, 4.0, False, "theorem-1", "add-or-remove-one"),
    ],
)
def test_no_other_levels_and_trials_have_a_smaller_error(
    clients: int, dimension: int, bits: int, epsilon: float, rotated: bool, method: str | None, adjacency: str
) -> None:
    budget = Budget(epsilon, 1e-3, adjacency, method=method)
    mechanism = calibrate_cpsgd(NormBall(dimension, 2.0, 2.0), clients, bits, budget, rotated=rotated)
    assert mechanism.modulus <= 2**bits

    def keeps(candidate: CpsgdMechanism) -> bool:
        if method == "theorem-1":
            try:
                return candidate.theorem_epsilon(1e-3) <= epsilon
            except InfeasibleError:
                return False
        by_divergences, near = candidate.renyi_epsilon(1e-3), candidate.gaussian_epsilon(1e-3)
        reached = {
            "rdp": math.inf if by_divergences is None else by_divergences.epsilon,
            "near-gaussian": math.inf if near is None else near,
        }
        # The default is the smaller of the proven bounds, without the theorem.
        return (min(reached.values()) if method is None else reached[method]) <= epsilon

    assert keeps(mechanism)
    # The test tries all numbers of trials, each with as many levels as guarantee and bits allow, since more levels have less error.
    room = (2**bits - 1) // clients
    levels, least = 1, math.inf
    for trials in range(1, room):
        while levels < room - trials + 1 and keeps(dataclasses.replace(mechanism, levels=levels + 1, trials=trials)):
            levels += 1
        fitting = min(levels, room - trials + 1)
        if fitting >= 2:
            least = min(least, dataclasses.replace(mechanism, levels=fitting, trials=trials).variance_bound)
    assert mechanism.variance_bound == least


def calibrated(clients: int, dimension: int, bits: int | None, budget: Budget, **how: Any) -> CpsgdMechanism:
    return calibrate_cpsgd(NormBall(dimension, 2.0), clients, bits, budget, **how)


def test_more_bits_are_never_worse_and_without_a_number_they_are_as_few_as_are_good() -> None:
    budget = Budget(1.0, 1e-5, "replace-one", method="theorem-1")
    chosen = calibrated(100, 32, None, budget)
    bits = (chosen.modulus - 1).bit_length()
    errors = [calibrated(100, 32, width, budget).variance_bound for width in (bits - 1, bits, bits + 1, 55)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > CLOSE * errors[-1] >= errors[1] == chosen.variance_bound


def test_what_is_proven_needs_less_noise_than_the_theorem() -> None:
    published, proven = (calibrated(1000, 256, 20, Budget(1.0, 1e-5, "replace-one", method=method)) for method in ("theorem-1", None))
    assert published.theorem_epsilon(1e-5) <= 1.0
    assert proven.guarantee.epsilon <= 1.0
    assert proven.variance_bound < published.variance_bound / 2


def test_calibrate_says_which_parameters_it_found() -> None:
    result = calibrate("cpsgd", epsilon=1.0, delta=1e-5, clients=1000, dimension=256, bits=20, method="near-gaussian")
    mechanism = calibrated(1000, 256, 20, Budget(1.0, 1e-5, "replace-one", method="near-gaussian"))
    assert (result["levels"], result["trials"], result["rotated"]) == (mechanism.levels, mechanism.trials, True)
    assert result["bits"] <= 20
    assert result.report.epsilon_by("near-gaussian") == mechanism.gaussian_epsilon(1e-5)
    assert (result.document()["target_epsilon"], result.document()["target_method"]) == (1.0, "near-gaussian")


def test_rounds_and_a_seed_are_passed_on() -> None:
    mechanism = calibrated(1000, 6, 24, Budget(1.0, 1e-5, "replace-one", rounds=10), rotation_seed=7)
    assert mechanism.rotation_seed == 7
    assert 0.99 < mechanism.privacy().epsilon(1e-5, rounds=10) <= 1.0


def test_the_adjacency_of_the_budget_is_that_of_the_mechanism() -> None:
    replaced, added = (calibrated(1000, 6, 24, Budget(1.0, 1e-5, adjacency)) for adjacency in ("replace-one", "add-or-remove-one"))
    assert (replaced.adjacency, added.adjacency) == ("replace-one", "add-or-remove-one")
    # Neighbours are half as far apart, so a quarter of the noise suffices.
    assert added.variance_bound < 0.3 * replaced.variance_bound


def test_the_rotation_has_the_first_seed_unless_another_is_given() -> None:
    assert calibrated(1000, 6, 24, Budget(1.0, 1e-5, "replace-one")).rotation_seed == 0


def test_sums_fit_into_the_bits() -> None:
    # With a step more of each of 64 clients the largest sum would be 2**10, and levels and trials would be better.
    assert calibrate_cpsgd(NormBall(6, 2.0), 64, 10, Budget(3.0, 1e-5, "replace-one")).modulus <= 2**10


def test_too_few_bits_are_refused_with_how_many_are_enough() -> None:
    message = (
        r"bits must be at least (\d+) for 1000 clients to reach epsilon = 1 at delta = 1e-05 in 64 dimensions, got 10: 2 levels need \d+"
    )
    with pytest.raises(InfeasibleError, match=message) as refused:
        calibrated(1000, 64, 10, Budget(1.0, 1e-5, "replace-one"))
    enough = int(str(refused.value).split()[5])
    assert calibrated(1000, 64, enough, Budget(1.0, 1e-5, "replace-one")).modulus <= 2**enough
    with pytest.raises(InfeasibleError, match=f"bits must be at least {enough} "):
        calibrated(1000, 64, enough - 1, Budget(1.0, 1e-5, "replace-one"))


@pytest.mark.parametrize(("bits", "levels", "trials"), [(11, 2, 1), (12, 3, 2)])
def test_a_trial_of_each_of_many_clients_may_suffice_for_two_levels_alone(bits: int, levels: int, trials: int) -> None:
    # A thousand trials hide two levels: 11 bits hold their sum. Three levels need two trials of each.
    mechanism = calibrated(1000, 1, bits, Budget(0.4, 1e-5, "replace-one"), rotated=False)
    assert (mechanism.levels, mechanism.trials) == (levels, trials)
    assert mechanism.guarantee.epsilon <= 0.4 < dataclasses.replace(mechanism, levels=3, trials=1).guarantee.epsilon


def test_a_sum_that_reaches_a_power_of_two_needs_another_bit() -> None:
    # The sum of 1024 clients is at most 1024 * (1 + 1) = 2**11.
    budget = Budget(0.4, 1e-5, "replace-one")
    with pytest.raises(InfeasibleError, match="bits must be at least 12 for 1024 clients"):
        calibrated(1024, 1, 11, budget, rotated=False)
    assert calibrated(1024, 1, 12, budget, rotated=False).guarantee.epsilon <= 0.4


def test_what_no_noise_can_give_is_refused() -> None:
    with pytest.raises(
        InfeasibleError, match="epsilon or delta must be larger: not even 1000000 trials of each client give 1e-05 at delta"
    ):
        calibrated(10**9, 2**20, 55, Budget(1e-5, 1e-9, "replace-one"))


@pytest.mark.parametrize(
    ("changes", "budget", "message"),
    [
        ({"clients": 0}, {}, "clients must be a whole number from 1 to 1000000000, got 0"),
        ({"bits": 56}, {}, "bits must be a whole number from 1 to 55, got 56"),
        ({}, {"epsilon": 0.0}, "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        ({}, {"delta": 1.0}, "delta must be a number from 0 to below 1, got 1.0"),
        ({}, {"rounds": 0}, "rounds must be a whole number from 1 to .*, got 0"),
        ({}, {"method": "exact"}, "method must be one of near-gaussian, rdp, theorem-1, got 'exact'"),
        ({}, {"adjacency": "both"}, "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        ({"rotation_seed": -1}, {}, "seed must be a whole number from 0 to .*, got -1"),
    ],
)
def test_arguments_out_of_range_are_refused(changes: dict[str, Any], budget: dict[str, Any], message: str) -> None:
    arguments = {"clients": 10, "dimension": 4, "bits": 20} | changes
    with pytest.raises(ValueError, match=message):
        calibrated(budget=Budget(**({"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"} | budget)), **arguments)


DOCUMENTATION = Path(quietbits.__file__).parent / "docs" / "explanations" / "cpsgd.md"


def test_the_example_of_the_documentation() -> None:
    example = DOCUMENTATION.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert "calibrate_cpsgd(" in example
    exec(example, {})  # noqa: S102 - the example is the project's own


def test_the_table_of_the_documentation() -> None:
    lines = DOCUMENTATION.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ") and line[2].isdigit()]
    # The rows of bits have three columns; another table has rows of epsilon, delta and trials.
    rows = [row for row in rows if len(row) == 3]
    assert len(rows) == 4
    for bits, *cells in rows:
        for method, cell in zip(("theorem-1", None), cells, strict=True):
            budget = Budget(1.0, 1e-5, "replace-one", method=method)
            if cell.startswith("needs"):
                with pytest.raises(InfeasibleError, match=f"bits must be at least {cell.split()[1]} "):
                    calibrated(1000, 1024, int(bits), budget)
                continue
            result = calibrated(1000, 1024, int(bits), budget)
            assert cell == f"{result.levels}, {result.trials}, {result.variance_bound / 1000:.4f}"
