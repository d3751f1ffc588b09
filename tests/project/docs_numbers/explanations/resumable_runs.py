"""Numbers of docs/explanations/resumable-runs.md."""

from quietbits.analysis.sweeps.calls import MOST_KEPT
from quietbits.analysis.sweeps.task import KEPT_INPUTS, KEPT_NUMBERS

__all__ = ["KEPT_INPUTS", "KEPT_NUMBERS", "MOST_KEPT"]
