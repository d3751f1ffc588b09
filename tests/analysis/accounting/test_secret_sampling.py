"""Sampled rounds of any mechanism: the published bounds against enumeration, against dp-accounting, and in accounts."""

import itertools
import json
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from quietbits.analysis.accounting.binomial import binomial_account
from quietbits.analysis.accounting.cpsgd import cpsgd_account
from quietbits.analysis.accounting.discrete_gaussian import calibrate_discrete_gaussian, discrete_gaussian_accounting
from quietbits.analysis.accounting.distributed_skellam import calibrate_distributed_skellam, distributed_skellam_accounting
from quietbits.analysis.accounting.mechanism_accounting import pure_accounting
from quietbits.analysis.accounting.poisson_binomial import calibrate_poisson_binomial, poisson_binomial_accounting
from quietbits.analysis.accounting.secret_sampling import with_secret_sampling
from quietbits.analysis.accounting.subsampling import FixedSizeSampling, PoissonSampling
from quietbits.analysis.calibration.binomial import calibrate_binomial
from quietbits.cli.main import app
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.cpsgd_parameters import CpsgdParameters
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.pure_composition import composed_pure_epsilon
from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.sampled_renyi import fixed_size_sampled_curve, poisson_sampled_curve

ORDERS = np.arange(2.0, 41.0)


def divergence(own: np.ndarray, other: np.ndarray, order: float) -> float:
    if math.isinf(order):
        return float(np.log(own / other).max())
    return math.log(float((own**order * other ** (1 - order)).sum())) / (order - 1)


def curve_of(pairs: list[tuple[np.ndarray, np.ndarray]]) -> RenyiCurve:
    """Largest divergence of the pairs, either way, at whole orders and at infinity."""
    both = pairs + [(other, own) for own, other in pairs]
    orders = [*ORDERS, math.inf]
    return RenyiCurve(np.array(orders), np.array([max(max(divergence(*pair, order), 0.0) for pair in both) for order in orders]))


def rows(seed: int, number: int, contrast: float) -> list[np.ndarray]:
    weights = np.exp(contrast * np.random.default_rng(seed).normal(size=(number, 4)))
    return list(weights / weights.sum(axis=1, keepdims=True))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), contrast=st.sampled_from([0.01, 0.3, 1.0, 3.0]), rate=st.sampled_from([0.001, 0.05, 0.4, 0.95]))
def test_poisson_sampling_by_enumeration(seed: int, contrast: float, rate: float) -> None:
    without, with_it = rows(seed, 2, contrast)
    bound = poisson_sampled_curve(curve_of([(without, with_it)]), rate)
    mixed = (1 - rate) * without + rate * with_it
    for order, found in zip(bound.orders, bound.divergences, strict=True):
        truth = max(divergence(mixed, without, order), divergence(without, mixed, order))
        assert truth <= found * (1 + 1e-9) + 1e-14


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), contrast=st.sampled_from([0.01, 0.3, 1.0, 3.0]), size=st.sampled_from([2, 3, 10]))
def test_sampling_one_of_several_by_enumeration(seed: int, contrast: float, size: int) -> None:
    table = rows(seed, 3, contrast)
    bound = fixed_size_sampled_curve(curve_of(list(itertools.combinations(table, 2))), 1 / size)
    # The others hold any values, up to their order: here all alike, or as mixed as three values can be.
    for others in [*([row] * (size - 1) for row in table), [table[k % 3] for k in range(size - 1)]]:
        for own, other in itertools.permutations(table, 2):
            first, second = (np.mean([*others, last], axis=0) for last in (own, other))
            for order, found in zip(bound.orders, bound.divergences, strict=True):
                assert divergence(first, second, order) <= found * (1 + 1e-9) + 1e-14


