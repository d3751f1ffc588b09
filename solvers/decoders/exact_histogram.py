"""The histogram of n items from sums of a random half of them: an integer program, with a proof that the solution is the only one.

Chen, Özgür, Cormode, Bharadwaj 2023, *The communication cost of security and privacy in federated frequency estimation*, theorem 4.2, whose
decoder tries all histograms. `docs/exact-histograms.md` has the method, and what it reaches.
"""

import time
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import IntegerArray
from ...errors import ConvergenceError, InfeasibleError
from .histogram_branching import HistogramTree
from .histogram_message_passing import guess_histogram
from .histogram_problem import HistogramProblem, pose_histogram_problem

LONGEST_TIME = 1e6
# Each round of the search keeps this many times as many guesses, and looks at as many times as many branches, as the one before.
GROWTH = 4
FIRST_WIDTH, FIRST_NODES = 4, 64


@dataclass(frozen=True, eq=False)
class HistogramSolution:
    """A histogram with the given sums, and whether there is another.

    Attributes
    ----------
    counts : ndarray of int64, shape (dimension,)
        The histogram: of whole numbers, none negative, of sum n, and with S counts = y exactly.
    unique : bool or None
        True: proven to be the only one, in exact integers. False: `other` is another. None: the time was up, or no proof was asked for.
    other : ndarray of int64, shape (dimension,), or None
        A second histogram with the same sums.
    method : str
        What found `counts`: ``"message-passing"`` or ``"branching"``.
    nodes : int
        Branches of the search tree that were looked at; 1 or so where the linear relaxation is enough.
    """

    counts: IntegerArray
    unique: bool | None
    other: IntegerArray | None
    method: str
    nodes: int


def decode_histogram(
    matrix: ArrayLike, sums: ArrayLike, clients: int, *, time_limit: float = 60.0, prove_unique: bool = True
) -> HistogramSolution:
    """Find whole numbers mu >= 0 with sum n and S mu = y, and prove that there are no others, or find some.

    Parameters
    ----------
    matrix : array_like of shape (measurements, dimension)
        S, zeros and ones; at most 2**28 entries.
    sums : array_like of int, shape (measurements,)
        y.
    clients : int
        n, from 0 to 2**20.
    time_limit : float
        In seconds; the search may take a little longer.
    prove_unique : bool
        Whether to go on, with a solution at hand, until it is proven the only one or another is found.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no histogram has these sums: proven.
    ConvergenceError
        If no solution was found in time.

    Examples
    --------
    >>> matrix = [[1, 0, 1, 0], [0, 1, 1, 0]]
    >>> found = decode_histogram(matrix, [3, 4], clients=4)
    >>> found.counts.tolist(), found.unique
    ([0, 1, 3, 0], True)
    >>> decode_histogram(matrix, [1, 1], clients=2).unique
    False
    """
    problem = pose_histogram_problem(matrix, sums, clients)
    start = time.monotonic()
    deadline = start + check_real("time_limit", time_limit, low=0.0, high=LONGEST_TIME)
    first = guess_histogram(problem, 1, deadline)
    tree = HistogramTree(problem, first.beliefs)
    method = "message-passing"
    width, nodes = FIRST_WIDTH, FIRST_NODES
    found = first.counts
    while found is None and not tree.solutions:
        # The two in turn: guesses are found where the tree is large, and the tree ends where there is nothing to be found.
        tree.search(1, deadline, nodes)
        if tree.solutions:
            method = "branching"
        elif tree.exhausted:
            raise InfeasibleError(
                f"no histogram of {problem.clients} items has these {len(problem.sums)} sums: matrix, sums or number of clients are not "
                "those that the items were encoded with"
            )
        elif time.monotonic() > deadline:
            raise ConvergenceError(
                f"no histogram with these sums was found in {time_limit:g} s ({tree.nodes} branches): more measurements make it easier"
            )
        else:
            found = guess_histogram(problem, width, deadline).counts
            width, nodes = GROWTH * width, GROWTH * nodes
    if found is not None:
        tree.add(found)
    if prove_unique:
        tree.search(2, deadline)
    return _solution(problem, tree, method)


def _solution(problem: HistogramProblem, tree: HistogramTree, method: str) -> HistogramSolution:
    if not all(problem.solved_by(counts) for counts in tree.solutions):
        raise ConvergenceError("the histogram decoder found counts that do not have the given sums")
    counts, *others = tree.solutions
    unique = False if others else True if tree.exhausted else None
    return HistogramSolution(counts, unique, others[0] if others else None, method, tree.nodes)
