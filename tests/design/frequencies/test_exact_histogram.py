"""Tests of exact frequencies.

Points under test: masks and drop-outs for both codes, no claim of privacy, and refusals.

Sums of codes of items modulo M decode exactly, also after drop-outs. ¶ Columns equal the columns of the matrix, and bad arguments are
refused.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.task import Task
from quietbits.design.frequencies.exact_histogram import BernoulliCode, ExactHistogramMechanism, HistogramCode, IdentityCode, RademacherCode
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.modular_arithmetic import modular_add, modular_sum
from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.limits.histogram_code_size import code_size

DIMENSION, CODES_CLIENTS = 100, 12
CODES = [
    IdentityCode(DIMENSION, CODES_CLIENTS),
    BernoulliCode.of_rigorous_size(DIMENSION, CODES_CLIENTS, seed=3),
    RademacherCode(DIMENSION, CODES_CLIENTS, 70, seed=3),
]

CLIENTS, CATEGORIES = 12, 200
MECHANISMS = [
    ExactHistogramMechanism(BernoulliCode.of_rigorous_size(CATEGORIES, CLIENTS, seed=5)),
    ExactHistogramMechanism(IdentityCode(CATEGORIES, CLIENTS)),
]


def built(clients: int = CLIENTS, categories: int = CATEGORIES, epsilon: float = 1.0, **options: Any) -> ExactHistogramMechanism:
    mechanism = build_mechanism("exact-histogram", Task(Categories(categories), clients, epsilon, 0.0, "replace-one"), options)
    assert isinstance(mechanism, ExactHistogramMechanism)
    return mechanism


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism.code).__name__)
# Each of the 12 clients has eleven neighbours. If more than half of the neighbours must help, up to 5 clients may be missing; 6 missing
# clients need a lower threshold.
@pytest.mark.parametrize(("missing", "threshold"), [(0, None), (1, None), (5, None), (6, 5)])
def test_half_of_the_clients_may_drop_out_under_pairwise_masks(
    mechanism: ExactHistogramMechanism, missing: int, threshold: int | None
) -> None:
    rng = np.random.default_rng(missing)
    items = np.minimum(rng.integers(0, CATEGORIES, CLIENTS), rng.integers(0, CATEGORIES, CLIENTS))
    dropped = rng.permutation(CLIENTS)[:missing].tolist()
    masked = SecureSum(CLIENTS, mechanism.padded_dimension, mechanism.modulus, threshold=threshold)
    total = masked.total([mechanism.encode(items, rng)], rng, dropped=dropped)
    staying = np.delete(items, dropped)
    estimate = mechanism.decode(total, len(staying))
    assert estimate.tolist() == (np.bincount(staying, minlength=CATEGORIES) / len(staying)).tolist()
    assert not mechanism.standard_errors(estimate, len(staying)).any()


def test_the_sum_of_columns_is_that_of_messages() -> None:
    items = np.random.default_rng(1).integers(0, CATEGORIES, CLIENTS)
    for mechanism in MECHANISMS:
        steps = mechanism.noisy_steps(items, np.random.default_rng(0)).sum(axis=0)
        assert mechanism.summed_steps(items, np.random.default_rng(0)).tolist() == steps.tolist()


def test_no_epsilon_is_claimed_whatever_is_asked_for() -> None:
    for epsilon in (0.1, 100.0):
        mechanism = built(epsilon=epsilon)
        assert mechanism == built()
        assert mechanism.guarantee.epsilon == math.inf
        assert mechanism.privacy().epsilon(0.5, rounds=10) == math.inf


def test_the_shorter_code_is_taken_where_it_is_decoded_fast() -> None:
    assert built(30, 1000).code == BernoulliCode(1000, 30, 120)
    assert built(30, 1000, failure=1e-6, code_seed=3).code == BernoulliCode(1000, 30, 124, 3)
    assert built(30, 20).code == IdentityCode(20, 30)
    assert built(30, 1001).code == IdentityCode(1001, 30)
    assert built(31, 1000).code == IdentityCode(1000, 31)
    assert built(31, 1000, code="bernoulli").code == BernoulliCode.of_rigorous_size(1000, 31)
    assert built(5000, 100_000, measurements=300).code == BernoulliCode(100_000, 5000, 300)
    assert built(50_000, 100_000).padded_dimension == 100_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clients": 2**20 + 1}, "clients must be at most 1048576 for exact-histogram, got 1048577"),
        ({"clients": 2001, "code": "bernoulli"}, "measurements must be given for more than 2000 clients, got 2001 clients"),
        (
            {"categories": 2**24, "code": "bernoulli"},
            "categories must be at most .* for a code of .* measurements to be decoded, got 16777216",
        ),
    ],
)
def test_what_cannot_be_decoded_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        built(**arguments)


def test_sums_of_too_many_clients_and_bad_time_limits_are_refused() -> None:
    mechanism = MECHANISMS[0]
    total = mechanism.aggregate(mechanism.encode(np.zeros(CLIENTS, dtype=int), np.random.default_rng(0)))
    with pytest.raises(ValueError, match="clients must be a whole number from 1 to 12, got 13"):
        mechanism.decode(total, CLIENTS + 1)
    with pytest.raises(ValueError, match="time_limit must be a number from 0 to 1e"):
        ExactHistogramMechanism(mechanism.code, -1.0)


@pytest.mark.parametrize("code", CODES, ids=lambda code: type(code).__name__)
@pytest.mark.parametrize("dropouts", [0, 1, CODES_CLIENTS // 2])
def test_the_sum_of_those_who_stay_is_their_histogram(code: HistogramCode, dropouts: int) -> None:
    items = np.random.default_rng(dropouts).integers(0, DIMENSION, CODES_CLIENTS)[dropouts:]
    messages = code.encode(items)
    assert messages.shape == (len(items), code.measurements)
    assert int(messages.max()) < code.modulus
    total = modular_add(modular_sum(messages[:4], code.modulus), modular_sum(messages[4:], code.modulus), code.modulus)
    counts = code.decode(total, len(items))
    assert counts.tolist() == np.bincount(items, minlength=DIMENSION).tolist()


@pytest.mark.parametrize("code", CODES, ids=lambda code: type(code).__name__)
def test_everybody_may_hold_the_same_item_or_nobody_be_there(code: HistogramCode) -> None:
    same = code.decode(modular_sum(code.encode([41] * CODES_CLIENTS), code.modulus), CODES_CLIENTS)
    assert same.tolist() == [CODES_CLIENTS * (item == 41) for item in range(DIMENSION)]
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
    assert bernoulli.measurements == code_size(CODES_CLIENTS, DIMENSION)
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
    # A sum of four clients is no sum of five clients.
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