def test_for_gaussian_noise_the_bound_is_above_dp_accountings() -> None:
    curve = RenyiCurve(np.arange(2.0, 257.0), np.arange(2.0, 257.0) / 8)
    bound = poisson_sampled_curve(curve, 0.01)
    accountant = RdpAccountant(bound.orders.tolist())
    accountant.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)))
    ratio = bound.divergences / accountant.rdp
    # At order 2 both are ln(1 + q^2 (e^r(2) - 1)).
    assert ratio[0] == pytest.approx(1.0, abs=1e-9)
    assert np.all(ratio >= 1 - 1e-9)
    assert ratio[-1] < 1.01


def test_a_bound_is_never_above_the_curve_of_everyone() -> None:
    curve = RenyiCurve(np.array([2.0, 2.5, 8.0]), np.array([1.0, 1.2, 1.5]))
    for sampled in (poisson_sampled_curve(curve, 0.9), fixed_size_sampled_curve(curve, 0.9)):
        assert sampled.orders.tolist() == [2, 3, 4, 5, 6, 7, 8]
        # Cumulants between orders are taken from chords: 5 lies 2.5 of 5.5 of the way from 2.5 to 8.
        assert sampled.divergences[3] <= (1.8 + 2.5 / 5.5 * (10.5 - 1.8)) / 4 + 1e-12
    assert poisson_sampled_curve(curve, 1.0) is curve
    assert fixed_size_sampled_curve(curve, 1.0) is curve


def test_large_divergences_do_not_overflow() -> None:
    curve = RenyiCurve(np.array([2.0, 100.0, math.inf]), np.array([500.0, 900.0, 2000.0]))
    for sampled in (poisson_sampled_curve(curve, 0.01), fixed_size_sampled_curve(curve, 0.01)):
        assert np.all(np.isfinite(sampled.divergences))
        assert sampled.divergences[0] == pytest.approx(500 + 2 * math.log(0.01), abs=1.5)


def test_sampling_of_poisson_binomial_noise() -> None:
    everyone = poisson_binomial_accounting(50, 2, 0.1, dimension=1)
    sampled = with_secret_sampling(everyone, FixedSizeSampling(50, 5))
    one, many = sampled.account(1, 1e-5), sampled.account(100, 1e-5)
    # One round of a single coordinate has an exact loss, whose epsilon at 10 delta is amplified.
    assert one.epsilon_pld == pytest.approx(math.log1p(0.1 * math.expm1(everyone.account(1, 1e-4).epsilon_pld)), rel=1e-9)
    assert many.epsilon_pld is None
    assert many.epsilon < everyone.account(100, 1e-5).epsilon * 0.8
    assert many.sampling == "5 of 50 clients sampled without replacement"


def test_everyone_is_no_sampling() -> None:
    everyone = discrete_gaussian_accounting(1000, 64, 1.0, 0.1, 0.001)
    assert with_secret_sampling(everyone, None) is everyone
    certain = with_secret_sampling(everyone, PoissonSampling(1.0))
    assert certain.account(7, 1e-5).epsilon == pytest.approx(everyone.account(7, 1e-5).epsilon, rel=1e-12)


def test_what_is_not_amplified_is_refused() -> None:
    everyone = discrete_gaussian_accounting(1000, 64, 1.0, 0.1, 0.001)
    with pytest.raises(
        ValueError, match=r"sampling must be for add-or-remove-one adjacency, got 1 of 10 clients .*, which is for replace-one"
    ):
        with_secret_sampling(everyone, FixedSizeSampling(10, 1))
    with pytest.raises(ValueError, match="sampling must be left out where the server sees each message, got 1 of 10 clients"):
        with_secret_sampling(pure_accounting("cldp", 1.0), FixedSizeSampling(10, 1))
    curve = RenyiCurve(np.array([1.5]), np.array([1.0]))
    with pytest.raises(ValueError, match="curve must have finite divergences at order 2 or above"):
        poisson_sampled_curve(curve, 0.1)
    with pytest.raises(ValueError, match=r"probability must be a number from 1e-09 to 1, got 0\.0"):
        poisson_sampled_curve(curve, 0.0)
    with pytest.raises(ValueError, match=r"fraction must be a number from 1e-09 to 1, got 2\.0"):
        fixed_size_sampled_curve(curve, 2.0)


