"""A study's results as a JSON file, with the estimates, the bound, and the exported tables."""

import json
from pathlib import Path
from typing import Any

from ...design.tables.file import table_document
from ...design.tables.verification import verify_table
from ...files import write_atomically
from ..provenance_columns import guarantee_columns
from .mean_study import MeanStudy

FORMAT = "quietbits-mean-study/2"


def write_results(study: MeanStudy, path: Path, *, command: str | None = None) -> None:
    """Write a study's results, and the command that made it, as JSON.

    An existing file is replaced.

    Raises
    ------
    TableError
        If a table does not verify; no file is written then.
    """
    write_atomically(path, (json.dumps(results_document(study, command=command), indent=1, allow_nan=False) + "\n").encode("ascii"))


def results_document(study: MeanStudy, *, command: str | None = None) -> dict[str, Any]:
    """Return a study's results, ready for JSON.

    Keys are ``notice``, why the study is no private release; ``warnings``, a list of texts; ``data``, ``epsilon``, ``bits_in``,
    ``bits_out``, ``metric``, ``objective``; ``true_mean``, ``clipped_mean`` and their difference ``clipping_bias``, not private;
    ``bound``; ``estimates``, one per mechanism, in the units of the values; ``tables`` by mechanism, in the format
    ``quietbits-table/1``; ``provenance``.

    Raises
    ------
    TableError
        If a table does not verify.
    """
    for table in study.tables.values():
        verify_table(table)
    comparison, bound = study.comparison, study.comparison.bound
    return {
        "format": FORMAT,
        "notice": study.notice,
        "warnings": list(study.warnings),
        "data": {
            "name": study.data.name,
            "source": study.data.source,
            "clients": comparison.clients,
            "clipped": comparison.clipped,
            "interval": list(comparison.interval),
            "interval_is_public": study.data.interval_is_public,
        },
        "epsilon": study.epsilon,
        "bits_in": study.bits_in,
        "bits_out": study.bits_out,
        "metric": study.metric,
        "objective": study.objective,
        "true_mean": comparison.true_mean,
        "clipped_mean": comparison.clipped_mean,
        "clipping_bias": comparison.clipping_bias,
        "bound": bound and {"value": bound.value, "objective": bound.objective, "guarantee": guarantee_columns(bound.guarantee)},
        "estimates": [
            {
                "mechanism": row.mechanism,
                "estimate": row.estimate,
                "error": row.error,
                "standard_error": row.standard_error,
                "worst_standard_error": row.worst_standard_error,
                "confidence_interval": list(row.confidence_interval),
                "bits_per_client": row.bits_per_client,
                "guarantee": guarantee_columns(row.guarantee),
                "objective": row.objective,
                "lower_bound": row.lower_bound,
                "ratio_to_bound": row.ratio_to_bound,
            }
            for row in comparison.estimates
        ],
        "tables": {name: table_document(table) for name, table in study.tables.items()},
        "provenance": {
            "command": command,
            "versions": dict(study.provenance.versions),
            "solver": study.provenance.solver,
            "seed": study.provenance.seed,
            "duration": study.provenance.duration,
        },
    }
