"""The registry's local entries for vectors on a sphere: PrivUnit, projections, and codes."""

from collections.abc import Callable, Sequence

from ...arguments import LARGEST_DIMENSION
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Option, Values
from ...design.contracts.task import Task
from ...design.local.unit_vectors.candidate_coding import MinimalRandomCodingMechanism, plain_random_coding_mechanism
from ...design.local.unit_vectors.poisson_representation import LARGEST_ALPHA, SMALLEST_ALPHA, PoissonRepresentationMechanism
from ...design.local.unit_vectors.privunit import PrivUnitMechanism
from ...design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from ...design.local.unit_vectors.projected_privunit import FastProjUnitMechanism, ProjUnitMechanism
from ...design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism, most_simplex_bits
from ...solvers.numerics.walsh_hadamard import padded_dimension
from .local import L2, PURE_ACCOUNTS, REPLACE_ONE, pure_vector
from .lower_bounds import local_lower_bound, unbiased_local_lower_bound
from .shared_options import tried_message_bits

CODING_BITS = Option("message_bits", int, "log2 of the number of candidates, which is also the length of a message.", 8, 1, 20, "bits")
SIMPLEX_BITS = Option(
    "message_bits", int, "Length of a message, at most log2(dimension + 1); by default the best number up to 7.", None, 1, 12, "bits"
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
# Default most bits of a rotating simplex: a client's time grows with the square of the number of corners.
USUAL_SIMPLEX_BITS = 7
# Encoding time doubles with every bit.
CODING_TRIED = tried_message_bits((2, 4, 6, 8, 10), 10, usual=False)
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
    if options["message_bits"] is not None:
        return RotatingSimplexMechanism(epsilon, options["message_bits"], ball)
    numbers = range(1, min(USUAL_SIMPLEX_BITS, most_simplex_bits(ball.dimension)) + 1)
    return min((RotatingSimplexMechanism(epsilon, bits, ball) for bits in numbers), key=lambda mechanism: mechanism.worst_variance)


def _coding(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return MinimalRandomCodingMechanism(epsilon, options["message_bits"], ball)


def _plain(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return plain_random_coding_mechanism(epsilon, options["message_bits"], ball, unbiased=options["unbiased"])


def _poisson(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return PoissonRepresentationMechanism(epsilon, ball, options["alpha"])


def _entry(
    name: str,
    title: str,
    paper: str,
    build: Callable[[float, NormBall, Values], Mechanism],
    options: tuple[Option, ...] = (),
    candidates: Callable[[Task], Sequence[Values]] = lambda _: ({},),
    lower_bound: Callable[[Task], float | None] = unbiased_local_lower_bound,
    *,
    on_real_numbers: bool = False,
) -> Entry:
    """Return the entry of a purely private mechanism built from epsilon, an L2 ball and options."""
    return Entry(
        name=name,
        title=title,
        paper=paper,
        domains=(NormBall,),
        trust_model="local",
        adjacencies=REPLACE_ONE,
        accounts=PURE_ACCOUNTS,
        options=options,
        build=pure_vector(name, build, L2),
        norms=L2,
        lower_bound=lower_bound,
        candidates=candidates,
        on_real_numbers=on_real_numbers,
    )


ENTRIES = (
    _entry(
        "privunit",
        "PrivUnit: a unit vector, likelier in the input's best cap, uncompressed",
        f"Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, Protection against reconstruction; with the optimal parameters of {ASI}",
        _privunit,
        on_real_numbers=True,
    ),
    _entry(
        "privunit-g",
        "PrivUnitG: a Gaussian vector, likelier in the input's cap, uncompressed",
        ASI,
        _privunit_g,
        on_real_numbers=True,
    ),
    _entry(
        "projunit",
        "ProjUnit: PrivUnit in a public random subspace",
        PROJECTIONS,
        _projunit,
        (PROJECTED,),
        lambda _: [{"projected": number} for number in (16, 64)],
        on_real_numbers=True,
    ),
    _entry(
        "fast-projunit",
        "FastProjUnit: PrivUnit of public random rows of a Walsh-Hadamard transform",
        PROJECTIONS,
        _fast_projunit,
        (HADAMARD_PROJECTED,),
        lambda _: [{"projected": number} for number in (64, 256)],
        local_lower_bound,
        on_real_numbers=True,
    ),
    _entry(
        "rotating-simplex",
        "Rotating simplex: the number of one of the closest corners of a public random simplex",
        ISIK,
        _simplex,
        (SIMPLEX_BITS,),
        tried_message_bits((1, 2, 4), USUAL_SIMPLEX_BITS),
    ),
    _entry(
        "minimal-random-coding",
        "PrivUnitG as the number of a shared random candidate",
        SHAH,
        _coding,
        (CODING_BITS,),
        CODING_TRIED,
    ),
    _entry(
        "minimal-random-coding-plain",
        "PrivUnitG as the number of a shared random candidate, drawn by its density: biased, at the epsilon that is proven",
        SHAH,
        _plain,
        (CODING_BITS, UNBIASED),
        CODING_TRIED,
        local_lower_bound,
    ),
    _entry(
        "poisson-private-representation",
        "PrivUnit, simulated exactly, as the number of a public random point",
        "Liu, Chen, Özgür, Li 2024, Universal exact compression of differentially private mechanisms",
        _poisson,
        (ALPHA,),
    ),
)
