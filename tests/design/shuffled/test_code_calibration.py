"""Calibrated codes keep their budget, closely, and divide their bits well."""

import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget
from quietbits.design.shuffled.code_calibration import calibrate_shuffled_code
from quietbits.design.shuffled.shuffled_codes import ShuffledCodeMechanism, ShuffledRandomCoding, ShuffledRotatingSimplex
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.sampling import FixedSizeSampling

BALL = NormBall(256, 2.0)
USUAL = Budget(1.0, 1e-6, "replace-one")


def calibrated(kind: type[ShuffledCodeMechanism], budget: Budget = USUAL, clients: int = 10_000, **bits: float) -> ShuffledCodeMechanism:
    return calibrate_shuffled_code(kind, BALL, clients, budget, usual_letter_bits=8, **bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [ShuffledRotatingSimplex, ShuffledRandomCoding])
@pytest.mark.parametrize(
    "budget",
    [
        USUAL,
        Budget(0.25, 1e-6, "replace-one"),
        Budget(1.0, 1e-6, "replace-one", rounds=4),
        Budget(0.5, 1e-6, "replace-one", sampling=FixedSizeSampling(100_000, 10_000)),
        Budget(2.0, 0.0, "replace-one", rounds=4),
        Budget(1.0, 1e-6, "replace-one", dropout=0.2),
    ],
    ids=str,
)
def test_the_budget_is_kept_closely(kind: type[ShuffledCodeMechanism], budget: Budget) -> None:
    mechanism = calibrated(kind, budget)
    reached = mechanism.privacy().epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling)
    assert (1 - 1e-3) * budget.epsilon <= reached <= budget.epsilon
    assert mechanism.local_epsilon >= budget.epsilon / budget.rounds * (1 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "clients", "error", "local"), [(1.0, 10_000, 0.00619, 26), (0.25, 10_000, None, 169), (1.0, 100_000, None, 42)]
)
def test_errors_are_those_of_a_prototype(epsilon: float, clients: int, error: float | None, local: float) -> None:
    # The prototype had a codebook for each client; common codebooks add at most 1/64.
    mechanism = calibrated(ShuffledRotatingSimplex, Budget(epsilon, 1e-6, "replace-one"), clients)
    reached = mechanism.error().of_mean(clients)
    by_itself = calibrated(ShuffledRotatingSimplex, Budget(epsilon, 0.0, "replace-one"), clients).variance_bound / clients
    assert error is None or error * 0.99 <= reached <= error * (1 + 1 / 64) * 1.01
    assert by_itself / reached == pytest.approx(local, rel=0.03)


def test_the_number_of_closest_letters_is_about_the_best() -> None:
    chosen = calibrated(ShuffledRotatingSimplex, letter_bits=5)
    errors = [
        ShuffledRotatingSimplex(BALL, 10_000, local, 5, chosen.seed_bits, closest).variance_bound
        for closest, local in ((1, 5.598), (2, 5.535), (4, 5.5), (8, 5.49), (16, 5.46))
    ]
    assert chosen.variance_bound <= min(errors) * 1.01


def test_bits_are_divided_between_codebook_and_letter() -> None:
    free = calibrated(ShuffledRotatingSimplex)
    assert free.worst_shared_variance <= free.variance_bound / 10_000 / 64 < 2 * free.worst_shared_variance
    errors = []
    for bits in (6, 10, 14, 20, 30, 50):
        mechanism = calibrated(ShuffledRotatingSimplex, message_bits=bits)
        assert mechanism.bits_per_client == bits
        errors.append(mechanism.error().of_mean(10_000))
    assert errors == sorted(errors, reverse=True)
    within = calibrated(ShuffledRotatingSimplex, most_bits=14.5)
    assert within.bits_per_client <= 14
    assert within.error().of_mean(10_000) == pytest.approx(errors[2])


def test_faults() -> None:
    with pytest.raises(InfeasibleError, match="letter_bits must be at most 8 in 256 dimensions, got 9"):
        calibrated(ShuffledRotatingSimplex, letter_bits=9)
    with pytest.raises(InfeasibleError, match="message_bits must be at least 5 and at most 53 for these letters, got 4"):
        calibrated(ShuffledRandomCoding, letter_bits=5, message_bits=4)
    with pytest.raises(InfeasibleError, match="message_bits must be at least 1 and at most 56"):
        calibrated(ShuffledRotatingSimplex, message_bits=57)
