"""Verification of lookup tables: recomputation of the certificate, without a solver."""

import math
from itertools import pairwise

import numpy as np

from ...arguments import check_interval
from ...errors import ConvergenceError, TableError
from ...solvers.bounds.privacy_constraint import metric_name, metric_power
from .certificate import certify, objective_value, optimality_gap
from .lookup_table import Certificate, LookupTable
from .randomised_response import BITWISE, GENERALISED, is_bitwise_response, is_generalised_response
from .table_facts import realised_epsilon

MVU = "mvu"
LARGEST_TOTAL_BITS = 62
MOST_BITS = 9
# Largest magnitude of a letter; floats cannot average larger letters.
LARGEST_LETTER = 2**200
# Largest power p of the metric |y - y'|**p; larger powers overflow.
LARGEST_POWER = 64
# Tolerance of the recomputed bound, since the last digits of floating-point arithmetic depend on the machine.
BOUND_TOLERANCE = 1e-9


def verify_table(table: LookupTable) -> Certificate:
    """Return a table's certificate after recomputing it, or raise TableError if it differs.

    The table may come from an untrusted file. Realised epsilon, bias and variances are recomputed exactly; the lower bounds are proven by
    dual values and by dual vectors.

    Raises
    ------
    TableError
        At the first failed check, in this order: ``parameters``, ``total``, ``shape``, ``negative-weights``, ``row-sums``, ``alphabet``,
        ``zero-beside-nonzero``, ``realised-epsilon``, ``certificate``, ``certified-epsilon``, ``certified-bias``,
        ``certified-mean-variance``, ``certified-worst-variance``, ``lower-bound``, ``optimality-gap``, ``letters-lower-bound``,
        ``letters-gap``, ``mechanism``. The detail states the difference.
    """
    _check_parameters(table)
    _check_weights(table)
    _check_alphabet(table)
    _check_privacy(table)
    _check_certificate(table)
    _check_mechanism(table)
    return table.certificate


def _check_mechanism(table: LookupTable) -> None:
    """Compare the mechanism's name with the weights and letters.

    The name ``"mvu"`` permits any unbiased table, at the distance from the best table that the certificate's bound states; generalised
    randomised response is the best table in some cases, bitwise randomised response of two or more bits in none.
    """
    name = table.mechanism
    if name not in (MVU, GENERALISED, BITWISE):
        raise TableError("mechanism", f"a lookup table is {MVU}, {GENERALISED} or {BITWISE}, got {name!r}")
    if name == MVU:
        if table.certificate.max_bias > 0:
            raise TableError("mechanism", f"{MVU} has no bias, this table has one of up to {table.certificate.max_bias:g}")
        if table.bits_in > 1 and is_bitwise_response(table):
            raise TableError("mechanism", f"this is {BITWISE}, not {MVU}")
        return
    is_named = is_generalised_response if name == GENERALISED else is_bitwise_response
    if table.metric is not None or not is_named(table):
        raise TableError("mechanism", f"the weights and letters are not those of {name}")


def _check_parameters(table: LookupTable) -> None:
    if not (math.isfinite(table.epsilon) and table.epsilon > 0):
        raise TableError("parameters", f"epsilon must be a positive number, got {table.epsilon!r}")
    if (table.adjacency, table.trust_model) != ("replace-one", "local"):
        raise TableError("parameters", f"a lookup table is replace-one and local, not {table.adjacency!r} and {table.trust_model!r}")
    try:
        check_interval("interval", table.interval)
        name, power = metric_name(table.metric), metric_power(table.metric)
    except ValueError as error:
        raise TableError("parameters", str(error)) from None
    if power is not None and power > LARGEST_POWER:
        raise TableError("parameters", f"the metric's power must be at most {LARGEST_POWER}, got {table.metric!r}")
    if name != table.metric:
        raise TableError("parameters", f"metric must be written {name!r}, got {table.metric!r}")


