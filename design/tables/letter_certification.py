"""The certificate of a table among all tables with as many letters, from a search tree over letters.

The certificate that every table has compares it with tables of any number of letters. A search in limited time adds the comparison with
tables of the same size: it tells how much a better search for letters, and how much another bit, can gain.
"""

import time
from dataclasses import dataclass

import numpy as np

from ...arguments import check_real
from ...arrays import FloatArray
from ...errors import ConvergenceError, InfeasibleError
from ...progress import OnStep, notebook_progress
from ...solvers.bounds.letter_clauses import TableVariance
from ...solvers.bounds.letter_search_tree import LEAST_TOLERANCE, LetterBound, bound_letters
from .certificate import objective_value, table_variance, with_letters_proof
from .lookup_table import LettersProof, LookupTable
from .mvu import table_with_letters, with_certified_bound

# Smallest share by which the objective of a better table must be lower. Rounding to an exact table costs less.
LEAST_IMPROVEMENT = 1e-6
# Allowance for the rounding of an exact table, as a share of its objective. A table whose rounding costs more ends with a larger gap.
ROUNDING_COST = 1e-8
# Longest search, in seconds.
LONGEST_SEARCH = 30 * 24 * 3600


@dataclass(frozen=True, eq=False)
class LetterCertification:
    """A table with its certificate among tables of as many letters.

    Attributes
    ----------
    table : LookupTable
        The table, with the best proven bound for its number of letters in the certificate.
    better : LookupTable or None
        A table of smaller objective that the search came across, certified by the same bound.
    nodes : int
        Number of nodes of the search; 0 if none was needed.
    seconds : float
        Duration of the search.
    """

    table: LookupTable
    better: LookupTable | None
    nodes: int
    seconds: float

    @property
    def best(self) -> LookupTable:
        """The better table if there is one, otherwise the table."""
        return self.table if self.better is None else self.better


def certify_letters(
    table: LookupTable, *, tolerance: float = 1e-3, seconds: float = 60.0, on_step: OnStep = notebook_progress
) -> LetterCertification:
    """Bound how much better a table with as many letters can be.

    Parameters
    ----------
    table : LookupTable
        An unbiased table; the bound is on its certificate's objective, at its declared epsilon.
    tolerance : float
        Gap at which to stop, a share of the objective, from 2e-7 to 1.
    seconds : float
        Time after which to stop, at most 30 days. What has been proven by then is the result.
    on_step : callable
        ``on_step(seconds, all_seconds, text)``, called as the search goes on.

    Returns
    -------
    LetterCertification
        The table with its bound, and a better table if the search came across one. The bound depends on the machine's speed if time runs
        out.

    Raises
    ------
    ValueError
        If a number is out of range, or the table has a bias.
    ConvergenceError
        If no bound for any number of letters could be computed.

    Examples
    --------
    >>> from quietbits import certify_letters, design_mvu
    >>> table = certify_letters(design_mvu(epsilon=3.0, bits_in=1, bits_out=2)).table
    >>> table.gaps
    'no table of any size is more than 0.0001 % better'
    """
    check_search(seconds=seconds, tolerance=tolerance)
    if table.moments.max_bias > 0:
        raise ValueError(
            f"table must be unbiased, got one with a bias of {float(table.moments.max_bias):.3g}: the bound is on unbiased tables"
        )
    if table.certificate.lower_bound is None:
        table = with_certified_bound(table)
    gap = table.certificate.letters_gap
    if gap is None or gap <= tolerance or len(table.alphabet) == 2:
        return LetterCertification(table, None, 0, 0.0)
    variance = table_variance(
        len(table.weights),
        epsilon=table.epsilon,
        metric=table.metric,
        objective=table.certificate.objective,
        prior=table.prior,
    )

    began = time.monotonic()

    def report(nodes: int, _: int, text: str) -> None:
        on_step(min(int(time.monotonic() - began), int(seconds)), int(seconds), f"{nodes} nodes, {text}")

    alphabet = np.array([float(letter) for letter in table.alphabet])
    # The exact table's objective exceeds that of the search's floats by what rounding costs.
    sought = tolerance - min(ROUNDING_COST, tolerance / 10)
    bound = bound_letters(variance, alphabet, tolerance=sought, seconds=seconds, on_step=report)
    return _certification(table, bound, variance)


def check_search(*, seconds: float, tolerance: float = 1e-3, name: str = "seconds") -> None:
    """Raise ``ValueError`` if the duration, which the user gave under a name, or the tolerance of a search is out of range."""
    check_real(name, seconds, low=0.0, high=LONGEST_SEARCH)
    check_real("tolerance", tolerance, low=2 * LEAST_TOLERANCE, high=1.0)


def _certification(table: LookupTable, bound: LetterBound, variance: TableVariance) -> LetterCertification:
    """Return a table, and the search's own table if it is better, with the bound that the search has proven."""
    better = _better_table(table, bound, variance)
    before = table.certificate
    proof = _proof(bound) if bound.lower_bound > (before.letters_lower_bound or 0.0) else before.letters_proof
    if proof is not None:
        table, better = with_letters_proof(table, proof), better and with_letters_proof(better, proof)
    return LetterCertification(table, better, bound.nodes, bound.seconds)


def _better_table(table: LookupTable, bound: LetterBound, variance: TableVariance) -> LookupTable | None:
    """Return the exact table of the search's letters, with the bound for any number of letters, if it is better than the given table."""
    most = _objective(table) * (1 - LEAST_IMPROVEMENT)
    if bound.value >= most:
        return None
    try:
        better = table_with_letters(table, bound.alphabet, variance)
    except (ConvergenceError, InfeasibleError):
        # Letters whose table cannot be rounded within the declared epsilon are no better table.
        return None
    return better if _objective(better) < most else None


def _objective(table: LookupTable) -> float:
    return objective_value(table.moments, table.certificate.objective, table.prior)


def _proof(bound: LetterBound) -> LettersProof:
    vectors, splits = bound.vectors, bound.splits
    return LettersProof(
        target=bound.lower_bound,
        normalisation=_tuples(vectors.normalisation),
        unbiasedness=_tuples(vectors.unbiasedness),
        input_weights=None if vectors.input_weights is None else _tuples(vectors.input_weights),
        split_letters=tuple(splits.boxes.tolist()),
        split_points=tuple(splits.points.tolist()),
        splits_below=tuple(splits.below.tolist()),
        splits_above=tuple(splits.above.tolist()),
    )


def _tuples(rows: FloatArray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, rows.tolist()))
