"""quietbits: design, certify and compare mechanisms that make a client's message both private and small.

These names are the public face; everything else is found in the module that is named for it, such as `quietbits.solvers.staircase`.
A name is imported when it is first used, so that `quietbits --help` answers before numpy is loaded.

Examples
--------
>>> import quietbits
>>> table = quietbits.design_mvu(epsilon=3.0, bits_in=2, bits_out=2)
>>> str(table.guarantee), table.certificate.max_bias
('epsilon = 3, replace-one adjacency, local trust model', 0.0)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.column_data import DataColumn as DataColumn
    from .analysis.column_data import load_column as load_column
    from .analysis.mean_estimation import MeanComparison as MeanComparison
    from .analysis.mean_estimation import MeanEstimate as MeanEstimate
    from .analysis.mean_estimation import estimate_mean as estimate_mean
    from .analysis.mean_study import MeanStudy as MeanStudy
    from .analysis.mean_study import study_mean as study_mean
    from .analysis.report import write_report as write_report
    from .design.cldp import CLDPMechanism as CLDPMechanism
    from .design.guarantee import Guarantee as Guarantee
    from .design.laplace import LaplaceMechanism as LaplaceMechanism
    from .design.lookup_table import Certificate as Certificate
    from .design.lookup_table import LookupTable as LookupTable
    from .design.mean_protocol import MeanProtocol as MeanProtocol
    from .design.mean_protocol import TableMeanProtocol as TableMeanProtocol
    from .design.mvu import design_mvu as design_mvu
    from .design.mvu import with_certified_bound as with_certified_bound
    from .design.randomised_response import bitwise_randomised_response as bitwise_randomised_response
    from .design.randomised_response import generalised_randomised_response as generalised_randomised_response
    from .design.table_export import export_table as export_table
    from .design.table_file import read_table as read_table
    from .design.table_file import verify_file as verify_file
    from .design.table_file import write_table as write_table
    from .errors import ConvergenceError as ConvergenceError
    from .errors import DataError as DataError
    from .errors import InfeasibleError as InfeasibleError
    from .errors import TableError as TableError

_MODULES = {
    "CLDPMechanism": "design.cldp",
    "Certificate": "design.lookup_table",
    "ConvergenceError": "errors",
    "DataColumn": "analysis.column_data",
    "DataError": "errors",
    "Guarantee": "design.guarantee",
    "InfeasibleError": "errors",
    "LaplaceMechanism": "design.laplace",
    "LookupTable": "design.lookup_table",
    "MeanComparison": "analysis.mean_estimation",
    "MeanEstimate": "analysis.mean_estimation",
    "MeanProtocol": "design.mean_protocol",
    "MeanStudy": "analysis.mean_study",
    "TableError": "errors",
    "TableMeanProtocol": "design.mean_protocol",
    "bitwise_randomised_response": "design.randomised_response",
    "design_mvu": "design.mvu",
    "estimate_mean": "analysis.mean_estimation",
    "export_table": "design.table_export",
    "generalised_randomised_response": "design.randomised_response",
    "load_column": "analysis.column_data",
    "read_table": "design.table_file",
    "study_mean": "analysis.mean_study",
    "verify_file": "design.table_file",
    "with_certified_bound": "design.mvu",
    "write_report": "analysis.report",
    "write_table": "design.table_file",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
