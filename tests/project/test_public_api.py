"""The public face is frozen: names, parameters, defaults, fields and methods change on purpose or not at all."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quietbits
from quietbits import errors

PROTOCOL = [
    "aggregate(self, messages)",
    "bits_per_client",
    "decode(self, aggregate, clients)",
    "encode(self, values, words)",
    "guarantee",
    "interval",
    "variance(self, values)",
    "worst_variance",
]
# Mechanisms that have their interval as a field.
MECHANISM = [member for member in PROTOCOL if member != "interval"]

# Mechanisms for vectors have their ball as a field, or among the others.
VECTOR_MECHANISM = [
    "aggregate(self, messages)",
    "bits_per_client",
    "decode(self, aggregate, clients)",
    "encode(self, vectors, words)",
    "guarantee",
    "privacy_loss(self)",
    "renyi_divergences(self, orders)",
    "variance(self, vectors)",
    "worst_variance",
]

FUNCTIONS = [
    "apply_package(content, state, decode, optimiser)",
    "audit_mechanism(score, first, second, delta, repetitions, rng, *, confidence=0.999)",
    "audit_secure_sum(protocol, repetitions, rng, *, delta=None, others='zero', direction=None, confidence=0.999)",
    "binomial_account(trials, probability, scale, dimension, l1, l2, linf, delta, rounds=1, adjacency='replace-one', sampling=None)",
    "bitwise_randomised_response(epsilon, bits, *, interval=(0.0, 1.0))",
    "build_mechanism(spec, ball, epsilon, delta, cache=None)",
    "build_secure_sum_mechanism(name, ball, clients, bits, epsilon, delta, *, adjacency=None, rotation_seed=0)",
    "calibrate_binomial(epsilon, delta, probability, scale, dimension, l1, l2, linf, rounds=1, adjacency='replace-one', "
    "method='smallest', sampling=None)",
    "calibrate_cpsgd(clients, dimension, clip_norm, bits, epsilon, delta, rounds=1, *, rotated=True, account='smallest', "
    "adjacency='replace-one', rotation_seed=0)",
    "calibrate_discrete_gaussian(clients, dimension, clip_norm, bits, epsilon, delta, rounds=1, *, deviations=4.0, "
    "adjacency=None, sampling=None)",
    "calibrate_distributed_skellam(clients, dimension, clip_norm, bits, epsilon, delta, rounds=1, *, deviations=4.0, "
    "adjacency=None, sampling=None)",
    "calibrate_dp_rec(epsilon, population, clients_per_round, rounds, bits, delta, variant='published')",
    "calibrate_gaussian(epsilon, delta, rounds=1, *, adjacency=None, trust_model=None, sampling=None)",
    "calibrate_laplace(epsilon, delta, rounds=1, *, sampling=None)",
    "calibrate_poisson_binomial(clients, trials, epsilon, delta, dimension=1, rounds=1, sampling=None)",
    "calibrate_pure(name, epsilon, delta, rounds=1, *, sampling=None)",
    "calibrate_skellam(epsilon, delta, ball, bits, rounds=1)",
    "calibrate_vector_table(epsilon, delta, ball, bits_in, bits_out, metric=None, *, dithering='systematic', rounds=1, seed=0)",
    "catch_up_package(history, last_round)",
    "central_gaussian_error(ball, clients, epsilon, delta, adjacency)",
    "cldp_mechanism(epsilon, ball)",
    "cpsgd_account(parameters, rounds=1, sampling=None)",
    "design_mvu(epsilon, bits_in, bits_out, metric=None, objective='mean', solver='staircase', *, symmetric=False, interval=(0.0, "
    "1.0), seed=0, starts=None, workers=1, letters_from=None)",
    "discrete_gaussian_accounting(clients, dimension, clip_norm, local_sigma, granularity, *, adjacency=None, sampling=None)",
    "distributed_skellam_accounting(clients, dimension, clip_norm, local_variance, granularity, *, adjacency=None, sampling=None)",
    "dp_rec_account(clip_ratio, population, clients_per_round, rounds, bits, delta, variant='published')",
    "estimate_mean(values, interval, protocols, *, seed=0, bound=None, on_start=<callable>)",
    "export_table(table, path, file_format)",
    "gaussian_accounting(noise_multiplier, *, adjacency=None, trust_model=None, sampling=None)",
    "generalised_randomised_response(epsilon, bits, *, interval=(0.0, 1.0))",
    "laplace_accounting(epsilon, sampling=None)",
    "load_column(path, column, interval)",
    "load_sweep(path)",
    "minimal_random_coding_mechanism(epsilon, ball, excess=0.25)",
    "poisson_binomial_accounting(clients, trials, theta, dimension=1, sampling=None)",
    "protocol_accounting(name, protocol)",
    "pure_accounting(name, epsilon, sampling=None)",
    "read_table(path)",
    "renyi_matrix(weights, order)",
    "run_sweep(tasks, output, *, workers=1, cache=None, dask=None, on_step=<callable>)",
    "sample_binomial(trials, probability, size, words)",
    "sample_discrete_gaussian(sigma, size, words)",
    "sample_discrete_laplace(scale, size, words)",
    "sample_skellam(variance, size, words)",
    "seeded_words(rng)",
    "simulate_participation(population, clients_per_round, rounds, model_bytes, message_bytes, rng, *, "
    "with_replacement=True, public_start=False, state_bytes=None)",
    "simulate_secure_sum(protocol, chunks, rng, *, masked=False)",
    "skellam_accounting(variance, l1_sensitivity, l2_sensitivity, *, trust_model='local')",
    "skellam_mechanism(epsilon, delta, ball, bits=16, deviations=6.0)",
    "sqkr_mechanism(epsilon, ball, seed=0)",
    "study_mean(data, epsilon, bits_in=5, bits_out=3, *, metric=None, objective='mean', seed=0, on_step=<callable>)",
    "summarise_sweep(results)",
    "table_accounting(table, *, dimension=1, norm=1.0, radius=1.0, sampling=None)",
    "uniform_layout(dimension, groups, bits)",
    "vector_bounds(weights, order, dimension, norm, distance)",
    "verify_file(path)",
    "with_certified_bound(table)",
    "with_secret_sampling(mechanism, sampling)",
    "write_report(study, path, *, command=None)",
    "write_table(table, path)",
]

CLASSES = {
    "AccountedMechanism(name, curve, adjacency, trust_model, epsilon_by_loss=None, sampling=None)": [
        "account(self, rounds=1, delta=None)",
        "pure_epsilon",
    ],
    "AuditResult(epsilon_lower_bound, delta, confidence, event, threshold, likelier, likely_count, unlikely_count, draws)": [
        "refutes(self, epsilon)"
    ],
    "BinomialAccount(mechanism, trials, probability, scale, dimension, l1, l2, linf, rounds, delta, epsilon, epsilon_reason, "
    "epsilon_doubtful, epsilon_exact, epsilon_exact_reason, epsilon_rdp, order, epsilon_gaussian, worst_shift, "
    "worst_coordinates, squared_error, adjacency, trust_model, sampling=None)": ["document(self)"],
    "CLDPMechanism(epsilon, interval=(0.0, 1.0))": MECHANISM,
    "Calibration(target_epsilon, parameters, account)": ["document(self)"],
    "Certificate(realised_epsilon, max_bias, mean_variance, worst_variance, lower_bound, optimality_gap, objective, dual)": [],
    "CpsgdMechanism(ball, clients, levels, trials, delta, probability=0.5, rotated=False, rotation_seed=0, "
    "adjacency='replace-one')": sorted(
        [
            *VECTOR_MECHANISM,
            "bias_bound",
            "coordinate_wrap_probability",
            "distance",
            "gaussian_epsilon(self, delta, rounds=1)",
            "level_bound",
            "mean_squared_error_bound",
            "message_bits_before_aggregation",
            "modulus",
            "noisy_steps(self, vectors, words)",
            "padded_dimension",
            "recovered_steps(self, aggregate)",
            "renyi_epsilon(self, delta, rounds=1)",
            "sensitivity(self, delta)",
            "step",
            "theorem_epsilon(self, delta)",
            "wrap_probability",
        ]
    ),
    "DataColumn(name, source, values, interval, interval_is_public=True)": ["clipped", "clipped_count"],
    "DistributedDiscreteGaussianMechanism(ball, clients, bits, granularity, local_sigma, delta, rotation_seed=0, "
    "rotation='hadamard', adjacency='add-or-remove-one')": sorted(
        [
            *VECTOR_MECHANISM,
            "bias_bound",
            "coordinate_wrap_probability",
            "modulus",
            "noisy_steps(self, vectors, words)",
            "norm_bound",
            "padded_dimension",
            "recovered_steps(self, aggregate)",
            "wrap_probability",
        ]
    ),
    "DistributedSkellamMechanism(ball, clients, bits, granularity, local_variance, delta, rotation_seed=0, rotation='hadamard', "
    "adjacency='add-or-remove-one')": sorted(
        [
            *VECTOR_MECHANISM,
            "bias_bound",
            "coordinate_wrap_probability",
            "modulus",
            "noisy_steps(self, vectors, words)",
            "norm_bound",
            "padded_dimension",
            "recovered_steps(self, aggregate)",
            "wrap_probability",
        ]
    ),
    "DpRecMechanism(ball, clip_ratio, layout, delta=1e-05)": sorted([*VECTOR_MECHANISM, "expected(self, vectors)", "sigma"]),
    "FixedSizeSampling(population, sample_size)": ["event(self, event)"],
    "GroupLayout(sizes, bits)": ["dimension", "groups", "slices(self)", "total_bits"],
    "Guarantee(epsilon, adjacency, trust_model, delta=0.0, metric=None)": [],
    "IncompleteSweepError(failures, results, total)": [],
    "LaplaceMechanism(epsilon, interval=(0.0, 1.0), metric=None)": sorted([*MECHANISM, "scale"]),
    "LookupTable(*, mechanism, epsilon, metric, bits_in, bits_out, interval, alphabet, total, weights, prior, certificate, "
    "provenance, adjacency='replace-one', trust_model='local')": [
        "bits_per_client",
        "decode(self, indices)",
        "encode(self, values, words)",
        "guarantee",
        "letters",
        "letters_from_words(self, values, dither_words, table_words)",
        "letters_of_rows(self, rows, table_words)",
        "moments",
        "probabilities",
        "variance(self, values)",
        "with_interval(self, low, high)",
    ],
    "MeanComparison(clients, clipped, interval, true_mean, unclipped_mean, seed, bound, estimates)": [],
    "MeanEstimate(mechanism, estimate, error, standard_error, worst_standard_error, bits_per_client, guarantee, objective, lower_bound)": [
        "confidence_interval",
        "ratio_to_bound",
    ],
    "ScalarMechanism(*args, **kwargs)": PROTOCOL,
    "MeanStudy(data, epsilon, bits_in, bits_out, metric, objective, tables, protocols, comparison, provenance)": ["estimate", "table"],
    "MechanismSpec(name, bits_in=None, bits_out=None, metric=None, dithering=None, bits=None)": [],
    "MinimalRandomCodingMechanism(epsilon, bits, ball)": sorted(
        [*VECTOR_MECHANISM, "candidates", "cap_probability", "index_probabilities(self, direction, seed)", "projection_mean", "threshold"]
    ),
    "ModelHistory(state, message_bytes, rounds=(), retain=None)": ["checksum", "first_round"],
    "NormBall(dimension, norm, clip_norm=1.0)": [
        "check(self, vectors)",
        "clip(self, vectors)",
        "clipped_count(self, vectors)",
        "norms(self, vectors)",
    ],
    "PoissonBinomialMechanism(ball, clients, trials, theta, delta, frame_seed=0, kashin_constant=1.8633899812498251)": sorted(
        [
            *VECTOR_MECHANISM,
            "coordinate_wrap_probability",
            "frame",
            "level",
            "modulus",
            "noisy_steps(self, vectors, words)",
            "padded_dimension",
            "recovered_steps(self, aggregate)",
            "scaled_down_count(self, vectors)",
            "wrap_probability",
        ]
    ),
    "PoissonSampling(probability)": ["event(self, event)"],
    "PrivUnitMechanism(epsilon, ball)": sorted(
        [*VECTOR_MECHANISM, "keep_probability", "projection_mean", "revealing_probability", "threshold"]
    ),
    "PrivacyAccount(mechanism, rounds, delta, epsilon, epsilon_rdp, order, order_at_edge, epsilon_pld, pure_epsilon, adjacency, "
    "trust_model, sampling)": ["document(self)", "guarantee", "method"],
    "RenyiCurve(orders, divergences)": ["composed(self, rounds)", "epsilon(self, delta, conversion='optimal')"],
    "SQKRMechanism(epsilon, bits, ball, seed=0, kashin_constant=1.8633899812498251)": sorted(
        [
            *VECTOR_MECHANISM,
            "contrast",
            "frame",
            "level",
            "scaled_down_count(self, vectors)",
            "symbol_probabilities(self, vectors, coordinates)",
        ]
    ),
    "SecureSum(clients, length, modulus, neighbours=None, threshold=None)": [
        "bits_per_client",
        "degree",
        "session(self, words)",
        "shares_needed",
        "total(self, chunks, words, dropped=())",
    ],
    "SecureSumMechanism(*args, **kwargs)": sorted(
        [
            *VECTOR_MECHANISM,
            "ball",
            "clients",
            "coordinate_wrap_probability",
            "modulus",
            "noisy_steps(self, vectors, words)",
            "padded_dimension",
            "recovered_steps(self, aggregate)",
            "wrap_probability",
        ]
    ),
    "SimulatedSecureSum(clients, dimension, padded_dimension, modulus, bits_per_coordinate, bits_per_client, clipped, "
    "squared_error, predicted_squared_error, worst_squared_error, central_gaussian_squared_error, wrapped_coordinates, "
    "wrapped_coordinates_bound, coordinate_wrap_probability, wrap_probability, epsilon, delta, adjacency, trust_model)": [
        "ratio_to_central"
    ],
    "SkellamMechanism(ball, bits, granularity, noise_variance, delta)": sorted(
        [*VECTOR_MECHANISM, "bias_bound", "l1_sensitivity", "l2_sensitivity", "norm_bound", "wrap_probability"]
    ),
    "SweepSpec(*, mechanism, population, clients, dimension, norm, epsilon, delta, clip_norm=(1.0,), scale=(1.0,), nonzero=(), "
    "repetitions=10, seed=0)": ["tasks(self)"],
    "TableCache(folder=<factory>)": ["fetch(self, specification, design, accept=<callable>)", "path(self, specification)"],
    "TableMeanMechanism(table)": PROTOCOL,
    "VectorBounds(greedy, linear_program, integer)": [],
    "VectorGaussianMechanism(epsilon, delta, ball)": sorted(
        [*VECTOR_MECHANISM, "l2_sensitivity", "noise_multiplier", "standard_deviation"]
    ),
    "VectorLaplaceMechanism(epsilon, ball)": sorted([*VECTOR_MECHANISM, "l1_sensitivity", "scale"]),
    "VectorMechanism(*args, **kwargs)": sorted([*VECTOR_MECHANISM, "ball"]),
    "VectorTableMechanism(table, ball, delta=0.0, dithering='systematic', rejection_probability=0.05)": sorted(
        [*VECTOR_MECHANISM, "dithering_bias_bound", "input_distance", "letters", "shrinkage"]
    ),
}

# Instances that are called; their other methods are those of `WordSource`.
INSTANCES = ["secure_words(count)"]

ERRORS = ["ConvergenceError", "DataError", "InfeasibleError", "TableError"]


def written(function: Callable[..., Any], name: str) -> str:
    """Return a signature without annotations, whose wording depends on numpy's version, and without addresses of default functions."""
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return name + re.sub(r"<function [\w.]*<lambda> at \w+>", "<callable>", text)


