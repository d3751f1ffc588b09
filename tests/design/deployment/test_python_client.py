"""Deployed clients have the exact law of their mechanism: their privacy and their estimates follow from it."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from deployments import ITEMS, OTHERS, WITH_INDEX, deployment_of_name, law_of_messages, messages_of, sign_law
from scipy import stats

from quietbits.design.deployment.deployment import Deployment
from quietbits.design.deployment.wire_format import unpack_fields

EPSILONS = (0.3, 1.5, 6.0)


def inputs_with_laws(name: str, deployment: Deployment) -> list[tuple[Any, dict[bytes, Fraction]]]:
    """Return inputs that reach the largest ratio of probabilities, with the exact laws of their messages."""
    if name in ITEMS:
        public = [5] * deployment.program.public_words
        return [(item, law_of_messages(deployment, item, public)) for item in range(deployment.description().categories or 0)]
    if name == "number":
        return [(value, law_of_messages(deployment, value, [])) for value in (-1.0, -0.5, 1.75, 3.0)]
    if name == "cross-polytope":
        # The padded Walsh-Hadamard transform of the first unit vector, and of the second.
        return [
            ([1.0, 0.0, 0.0], sign_law(deployment, [1.0] * 4)),
            ([-1.0, 0.0, 0.0], sign_law(deployment, [-1.0] * 4)),
            ([0.0, 1.0, 0.0], sign_law(deployment, [1.0, -1.0, 1.0, -1.0])),
        ]
    vectors = [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -0.5, 0.25]]
    return [(vector, sign_law(deployment, vector)) for vector in vectors]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", [*ITEMS, *OTHERS])
def test_the_likelihood_ratio_is_the_largest_of_all_messages(name: str, epsilon: float) -> None:
    deployment = deployment_of_name(name, epsilon=epsilon)
    laws = [law for _, law in inputs_with_laws(name, deployment)]
    messages = sorted({message for law in laws for message in law})
    assert all(sum(law.values()) == 1 for law in laws)
    shares = [[law.get(message, Fraction(0)) for law in laws] for message in messages]
    assert min(min(row) for row in shares) > 0
    largest = max(max(row) / min(row) for row in shares)
    assert largest == deployment.program.likelihood_ratio
    # The stated epsilon is reached, up to the rounding of the probabilities.
    loss = Decimal(largest.numerator).ln() - Decimal(largest.denominator).ln()
    assert loss <= Decimal(deployment.epsilon)
    assert float(loss) == pytest.approx(deployment.epsilon, rel=1e-12)


@pytest.mark.parametrize("name", [*ITEMS, *OTHERS])
def test_the_expected_estimate_is_the_input(name: str) -> None:
    deployment = deployment_of_name(name)
    program, mechanism = deployment.program, deployment.mechanism
    for value, law in inputs_with_laws(name, deployment):
        if name == WITH_INDEX:
            # The law is over the public rows as well.
            continue
        expected: Any = 0.0
        for message, probability in law.items():
            fields, _ = unpack_fields(np.frombuffer(message, dtype=np.uint8)[None], program.field_bits, program.fields)
            aggregate = mechanism.aggregate(program.messages(fields, np.zeros((1, 0), dtype=np.uint64)))
            expected = expected + float(probability) * np.asarray(mechanism.decode(aggregate, 1))
        truth = np.eye(deployment.description().categories or 0)[value] if name in ITEMS else value
        np.testing.assert_allclose(expected, truth, atol=1e-12)


@pytest.mark.parametrize("name", [*ITEMS, *OTHERS])
def test_messages_have_the_exact_law(name: str) -> None:
    deployment = deployment_of_name(name)
    clients = 4000
    for number, (value, law) in enumerate(inputs_with_laws(name, deployment)):
        if name == WITH_INDEX:
            continue
        messages, _ = messages_of(deployment, [value] * clients, seed=number)
        counts = Counter(bytes(row) for row in messages)
        assert set(counts) <= set(law)
        kinds = sorted(law)
        test = stats.chisquare([counts[kind] for kind in kinds], [clients * float(law[kind]) for kind in kinds])
        # About 40 tests: one fails by chance with probability 4e-4, and the seeds are fixed.
        assert test.pvalue > 1e-5


def test_messages_with_public_rows_have_the_exact_law_of_each_row() -> None:
    deployment = deployment_of_name(WITH_INDEX)
    rows = deployment.program.constants["rows"]
    assert isinstance(rows, int)
    for item in (0, 5):
        for row in range(rows):
            law = law_of_messages(deployment, item, [row])
            assert len(law) == deployment.program.constants["symbols"]
            assert max(law.values()) / min(law.values()) == deployment.program.likelihood_ratio


def test_letters_of_a_table_have_its_weights() -> None:
    deployment = deployment_of_name("table")
    table = deployment.table
    assert table is not None
    clients = 8000
    for row in (0, 3, 7):
        value = -1.0 + 4.0 * row / 7
        messages, _ = messages_of(deployment, [value] * clients, seed=row)
        fields, _ = unpack_fields(messages, 3, 1)
        # A value next to a grid point may be dithered to the next row.
        position = (value + 1.0) / 4.0 * 7
        assert abs(position - row) < 1e-12
        counts = np.bincount(fields[:, 0], minlength=8)
        assert stats.chisquare(counts, clients * table.probabilities[row]).pvalue > 1e-5
