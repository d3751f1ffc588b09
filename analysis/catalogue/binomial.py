"""The registry's entry of binomial noise, the noise of cpSGD, which has only an account."""

import math

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_choice
from ...design.contracts.registry import AccountSubject, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Budget
from ...design.secure_sum.binomial_account import BinomialNoise, accounted_binomial
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.accounting.sampling import Sampling
from ...solvers.divergences.binomial_divergence import MOST_EXACT_TRIALS
from ...solvers.divergences.cpsgd_theorem import MOST_TRIALS
from ...solvers.numerics.bisection import first_true

METHODS = ("theorem-1", "exact", "rdp", "near-gaussian")
PROVEN = ("near-gaussian", "exact", "rdp")
# Factor by which each step of the search multiplies the number of trials.
GROWTH = 4
# The exact account is an upper bound with a relative error below 1e-5.
ROUNDING = 1 + 1e-5
NEARBY = 1000


def _noise(values: Values, adjacency: str | None, sampling: Sampling | None) -> BinomialNoise:
    neighbours = usual_adjacency(adjacency, sampling, ("replace-one", "add-or-remove-one"))
    named = {name: values[name] for name in ("trials", "probability", "scale", "dimension", "l1", "l2", "linf")}
    return BinomialNoise(**named, adjacency=neighbours)


def _account(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    return accounted_binomial(_noise(values, adjacency, sampling))


def _solve(budget: Budget, given: Values) -> Values:
    """Return the fewest trials that keep a budget, as every account decreases with the trials."""
    if budget.method is not None:
        check_choice("method", budget.method, METHODS)
    epsilon = budget.epsilon
    check_delta(budget.delta)
    most = MOST_TRIALS if budget.method in ("theorem-1", "near-gaussian", None) else MOST_EXACT_TRIALS
    methods = PROVEN if budget.method is None else (budget.method,)

    def noise(trials: int) -> BinomialNoise:
        return _noise({**given, "trials": trials}, budget.adjacency, budget.sampling)

    def reached(trials: int, method: str) -> float:
        try:
            return noise(trials).privacy().account(method).bound(budget.delta, budget.rounds, budget.sampling).epsilon
        except InfeasibleError:
            return math.inf

    # Largest numbers of trials that failed, by method; smaller numbers of trials fail, too.
    too_few = dict.fromkeys(methods, 0)

    def enough_by(trials: int, method: str) -> bool:
        if trials > too_few[method]:
            epsilon_reached = reached(trials, method)
            if epsilon_reached <= epsilon:
                return True
            if math.isfinite(epsilon_reached):
                too_few[method] = trials
                # No account of the summed noise is below the exact account, except for its rounding.
                if method == "exact" and budget.sampling is None and epsilon_reached > ROUNDING * epsilon:
                    too_few.update(dict.fromkeys(too_few.keys() - {"near-gaussian"}, trials))
        return False

    def enough_are(trials: int) -> bool:
        for method in methods:
            if method == "rdp" and trials > too_few[method]:
                # A slightly larger number rarely suffices if the exact account fails, so skip close trials.
                enough_by(min(most, trials + trials // NEARBY), method)
            if enough_by(trials, method):
                return True
        return False

    trials = first_true(1, most, enough_are, growth=GROWTH)
    if not enough_are(trials):
        raise InfeasibleError(f"epsilon must be larger: no number of trials up to {most} gives {epsilon:g} at delta {budget.delta:g}")
    return {"trials": trials}


_PROBABILITY = Option("probability", float, "Probability of success of a trial.", low=0.0, high=1.0)
_SCALE = Option("scale", float, "What one success adds; the vectors' coordinates are multiples of it.", low=1e-100, high=1e100)
_SIZES = (
    Option("dimension", int, "Number of coordinates that noise is added to.", low=1, high=LARGEST_ACCOUNTED_DIMENSION, unit="coordinates"),
    Option("l1", float, "L1 sensitivity, in the vectors' units.", low=0.0, high=1e100),
    Option("l2", float, "L2 sensitivity, in the vectors' units.", low=0.0, high=1e100),
    Option("linf", float, "L-infinity sensitivity, in the vectors' units.", low=0.0, high=1e100),
)
_TRIALS = Option("trials", int, "Trials of a coordinate's noise, of all clients together.", low=1, high=MOST_TRIALS)
BINOMIAL = Noise(
    "binomial",
    "Binomial noise in a secure sum",
    (_TRIALS, _PROBABILITY, _SCALE, *_SIZES),
    _account,
    given=(_PROBABILITY, _SCALE, *_SIZES),
    solve=_solve,
    adjacencies=("replace-one", "add-or-remove-one"),
)
NOISES = (BINOMIAL,)