def test_a_sampled_round_of_binomial_noise_by_enumeration() -> None:
    trials, shift, rate, delta = 30, 2, 0.2, 1e-3
    noise = np.array([math.comb(trials, k) for k in range(trials + 1)]) / 2**trials
    without, with_it = np.append(noise, np.zeros(shift)), np.append(np.zeros(shift), noise)
    mixed = (1 - rate) * without + rate * with_it
    found = binomial_account(trials, 0.5, 1.0, 1, 2.0, 2.0, 2.0, delta, adjacency="add-or-remove-one", sampling=PoissonSampling(rate))
    assert found.epsilon is None
    assert found.epsilon_exact is not None
    assert found.sampling == "Poisson sampling with probability 0.2"

    def largest(epsilon: float) -> float:
        return max(float(np.maximum(own - math.exp(epsilon) * other, 0).sum()) for own, other in [(mixed, without), (without, mixed)])

    # Exact: the claim holds, and a slightly smaller one would not.
    assert largest(found.epsilon_exact) <= delta < largest(found.epsilon_exact * (1 - 1e-6))
    assert found.epsilon_rdp is not None
    assert found.epsilon_rdp > found.epsilon_exact


def test_sampled_rounds_of_binomial_noise_by_the_theorem() -> None:
    arguments = (10**6, 0.5, 1.0, 1, 1.0, 1.0, 1.0)
    sampling = FixedSizeSampling(1000, 10)
    found = binomial_account(*arguments, 1e-6, 100, sampling=sampling)
    single = binomial_account(*arguments, 1e-6 / 200 * 100)
    assert found.epsilon == pytest.approx(composed_pure_epsilon(math.log1p(0.01 * math.expm1(single.epsilon)), 100, 5e-7), rel=1e-9)
    assert (found.epsilon_exact, found.epsilon_rdp) == (None, None)
    assert found.epsilon_exact_reason == "rounds must be 1 for the exact account of sampled vectors"
    with pytest.raises(InfeasibleError, match=r"trials must be at least .*; rounds must be 1 for the exact account of sampled vectors"):
        binomial_account(30, 0.5, 1.0, 1, 1.0, 1.0, 1.0, 1e-6, 100, sampling=sampling)
    fewest = calibrate_binomial(0.1, 1e-6, 0.5, 1.0, 1, 1.0, 1.0, 1.0, sampling=sampling)
    assert fewest.trials < calibrate_binomial(0.1, 1e-6, 0.5, 1.0, 1, 1.0, 1.0, 1.0).trials / 100
    with pytest.raises(ValueError, match="sampling must be for replace-one adjacency, got Poisson sampling"):
        binomial_account(*arguments, 1e-6, sampling=PoissonSampling(0.1))


@pytest.mark.parametrize("rounds", [1, 100])
def test_sampled_rounds_of_cpsgd_are_those_of_the_same_mechanism(rounds: int) -> None:
    # Where the levels of rotated vectors end depends on the mechanism's delta, and not on that of one sampled round.
    parameters = CpsgdParameters(NormBall(1024, 2.0), 1000, 33, 20_000, 1e-5, rotated=True)
    found = cpsgd_account(parameters, rounds, FixedSizeSampling(1000, 500))
    delta = 1e-5 / 0.5 if rounds == 1 else 1e-5 / (2 * rounds) / 0.5
    for epsilon, everyone in (
        (found.epsilon, parameters.theorem_epsilon(delta)),
        (found.epsilon_gaussian, parameters.gaussian_epsilon(delta)),
    ):
        single = math.log1p(0.5 * math.expm1(everyone))
        assert epsilon == pytest.approx(single if rounds == 1 else composed_pure_epsilon(single, rounds, 5e-6), rel=1e-9)
    assert found.squared_error == parameters.worst_variance / 1000
    assert (found.epsilon_rdp is None) == (found.order is None) == (rounds > 1)