def _check_weights(table: LookupTable) -> None:
    bits = table.total.bit_length() - 1
    if not 1 <= bits <= LARGEST_TOTAL_BITS or table.total != 2**bits:
        raise TableError("total", f"total must be a power of two from 2 to 2**{LARGEST_TOTAL_BITS}, got {table.total}")
    if not (1 <= table.bits_in <= MOST_BITS and 1 <= table.bits_out <= MOST_BITS):
        raise TableError("shape", f"bits_in and bits_out must be from 1 to {MOST_BITS}, got {table.bits_in} and {table.bits_out}")
    expected = (2**table.bits_in, 2**table.bits_out)
    if table.weights.shape != expected:
        raise TableError("shape", f"weights must have {expected[0]} rows of {expected[1]}, got shape {table.weights.shape}")
    if len(table.alphabet) != expected[1]:
        raise TableError("shape", f"alphabet must have {expected[1]} letters, got {len(table.alphabet)}")
    if table.weights.min() < 0:
        row, letter = (int(index) for index in np.unravel_index(table.weights.argmin(), expected))
        raise TableError("negative-weights", f"row {row}, letter {letter} has weight {table.weights[row, letter]}")
    # Python integers hold the sum of a tampered row, which may exceed 64 bits.
    for row, total in enumerate(table.weights.astype(object).sum(axis=1)):
        if total != table.total:
            raise TableError("row-sums", f"row {row} sums to {total}, {total - table.total:+d} from the total {table.total}")


def _check_alphabet(table: LookupTable) -> None:
    if max(abs(letter) for letter in table.alphabet) > LARGEST_LETTER:
        raise TableError("alphabet", f"letters must be from {-LARGEST_LETTER:g} to {LARGEST_LETTER:g}")
    for j, (letter, after) in enumerate(pairwise(table.alphabet)):
        if letter > after:
            raise TableError("alphabet", f"letters must be sorted: letter {j} exceeds letter {j + 1} by {float(letter - after):.6g}")


def _check_privacy(table: LookupTable) -> None:
    used = table.weights.max(axis=0) > 0
    if np.any(table.weights[:, used] == 0):
        row, letter = (int(index) for index in np.argwhere((table.weights == 0) & used)[0])
        raise TableError(
            "zero-beside-nonzero",
            f"letter {letter} never occurs for row {row} and occurs for others, up to weight {table.weights[:, letter].max()}: "
            "its realised epsilon is infinite",
        )
    realised = realised_epsilon(table.weights, table.metric)
    if realised > table.epsilon:
        excess = realised - table.epsilon
        raise TableError("realised-epsilon", f"the weights realise epsilon {realised!r}, {excess:.6g} above the declared {table.epsilon!r}")


def _check_certificate(table: LookupTable) -> None:
    declared = table.certificate
    try:
        actual = certify(
            table.weights,
            table.alphabet,
            table.total,
            epsilon=table.epsilon,
            metric=table.metric,
            objective=declared.objective,
            prior=table.prior,
            dual=declared.dual,
            letters_proof=declared.letters_proof,
        )
    except (ValueError, ConvergenceError) as error:
        raise TableError("certificate", str(error)) from None
    for check, stated, recomputed in (
        ("certified-epsilon", declared.realised_epsilon, actual.realised_epsilon),
        ("certified-bias", declared.max_bias, actual.max_bias),
        ("certified-mean-variance", declared.mean_variance, actual.mean_variance),
        ("certified-worst-variance", declared.worst_variance, actual.worst_variance),
    ):
        if stated != recomputed:
            raise TableError(check, f"the certificate says {stated!r}, the weights say {recomputed!r}: off by {stated - recomputed:.6g}")
    _check_bound("lower-bound", declared.lower_bound, actual.lower_bound)
    _check_gap(table, "optimality-gap", declared.optimality_gap, declared.lower_bound)
    if declared.letters_lower_bound is not None:
        _check_bound("letters-lower-bound", declared.letters_lower_bound, actual.letters_lower_bound)
    _check_gap(table, "letters-gap", declared.letters_gap, declared.letters_lower_bound)


def _check_bound(check: str, stated: float | None, proven: float | None) -> None:
    """Compare a stated lower bound with the bound that the certificate's proofs prove."""
    if stated is None or proven is None:
        if stated is not None or proven is not None:
            raise TableError(
                check, f"a bound and its proof must be given together, got the bound {stated!r} where the proofs give {proven!r}"
            )
        return
    excess = stated - proven
    if not excess <= BOUND_TOLERANCE * abs(proven):
        raise TableError(check, f"the proofs give {proven!r}, the certificate says {stated!r}: {excess:.6g} more")


def _check_gap(table: LookupTable, check: str, stated: float | None, bound: float | None) -> None:
    """Compare a stated gap with the gap between the objective and a stated bound."""
    if bound is None:
        if stated is not None:
            raise TableError(check, f"there is no lower bound for the gap {stated!r}")
        return
    expected = optimality_gap(objective_value(table.moments, table.certificate.objective, table.prior), bound)
    if stated is None or not abs(stated - expected) <= BOUND_TOLERANCE:
        raise TableError(check, f"objective and lower bound leave the gap {expected!r}, the certificate says {stated!r}")
