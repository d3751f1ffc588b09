"""Seeded mechanisms send the same messages in all versions."""

import math
from typing import Any

import numpy as np
import pytest

from quietbits.design.contracts.mechanism import Mechanism, ScalarMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.cldp import CLDPMechanism, vector_cldp_mechanism
from quietbits.design.local.laplace import LaplaceMechanism, VectorLaplaceMechanism
from quietbits.design.local.sqkr import SQKRMechanism
from quietbits.design.local.unit_vectors.candidate_coding import MinimalRandomCodingMechanism
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.design.local.vector_gaussian import VectorGaussianMechanism
from quietbits.design.local.vector_skellam import skellam_mechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import secure_words
from quietbits.design.relative_entropy.dp_rec import DpRecMechanism
from quietbits.design.relative_entropy.group_layout import GroupLayout
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from quietbits.design.secure_sum.poisson_binomial_mechanism import PoissonBinomialMechanism
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

L1, L2, LINF = (NormBall(3, norm) for norm in (1.0, 2.0, math.inf))
VALUE, VECTOR = 0.3, np.array([0.4, -0.2, 0.1])
DELTA = 1e-5


# Mechanisms, each with two clients' messages for VALUE or VECTOR with seed 11.
CASES: dict[str, tuple[Mechanism, list[Any]]] = {
    "table": (TableMeanMechanism(generalised_randomised_response(3.0, 3)), [2, 0]),
    "CLDP, one bit": (CLDPMechanism(1.0), [1, 0]),
    "Laplace": (LaplaceMechanism(1.0), [-1.0581330182159796, 0.29855468090961085]),
    "vector table, p = 1": (VectorTableMechanism(generalised_randomised_response(5.0, 5), L1), [[21, 5, 16], [21, 12, 16]]),
    "vector table with rejection, p = 2": (
        VectorTableMechanism(generalised_randomised_response(5.0, 6), L2, dithering="rejection"),
        [[14, 25, 53], [43, 25, 34]],
    ),
    "vector table, p = infinity": (VectorTableMechanism(generalised_randomised_response(5.0, 3), LINF), [[5, 3, 4], [5, 3, 3]]),
    "CLDP, p = 1": (vector_cldp_mechanism(2.0, L1), [0, 1]),
    "CLDP, p = 2": (vector_cldp_mechanism(2.0, L2), [0, 0]),
    "CLDP, p = infinity": (vector_cldp_mechanism(2.0, LINF), [0, 1]),
    "vector Laplace": (
        VectorLaplaceMechanism(2.0, L1),
        [[-0.9581330182159796, -0.20144531909038915, 0.3268964788035704], [-2.458094032569488, -1.417895377944748, 2.040877157278818]],
    ),
    "vector Gaussian": (
        VectorGaussianMechanism.of_epsilon(8.0, DELTA, L2),
        [[0.44104698593679625, 1.4323200094165727, 1.5702263936983114], [-0.21260228659616165, -0.5576999264615357, -0.5331026498803113]],
    ),
    "Skellam": (skellam_mechanism(8.0, DELTA, L2), [[101, -418, 2184], [-6722, 65, 2033]]),
    "PrivUnit": (
        PrivUnitGMechanism(4.0, L2),
        [[1.500004020374569, -0.6479485476819858, -0.22914877565928793], [1.5582467254694286, -0.47308910167946683, 0.4653432905800959]],
    ),
    "minimal random coding": (MinimalRandomCodingMechanism(4.0, 5, L2), [[11095686263834698876, 12], [529218795165772755, 29]]),
    "SQKR": (SQKRMechanism(3.0, 3, L2), [[1, 1, 6, 3], [3, 4, 4, 3]]),
    "distributed discrete Gaussian": (
        DistributedDiscreteGaussianMechanism(L2, 3000, 24, 0.01, 0.1, DELTA),
        [[16777195, 16777188, 16777211, 16777205], [16777207, 16777198, 16777204, 16777173]],
    ),
    "distributed Skellam": (
        DistributedSkellamMechanism(L2, 3000, 24, 0.01, 0.01, DELTA),
        [[16777195, 16777188, 16777211, 16777205], [16777207, 16777198, 16777204, 16777173]],
    ),
    "cpSGD": (CpsgdMechanism(L2, 3000, 65, 400, DELTA), [[246, 229, 218], [242, 236, 259]]),
    "Poisson-binomial": (
        PoissonBinomialMechanism(L2, 3000, 20, 0.25, DELTA),
        [[7, 8, 13, 6, 12, 6, 10, 14], [11, 16, 8, 11, 12, 11, 11, 14]],
    ),
    "DP-REC": (
        DpRecMechanism(L2, 2.0, GroupLayout((2, 1), (7, 7))),
        [[32, 233, 250, 16, 34, 64, 204, 78, 97, 108], [147, 64, 44, 86, 80, 64, 126, 73, 39, 40]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_seeded_messages_are_what_they_always_were(name: str) -> None:
    mechanism, expected = CASES[name]
    inputs = np.array([VALUE, VALUE]) if isinstance(mechanism, ScalarMechanism) else np.array([VECTOR, VECTOR])
    messages = mechanism.encode(inputs, np.random.default_rng(11))
    if messages.dtype == float:
        # The last digits depend on the mathematical library.
        np.testing.assert_allclose(messages, expected, rtol=1e-12)
    else:
        assert messages.tolist() == expected


def test_secure_sums_draw_their_masks_from_either_source() -> None:
    secure_sum = SecureSum(6, 3, 1000)
    session = secure_sum.session(np.random.default_rng(11))
    assert session.graph.order.tolist() == [3, 1, 4, 5, 2, 0]
    assert session.masks.key.hex().startswith("b02958078df1497c")
    first, second = (secure_sum.session(secure_words) for _ in range(2))
    assert first.masks.key != second.masks.key
    values = np.arange(18).reshape(6, 3)
    assert secure_sum.total([values], secure_words).tolist() == values.sum(axis=0).tolist()
    with pytest.raises(ValueError, match=r"random_words must be quietbits\.secure_words, .*, got 0"):
        secure_sum.total([values], 0)  # type: ignore[arg-type]
