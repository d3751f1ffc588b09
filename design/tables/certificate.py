"""The certificate of an exact table: privacy, bias and variances as exact fractions."""

import dataclasses
import functools
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_choice, check_interval
from ...arrays import FloatArray
from ...solvers.bounds.dual_bound import dual_lower_bound
from ...solvers.bounds.hitting_set import Splits, replay
from ...solvers.bounds.letter_clauses import DualVectors, TableVariance
from ...solvers.bounds.privacy_constraint import EPSILON_LOW, largest_epsilon, ratio_constraint
from ...solvers.bounds.ray_pricing import DualValues
from ...solvers.bounds.two_letters import two_letter_bound
from .lookup_table import Certificate, DualCertificate, LettersProof, LookupTable
from .provenance import Provenance
from .table_facts import RowMoments, realised_epsilon, rounded_up, row_moments

OBJECTIVES = ("mean", "worst", "prior")
# Largest distance of the sum of input weights, as floats, from 1.
WEIGHT_TOLERANCE = 1e-9
# Number of proofs kept with their replayed bounds; a proof takes a megabyte or more.
REPLAYS = 16


def certified_table(
    *,
    mechanism: str,
    epsilon: float,
    metric: str | None,
    alphabet: tuple[Fraction, ...],
    total: int,
    weights: NDArray[np.int64],
    provenance: Provenance,
    objective: str = "mean",
    prior: tuple[float, ...] | None = None,
    dual: DualCertificate | None = None,
    interval: tuple[float, float] = (0.0, 1.0),
) -> LookupTable:
    """Return the lookup table with given weights and letters, and its recomputed certificate.

    The realised epsilon may exceed the declared epsilon; `verify_table` refuses such a table. Arguments are as in `LookupTable` and
    `certify`.
    """
    certificate = certify(weights, alphabet, total, epsilon=epsilon, metric=metric, objective=objective, prior=prior, dual=dual)
    return LookupTable(
        mechanism=mechanism,
        epsilon=epsilon,
        metric=metric,
        bits_in=_bits(weights.shape[0]),
        bits_out=_bits(weights.shape[1]),
        interval=check_interval("interval", interval),
        alphabet=alphabet,
        total=total,
        weights=weights,
        prior=prior,
        certificate=certificate,
        provenance=provenance,
    )


def with_lower_bound(table: LookupTable, dual: DualCertificate) -> LookupTable:
    """Return a table whose certificate also bounds its distance from the best table.

    The best table may have any number of letters. The dual values are, for example, those of the staircase solver at the same epsilon,
    metric, grid and objective.
    """
    return _certified_with(table, dual, table.certificate.letters_proof)


def with_letters_proof(table: LookupTable, proof: LettersProof) -> LookupTable:
    """Return a table whose certificate also bounds its distance from the best table with as many letters.

    Raises
    ------
    ValueError
        If the proof does not prove its target, or does not fit the table.
    """
    return _certified_with(table, table.certificate.dual, proof)


def with_letters_bound(table: LookupTable) -> LookupTable:
    """Return a table whose certificate has the bound for its number of letters without a search, if there is one."""
    return _certified_with(table, table.certificate.dual, None)


def _certified_with(table: LookupTable, dual: DualCertificate | None, proof: LettersProof | None) -> LookupTable:
    certificate = certify(
        table.weights,
        table.alphabet,
        table.total,
        epsilon=table.epsilon,
        metric=table.metric,
        objective=table.certificate.objective,
        prior=table.prior,
        dual=dual,
        letters_proof=proof,
    )
    return dataclasses.replace(table, certificate=certificate)