def test_sampled_rounds_of_cpsgd_that_only_renyi_divergences_account_for() -> None:
    few = CpsgdParameters(NormBall(4, 2.0), 100, 2, 8, 1e-4)
    assert cpsgd_account(few, 1, FixedSizeSampling(100, 50)).epsilon_gaussian is None
    with pytest.raises(InfeasibleError, match=r"trials must be at least .*; rounds must be 1 for the account of sampled vectors by Rényi"):
        cpsgd_account(few, 2, FixedSizeSampling(100, 50))


def test_calibration_for_sampled_vectors() -> None:
    poisson = PoissonSampling(0.05)
    skellam = calibrate_distributed_skellam(200, 64, 1.0, 20, 2.0, 1e-5, 5, sampling=poisson)
    assert (skellam.account.adjacency, skellam.account.sampling) == ("add-or-remove-one", str(poisson))
    again = distributed_skellam_accounting(200, 64, 1.0, **dict(skellam.parameters), sampling=poisson).account(5, 1e-5)
    assert again == skellam.account
    tosses = calibrate_poisson_binomial(20, 2, 2.0, 1e-5, 4, 5, FixedSizeSampling(20, 2))
    for found in (skellam, tosses):
        assert 0 <= 2.0 - found.account.epsilon <= 1e-6
    everyone = calibrate_distributed_skellam(200, 64, 1.0, 20, 2.0, 1e-5, 5)
    assert dict(skellam.parameters)["local_variance"] < dict(everyone.parameters)["local_variance"] / 5
    assert dict(tosses.parameters)["theta"] > dict(calibrate_poisson_binomial(20, 2, 2.0, 1e-5, 4, 5).parameters)["theta"]


def test_calibration_of_sampled_discrete_gaussian_noise() -> None:
    # An epsilon that one evaluation of dp-accounting's bound for samples of a fixed size takes half a second for: few are needed.
    sampling = FixedSizeSampling(200, 10)
    found = calibrate_discrete_gaussian(200, 64, 1.0, 20, 4.0, 1e-5, sampling=sampling)
    assert (found.account.adjacency, found.account.sampling) == ("replace-one", str(sampling))
    assert 0 <= 4.0 - found.account.epsilon <= 1e-6


@pytest.mark.parametrize(
    "command",
    [
        "account binomial --trials 10000 --probability 0.5 --scale 1 --dimension 1 --l1 1 --l2 1 --linf 1 --delta 1e-6",
        "account poisson-binomial --clients 10 --trials 2 --theta 0.2 --delta 1e-5",
        "account distributed-discrete-gaussian --clients 100 --dimension 8 --clip 1 --local-sigma 0.5 --granularity 0.01 --delta 1e-5",
        "account distributed-skellam --clients 100 --dimension 8 --clip 1 --local-variance 0.25 --granularity 0.01 --delta 1e-5",
        "account cpsgd --clients 100 --dimension 8 --clip 1 --levels 33 --trials 5000 --delta 1e-5",
    ],
)
def test_sampling_at_the_command_line(command: str) -> None:
    def answer(*options: str) -> dict[str, object]:
        run = CliRunner().invoke(app, [*command.split(), "--json", *options])
        assert run.exit_code == 0, run.output
        return dict(json.loads(run.stdout))

    everyone, sampled = answer(), answer("--population", "1000", "--sample-size", "10")
    assert everyone.keys() == sampled.keys()
    assert (sampled["sampling"], sampled["adjacency"]) == ("10 of 1000 clients sampled without replacement", "replace-one")
    assert sampled["epsilon"] < everyone["epsilon"] / 5  # type: ignore[operator]
