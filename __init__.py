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
    from .analysis.binomial_accounting import BinomialAccount as BinomialAccount
    from .analysis.binomial_accounting import binomial_account as binomial_account
    from .analysis.binomial_calibration import calibrate_binomial as calibrate_binomial
    from .analysis.column_data import DataColumn as DataColumn
    from .analysis.column_data import load_column as load_column
    from .analysis.cpsgd_accounting import cpsgd_account as cpsgd_account
    from .analysis.cpsgd_calibration import calibrate_cpsgd as calibrate_cpsgd
    from .analysis.discrete_gaussian_accounting import calibrate_discrete_gaussian as calibrate_discrete_gaussian
    from .analysis.discrete_gaussian_accounting import discrete_gaussian_accounting as discrete_gaussian_accounting
    from .analysis.distributed_skellam_accounting import calibrate_distributed_skellam as calibrate_distributed_skellam
    from .analysis.distributed_skellam_accounting import distributed_skellam_accounting as distributed_skellam_accounting
    from .analysis.dp_rec_accounting import calibrate_dp_rec as calibrate_dp_rec
    from .analysis.dp_rec_accounting import dp_rec_account as dp_rec_account
    from .analysis.mean_estimation import MeanComparison as MeanComparison
    from .analysis.mean_estimation import MeanEstimate as MeanEstimate
    from .analysis.mean_estimation import estimate_mean as estimate_mean
    from .analysis.mean_study import MeanStudy as MeanStudy
    from .analysis.mean_study import study_mean as study_mean
    from .analysis.mechanism_accounting import gaussian_accounting as gaussian_accounting
    from .analysis.mechanism_accounting import laplace_accounting as laplace_accounting
    from .analysis.mechanism_accounting import protocol_accounting as protocol_accounting
    from .analysis.mechanism_accounting import pure_accounting as pure_accounting
    from .analysis.mechanism_accounting import skellam_accounting as skellam_accounting
    from .analysis.mechanism_accounting import table_accounting as table_accounting
    from .analysis.poisson_binomial_accounting import calibrate_poisson_binomial as calibrate_poisson_binomial
    from .analysis.poisson_binomial_accounting import poisson_binomial_accounting as poisson_binomial_accounting
    from .analysis.privacy_account import AccountedMechanism as AccountedMechanism
    from .analysis.privacy_account import PrivacyAccount as PrivacyAccount
    from .analysis.privacy_audit import AuditResult as AuditResult
    from .analysis.privacy_audit import audit_mechanism as audit_mechanism
    from .analysis.privacy_calibration import Calibration as Calibration
    from .analysis.privacy_calibration import calibrate_gaussian as calibrate_gaussian
    from .analysis.privacy_calibration import calibrate_laplace as calibrate_laplace
    from .analysis.privacy_calibration import calibrate_pure as calibrate_pure
    from .analysis.privacy_calibration import calibrate_skellam as calibrate_skellam
    from .analysis.report import write_report as write_report
    from .analysis.secret_sampling import with_secret_sampling as with_secret_sampling
    from .analysis.secure_sum_audit import audit_secure_sum as audit_secure_sum
    from .analysis.secure_sum_mechanisms import build_secure_sum_mechanism as build_secure_sum_mechanism
    from .analysis.secure_sum_simulation import SimulatedSecureSum as SimulatedSecureSum
    from .analysis.secure_sum_simulation import simulate_secure_sum as simulate_secure_sum
    from .analysis.subsampling import FixedSizeSampling as FixedSizeSampling
    from .analysis.subsampling import PoissonSampling as PoissonSampling
    from .analysis.sweep import IncompleteSweepError as IncompleteSweepError
    from .analysis.sweep import run_sweep as run_sweep
    from .analysis.sweep_spec import SweepSpec as SweepSpec
    from .analysis.sweep_spec import load_sweep as load_sweep
    from .analysis.sweep_summary import summarise_sweep as summarise_sweep
    from .analysis.table_cache import TableCache as TableCache
    from .analysis.two_way_compression import simulate_participation as simulate_participation
    from .analysis.vector_mechanisms import MechanismSpec as MechanismSpec
    from .analysis.vector_mechanisms import build_mechanism as build_mechanism
    from .design.binomial_noise import sample_binomial as sample_binomial
    from .design.cldp import CLDPMechanism as CLDPMechanism
    from .design.cpsgd import CpsgdMechanism as CpsgdMechanism
    from .design.discrete_gaussian import sample_discrete_gaussian as sample_discrete_gaussian
    from .design.discrete_laplace import sample_discrete_laplace as sample_discrete_laplace
    from .design.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism as DistributedDiscreteGaussianMechanism
    from .design.distributed_skellam import DistributedSkellamMechanism as DistributedSkellamMechanism
    from .design.dp_rec import DpRecMechanism as DpRecMechanism
    from .design.group_layout import GroupLayout as GroupLayout
    from .design.group_layout import uniform_layout as uniform_layout
    from .design.guarantee import Guarantee as Guarantee
    from .design.laplace import LaplaceMechanism as LaplaceMechanism
    from .design.lookup_table import Certificate as Certificate
    from .design.lookup_table import LookupTable as LookupTable
    from .design.mean_protocol import MeanProtocol as MeanProtocol
    from .design.mean_protocol import TableMeanProtocol as TableMeanProtocol
    from .design.minimal_random_coding import MinimalRandomCodingMechanism as MinimalRandomCodingMechanism
    from .design.minimal_random_coding import minimal_random_coding_mechanism as minimal_random_coding_mechanism
    from .design.model_history import ModelHistory as ModelHistory
    from .design.model_history import apply_package as apply_package
    from .design.model_history import catch_up_package as catch_up_package
    from .design.mvu import design_mvu as design_mvu
    from .design.mvu import with_certified_bound as with_certified_bound
    from .design.norm_ball import NormBall as NormBall
    from .design.poisson_binomial_mechanism import PoissonBinomialMechanism as PoissonBinomialMechanism
    from .design.privunit import PrivUnitMechanism as PrivUnitMechanism
    from .design.random_words import secure_words as secure_words
    from .design.random_words import seeded_words as seeded_words
    from .design.randomised_response import bitwise_randomised_response as bitwise_randomised_response
    from .design.randomised_response import generalised_randomised_response as generalised_randomised_response
    from .design.secure_sum import SecureSum as SecureSum
    from .design.secure_sum_protocol import SecureSumProtocol as SecureSumProtocol
    from .design.skellam_noise import sample_skellam as sample_skellam
    from .design.sqkr import SQKRMechanism as SQKRMechanism
    from .design.sqkr import sqkr_mechanism as sqkr_mechanism
    from .design.table_export import export_table as export_table
    from .design.table_file import read_table as read_table
    from .design.table_file import verify_file as verify_file
    from .design.table_file import write_table as write_table
    from .design.vector_calibration import calibrate_vector_table as calibrate_vector_table
    from .design.vector_cldp import cldp_mechanism as cldp_mechanism
    from .design.vector_gaussian import VectorGaussianMechanism as VectorGaussianMechanism
    from .design.vector_gaussian import central_gaussian_error as central_gaussian_error
    from .design.vector_laplace import VectorLaplaceMechanism as VectorLaplaceMechanism
    from .design.vector_protocol import VectorMeanProtocol as VectorMeanProtocol
    from .design.vector_skellam import SkellamMechanism as SkellamMechanism
    from .design.vector_skellam import skellam_mechanism as skellam_mechanism
    from .design.vector_table import VectorTableMechanism as VectorTableMechanism
    from .errors import ConvergenceError as ConvergenceError
    from .errors import DataError as DataError
    from .errors import InfeasibleError as InfeasibleError
    from .errors import TableError as TableError
    from .solvers.renyi_curve import RenyiCurve as RenyiCurve
    from .solvers.renyi_divergence import renyi_matrix as renyi_matrix
    from .solvers.vector_composition import VectorBounds as VectorBounds
    from .solvers.vector_composition import vector_bounds as vector_bounds