def certify(
    weights: NDArray[np.int64],
    alphabet: tuple[Fraction, ...],
    total: int,
    *,
    epsilon: float,
    metric: str | None,
    objective: str,
    prior: tuple[float, ...] | None,
    dual: DualCertificate | None,
    letters_proof: LettersProof | None = None,
) -> Certificate:
    """Return the certificate of a table, recomputed from its weights and proofs.

    Parameters
    ----------
    weights, alphabet, total, epsilon, metric, prior
        Weights, letters, rows' sum and declared privacy, as in `LookupTable`; rows must sum to the total.
    objective : str
        ``"mean"``, ``"worst"`` or ``"prior"``.
    dual : DualCertificate or None
        Dual values that prove a lower bound on the objective; None for a table without a bound.
    letters_proof : LettersProof or None
        A proof of a lower bound for as many letters.

    Returns
    -------
    Certificate
        Realised epsilon and bias are upper bounds, variances are the exact numbers rounded to nearest, lower bounds err downward.

    Raises
    ------
    ValueError
        If the objective, the prior or the proofs do not fit the table, or a proof does not prove its target.
    """
    moments = row_moments(weights, alphabet, total)
    if moments.max_bias > 0 and (dual is not None or letters_proof is not None):
        name = "letters_proof" if dual is None else "dual"
        raise ValueError(f"{name} must be left out for a table with bias: the lower bound is one on unbiased tables")
    stated = objective_value(moments, objective, prior)
    bound = None if dual is None else lower_bound(dual, len(weights), epsilon=epsilon, metric=metric, objective=objective, prior=prior)
    closed = _closed_letters_bound(moments, len(alphabet), epsilon=epsilon, metric=metric, objective=objective, prior=prior)
    proven = None
    if letters_proof is not None:
        proven = _proven_bound(letters_proof, len(alphabet), len(weights), epsilon, metric, objective, prior)
    letters_bound = max((value for value in (bound, closed, proven) if value is not None), default=None)
    return Certificate(
        realised_epsilon=realised_epsilon(weights, metric),
        max_bias=rounded_up(moments.max_bias),
        mean_variance=float(moments.mean_variance),
        worst_variance=float(moments.worst_variance),
        lower_bound=bound,
        optimality_gap=None if bound is None else optimality_gap(stated, bound),
        objective=objective,
        dual=dual,
        letters_lower_bound=letters_bound,
        letters_gap=None if letters_bound is None else optimality_gap(stated, letters_bound),
        letters_proof=letters_proof,
    )


def objective_value(moments: RowMoments, objective: str, prior: tuple[float, ...] | None) -> float:
    """Return the objective of a table: the mean, largest or prior-weighted variance of its rows.

    The value is exact and rounded once. Only the objective ``"prior"`` has a prior; its weights sum to 1.
    """
    check_choice("objective", objective, OBJECTIVES)
    if (prior is not None) != (objective == "prior"):
        raise ValueError(f"prior must be given for the objective 'prior' and for no other, got {prior!r} with objective {objective!r}")
    if objective == "mean":
        return float(moments.mean_variance)
    if prior is None:
        return float(moments.worst_variance)
    _check_input_weights("prior", prior, len(moments.variances))
    exact = [Fraction(weight) for weight in prior]
    return float(sum((weight * variance for weight, variance in zip(exact, moments.variances, strict=True)), Fraction(0)) / sum(exact))


def lower_bound(
    dual: DualCertificate, rows: int, *, epsilon: float, metric: str | None, objective: str, prior: tuple[float, ...] | None
) -> float:
    """Return the proven lower bound of dual values on an objective, for any number of letters.

    The bound is on the unit interval's scale and rounded down. There is one dual value of each kind for each of the `rows` grid inputs.
    Their input weights must be those of the objective; for ``"worst"`` any weights are allowed.
    """
    if {len(dual.normalisation), len(dual.unbiasedness)} != {rows}:
        raise ValueError(f"dual must hold {rows} values of each kind, got {len(dual.normalisation)} and {len(dual.unbiasedness)}")
    _check_input_weights("dual.input_weights", dual.input_weights, rows)
    given = np.array(dual.input_weights)
    # The bound uses the objective's own weights, not the file's rounding of them; for the largest variance all weights prove a bound.
    chosen = given / given.sum() if objective == "worst" else _objective_weights(rows, prior)
    if chosen.shape != given.shape or np.abs(chosen - given).max() > WEIGHT_TOLERANCE:
        raise ValueError(f"dual.input_weights must be those of the objective {objective!r}, got {dual.input_weights!r}")
    values = DualValues(np.array(dual.normalisation), np.array(dual.unbiasedness), chosen)
    return dual_lower_bound(values, np.arange(rows) / (rows - 1), ratio_constraint(epsilon, _bits(rows), metric))


def table_variance(rows: int, *, epsilon: float, metric: str | None, objective: str, prior: tuple[float, ...] | None) -> TableVariance:
    """Return the objective of tables, with grid and privacy, on which a bound for a number of letters is."""
    constraint = ratio_constraint(epsilon, _bits(rows), metric)
    return TableVariance(np.arange(rows) / (rows - 1), None if objective == "worst" else _objective_weights(rows, prior), constraint)


