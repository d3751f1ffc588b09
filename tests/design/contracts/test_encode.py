"""Every mechanism encodes from a source of words: the same messages as ever from a seed, and messages for releases."""

import importlib
import inspect
import math
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from quietbits import design
from quietbits.design.contracts.mechanism import Mechanism, ScalarMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.cldp import CLDPMechanism
from quietbits.design.local.laplace import LaplaceMechanism
from quietbits.design.local.minimal_random_coding import MinimalRandomCodingMechanism
from quietbits.design.local.privunit import PrivUnitMechanism
from quietbits.design.local.sqkr import SQKRMechanism
from quietbits.design.local.vector_cldp import cldp_mechanism
from quietbits.design.local.vector_gaussian import VectorGaussianMechanism
from quietbits.design.local.vector_laplace import VectorLaplaceMechanism
from quietbits.design.local.vector_skellam import skellam_mechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import secure_words, seeded_words
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


@dataclass(frozen=True)
class Case:
    """A mechanism, what two clients with the value or vector above send with seed 11, and how many clients to average over."""

    mechanism: Mechanism
    messages: list[Any]
    clients: int = 20_000

    @property
    def input(self) -> Any:
        return VALUE if isinstance(self.mechanism, ScalarMechanism) else VECTOR

    def inputs(self, clients: int) -> np.ndarray:
        return np.tile(self.input, (clients, *[1] * np.ndim(self.input)))


CASES = {
    "table": Case(TableMeanMechanism(generalised_randomised_response(3.0, 3)), [2, 0]),
    "CLDP, one bit": Case(CLDPMechanism(1.0), [1, 0]),
    "Laplace": Case(LaplaceMechanism(1.0), [-1.0581330182159796, 0.29855468090961085]),
    "vector table, p = 1": Case(VectorTableMechanism(generalised_randomised_response(5.0, 5), L1), [[21, 5, 16], [21, 12, 16]]),
    "vector table with rejection, p = 2": Case(
        VectorTableMechanism(generalised_randomised_response(5.0, 6), L2, dithering="rejection"), [[14, 25, 53], [43, 25, 34]]
    ),
    "vector table, p = infinity": Case(VectorTableMechanism(generalised_randomised_response(5.0, 3), LINF), [[5, 3, 4], [5, 3, 3]]),
    "CLDP, p = 1": Case(cldp_mechanism(2.0, L1), [0, 1]),
    "CLDP, p = 2": Case(cldp_mechanism(2.0, L2), [0, 0]),
    "CLDP, p = infinity": Case(cldp_mechanism(2.0, LINF), [0, 1]),
    "vector Laplace": Case(
        VectorLaplaceMechanism(2.0, L1),
        [[-0.9581330182159796, -0.20144531909038915, 0.3268964788035704], [-2.458094032569488, -1.417895377944748, 2.040877157278818]],
    ),
    "vector Gaussian": Case(
        VectorGaussianMechanism(8.0, DELTA, L2),
        [[0.44104698593679625, 1.4323200094165727, 1.5702263936983114], [-0.21260228659616165, -0.5576999264615357, -0.5331026498803113]],
    ),
    "Skellam": Case(skellam_mechanism(8.0, DELTA, L2), [[7180, 621, -2312], [-4093, 1516, -1058]]),
    "PrivUnit": Case(
        PrivUnitMechanism(4.0, L2),
        [[1.500004020374569, -0.6479485476819858, -0.22914877565928793], [1.5582467254694286, -0.47308910167946683, 0.4653432905800959]],
    ),
    "minimal random coding": Case(MinimalRandomCodingMechanism(4.0, 5, L2), [[11095686263834698876, 12], [529218795165772755, 29]], 2000),
    "SQKR": Case(SQKRMechanism(3.0, 3, L2), [[1, 1, 6, 3], [3, 4, 4, 3]]),
    "distributed discrete Gaussian": Case(
        DistributedDiscreteGaussianMechanism(L2, 3000, 24, 0.01, 0.1, DELTA),
        [[16777195, 16777188, 16777211, 16777205], [16777207, 16777198, 16777204, 16777173]],
        3000,
    ),
    "distributed Skellam": Case(
        DistributedSkellamMechanism(L2, 3000, 24, 0.01, 0.01, DELTA),
        [[16777203, 16777170, 16777214, 16777200], [6, 16777193, 16777204, 16777162]],
        3000,
    ),
    "cpSGD": Case(CpsgdMechanism(L2, 3000, 65, 400, DELTA), [[246, 229, 218], [242, 236, 259]], 3000),
    "Poisson-binomial": Case(
        PoissonBinomialMechanism(L2, 3000, 20, 0.25, DELTA), [[12, 5, 9, 9, 11, 12, 10, 15], [11, 10, 10, 6, 11, 11, 15, 14]], 3000
    ),
    "DP-REC": Case(
        DpRecMechanism(L2, 2.0, GroupLayout((2, 1), (7, 7))),
        [[32, 233, 250, 16, 34, 64, 204, 78, 97, 108], [147, 64, 44, 86, 80, 64, 126, 73, 39, 40]],
        2000,
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_seeded_messages_are_what_they_always_were(case: Case) -> None:
    messages = case.mechanism.encode(case.inputs(2), np.random.default_rng(11))
    if messages.dtype == float:
        # The last digits differ from one mathematical library to the next.
        np.testing.assert_allclose(messages, case.messages, rtol=1e-12)
    else:
        assert messages.tolist() == case.messages
    np.testing.assert_array_equal(case.mechanism.encode(case.inputs(2), seeded_words(np.random.default_rng(11))), messages)


def test_secure_messages_have_the_same_form_and_are_never_the_same(case: Case) -> None:
    seeded = case.mechanism.encode(case.inputs(50), np.random.default_rng(0))
    first, second = (case.mechanism.encode(case.inputs(50), secure_words) for _ in range(2))
    assert first.shape == second.shape == seeded.shape
    assert first.dtype == second.dtype == seeded.dtype
    # Equal with probability 1e-14 at most, where a client sends one bit.
    assert (first != second).any()


def test_secure_messages_decode_to_the_mean(case: Case) -> None:
    mechanism, clients = case.mechanism, case.clients
    inputs = case.inputs(clients)
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(inputs, secure_words)), clients)
    # There is no seed: of a normal error of one coordinate, the likeliest to be large, 7 sigma fails by chance in one run of 10**11.
    allowed = mechanism.bias_bound + 7 * math.sqrt(float(mechanism.variance(inputs[:1])[0]) / clients)
    assert np.linalg.norm(estimate - case.input) < allowed
    # It would be noticed if nothing arrived.
    assert allowed < np.linalg.norm(case.input)


