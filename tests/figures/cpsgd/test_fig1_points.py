"""Tests of the least noise for a guarantee.

Points under test: fewest trials by brute force, the certified bound by other means, and the comparison.
"""

import math

import numpy as np
import pandas as pd
import pytest

from quietbits.errors import InfeasibleError
from quietbits.figures.cpsgd import fig1 as cpsgd
from quietbits.figures.cpsgd.fig1 import NoisePoint, unbiased_error_bound
from quietbits.solvers.accounting.gaussian_privacy import gaussian_delta
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_epsilon
from quietbits.solvers.divergences.cpsgd_theorem import binomial_theorem_epsilon

DELTA = 1e-6


KINDS = [("analytic", None), ("classic", None), *(("theorem", scale) for scale in (1.0, 0.1, 0.01, 0.001)), ("exact", 1.0), ("exact", 0.1)]


@pytest.fixture(scope="module")
def noise() -> pd.DataFrame:
    points = [
        NoisePoint(seed=5, accounting=accounting, epsilon=epsilon, delta=DELTA, scale=scale)
        for epsilon in (0.3, 1.0, 4.0)
        for accounting, scale in KINDS
    ]
    return pd.DataFrame([row for point in points for row in point.run()])


def four_letter_error(epsilon: float, delta: float) -> float:
    """Return the least mean variance of four letters, by Lagrange's conditions on the two means."""
    odds = math.exp(epsilon)
    first = np.array([delta, (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds), 0.0])
    pair = np.array([first, first[::-1]])
    matrix = np.block([[np.diag(pair.sum(axis=0)), pair.T], [pair, np.zeros((2, 2))]])
    letters = np.linalg.lstsq(matrix, np.array([0, 0, 0, 0, 1.0, 0.0]), rcond=None)[0][:4]
    assert pair @ letters == pytest.approx([1, 0])
    return float((pair @ letters**2).mean() - 1 / 2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-3), (1.0, 0.1), (3.0, 0.5)])
def test_the_bound_is_the_least_variance_of_the_four_letters(epsilon: float, delta: float) -> None:
    assert unbiased_error_bound(epsilon, delta) == pytest.approx(four_letter_error(epsilon, delta), rel=1e-9)


def test_without_delta_the_bound_is_randomised_response() -> None:
    for epsilon in (0.5, 2.0):
        # Letters 1/2 +- 1/(2 t), sent with probabilities in the ratio e^epsilon, have second moment 1/(4 t^2).
        assert unbiased_error_bound(epsilon, 0.0) == pytest.approx(1 / (4 * math.tanh(epsilon / 2) ** 2) - 1 / 4)
    # A mechanism that reveals the number with probability delta needs the letters x / delta and 0, or letters as far apart.
    assert unbiased_error_bound(1e-6, 0.5) == pytest.approx(1 / 4, rel=1e-9)


def test_too_few_trials_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsgd, "MOST_EXACT_TRIALS", 1000)
    with pytest.raises(InfeasibleError, match=r"epsilon must be larger: no number of trials up to 1000 gives 0.005"):
        NoisePoint(seed=0, accounting="exact", epsilon=0.005, delta=DELTA, scale=1.0).run()


@pytest.mark.parametrize(
    ("accounting", "scale", "message"),
    [("theorem", 0.3, r"scale must divide 1, got 0\.3"), ("exact", None, "accounting must be one of analytic, classic, got 'exact'")],
)
def test_a_point_that_cannot_be_is_refused(accounting: str, scale: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NoisePoint(seed=0, accounting=accounting, epsilon=1.0, delta=DELTA, scale=scale).run()


@pytest.mark.parametrize(("arguments", "message"), [((0.0, 0.1), "epsilon must be a number from 1e-06"), ((1.0, 1.0), "delta must be")])
def test_arguments_of_the_bound_are_checked(arguments: tuple[float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unbiased_error_bound(*arguments)


def test_one_trial_fewer_is_too_few(noise: pd.DataFrame) -> None:
    assert (noise["realised_epsilon"] <= noise["epsilon"])[noise["mechanism"] == "Binomial"].all()
    for row in noise[noise["accounting"] == "exact"].itertuples():
        fewer = shifted_binomial_epsilon(row.trials - 1, 0.5, round(1 / row.scale), DELTA)
        assert fewer > row.epsilon
        assert math.isinf(fewer) == row.condition_binds
    bound = 23 * math.log(10 / DELTA)
    for row in noise[noise["accounting"] == "theorem"].itertuples():
        if row.condition_binds:
            assert row.trials / 4 >= max(bound, 2 / row.scale) > (row.trials - 1) / 4
        else:
            assert binomial_theorem_epsilon(row.trials - 1, 0.5, row.scale, 1, 1.0, 1.0, 1.0, DELTA) > row.epsilon


def test_brute_force_finds_the_same_trials(noise: pd.DataFrame) -> None:
    rows = noise[(noise["accounting"] == "exact") & (noise["scale"] == 1.0)].set_index("epsilon")["trials"]
    for epsilon in (1.0, 4.0):
        every = [trials for trials in range(1, 200) if shifted_binomial_epsilon(trials, 0.5, 1, DELTA) <= epsilon]
        assert every == list(range(every[0], 200))
        assert rows[epsilon] == every[0]


def test_small_scales_end_at_gaussian_noise(noise: pd.DataFrame) -> None:
    errors = noise[noise["epsilon"] == 1.0].set_index(["accounting", "scale"])["noise_squared_error"]
    analytic, classic = errors[("analytic", math.nan)], errors[("classic", math.nan)]
    # The theorem's excess over the classic rule is of the order of the scale; exact binomial noise converges to the analytic rule.
    theorem = [errors[("theorem", scale)] / classic - 1 for scale in (0.1, 0.01, 0.001)]
    assert np.all(np.diff(theorem) < 0)
    assert theorem == pytest.approx([1.195, 0.138, 0.0142], rel=0.01)
    assert errors[("exact", 0.1)] == pytest.approx(analytic, rel=0.002)
    assert gaussian_delta(math.sqrt(analytic), 1.0) == pytest.approx(DELTA, rel=1e-6)


def test_what_the_theorem_promises_is_kept(noise: pd.DataFrame) -> None:
    # For larger epsilons the noise is not safe, as the classic rule also fails.
    rows = noise[(noise["accounting"] == "theorem") & (noise["epsilon"] >= 1)]
    assert set(rows["epsilon"]) == {1.0, 4.0}
    for row in rows.itertuples():
        assert shifted_binomial_epsilon(row.trials, 0.5, round(1 / row.scale), DELTA) <= row.epsilon


def test_every_row_states_its_guarantee_and_none_beats_the_bound(noise: pd.DataFrame) -> None:
    assert set(noise["adjacency"]) == {"replace-one"}
    trust = noise.groupby("mechanism")["trust_model"].unique()
    assert list(trust["Binomial"]) == ["secure-sum"]
    assert list(trust["Gaussian"]) == ["central"]
    assert (noise["noise_squared_error"] > noise["certified_error"]).all()
    # The classic rule is safe below epsilon = 1, but not for every epsilon.
    assert (noise["realised_epsilon"] <= noise["epsilon"])[(noise["accounting"] == "classic") & (noise["epsilon"] <= 1)].all()
    (ten,) = NoisePoint(seed=0, accounting="classic", epsilon=10.0, delta=DELTA).run()
    assert ten["realised_epsilon"] > 10.0
