"""The registry's entries of the local trust model for vectors as points of a sphere: PrivUnit, its projections, and codes for it."""

from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Option, Values
from ...design.contracts.task import Task
from ...design.local.unit_vectors.fast_projunit import FastProjUnitMechanism
from ...design.local.unit_vectors.minimal_random_coding import MinimalRandomCodingMechanism
from ...design.local.unit_vectors.plain_random_coding import plain_random_coding_mechanism
from ...design.local.unit_vectors.poisson_representation import LARGEST_ALPHA, SMALLEST_ALPHA, PoissonRepresentationMechanism
from ...design.local.unit_vectors.privunit import PrivUnitMechanism
from ...design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from ...design.local.unit_vectors.projunit import ProjUnitMechanism
from ...design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism, most_simplex_bits
from ...solvers.divergences.vector_composition import LARGEST_DIMENSION
from ...solvers.numerics.walsh_hadamard import padded_dimension
from .local import L2, PURE_ACCOUNTS, REPLACE_ONE, pure_accountable, pure_vector
from .lower_bounds import local_lower_bound, unbiased_local_lower_bound

CODING_BITS = Option("bits", int, "log2 of the number of candidates, which is also the length of a message.", 8, 1, 20, "bits")
SIMPLEX_BITS = Option(
    "bits", int, "Length of a message, at most log2(dimension + 1); by default the best number up to 7.", None, 1, 12, "bits"
)
PROJECTED = Option("projected", int, "Number of projections, 64 bits each; at most the dimension.", 64, 1, LARGEST_DIMENSION, "projections")
HADAMARD_PROJECTED = Option(
    "projected",
    int,
    "Number of projections, 64 bits each; at most the padded dimension. The more, the smaller the bias.",
    256,
    1,
    LARGEST_DIMENSION,
    "projections",
)
UNBIASED = Option(
    "unbiased", bool, "Whether the decoder divides by the code's own mean, not PrivUnitG's.", False, flags="--unbiased/--published"
)
ALPHA = Option(
    "alpha", float, "Exponent of the weights: twice it, times the epsilon simulated, is the proven one.", 2.0, SMALLEST_ALPHA, LARGEST_ALPHA
)
# Most bits of a rotating simplex by default: the time of a client grows with the square of the number of corners.
USUAL_SIMPLEX_BITS = 7
ASI = "Asi, Feldman, Talwar 2022, Optimal algorithms for mean estimation under local differential privacy"
PROJECTIONS = "Asi, Feldman, Nelson, Nguyen, Talwar 2023, Fast optimal locally private mean estimation via random projections"
ISIK = "Isik, Chen, Özgür, Weissman, No 2023, Exact optimality of communication-privacy-utility tradeoffs in distributed mean estimation"
SHAH = "Shah, Chen, Ballé, Kairouz, Theis 2022, Optimal compression of locally differentially private mechanisms"


def _privunit_g(epsilon: float, ball: NormBall, _: Values) -> Mechanism:
    return PrivUnitGMechanism(epsilon, ball)


def _privunit(epsilon: float, ball: NormBall, _: Values) -> Mechanism:
    return PrivUnitMechanism(epsilon, ball)


