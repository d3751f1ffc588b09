"""The registry's local entries for vectors on a sphere: PrivUnit, projections, and codes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...arguments import LARGEST_DIMENSION
from ...design.contracts.calibration import per_round_epsilon
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
from ...design.relative_entropy.shared_randomness import MOST_SEED_BITS
from ...solvers.numerics.walsh_hadamard import padded_dimension
from .local import L2, PURE_ACCOUNTS, REPLACE_ONE, pure_vector
from .lower_bounds import local_lower_bound, unbiased_local_lower_bound
from .shared_options import tried_message_bits

CODING_BITS = Option("message_bits", int, "log2 of the number of candidates, which is also the length of a message.", 8, 1, 20, "bits")
SHARED_SEED_BITS = Option(
    "seed_bits",
    int,
    "log2 of the number of public seeds that clients share; by default each client has its own. Shared seeds save time and add an error.",
    None,
    0,
    MOST_SEED_BITS,
    "bits",
)
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
# Default limit of a rotating simplex's bits, because a client's time grows with the square of the number of corners.
USUAL_SIMPLEX_BITS = 7
# Number of an index's bits that plans try for every epsilon, and largest number of coordinates of all candidates of a client, which takes
# about a second.
USUAL_CODING_BITS, MOST_CODED = 10, 2**26
ASI = "Asi, Feldman, Talwar 2022, Optimal algorithms for mean estimation under local differential privacy"
PROJECTIONS = "Asi, Feldman, Nelson, Nguyen, Talwar 2023, Fast optimal locally private mean estimation via random projections"
ISIK = "Isik, Chen, Özgür, Weissman, No 2023, Exact optimality of communication-privacy-utility tradeoffs in distributed mean estimation"
SHAH = "Shah, Chen, Ballé, Kairouz, Theis 2022, Optimal compression of locally differentially private mechanisms"


def _useful_bits(task: Task) -> int:
    """Return the bits of a message that a round's epsilon can use, about log2(e^epsilon)."""
    # The mechanism itself refuses another adjacency.
    return math.ceil(per_round_epsilon(replace(task.budget, adjacency=REPLACE_ONE[0])) / math.log(2))


def _simplex_tried(task: Task) -> Sequence[Values]:
    """Return numbers of bits that grow with epsilon, beyond the usual best one."""
    ball = task.ball("rotating-simplex", L2)
    most = min(int(SIMPLEX_BITS.high), most_simplex_bits(ball.dimension), max(USUAL_SIMPLEX_BITS, _useful_bits(task)))
    return tried_message_bits((1, 2, 4, *range(USUAL_SIMPLEX_BITS + 1, most + 1)), most)(task)


def _coding_tried(task: Task) -> Sequence[Values]:
    """Return numbers of bits that grow with epsilon, as far as a client has time; time doubles with every bit."""
    ball = task.ball("minimal-random-coding", L2)
    in_time = max(USUAL_CODING_BITS, int(math.log2(MOST_CODED / ball.dimension)))
    most = min(int(CODING_BITS.high), in_time, max(USUAL_CODING_BITS, _useful_bits(task)))
    return tried_message_bits((*range(2, most, 2), most), most, usual=False)(task)


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
    return min((RotatingSimplexMechanism(epsilon, bits, ball) for bits in numbers), key=lambda mechanism: mechanism.variance_bound)


def _coding(epsilon: float, ball: NormBall, options: Values) -> Mechanism:
    return MinimalRandomCodingMechanism(epsilon, options["message_bits"], ball, options["seed_bits"])


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
    formula: str,
    use: str,
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
        formula=formula,
        use=use,
    )