def members(kind: type) -> list[str]:
    """Return the methods and properties of a class, those that it inherits from other classes of quietbits too, without its fields."""
    own = [base for base in reversed(kind.__mro__) if base.__module__.startswith("quietbits.")]
    fields = {name for base in own for name in inspect.get_annotations(base)}
    public = {name: value for base in own for name, value in vars(base).items() if not name.startswith("_") and name not in fields}
    return sorted(written(value, name) if inspect.isfunction(value) else name for name, value in public.items())


def test_names() -> None:
    frozen = [signature.partition("(")[0] for signature in (*FUNCTIONS, *CLASSES, *INSTANCES)] + ERRORS
    assert sorted(quietbits.__all__) == sorted(frozen)
    assert len(set(quietbits.__all__)) == len(quietbits.__all__)
    assert set(quietbits.__all__) <= set(dir(quietbits))


@pytest.mark.parametrize("signature", FUNCTIONS, ids=lambda signature: signature.partition("(")[0])
def test_functions(signature: str) -> None:
    name = signature.partition("(")[0]
    function = getattr(quietbits, name)
    assert inspect.isfunction(function)
    assert written(function, name) == signature


@pytest.mark.parametrize("signature", CLASSES, ids=lambda signature: signature.partition("(")[0])
def test_classes(signature: str) -> None:
    name = signature.partition("(")[0]
    kind = getattr(quietbits, name)
    assert written(kind, name) == signature
    assert members(kind) == CLASSES[signature]


@pytest.mark.parametrize("signature", INSTANCES)
def test_instances(signature: str) -> None:
    name = signature.partition("(")[0]
    assert written(getattr(quietbits, name), name) == signature


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_the_errors_module(name: str) -> None:
    assert getattr(quietbits, name) is getattr(errors, name)


def test_every_error_is_public() -> None:
    assert sorted(name for name, value in vars(errors).items() if inspect.isclass(value)) == ERRORS


def test_type_checkers_see_the_names_where_they_are_imported_from() -> None:
    tree = ast.parse(Path(quietbits.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == quietbits._MODULES


def test_every_public_name_is_documented() -> None:
    assert [name for name in quietbits.__all__ if not inspect.getdoc(getattr(quietbits, name))] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'quietbits' has no attribute 'design_laplace'"):
        _ = quietbits.design_laplace


def test_importing_the_package_loads_nothing_heavy() -> None:
    probe = "import sys, quietbits; print({'numpy', 'scipy', 'pandas', 'typer'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout == "set()\n"