def _projunit(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return ProjUnitMechanism(epsilon, min(options["projected"], ball.dimension), ball)


def _fast_projunit(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return FastProjUnitMechanism(epsilon, min(options["projected"], padded_dimension(ball.dimension)), ball)


def _simplex(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    if options["bits"] is not None:
        return RotatingSimplexMechanism(epsilon, options["bits"], ball)
    numbers = range(1, min(USUAL_SIMPLEX_BITS, most_simplex_bits(ball.dimension)) + 1)
    return min((RotatingSimplexMechanism(epsilon, bits, ball) for bits in numbers), key=lambda mechanism: mechanism.worst_variance)


def _coding(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return MinimalRandomCodingMechanism(epsilon, options["bits"], ball)


def _plain(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return plain_random_coding_mechanism(epsilon, options["bits"], ball, unbiased=options["unbiased"])


def _poisson(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return PoissonRepresentationMechanism(epsilon, ball, options["alpha"])


def _coding_tried(_: Task) -> list[Values]:
    """Return lengths of codes; encoding takes twice as long with every bit."""
    return [{"bits": bits} for bits in (2, 4, 6, 8, 10)]


PRIVUNIT = Entry(
    name="privunit",
    title="PrivUnit: a unit vector, likelier in the input's best cap, uncompressed",
    paper=f"Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, Protection against reconstruction; with the optimal parameters of {ASI}",
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(),
    calibrate=pure_vector("privunit", _privunit, L2),
    accounting=pure_accountable("privunit", "PrivUnit", _privunit, L2),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
)
PROJUNIT = Entry(
    name="projunit",
    title="ProjUnit: PrivUnit in a public random subspace",
    paper=PROJECTIONS,
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(PROJECTED,),
    calibrate=pure_vector("projunit", _projunit, L2),
    accounting=pure_accountable("projunit", "ProjUnit", _projunit, L2, (PROJECTED,)),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
    candidates=lambda _: [{"projected": number} for number in (16, 64)],
)
FAST_PROJUNIT = Entry(
    name="fast-projunit",
    title="FastProjUnit: PrivUnit of public random rows of a Walsh-Hadamard transform",
    paper=PROJECTIONS,
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(HADAMARD_PROJECTED,),
    calibrate=pure_vector("fast-projunit", _fast_projunit, L2),
    accounting=pure_accountable("fast-projunit", "FastProjUnit", _fast_projunit, L2, (HADAMARD_PROJECTED,)),
    norms=L2,
    lower_bound=local_lower_bound,
    candidates=lambda _: [{"projected": number} for number in (64, 256)],
)
ROTATING_SIMPLEX = Entry(
    name="rotating-simplex",
    title="Rotating simplex: the number of one of the closest corners of a public random simplex",
    paper=ISIK,
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(SIMPLEX_BITS,),
    calibrate=pure_vector("rotating-simplex", _simplex, L2),
    accounting=pure_accountable("rotating-simplex", "Rotating simplex", _simplex, L2, (SIMPLEX_BITS,)),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
    candidates=lambda _: ({}, {"bits": 1}, {"bits": 2}, {"bits": 4}),
)
POISSON_REPRESENTATION = Entry(
    name="poisson-private-representation",
    title="PrivUnit, simulated exactly, as the number of a public random point",
    paper="Liu, Chen, Özgür, Li 2024, Universal exact compression of differentially private mechanisms",
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(ALPHA,),
    calibrate=pure_vector("poisson-private-representation", _poisson, L2),
    accounting=pure_accountable("poisson-private-representation", "Poisson private representation", _poisson, L2, (ALPHA,)),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
)
PLAIN_RANDOM_CODING = Entry(
    name="minimal-random-coding-plain",
    title="PrivUnitG as the number of a shared random candidate, drawn by its density: biased, at the epsilon that is proven",
    paper=SHAH,
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(CODING_BITS, UNBIASED),
    calibrate=pure_vector("minimal-random-coding-plain", _plain, L2),
    accounting=pure_accountable("minimal-random-coding-plain", "Plain minimal random coding", _plain, L2, (CODING_BITS, UNBIASED)),
    norms=L2,
    lower_bound=local_lower_bound,
    candidates=_coding_tried,
)
PRIVUNIT_G = Entry(
    name="privunit-g",
    title="PrivUnitG: a Gaussian vector, likelier in the input's cap, uncompressed",
    paper=ASI,
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(),
    calibrate=pure_vector("privunit-g", _privunit_g, L2),
    accounting=pure_accountable("privunit-g", "PrivUnitG", _privunit_g, L2),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
)
MINIMAL_RANDOM_CODING = Entry(
    name="minimal-random-coding",
    title="PrivUnitG as the number of a shared random candidate",
    paper=SHAH,
    domains=(NormBall,),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(CODING_BITS,),
    calibrate=pure_vector("minimal-random-coding", _coding, L2),
    accounting=pure_accountable("minimal-random-coding", "Minimal random coding", _coding, L2, (CODING_BITS,)),
    norms=L2,
    lower_bound=unbiased_local_lower_bound,
    candidates=_coding_tried,
)

ENTRIES: tuple[Entry, ...] = (
    PRIVUNIT,
    PRIVUNIT_G,
    PROJUNIT,
    FAST_PROJUNIT,
    ROTATING_SIMPLEX,
    MINIMAL_RANDOM_CODING,
    PLAIN_RANDOM_CODING,
    POISSON_REPRESENTATION,
)