def replayed_bound(proof: LettersProof, variance: TableVariance, letters: int) -> float:
    """Return the bound of a proof, after a search without a linear program has confirmed its target.

    Raises
    ------
    ValueError
        If the proof does not prove its target, does not fit the objective, or exceeds the limits of a replay.
    """
    count = len(variance.inputs)
    if (proof.input_weights is None) != (variance.input_weights is not None):
        raise ValueError("letters_proof must have input_weights for the largest variance, and only for it")
    numbers = [len(part) for part in (proof.split_letters, proof.split_points, proof.splits_below, proof.splits_above)]
    if len(set(numbers)) > 1:
        raise ValueError(f"letters_proof must have its splits in lists of equal lengths, got lengths {numbers}")
    weights = None if proof.input_weights is None else _rows("input_weights", proof.input_weights, count)
    vectors = DualVectors(_rows("normalisation", proof.normalisation, count), _rows("unbiasedness", proof.unbiasedness, count), weights)
    splits = Splits(
        np.array(proof.split_letters, dtype=np.intp),
        np.array(proof.split_points, dtype=float),
        np.array(proof.splits_below, dtype=np.intp),
        np.array(proof.splits_above, dtype=np.intp),
    )
    result = replay(vectors, splits, variance, letters, proof.target)
    if not result.proven:
        raise ValueError(
            f"letters_proof must prove its target {proof.target!r} for {letters} letters, which it does not within {result.nodes} nodes"
        )
    # The weights of the objective are exact, those of the proof are floats that were scaled to the sum 1.
    return proof.target * (1 - 8 * (count + 4) * 2.0**-53)


@functools.lru_cache(maxsize=REPLAYS)
def _proven_bound(
    proof: LettersProof, letters: int, rows: int, epsilon: float, metric: str | None, objective: str, prior: tuple[float, ...] | None
) -> float:
    """Return `replayed_bound` of a table's objective; a replay takes seconds, and a process certifies the same table again and again."""
    return replayed_bound(proof, table_variance(rows, epsilon=epsilon, metric=metric, objective=objective, prior=prior), letters)


def _rows(name: str, values: tuple[tuple[float, ...], ...], count: int) -> FloatArray:
    lengths = sorted({len(row) for row in values})
    if lengths not in ([], [count]):
        raise ValueError(f"letters_proof.{name} must have {count} numbers in each row, got rows of {lengths[0]} to {lengths[-1]}")
    return np.array(values, dtype=float).reshape(-1, count)


def _objective_weights(rows: int, prior: tuple[float, ...] | None) -> FloatArray:
    """Return the weights of the rows' variances in an objective other than the largest variance, with the sum 1."""
    given = np.full(rows, 1.0) if prior is None else np.array(prior)
    scaled: FloatArray = given / given.sum()
    return scaled


def _closed_letters_bound(
    moments: RowMoments, letters: int, *, epsilon: float, metric: str | None, objective: str, prior: tuple[float, ...] | None
) -> float | None:
    """Return the closed form of the least objective of two letters.

    It is None for a table of more than two letters, with bias, with an epsilon outside the range of designs, or with a row that always
    gives the same letter, which keeps no epsilon.
    """
    rows = len(moments.variances)
    bits = _bits(rows)
    certain = min(moments.variances) == 0
    if letters > 2 or moments.max_bias > 0 or certain or not EPSILON_LOW <= epsilon <= largest_epsilon(bits, metric):
        return None
    weights = None if objective == "worst" else _objective_weights(rows, prior)
    return two_letter_bound(rows, ratio_constraint(epsilon, bits, metric), weights)


def optimality_gap(value: float, bound: float) -> float:
    """Return the distance of a positive objective from its lower bound, over the objective."""
    return (value - bound) / value


def _check_input_weights(name: str, weights: tuple[float, ...], rows: int) -> None:
    array = np.array(weights, dtype=float)
    if array.shape != (rows,) or not np.all(np.isfinite(array) & (array >= 0)) or abs(array.sum() - 1) > WEIGHT_TOLERANCE:
        raise ValueError(f"{name} must be {rows} non-negative numbers that sum to one, got {weights!r}")


def _bits(count: int) -> int:
    bits = count.bit_length() - 1
    if count < 2 or count != 2**bits:
        raise ValueError(f"a table must have 2, 4, 8, ... rows and letters, got {count}")
    return bits
