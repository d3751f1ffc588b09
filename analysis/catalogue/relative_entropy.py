"""The registry's entry of DP-REC."""

import math

from ...arguments import check_choice
from ...design.contracts.calibration import calibrate_parameter
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Account, EpsilonBound
from ...design.contracts.registry import AccountSubject, Entry, Noise, Option, Values
from ...design.contracts.task import Budget, Task
from ...design.relative_entropy.dp_rec import (
    ANY_BITS,
    ANY_CLIENTS,
    DP_REC_ACCOUNTS,
    DP_REC_ADJACENCIES,
    MOST_CLIENTS_PER_ROUND,
    SMALLEST_MESSAGE_RATIO,
    DpRecMechanism,
    DpRecTraining,
    accounted_dp_rec,
    message_account,
)
from ...design.relative_entropy.group_layout import uniform_layout
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.dp_rec_privacy import LARGEST_CLIP_RATIO, LARGEST_POPULATION, MOST_BITS, SMALLEST_CLIP_RATIO, VARIANTS
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT

# Number that represents an infinite epsilon in the root search.
HUGE_EPSILON = 1e100

GROUPS = Option("groups", int, "Number of groups of coordinates, each with an index of its own.", 1, 1, 2**20)
GROUP_BITS = Option("group_bits", int, "Bits of each group's index.", 7, 1, 20, "bits")
POPULATION = Option("population", int, "Number of clients.", low=1, high=LARGEST_POPULATION, unit="clients")
CLIENTS_PER_ROUND = Option(
    "clients_per_round", int, "Number of clients of a round, drawn with replacement.", low=1, high=MOST_CLIENTS_PER_ROUND, unit="clients"
)
INDEX_BITS = Option(
    "index_bits", int, "Bits of all groups' indices together; the seed is sent with them.", low=1, high=MOST_BITS, unit="bits"
)
CLIP_RATIO = Option(
    "clip_ratio",
    float,
    "Clip norm of an update over the standard deviation of the prior.",
    low=SMALLEST_CLIP_RATIO,
    high=LARGEST_CLIP_RATIO,
)


def _dp_rec(task: Task, options: Values) -> Mechanism:
    """Return DP-REC with messages private by themselves, for any behaviour of other clients."""
    ball, budget = task.ball("dp-rec", (2.0,)), task.budget_of("dp-rec")

    def epsilon_of(clip_ratio: float) -> float:
        return message_account(clip_ratio).bound(budget.delta, budget.rounds, None).epsilon

    if epsilon_of(LARGEST_SHIFT) <= task.epsilon:
        ratio = LARGEST_SHIFT
    else:
        ratio = calibrate_parameter(epsilon_of, budget, low=SMALLEST_MESSAGE_RATIO, high=LARGEST_SHIFT, name="clip ratio", start=0.1)
    layout = uniform_layout(ball.dimension, min(options["groups"], ball.dimension), options["group_bits"])
    return DpRecMechanism(ball, ratio, layout, budget.delta)


def _account(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    training = DpRecTraining(values["clip_ratio"], values["population"], values["clients_per_round"], values["index_bits"])
    return accounted_dp_rec(training, adjacency)


def largest_clip_ratio(budget: Budget, given: Values) -> float:
    """Return the largest clip ratio, by the method's account or the proven account.

    The largest clip ratio has the least noise. If the bits limit the ratio, epsilon may be well below the budget.
    """
    check_delta(budget.delta)

    def account(clip_ratio: float) -> AccountSubject:
        return _account({**given, "clip_ratio": clip_ratio}, budget.adjacency, None)

    def keeps(row: Account) -> bool:
        return row.is_guarantee and row.adjacency == budget.adjacency if budget.method is None else row.name == budget.method

    def bound(clip_ratio: float) -> EpsilonBound:
        """Return the least bound of the method's accounts, and skip other accounts, which take time."""
        bounds = (row.bound(budget.delta, budget.rounds, None) for row in account(clip_ratio).privacy.accounts if keeps(row))
        nothing = EpsilonBound.nothing(
            f"method must name an account for {budget.adjacency} adjacency, {', '.join((*VARIANTS, ANY_BITS))}, got None: each of them "
            "assumes something about other clients"
        )
        return min(bounds, key=lambda bound: bound.epsilon, default=nothing)

    smallest = bound(SMALLEST_CLIP_RATIO)
    if math.isinf(smallest.epsilon):
        raise InfeasibleError(smallest.reason or "index_bits must be more")
    return calibrate_parameter(
        lambda ratio: min(bound(ratio).epsilon, HUGE_EPSILON),
        budget,
        low=SMALLEST_CLIP_RATIO,
        high=LARGEST_CLIP_RATIO,
        name="clip ratio",
        start=1.0,
    )


def adjacency_of_account(method: str | None) -> str:
    """Return the adjacency of the account that keeps a budget; None for a proven account."""
    check_choice("method", method or ANY_CLIENTS, DP_REC_ACCOUNTS)
    return "add-or-remove-one" if method in (*VARIANTS, ANY_BITS) else "replace-one"


DP_REC = Entry(
    name="dp-rec",
    title="DP-REC: the number of a shared Gaussian sample that could have come from the vector",
    paper="Triastcyn, Reisser, Louizos 2021, DP-REC: private and communication-efficient federated learning",
    domains=(NormBall,),
    trust_model="local",
    adjacencies=("replace-one",),
    accounts=DP_REC_ACCOUNTS,
    options=(GROUPS, GROUP_BITS),
    build=_dp_rec,
    noise=Noise(
        "dp-rec",
        "DP-REC over a training, against those who see its models",
        (CLIP_RATIO, POPULATION, CLIENTS_PER_ROUND, INDEX_BITS),
        _account,
        given=(POPULATION, CLIENTS_PER_ROUND, INDEX_BITS),
        solve=lambda budget, given: {"clip_ratio": largest_clip_ratio(budget, given)},
        adjacencies=DP_REC_ADJACENCIES,
        offered=lambda _, __, method: (adjacency_of_account(method),),
    ),
    norms=(2.0,),
    formula=(
        r"For each group of coordinates, a seed of the client gives $K = 2^b$ samples $z_k$ of $\mathcal{N}(0, \sigma^2 I)$. The "
        r"client sends the seed and a number $k$, drawn with probability $$P(k) \propto \exp\!\left(\frac{\langle x, z_k "
        r"\rangle}{\sigma^2} - \frac{\lVert x \rVert^2}{2 \sigma^2}\right), \qquad \sigma = \frac{C}{c},$$ for the clip norm $C$ and "
        r"the clip ratio $c$. The server averages the samples $z_k$."
    ),
    use=(
        "Use it for training where a message must take few bytes, and privacy is needed against those who see the models. Against the "
        "server, which sees messages, its error at the same epsilon is large."
    ),
)
ENTRIES = (DP_REC,)