def test_other_sources_are_refused(case: Case) -> None:
    with pytest.raises(ValueError, match=r"words must be quietbits\.secure_words, for releases, or a numpy\.random\.Generator .*, got 0"):
        case.mechanism.encode(case.inputs(2), 0)


def concrete(kind: type[Mechanism]) -> set[type[Mechanism]]:
    """Return the classes of the design that derive from a class, and can be made."""
    derived = {one for child in kind.__subclasses__() for one in concrete(child)}
    return derived if inspect.isabstract(kind) or not kind.__module__.startswith(design.__name__) else derived | {kind}


def test_every_mechanism_is_here() -> None:
    for module in pkgutil.walk_packages(design.__path__, f"{design.__name__}."):
        importlib.import_module(module.name)
    assert concrete(Mechanism) == {type(case.mechanism) for case in CASES.values()}


def test_secure_sums_draw_their_masks_from_either_source() -> None:
    secure_sum = SecureSum(6, 3, 1000)
    session = secure_sum.session(np.random.default_rng(11))
    assert session.graph.order.tolist() == [3, 1, 4, 5, 2, 0]
    assert session.masks.key.hex().startswith("b02958078df1497c")
    first, second = (secure_sum.session(secure_words) for _ in range(2))
    assert first.masks.key != second.masks.key
    values = np.arange(18).reshape(6, 3)
    assert secure_sum.total([values], secure_words).tolist() == values.sum(axis=0).tolist()
    with pytest.raises(ValueError, match=r"words must be quietbits\.secure_words, .*, got 0"):
        secure_sum.total([values], 0)  # type: ignore[arg-type]