ENTRIES = (
    _entry(
        "privunit",
        "PrivUnit: a unit vector, likelier in the input's best cap, uncompressed",
        f"Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, Protection against reconstruction; with the optimal parameters of {ASI}",
        _privunit,
        on_real_numbers=True,
        formula=(
            r"For a unit vector $v$, the message is a point $x$ of the unit sphere, $e^\varepsilon$ times as likely where $\langle x, v "
            r"\rangle \ge \tau$ as elsewhere. With $m$ the mean of $\langle x, v \rangle$ and $c$ the clip norm it is decoded to "
            r"$$\frac{c}{m}\, x, \qquad \mathrm{Var} = c^2 \left(\frac{1}{m^2} - 1\right) \text{ on the sphere},$$ and $\tau$ maximises "
            r"$m$."
        ),
        use=(
            "Use it in comparisons, as the reference for vectors of the L2 ball: on the sphere its variance is the least that is possible "
            "for unbiased, purely private mechanisms."
        ),
    ),
    _entry(
        "privunit-g",
        "PrivUnitG: a Gaussian vector, likelier in the input's cap, uncompressed",
        ASI,
        _privunit_g,
        on_real_numbers=True,
        formula=(
            r"For a unit vector $v$, the message $x$ has the density of independent standard normal coordinates times "
            r"$$\frac{e^\varepsilon}{Z} \text{ where } \langle x, v \rangle \ge \tau, \quad \frac{1}{Z} \text{ elsewhere}, \qquad Z = "
            r"e^\varepsilon \Phi(-\tau) + \Phi(\tau).$$ With $m$ the mean of $\langle x, v \rangle$ and $c$ the clip norm it is decoded to "
            r"$\frac{c}{m} x$."
        ),
        use=(
            "Use it in comparisons in many dimensions: its variance is close to that of `privunit`. `minimal-random-coding` sends it in a "
            "few bits."
        ),
    ),
    _entry(
        "projunit",
        "ProjUnit: PrivUnit in a public random subspace",
        PROJECTIONS,
        _projunit,
        (PROJECTED,),
        lambda _: [{"projected": number} for number in (16, 64)],
        on_real_numbers=True,
        formula=(
            r"Public randomness draws a matrix $P$ of $k$ orthonormal rows for each client. The client sends the message $x$ of PrivUnit "
            r"for the direction of $P v$. With $m$ PrivUnit's mean in $k$ dimensions, $r$ the mean norm of $P v$, and $c$ the clip norm, "
            r"it is decoded to $$\frac{c}{m\, r}\, P^\top x.$$"
        ),
        use=("Use it in comparisons where PrivUnit's message should have fewer numbers than the vector has coordinates."),
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
        formula=(
            r"$P$ consists of $k$ public random rows of $H D$, the Walsh-Hadamard transform of coordinates with random signs, padded to a "
            r"power of two. The client sends the message $x$ of PrivUnit for the direction of $P v$. With $m$ PrivUnit's mean in $k$ "
            r"dimensions, $r$ the mean norm of a uniformly random projection, and $c$ the clip norm, it is decoded to $$\frac{c}{m\, r}\, "
            r"P^\top x.$$"
        ),
        use=(
            "Use it in comparisons in very many dimensions: a client takes time in proportion to d log d. The estimate may have a small "
            "bias, whose bound is stated."
        ),
    ),
    _entry(
        "rotating-simplex",
        "Rotating simplex: the number of one of the closest corners of a public random simplex",
        ISIK,
        _simplex,
        (SIMPLEX_BITS,),
        _simplex_tried,
        formula=(
            r"The $M = 2^b$ corners of a simplex are rotated at random, from a public seed, anew for each client. Each of the $k$ corners "
            r"closest to the vector is sent with probability $e^\varepsilon/(k e^\varepsilon + M - k)$, each other one with $1/(k "
            r"e^\varepsilon + M - k)$. With $S$ the expected sum of the $k$ largest of $M$ standard normal numbers and $\chi_d$ the mean "
            r"norm of $d$ of them, a corner $s$ is decoded to $$\frac{c}{m}\, s, \qquad m = \sqrt{\frac{M}{M-1}}\; \frac{e^\varepsilon - "
            r"1}{k e^\varepsilon + M - k}\; \frac{S}{\chi_d}.$$ $c$ is the clip norm."
        ),
        use=(
            "Use it for vectors of the L2 ball whose messages must be private by themselves in 1 to 12 bits. It has no bias, and its "
            "guarantee holds for every public seed."
        ),
    ),
    _entry(
        "minimal-random-coding",
        "PrivUnitG as the number of a shared random candidate",
        SHAH,
        _coding,
        (CODING_BITS, SHARED_SEED_BITS),
        _coding_tried,
        formula=(
            r"A public seed gives $K = 2^b$ standard normal candidates $z$ for each client. If a share $s$ of them has $\langle z, v "
            r"\rangle \ge \tau$, one of these is sent with probability $$\min\!\left(\frac{s\, e^\varepsilon}{Z},\; 1 - \frac{1 - "
            r"s}{Z}\right), \qquad Z = e^\varepsilon q + 1 - q, \quad q = \Phi(-\tau),$$ and one of the others otherwise. With $m$ the "
            r"mean of $\langle z, v \rangle$ and $c$ the clip norm, the candidate is decoded to $\frac{c}{m} z$."
        ),
        use=(
            "Use it for vectors of the L2 ball in about 8 to 20 bits: the error approaches that of `privunit-g` with the number of bits. "
            "With few bits `rotating-simplex` has less error. Where a machine codes for many clients, shared seeds (`seed_bits`) save time."
        ),
    ),
    _entry(
        "minimal-random-coding-plain",
        "PrivUnitG as the number of a shared random candidate, drawn by its density: biased, at the epsilon that is proven",
        SHAH,
        _plain,
        (CODING_BITS, UNBIASED),
        _coding_tried,
        local_lower_bound,
        formula=(
            r"Of $K = 2^b$ public candidates, $n$ have $\langle z, v \rangle \ge \tau$. With the epsilon $\varepsilon_0$ of the coded "
            r"density, each of these is sent with probability $$\frac{e^{\varepsilon_0}}{n e^{\varepsilon_0} + K - n},$$ and each other "
            r"one with $1/(n e^{\varepsilon_0} + K - n)$. The sum depends on the vector: the proven $\varepsilon$ is up to $2 "
            r"\varepsilon_0$."
        ),
        use=("Use it to compare with published results. `minimal-random-coding` has neither its bias nor its excess of epsilon."),
    ),
    _entry(
        "poisson-private-representation",
        "PrivUnit, simulated exactly, as the number of a public random point",
        "Liu, Chen, Özgür, Li 2024, Universal exact compression of differentially private mechanisms",
        _poisson,
        (ALPHA,),
        formula=(
            r"Public points $z_i$ of the sphere get arrival times $T_1 < T_2 < \ldots$ of the client's own Poisson process. With $r$ the "
            r"density of PrivUnit at $\varepsilon_0$ over the uniform one, the client sends $i$ with probability $$P(i) \propto "
            r"\left(\frac{r(z_i)}{T_i}\right)^{\alpha}, \qquad \varepsilon = 2 \alpha \varepsilon_0.$$ The point $z_i$ then has PrivUnit's "
            r"law, and is decoded as by PrivUnit."
        ),
        use=(
            "Use it where the decoded point must have exactly the law of `privunit`, in a message of a few bits. The proven epsilon is at "
            "least 2.5 times that of the law, so that its error is larger than that of `privunit` at the same epsilon."
        ),
    ),
)
