"""Codes of items: sums modulo M are decoded exactly, also when clients drop out; columns are those of the matrix; refusals."""

import numpy as np
import pytest
from scipy.stats import chi2

from quietbits.design.frequencies.histogram_codes import BernoulliCode, HistogramCode, IdentityCode, RademacherCode
from quietbits.design.secure_sum.modular_arithmetic import modular_add, modular_sum
from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.limits.histogram_code_size import code_size

DIMENSION, CLIENTS = 100, 12
CODES = [
    IdentityCode(DIMENSION, CLIENTS),
    BernoulliCode.of_rigorous_size(DIMENSION, CLIENTS, seed=3),
    RademacherCode(DIMENSION, CLIENTS, 70, seed=3),
]


@pytest.mark.parametrize("code", CODES, ids=lambda code: type(code).__name__)
@pytest.mark.parametrize("dropouts", [0, 1, CLIENTS // 2])
def test_the_sum_of_those_who_stay_is_their_histogram(code: HistogramCode, dropouts: int) -> None:
    items = np.random.default_rng(dropouts).integers(0, DIMENSION, CLIENTS)[dropouts:]
    messages = code.encode(items)
    assert messages.shape == (len(items), code.measurements)
    assert int(messages.max()) < code.modulus
    total = modular_add(modular_sum(messages[:4], code.modulus), modular_sum(messages[4:], code.modulus), code.modulus)
    counts = code.decode(total, len(items))
    assert counts.tolist() == np.bincount(items, minlength=DIMENSION).tolist()


@pytest.mark.parametrize("code", CODES, ids=lambda code: type(code).__name__)
def test_everybody_may_hold_the_same_item_or_nobody_be_there(code: HistogramCode) -> None:
    same = code.decode(modular_sum(code.encode([41] * CLIENTS), code.modulus), CLIENTS)
    assert same.tolist() == [CLIENTS * (item == 41) for item in range(DIMENSION)]
    assert code.encode([]).shape == (0, code.measurements)
    assert not code.decode(np.zeros(code.measurements, dtype=np.int64), 0).any()


def test_columns_are_those_of_the_matrix_in_any_order() -> None:
    code = BernoulliCode(dimension=50, clients=5, measurements=300, seed=2**100)
    items = [49, 3, 4, 5, 3, 0]
    assert np.array_equal(code.columns(items), code.matrix().T[items])
    assert np.array_equal(RademacherCode(50, 5, 300, 2**100).columns(items), 2 * code.columns(items).astype(int) - 1)
    assert not np.array_equal(code.matrix(), BernoulliCode(50, 5, 300, 1).matrix())
    assert np.array_equal(BernoulliCode(2**40, 5, 300, 2**100).columns(items), code.columns(items))


def test_bits_are_fair_and_pairs_of_columns_and_rows_independent() -> None:
    bits = BernoulliCode(dimension=2000, clients=5, measurements=500, seed=7).matrix().astype(int)
    for pair in (2 * bits[:, :-1] + bits[:, 1:], 2 * bits[:-1] + bits[1:], 2 * bits[:-256] + bits[256:]):
        cells = np.bincount(pair[::2, ::2].ravel(), minlength=4)
        statistic = ((cells - cells.mean()) ** 2).sum() / cells.mean()
        assert statistic < chi2.isf(1e-4, 3)


def test_bits_and_modulus() -> None:
    identity, bernoulli, rademacher = CODES
    assert (identity.modulus, bernoulli.modulus, rademacher.modulus) == (13, 13, 25)
    assert bernoulli.measurements == code_size(CLIENTS, DIMENSION)
    assert bernoulli.bits_per_client == pytest.approx(bernoulli.measurements * np.log2(13))
    assert identity.bits_per_client > bernoulli.bits_per_client


def test_a_domain_of_one_item() -> None:
    code = BernoulliCode.of_rigorous_size(dimension=1, clients=4)
    assert code.decode(modular_sum(code.encode([0, 0, 0]), code.modulus), 3).tolist() == [3]


@pytest.mark.parametrize("code", CODES, ids=lambda code: type(code).__name__)
def test_refusals(code: HistogramCode) -> None:
    with pytest.raises(ValueError, match="items must be from 0 to 99, the number of items less one, got 100"):
        code.encode([3, 100])
    with pytest.raises(ValueError, match="items must be from 0 to 99, the number of items less one, got -1"):
        code.encode([-1])
    with pytest.raises(ValueError, match="items must be a list of whole numbers"):
        code.encode([0.5])
    with pytest.raises(ValueError, match="items must be of at most 12 clients, for whom the modulus was chosen, got 13"):
        code.encode(np.zeros(13, dtype=int))
    with pytest.raises(ValueError, match="clients must be a whole number from 0 to 12, got 13"):
        code.decode(np.zeros(code.measurements, dtype=int), 13)
    with pytest.raises(ValueError, match="aggregate must have the shape"):
        code.decode([1], 1)
    # Sums of four clients are no sums of five.
    with pytest.raises(ValueError, match=r"must be a sum over 5 clients|no histogram of 5 items|not a histogram of 5 items"):
        code.decode(modular_sum(code.encode([1, 2, 3, 4]), code.modulus), 5)


def test_too_few_measurements_are_noticed() -> None:
    code = BernoulliCode(dimension=60, clients=6, measurements=3, seed=1)
    total = modular_sum(code.encode([1, 2, 3, 4, 5, 6]), code.modulus)
    with pytest.raises(InfeasibleError, match="two histograms of 6 items have this sum: 3 measurements are too few"):
        code.decode(total, 6)
    solution = code.solve(total, 6)
    assert solution.unique is False
    assert solution.other is not None
    assert np.array_equal(code.matrix() @ solution.other, code.matrix() @ solution.counts)


def test_time_limits_are_passed_on() -> None:
    code = BernoulliCode(dimension=1000, clients=30, measurements=45, seed=1)
    total = modular_sum(code.encode(np.arange(30)), code.modulus)
    with pytest.raises(ConvergenceError, match=r"0\.1 s"):
        code.decode(total, 30, time_limit=0.1)


def test_a_matrix_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension must be at most 2684354 for the matrix to be stored"):
        BernoulliCode(2**30, 5, 100).matrix()
    with pytest.raises(ValueError, match=r"measurements must be a whole number from 1 to 1048576, got 0"):
        RademacherCode(10, 5, 0)