_MODULES = {
    "AccountedMechanism": "analysis.privacy_account",
    "AuditResult": "analysis.privacy_audit",
    "BinomialAccount": "analysis.binomial_accounting",
    "CLDPMechanism": "design.cldp",
    "Calibration": "analysis.privacy_calibration",
    "Certificate": "design.lookup_table",
    "ConvergenceError": "errors",
    "CpsgdMechanism": "design.cpsgd",
    "DataColumn": "analysis.column_data",
    "DataError": "errors",
    "DistributedDiscreteGaussianMechanism": "design.distributed_discrete_gaussian",
    "DistributedSkellamMechanism": "design.distributed_skellam",
    "DpRecMechanism": "design.dp_rec",
    "FixedSizeSampling": "analysis.subsampling",
    "GroupLayout": "design.group_layout",
    "Guarantee": "design.guarantee",
    "IncompleteSweepError": "analysis.sweep",
    "InfeasibleError": "errors",
    "LaplaceMechanism": "design.laplace",
    "LookupTable": "design.lookup_table",
    "MeanComparison": "analysis.mean_estimation",
    "MeanEstimate": "analysis.mean_estimation",
    "MeanProtocol": "design.mean_protocol",
    "MeanStudy": "analysis.mean_study",
    "MechanismSpec": "analysis.vector_mechanisms",
    "MinimalRandomCodingMechanism": "design.minimal_random_coding",
    "ModelHistory": "design.model_history",
    "NormBall": "design.norm_ball",
    "PoissonBinomialMechanism": "design.poisson_binomial_mechanism",
    "PoissonSampling": "analysis.subsampling",
    "PrivUnitMechanism": "design.privunit",
    "PrivacyAccount": "analysis.privacy_account",
    "RenyiCurve": "solvers.renyi_curve",
    "SQKRMechanism": "design.sqkr",
    "SecureSum": "design.secure_sum",
    "SecureSumProtocol": "design.secure_sum_protocol",
    "SimulatedSecureSum": "analysis.secure_sum_simulation",
    "SkellamMechanism": "design.vector_skellam",
    "SweepSpec": "analysis.sweep_spec",
    "TableCache": "analysis.table_cache",
    "TableError": "errors",
    "TableMeanProtocol": "design.mean_protocol",
    "VectorBounds": "solvers.vector_composition",
    "VectorGaussianMechanism": "design.vector_gaussian",
    "VectorLaplaceMechanism": "design.vector_laplace",
    "VectorMeanProtocol": "design.vector_protocol",
    "VectorTableMechanism": "design.vector_table",
    "apply_package": "design.model_history",
    "audit_mechanism": "analysis.privacy_audit",
    "audit_secure_sum": "analysis.secure_sum_audit",
    "binomial_account": "analysis.binomial_accounting",
    "bitwise_randomised_response": "design.randomised_response",
    "build_mechanism": "analysis.vector_mechanisms",
    "build_secure_sum_mechanism": "analysis.secure_sum_mechanisms",
    "calibrate_binomial": "analysis.binomial_calibration",
    "calibrate_cpsgd": "analysis.cpsgd_calibration",
    "calibrate_discrete_gaussian": "analysis.discrete_gaussian_accounting",
    "calibrate_distributed_skellam": "analysis.distributed_skellam_accounting",
    "calibrate_dp_rec": "analysis.dp_rec_accounting",
    "calibrate_gaussian": "analysis.privacy_calibration",
    "calibrate_laplace": "analysis.privacy_calibration",
    "calibrate_poisson_binomial": "analysis.poisson_binomial_accounting",
    "calibrate_pure": "analysis.privacy_calibration",
    "calibrate_skellam": "analysis.privacy_calibration",
    "calibrate_vector_table": "design.vector_calibration",
    "catch_up_package": "design.model_history",
    "central_gaussian_error": "design.vector_gaussian",
    "cldp_mechanism": "design.vector_cldp",
    "cpsgd_account": "analysis.cpsgd_accounting",
    "design_mvu": "design.mvu",
    "discrete_gaussian_accounting": "analysis.discrete_gaussian_accounting",
    "distributed_skellam_accounting": "analysis.distributed_skellam_accounting",
    "dp_rec_account": "analysis.dp_rec_accounting",
    "estimate_mean": "analysis.mean_estimation",
    "export_table": "design.table_export",
    "gaussian_accounting": "analysis.mechanism_accounting",
    "generalised_randomised_response": "design.randomised_response",
    "laplace_accounting": "analysis.mechanism_accounting",
    "load_column": "analysis.column_data",
    "load_sweep": "analysis.sweep_spec",
    "minimal_random_coding_mechanism": "design.minimal_random_coding",
    "poisson_binomial_accounting": "analysis.poisson_binomial_accounting",
    "protocol_accounting": "analysis.mechanism_accounting",
    "pure_accounting": "analysis.mechanism_accounting",
    "read_table": "design.table_file",
    "renyi_matrix": "solvers.renyi_divergence",
    "run_sweep": "analysis.sweep",
    "sample_binomial": "design.binomial_noise",
    "sample_discrete_gaussian": "design.discrete_gaussian",
    "sample_discrete_laplace": "design.discrete_laplace",
    "sample_skellam": "design.skellam_noise",
    "secure_words": "design.random_words",
    "seeded_words": "design.random_words",
    "simulate_participation": "analysis.two_way_compression",
    "simulate_secure_sum": "analysis.secure_sum_simulation",
    "skellam_accounting": "analysis.mechanism_accounting",
    "skellam_mechanism": "design.vector_skellam",
    "sqkr_mechanism": "design.sqkr",
    "study_mean": "analysis.mean_study",
    "summarise_sweep": "analysis.sweep_summary",
    "table_accounting": "analysis.mechanism_accounting",
    "uniform_layout": "design.group_layout",
    "vector_bounds": "solvers.vector_composition",
    "verify_file": "design.table_file",
    "with_certified_bound": "design.mvu",
    "with_secret_sampling": "analysis.secret_sampling",
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
