"""The certificate of an exact table: privacy, bias and variances as exact fractions."""

import dataclasses
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_choice, check_interval
from ...solvers.bounds.dual_bound import dual_lower_bound
from ...solvers.bounds.privacy_constraint import EPSILON_LOW, largest_epsilon, ratio_constraint
from ...solvers.bounds.ray_pricing import DualValues
from ...solvers.bounds.two_letters import two_letter_bound
from .lookup_table import Certificate, DualCertificate, LookupTable
from .provenance import Provenance
from .table_facts import RowMoments, realised_epsilon, rounded_up, row_moments

OBJECTIVES = ("mean", "worst", "prior")
# Largest distance of the sum of input weights, as floats, from 1.
WEIGHT_TOLERANCE = 1e-9


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
    certificate = table.certificate
    objective = certificate.objective
    bound = lower_bound(dual, len(table.weights), epsilon=table.epsilon, metric=table.metric, objective=objective, prior=table.prior)
    gap = optimality_gap(objective_value(table.moments, objective, table.prior), bound)
    return dataclasses.replace(table, certificate=dataclasses.replace(certificate, lower_bound=bound, optimality_gap=gap, dual=dual))


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
) -> Certificate:
    """Return the certificate of a table, recomputed from its weights and dual values.

    Parameters
    ----------
    weights, alphabet, total, epsilon, metric, prior
        Weights, letters, rows' sum and declared privacy, as in `LookupTable`; rows must sum to the total.
    objective : str
        ``"mean"``, ``"worst"`` or ``"prior"``.
    dual : DualCertificate or None
        Dual values that prove a lower bound on the objective; None for a table without a bound.

    Returns
    -------
    Certificate
        Realised epsilon and bias are upper bounds, variances are the exact numbers rounded to nearest, and the lower bound is rounded down.

    Raises
    ------
    ValueError
        If the objective, the prior or the dual values do not fit the table.
    """
    moments = row_moments(weights, alphabet, total)
    if dual is not None and moments.max_bias > 0:
        raise ValueError("dual must be left out for a table with bias: the lower bound is one on unbiased tables")
    value = objective_value(moments, objective, prior)
    bound = None if dual is None else lower_bound(dual, len(weights), epsilon=epsilon, metric=metric, objective=objective, prior=prior)
    letters_bound = letters_lower_bound(moments, len(alphabet), epsilon=epsilon, metric=metric, objective=objective, prior=prior)
    return Certificate(
        realised_epsilon=realised_epsilon(weights, metric),
        max_bias=rounded_up(moments.max_bias),
        mean_variance=float(moments.mean_variance),
        worst_variance=float(moments.worst_variance),
        lower_bound=bound,
        optimality_gap=None if bound is None else optimality_gap(value, bound),
        objective=objective,
        dual=dual,
        letters_lower_bound=letters_bound,
        letters_gap=None if letters_bound is None else optimality_gap(value, letters_bound),
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
    chosen = {"mean": np.full(rows, 1.0), "worst": given, "prior": np.array(prior if prior is not None else given)}[objective]
    # The bound uses the objective's own weights, not the rounded weights of the file.
    chosen = chosen / chosen.sum()
    if chosen.shape != given.shape or np.abs(chosen - given).max() > WEIGHT_TOLERANCE:
        raise ValueError(f"dual.input_weights must be those of the objective {objective!r}, got {dual.input_weights!r}")
    values = DualValues(np.array(dual.normalisation), np.array(dual.unbiasedness), chosen)
    return dual_lower_bound(values, np.arange(rows) / (rows - 1), ratio_constraint(epsilon, _bits(rows), metric))


def letters_lower_bound(
    moments: RowMoments, letters: int, *, epsilon: float, metric: str | None, objective: str, prior: tuple[float, ...] | None
) -> float | None:
    """Return the proven lower bound on the objective of tables with a table's number of letters.

    The bound holds for every unbiased private table with as many letters. The bound is on the unit interval's scale and rounded down. It is
    None for a table of more than two letters, with bias, with an epsilon outside the range of designs, or with a row that always gives the
    same letter, which keeps no epsilon.
    """
    rows = len(moments.variances)
    bits = _bits(rows)
    certain = min(moments.variances) == 0
    if letters > 2 or moments.max_bias > 0 or certain or not EPSILON_LOW <= epsilon <= largest_epsilon(bits, metric):
        return None
    given = np.full(rows, 1.0) if objective == "mean" else None if prior is None else np.array(prior)
    return two_letter_bound(rows, ratio_constraint(epsilon, bits, metric), None if given is None else given / given.sum())


def with_letters_bound(table: LookupTable) -> LookupTable:
    """Return a table whose certificate has the bound for its number of letters, if there is one."""
    stated, moments = table.certificate, table.moments
    bound = letters_lower_bound(
        moments, len(table.alphabet), epsilon=table.epsilon, metric=table.metric, objective=stated.objective, prior=table.prior
    )
    gap = None if bound is None else optimality_gap(objective_value(moments, stated.objective, table.prior), bound)
    return dataclasses.replace(table, certificate=dataclasses.replace(stated, letters_lower_bound=bound, letters_gap=gap))


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
