"""Accounts of cpSGD over rounds, and its calibration to a number of bits: against other algorithms, and against all pairs there are."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

import quietbits
from quietbits.analysis.accounting.cpsgd import cpsgd_account, theorem_epsilon
from quietbits.analysis.calibration.cpsgd import CLOSE, calibrate_cpsgd
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.cpsgd_parameters import CpsgdParameters
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve

PARAMETERS = CpsgdParameters(NormBall(100, 2.0, 3.0), clients=1000, levels=33, trials=2000, delta=1e-5, rotated=True)


def test_one_round_is_what_the_mechanism_says() -> None:
    account = cpsgd_account(PARAMETERS)
    found = PARAMETERS.renyi_epsilon(1e-5)
    assert found is not None
    assert account.epsilon == PARAMETERS.theorem_epsilon(1e-5)
    assert (account.epsilon_rdp, account.order) == (found.epsilon, found.order)
    assert account.epsilon_gaussian == PARAMETERS.gaussian_epsilon(1e-5)
    assert account.epsilon_gaussian is not None
    assert account.smallest_epsilon == PARAMETERS.guarantee.epsilon == min(account.epsilon, found.epsilon, account.epsilon_gaussian)
    assert account.epsilon_reason is None
    assert (account.padded_dimension, account.dimension) == (128, 100)
    assert account.bits_per_coordinate == math.log2(1000 * 2032 + 1)
    assert account.bits_before_aggregation == math.log2(2033)
    assert account.squared_error <= account.squared_error_bound
    assert account.document().keys() == {field.name for field in dataclasses.fields(account)}


def test_the_gaussian_reference_is_that_of_the_same_promise() -> None:
    account = cpsgd_account(PARAMETERS)
    reference = central_gaussian_error(PARAMETERS.ball, 1000, account.smallest_epsilon, 1e-5, "replace-one")
    assert account.squared_error_gaussian == reference
    assert account.squared_error > reference
    # Rounds of Gaussian noise are one round with that many times less variance.
    rounds = cpsgd_account(PARAMETERS, 7)
    single = central_gaussian_error(PARAMETERS.ball, 1000, rounds.smallest_epsilon, 1e-5, "replace-one")
    assert rounds.squared_error_gaussian == pytest.approx(7 * single)
    assert cpsgd_account(dataclasses.replace(PARAMETERS, trials=10**11)).squared_error_gaussian is None


def test_rounds_of_the_theorem_are_composed() -> None:
    single = PARAMETERS.theorem_epsilon(1e-5 / 40)
    assert theorem_epsilon(PARAMETERS, 20) == composed_pure_epsilon(single, 20, 5e-6) < 20 * single
    # So many rounds are added up.
    many = theorem_epsilon(PARAMETERS, 10**7)
    assert many == 10**7 * PARAMETERS.theorem_epsilon(1e-5 / (2 * 10**7))


def test_rounds_of_renyi_divergences_add_up() -> None:
    # Much noise: nearly that of Gaussian noise of the same variance, whose rounds are known.
    parameters = CpsgdParameters(NormBall(4, 2.0), clients=1000, levels=2**12 + 1, trials=10**9, delta=1e-6)
    account = cpsgd_account(parameters, 50)
    multiplier = math.sqrt(1000 * 10**9) / 2 / 2**12
    orders = DEFAULT_ORDERS[:-1]
    gaussian = RenyiCurve(orders, [order / (2 * multiplier**2) for order in orders]).composed(50).epsilon(1e-6)
    assert account.epsilon_rdp is not None
    assert gaussian.epsilon < account.epsilon_rdp < 1.02 * gaussian.epsilon
    # Without orders, it is the Gaussian noise itself.
    exact = gaussian_epsilon(multiplier / math.sqrt(50), 1e-6)
    assert account.epsilon_gaussian is not None
    assert exact < account.epsilon_gaussian < 1.02 * exact < account.epsilon_rdp


def test_where_the_theorem_does_not_hold_the_account_says_why() -> None:
    account = cpsgd_account(CpsgdParameters(NormBall(4, 2.0), clients=100, levels=3, trials=14, delta=1e-5))
    assert account.epsilon is None
    assert account.epsilon_reason is not None
    assert account.epsilon_reason.startswith("trials must be at least ")
    assert account.epsilon_reason.endswith("got 1400")
    assert account.smallest_epsilon == account.epsilon_rdp


def test_without_fair_trials_there_are_no_renyi_divergences() -> None:
    account = cpsgd_account(dataclasses.replace(PARAMETERS, probability=0.3))
    assert (account.epsilon_rdp, account.order) == (None, None)
    assert account.epsilon is not None
    assert account.epsilon_gaussian is not None
    assert account.smallest_epsilon == min(account.epsilon, account.epsilon_gaussian)


def test_no_account_at_all_is_an_error() -> None:
    with pytest.raises(InfeasibleError, match=r"trials must be at least \d+ for Theorem 1 of cpSGD to hold"):
        cpsgd_account(CpsgdParameters(NormBall(4, 2.0), clients=2, levels=3, trials=4, delta=1e-5))
    with pytest.raises(ValueError, match=r"rounds must be a whole number from 1 to .*, got 0"):
        cpsgd_account(PARAMETERS, 0)


@pytest.mark.parametrize(
    ("clients", "dimension", "bits", "epsilon", "rotated", "account", "adjacency"),
    [
        (20, 4, 9, 3.0, False, "smallest", "replace-one"),
        (100, 16, 12, 3.0, True, "rdp", "add-or-remove-one"),
        (1000, 8, 14, 3.0, False, "smallest", "replace-one"),
        (1000, 8, 15, 3.0, False, "gaussian", "replace-one"),
        (50, 6, 16, 2.0, True, "theorem", "replace-one"),
        (300, 6, 16, 4.0, False, "theorem", "add-or-remove-one"),
    ],
)
def test_no_other_levels_and_trials_have_a_smaller_error(
    clients: int, dimension: int, bits: int, epsilon: float, rotated: bool, account: str, adjacency: str
) -> None:
    found = calibrate_cpsgd(clients, dimension, 2.0, bits, epsilon, 1e-3, rotated=rotated, account=account, adjacency=adjacency)
    mechanism = found.mechanism
    assert mechanism.modulus <= 2**bits

    def keeps(candidate: CpsgdMechanism) -> bool:
        reached = [math.inf]
        if account in ("smallest", "theorem"):
            try:
                reached.append(candidate.theorem_epsilon(1e-3))
            except InfeasibleError:
                reached.append(math.inf)
        if account in ("smallest", "rdp"):
            curve = candidate.renyi_epsilon(1e-3)
            reached.append(math.inf if curve is None else curve.epsilon)
        if account in ("smallest", "gaussian"):
            gaussian = candidate.gaussian_epsilon(1e-3)
            reached.append(math.inf if gaussian is None else gaussian)
        return min(reached) <= epsilon

    assert keeps(mechanism)
    # All numbers of trials, each with as many levels as the promise and the bits allow: more levels have less error.
    room = (2**bits - 1) // clients
    levels, least = 1, math.inf
    for trials in range(1, room):
        while levels < room - trials + 1 and keeps(dataclasses.replace(mechanism, levels=levels + 1, trials=trials)):
            levels += 1
        fitting = min(levels, room - trials + 1)
        if fitting >= 2:
            least = min(least, dataclasses.replace(mechanism, levels=fitting, trials=trials).worst_variance)
    assert mechanism.worst_variance == least


def test_more_bits_are_never_worse_and_without_a_number_they_are_as_few_as_will_do() -> None:
    def error(bits: int | None) -> float:
        return calibrate_cpsgd(100, 32, 1.0, bits, 1.0, 1e-5, account="theorem").account.squared_error

    chosen = calibrate_cpsgd(100, 32, 1.0, None, 1.0, 1e-5, account="theorem")
    errors = [error(bits) for bits in (chosen.bits - 1, chosen.bits, chosen.bits + 1, 55)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > CLOSE * errors[-1] >= errors[1] == chosen.account.squared_error
    assert chosen.account.bits_per_coordinate <= chosen.bits


def test_the_smallest_account_needs_less_noise_than_the_theorem() -> None:
    published, smallest = (calibrate_cpsgd(1000, 256, 1.0, 20, 1.0, 1e-5, account=account) for account in ("theorem", "smallest"))
    assert published.account.epsilon is not None
    assert published.account.epsilon <= 1.0
    assert smallest.account.smallest_epsilon <= 1.0
    assert smallest.account.squared_error < published.account.squared_error / 2
    assert smallest.document()["method"] == "smallest"
    assert smallest.document()["target_epsilon"] == 1.0


def test_rounds_and_a_seed_are_passed_on() -> None:
    found = calibrate_cpsgd(1000, 6, 1.0, 24, 1.0, 1e-5, 10, rotation_seed=7)
    assert found.mechanism.rotation_seed == 7
    assert found.account.rounds == 10
    assert 0.99 < found.account.smallest_epsilon <= 1.0


def test_too_few_bits_are_refused_with_how_many_would_do() -> None:
    message = (
        r"bits must be at least (\d+) for 1000 clients to reach epsilon = 1 at delta = 1e-05 in 64 dimensions, got 10: 2 levels need \d+"
    )
    with pytest.raises(InfeasibleError, match=message) as refused:
        calibrate_cpsgd(1000, 64, 1.0, 10, 1.0, 1e-5)
    enough = int(str(refused.value).split()[5])
    assert calibrate_cpsgd(1000, 64, 1.0, enough, 1.0, 1e-5).mechanism.modulus <= 2**enough
    with pytest.raises(InfeasibleError, match=f"bits must be at least {enough} "):
        calibrate_cpsgd(1000, 64, 1.0, enough - 1, 1.0, 1e-5)


def test_what_no_noise_can_give_is_refused() -> None:
    with pytest.raises(
        InfeasibleError, match="epsilon or delta must be larger: not even 1000000 trials of each client give 1e-05 at delta"
    ):
        calibrate_cpsgd(10**9, 2**20, 1.0, 55, 1e-5, 1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients must be a whole number from 1 to 1000000000, got 0"),
        ({"dimension": 0}, "dimension must be a whole number from 1 to .*, got 0"),
        ({"clip_norm": 0.0}, "clip_norm must be a number from .*, got 0.0"),
        ({"bits": 56}, "bits must be a whole number from 1 to 55, got 56"),
        ({"epsilon": 0.0}, "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        ({"delta": 1.0}, "delta must be a number above 0 and below 1, got 1.0"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to .*, got 0"),
        ({"account": "exact"}, "account must be one of smallest, theorem, rdp, gaussian, got 'exact'"),
        ({"adjacency": "both"}, "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        ({"rotation_seed": -1}, "seed must be a whole number from 0 to .*, got -1"),
    ],
)
def test_arguments_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {"clients": 10, "dimension": 4, "clip_norm": 1.0, "bits": 20, "epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(ValueError, match=message):
        calibrate_cpsgd(**(arguments | changes))


def test_the_example_and_the_table_of_the_documentation() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "cpsgd.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    assert "calibrate_cpsgd(" in example
    exec(example, {})  # noqa: S102 - the example is the project's own
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert len(rows) == 4
    for bits, *cells in rows:
        for account, cell in zip(("theorem", "smallest"), cells, strict=True):
            if cell.startswith("needs"):
                with pytest.raises(InfeasibleError, match=f"bits must be at least {cell.split()[1]} "):
                    calibrate_cpsgd(1000, 1024, 1.0, int(bits), 1.0, 1e-5, account=account)
                continue
            found = calibrate_cpsgd(1000, 1024, 1.0, int(bits), 1.0, 1e-5, account=account)
            assert cell == f"{found.mechanism.levels}, {found.mechanism.trials}, {found.account.squared_error:.4f}"
