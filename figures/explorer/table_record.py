"""A table as the explorer's page holds it: settings, facts, curves, its file and its JavaScript client."""

import base64
import gzip
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import FloatArray
from ...design.deployment.deployment import Deployment
from ...design.deployment.translation.typescript_client import typescript_client
from ...design.tables.certificate import objective_value
from ...design.tables.lookup_table import LookupTable
from ...design.tables.table_mean import TableMeanMechanism
from ...shown import counted, in_figures, percent_up, with_powers
from ...solvers.divergences.vector_composition import vector_divergences
from ..drawing.directed_rounding import rounded_down, rounded_up

# Largest number of values between neighbouring inputs, and the number of values that a page aims at.
MOST_BETWEEN, VALUES = 20, 120
# Rényi orders of the curve.
ORDERS = np.round(np.geomspace(1.1, 128, 36), 3)
DIGITS = 5
ANY_SIZE = "any number of letters"
OBJECTIVES = {"mean": "mean over the inputs", "worst": "worst input", "prior": "prior-weighted mean over the inputs"}


@dataclass(frozen=True)
class Line:
    """A horizontal line of the picture of variances: its kind, its words, and its height, also as text that rounds a bound down."""

    kind: str
    words: str
    height: float
    text: str


def settings_of(table: LookupTable) -> dict[str, Any]:
    """Return what a reader chooses a table by, as values that sort."""
    return {
        "epsilon": float(table.epsilon),
        "bits_in": table.bits_in,
        "bits_out": table.bits_out,
        "mechanism": table.mechanism,
        "metric": table.metric or "none",
        "objective": table.certificate.objective,
        "interval": tuple(map(float, table.interval)),
    }


def table_record(name: str, content: bytes, table: LookupTable) -> dict[str, Any]:
    """Return a table's part of the page as a JSON document.

    Parameters
    ----------
    name : str
        Name of the table's file.
    content : bytes
        Contents of the file, which the page offers unchanged.
    table : LookupTable
        The verified table of the file.
    """
    low, high = map(float, table.interval)
    deployment = Deployment(TableMeanMechanism(table), table.mechanism)
    values = np.linspace(low, high, 1 + (len(table.weights) - 1) * values_between(len(table.weights)))
    # One coordinate, and any two values of the interval.
    divergences = vector_divergences(table.weights, ORDERS, 1, 1.0, 1.0)
    return {
        "file": name,
        "letters": table.letters.tolist(),
        # The page computes the values themselves: rounded ones would collapse on a narrow interval far from zero.
        "interval": [low, high],
        "steps": len(values) - 1,
        "variances": _short(table.variance(values)),
        "lines": [[line.kind, line.words, line.height, line.text] for line in variance_lines(table)],
        "orders": ORDERS.tolist(),
        "divergences": _short(divergences),
        "pure": deployment.mechanism.privacy().report(0.0, table.adjacency).epsilon,
        "gaps": table.gaps,
        "guarantee": str(table.guarantee),
        "facts": facts(table, deployment.hash, len(content)),
        "content": packed(content),
        "client": packed(typescript_client(deployment.description())["index.js"].encode("ascii")),
    }


def values_between(rows: int) -> int:
    """Return the number of the page's values from an input of the grid to the next."""
    return max(1, min(MOST_BETWEEN, VALUES // (rows - 1)))


def variance_lines(table: LookupTable) -> tuple[Line, ...]:
    """Return the table's objective and its certified bounds, on the interval's scale."""
    certificate, square = table.certificate, (table.interval[1] - table.interval[0]) ** 2
    words, letters = OBJECTIVES[certificate.objective], len(table.alphabet)
    value = square * objective_value(table.moments, certificate.objective, table.prior)
    lines = [Line("objective", f"{words}, this table", value, with_powers(in_figures(value, DIGITS)))]
    any_size, this_size = certificate.lower_bound, certificate.letters_lower_bound
    bounds = (("letters", this_size if this_size != any_size else None, f"exactly {letters} letters"), ("bound", any_size, ANY_SIZE))
    for kind, bound, size in bounds:
        if bound is not None:
            lines.append(Line(kind, f"proven bound on the {words}, {size}", square * bound, rounded_down(square * bound, DIGITS)))
    return tuple(lines)


def facts(table: LookupTable, deployment: str, size: int) -> list[tuple[str, str]]:
    """Return the table's certificate and provenance as names and texts; bounds are rounded in their safe direction."""
    certificate, provenance = table.certificate, table.provenance
    low, high = table.interval
    square, bounds = (high - low) ** 2, []
    for words, bound, gap in (
        (ANY_SIZE, certificate.lower_bound, certificate.optimality_gap),
        (f"exactly {len(table.alphabet)} letters", certificate.letters_lower_bound, certificate.letters_gap),
    ):
        text = "none" if bound is None or gap is None else f"{rounded_down(square * bound, DIGITS)}; gap {percent_up(gap)}"
        bounds.append((f"Bound, {words}", text))
    unit = "" if square == 1 else ", in squared units of the values"
    return [
        ("Mechanism", f"{table.mechanism}, {counted(table.bits_in, 'bit')} in, {counted(table.bits_out, 'bit')} out"),
        ("Values", f"{in_figures(low)} to {in_figures(high)}"),
        ("Guarantee", str(table.guarantee)),
        ("Realised epsilon", rounded_up(certificate.realised_epsilon, 6)),
        ("Largest bias", "0, exactly" if certificate.max_bias == 0 else rounded_up(certificate.max_bias, 2)),
        ("Objective", OBJECTIVES[certificate.objective]),
        (f"Mean variance{unit}", with_powers(in_figures(square * certificate.mean_variance, DIGITS))),
        (f"Worst variance on the grid{unit}", with_powers(in_figures(square * certificate.worst_variance, DIGITS))),
        *bounds,
        ("Solver", f"{provenance.solver}, seed {provenance.seed}"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in provenance.versions)),
        ("File", f"{size:,} bytes"),
        ("Client's deployment", deployment),
    ]


def packed(content: bytes) -> str:
    """Return bytes compressed and in base 64; the same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def _short(numbers: ArrayLike) -> list[float]:
    """Return numbers with six digits, which suffice for a picture."""
    array: FloatArray = np.asarray(numbers, dtype=float)
    return [float(f"{number:.6g}") for number in array.tolist()]


def script_json(document: Any) -> str:
    """Return JSON that no HTML parser takes for markup."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
