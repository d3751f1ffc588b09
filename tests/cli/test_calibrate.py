"""`quietbits calibrate` on the command line.

Points under test: the result keeps the target, and `account` confirms it.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from quietbits.analysis.catalogue.accounts import calibrates
from quietbits.analysis.catalogue.registry import REGISTRY, accounted_names
from quietbits.design.contracts.domains import Categories
from quietbits.design.tables.file import read_table

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]

BUDGET = ["--epsilon", "2", "--delta", "1e-5"]
SHARED = ["--clients", "1000", "--dimension", "1024", "--clip", "1"]
SIZES = ["--probability", "0.5", "--scale", "1", "--dimension", "1", "--l1", "1", "--l2", "1", "--linf", "1"]
TRAINING = ["--population", "100", "--clients-per-round", "10", "--rounds", "1000", "--index-bits", "42"]
VECTOR = ["vector", "--dimension", "4", "--norm", "1", "--bits-in", "2", "--bits-out", "1", "--metric", "l1"]
SKETCHED = ["--clients", "1000", "--dimension", "16384", "--clip", "2", "--bits", "18"]
CPSGD = ["cpsgd", "--clients", "1000", "--dimension", "100", "--clip", "2"]
# Arguments of each calibration, the calibrated parameters, and the arguments that `account` takes, too.
ITEMS = ["--clients", "1000", "--categories", "20"]
OF_ITEMS = {"steps": "steps", "rows": "rows", "width": "width"}
CODES = ("shuffled-rotating-simplex", "shuffled-random-coding")
TYPED: dict[str, tuple[list[str], dict[str, str], list[str]]] = {
    "bitwise-randomised-response": ([], {"epsilon_per_round": "epsilon"}, []),
    "generalised-randomised-response": (["--rounds", "10"], {"epsilon_per_round": "epsilon"}, []),
    "cldp": (["--rounds", "10"], {"epsilon_per_round": "epsilon"}, []),
    "laplace": (["--rounds", "10"], {"epsilon_per_round": "epsilon"}, []),
    "gaussian": (["--rounds", "10", "--sampling-probability", "0.1"], {"noise_multiplier": "noise-multiplier"}, []),
    "skellam": (
        ["--dimension", "16", "--bits", "12", "--clip", "2", "--rounds", "3"],
        {"variance": "variance", "l1": "l1", "l2": "l2"},
        [],
    ),
    "sqkr": ([], {"epsilon_per_round": "epsilon"}, []),
    "privunit-g": ([], {"epsilon_per_round": "epsilon"}, []),
    "privunit": ([], {"epsilon_per_round": "epsilon"}, []),
    "projunit": ([], {"epsilon_per_round": "epsilon"}, []),
    "fast-projunit": ([], {"epsilon_per_round": "epsilon"}, []),
    "rotating-simplex": ([], {"epsilon_per_round": "epsilon"}, []),
    "minimal-random-coding": ([], {"epsilon_per_round": "epsilon"}, []),
    "minimal-random-coding-plain": ([], {"epsilon_per_round": "epsilon"}, []),
    "poisson-private-representation": ([], {"epsilon_per_round": "epsilon"}, []),
    "distributed-discrete-gaussian": (
        [*SHARED, "--bits", "16", "--rounds", "2"],
        {"local_sigma": "local-sigma", "granularity": "granularity"},
        SHARED,
    ),
    "distributed-skellam": (
        [*SHARED, "--bits", "16", "--deviations", "5"],
        {"local_variance": "local-variance", "granularity": "granularity"},
        SHARED,
    ),
    "cpsgd": ([*CPSGD[1:], "--bits", "18"], {"levels": "levels", "trials": "trials"}, CPSGD[1:]),
    "poisson-binomial": (
        ["--clients", "1000", "--trials", "2", "--dimension", "16"],
        {"theta": "theta"},
        ["--clients", "1000", "--trials", "2", "--dimension", "16"],
    ),
    "sketched-poisson-binomial": (
        [*ITEMS, "--rows", "3", "--width", "8", "--trials", "2"],
        {"theta": "theta", "trials": "trials", "rows": "rows", "width": "width"},
        ITEMS,
    ),
    "sketched-discrete-gaussian-frequencies": (
        [*ITEMS, "--rounds", "3"],
        {"local_sigma": "local-sigma", **OF_ITEMS},
        ITEMS,
    ),
    "sparse-discrete-gaussian-frequencies": (
        [*ITEMS, "--distinct-items", "5"],
        {"local_sigma": "local-sigma", **OF_ITEMS},
        ITEMS,
    ),
    "sketched-skellam-frequencies": (ITEMS, {"local_variance": "local-variance", **OF_ITEMS}, ITEMS),
    "sketched-discrete-gaussian": (
        [*SKETCHED, "--rounds", "10", "--slack", "4"],
        {"local_sigma": "local-sigma", "granularity": "granularity", "padded_dimension": "padded-dimension", "sketch_clip": "sketch-clip"},
        ["--clients", "1000"],
    ),
    "sketched-skellam": (
        [*SKETCHED, "--rounds", "10", "--slack", "4"],
        {name: name.replace("_", "-") for name in ("local_variance", "granularity", "padded_dimension", "sketch_clip")},
        ["--clients", "1000"],
    ),
    "sparse-discrete-gaussian": (
        [*SKETCHED, "--sparsity", "4"],
        {"local_sigma": "local-sigma", "granularity": "granularity", "padded_dimension": "padded-dimension", "sketch_clip": "sketch-clip"},
        ["--clients", "1000"],
    ),
    "distributed-discrete-laplace": (
        ["--clients", "1000", "--dimension", "16", "--rounds", "3"],
        {"bits": "bits", "steps": "steps", "scale": "scale"},
        ["--clients", "1000", "--dimension", "16"],
    ),
    "central-gaussian": (
        ["--clients", "1000", "--dimension", "16", "--rounds", "3"],
        {"steps": "steps", "noise_multiplier": "noise-multiplier"},
        ["--clients", "1000", "--dimension", "16"],
    ),
    "central-laplace": (
        ["--clients", "1000", "--low", "0", "--high", "1", "--rounds", "3"],
        {"steps": "steps", "scale": "scale"},
        ["--clients", "1000", "--dimension", "1", "--clip", "0.5"],
    ),
    "central-discrete-laplace": (
        ["--clients", "1000", "--categories", "20", "--rounds", "3"],
        {"steps": "steps", "scale": "scale"},
        ["--clients", "1000", "--dimension", "20"],
    ),
    "split-and-mix": (
        ["--clients", "1000", "--dimension", "4", "--norm", "1"],
        {name: name for name in ("bits", "messages", "steps", "scale")},
        ["--clients", "1000", "--dimension", "4", "--norm", "1"],
    ),
    "subsampled-gaussian": (
        ["--clients", "1000", "--dimension", "64"],
        {"levels": "levels", "coordinate_clip": "coordinate-clip", "noise_multiplier": "noise-multiplier"},
        ["--clients", "1000", "--dimension", "64"],
    ),
    "central-staircase": (
        ["--clients", "1000", "--low", "0", "--high", "1"],
        {"steps": "steps", "width": "width", "epsilon_per_round": "epsilon"},
        ["--clients", "1000", "--clip", "0.5"],
    ),
    "central-sketch": ([*SKETCHED[:-2], "--transform", "hadamard"], {"noise_multiplier": "noise-multiplier"}, []),
    "dp-rec": (TRAINING, {"clip_ratio": "clip-ratio"}, TRAINING),
    "binomial": (SIZES, {"trials": "trials"}, SIZES),
    "shuffled-randomised-response": (
        ["--clients", "300", "--bits", "2"],
        {"epsilon_per_round": "epsilon"},
        ["--clients", "300", "--bits", "2"],
    ),
    "shuffled-frequency-randomised-response": (
        ["--clients", "300", "--categories", "20", "--rounds", "3"],
        {"epsilon_per_round": "epsilon"},
        ["--clients", "300", "--categories", "20"],
    ),
    **{
        name: (
            ["--clients", "300", "--dimension", "20", "--rounds", "3"],
            {"local_epsilon": "local-epsilon", "letter_bits": "letter-bits", "seed_bits": "seed-bits", "closest": "closest"},
            ["--clients", "300", "--dimension", "20"],
        )
        for name in CODES
    },
    # These mechanisms share their arguments.
    **{
        name: (["--categories", "100", "--rounds", "10"], {"epsilon_per_round": "epsilon"}, ["--categories", "100"])
        for name, entry in REGISTRY.items()
        if Categories in entry.domains and entry.trust_model == "local"
    },
}
# Parameters in whole numbers, and accounts with jumps, end further below the target.
WHOLE = {"binomial", "cpsgd"}
# These epsilons are computed with a separate relative tolerance.
NEARLY = {"shuffled-randomised-response", "shuffled-frequency-randomised-response", *CODES}


def test_everything_that_can_be_calibrated_is_typed_here() -> None:
    assert {*TYPED, "vector", "mvu", "shuffled-mvu"} == {name for name in accounted_names() if calibrates(name)}


@pytest.mark.parametrize("name", TYPED)
def test_what_is_found_keeps_the_target_and_is_what_is_accounted(answer: Answer, name: str) -> None:
    typed, found_names, exact = TYPED[name]
    result = answer("calibrate", name, *typed, *BUDGET)
    assert result["target_epsilon"] == 2.0
    reached = result["epsilon"] if result["target_method"] is None else result["accounts"][result["target_method"]]["epsilon"]
    # For one round, a purely private mechanism states its guarantee at delta = 0.
    pure = result["accounts"].get("pure", {"epsilon": reached})["epsilon"] if result["rounds"] == 1 else reached
    used = max(reached, pure) if pure <= 2.0 else reached
    assert 0 <= 2.0 - used <= (0.1 if name in WHOLE else 1e-3 if name in NEARLY else 1e-6)
    options = [part for key, flag in found_names.items() for part in (f"--{flag}", result[key])]
    general = [
        part
        for flag in ("--rounds", "--sampling-probability")
        if flag in typed and flag not in exact
        for part in (flag, typed[typed.index(flag) + 1])
    ]
    again = answer("account", name, *exact, *options, *general, "--delta", "1e-5")
    assert (again["epsilon"], again["accounts"]) == (result["epsilon"], result["accounts"])


@pytest.mark.parametrize(
    ("typed", "zero"),
    [(["distributed-discrete-gaussian", *SHARED, "--bits", "16"], 1.0), ([*CPSGD, "--bits", "18"], 4.0)],
    ids=["gaussian", "cpsgd"],
)
def test_the_error_stands_beside_what_is_possible(answer: Answer, run: Run, folder: Path, typed: list[str], zero: float) -> None:
    # The command runs once with text and a file as output.
    printed = run("calibrate", *typed, *BUDGET, "--output", "found.json").stdout
    loaded = json.loads((folder / "found.json").read_text())
    assert 0 < loaded["lower_bound"] < loaded["squared_error_gaussian"] < loaded["worst_squared_error"]
    assert loaded["zero_squared_error"] == zero
    assert f"{loaded['lower_bound']:.9g}" in printed
    unknown = answer("calibrate", "laplace", *BUDGET)
    assert (unknown["lower_bound"], unknown["zero_squared_error"]) == (None, None)


COMPRESSED = ["--clients", "1000", "--clip", "1", "--bits", "16", "--epsilon", "1", "--delta", "1e-5", "--adjacency", "add-or-remove-one"]


def test_the_shortest_sketch_within_the_slack(answer: Answer, fault: Callable[..., str]) -> None:
    result = answer("calibrate", "sketched-discrete-gaussian", *COMPRESSED, "--dimension", 2**20)
    assert result.keys() >= {"sketch_dimension", "rows", "epsilon", "compressed_error", "bits_per_client"}
    assert (result["rows"], result["adjacency"], result["sketch_dimension"] % 15) == (15, "add-or-remove-one", 0)
    assert result["compression_rate"] == 2**20 / result["sketch_dimension"] > 10
    # The message has an even number of coordinates of 16 bits.
    assert (
        result["bits_per_client"] == 16 * result["padded_dimension"] == 16 * (result["sketch_dimension"] + result["sketch_dimension"] % 2)
    )
    assert 1.99 * result["plain_error"] < result["compressed_error"] <= 2 * result["plain_error"]
    # The error of one round is far above that of answering zero, and the error of many rounds is below.
    assert result["compressed_error_of_100_rounds"] < result["zero_squared_error"] == 1 < result["compressed_error"]
    shorter = answer("calibrate", "sketched-discrete-gaussian", *COMPRESSED, "--dimension", 2**20, "--slack", 4)
    assert shorter["sketch_dimension"] < 0.5 * result["sketch_dimension"]
    # With less noise, no sketch of this kind is within the slack; a Hadamard sketch has a smaller error, and is within the slack.
    refused = fault("calibrate", "sketched-discrete-gaussian", *COMPRESSED, "--dimension", 2**16)
    assert refused.startswith("slack must be at least 2.298 for a sketch of fewer than 65536 coordinates, got 2: compression costs more")
    hadamard = answer("calibrate", "sketched-discrete-gaussian", *COMPRESSED, "--dimension", 2**16, "--transform", "hadamard")
    assert hadamard["rows"] is None
    assert hadamard["compressed_error"] <= 2 * hadamard["plain_error"]
    trusted = answer("calibrate", "central-sketch", *COMPRESSED[:4], *COMPRESSED[6:], "--dimension", 2**20)
    assert 0.9 < trusted["sketch_dimension"] / result["sketch_dimension"] < 1.2


def test_a_method_names_the_account_that_keeps_the_target(answer: Answer) -> None:
    by_theorem = answer("calibrate", *CPSGD, *BUDGET, "--method", "theorem-1", "--plain")
    assert 1.9 < by_theorem["accounts"]["theorem-1"]["epsilon"] <= 2
    assert by_theorem["epsilon"] < by_theorem["accounts"]["theorem-1"]["epsilon"]
    assert math.log2(by_theorem["modulus"]) <= by_theorem["bits"]
    assert answer("calibrate", "binomial", *SIZES, "--epsilon", 1, "--delta", 1e-6)["trials"] == 80
    by_extremes = answer("calibrate", "poisson-binomial", *TYPED["poisson-binomial"][0], *BUDGET, "--method", "rdp-extremes")
    assert by_extremes["theta"] > answer("calibrate", "poisson-binomial", *TYPED["poisson-binomial"][0], *BUDGET)["theta"]


def test_an_account_of_dp_rec_has_its_own_adjacency(answer: Answer) -> None:
    typed = ("calibrate", "dp-rec", *TRAINING, "--epsilon", 3, "--delta", 100**-1.1)
    published = answer(*typed, "--method", "published")
    assert (round(published["clip_ratio"], 4), published["adjacency"], published["epsilon"]) == (0.5429, "add-or-remove-one", None)
    assert 0 <= 3 - published["accounts"]["published"]["epsilon"] <= 1e-6
    derived = answer(*typed, "--method", "any-bits")
    assert 0 <= 3 - derived["accounts"]["any-bits"]["epsilon"] <= 1e-6
    proven = answer(*typed)
    assert (round(proven["clip_ratio"], 4), proven["adjacency"], proven["method"]) == (0.2118, "replace-one", "any-clients")
    assert 0 <= 3 - proven["epsilon"] <= 1e-6


def test_a_calibrated_table_is_written_and_accounted_for(run: Run, answer: Answer, folder: Path) -> None:
    result = run("calibrate", *VECTOR, *BUDGET, "--output", "designed.json")
    assert result.exit_code == 0, result.output
    assert "table epsilon" in result.stdout
    assert read_table(folder / "designed.json").bits_in == 2
    results = answer("calibrate", *VECTOR, *BUDGET)
    assert 0 <= 2 - results["epsilon"] <= 1e-6
    options = ["--dimension", 4, "--norm", 1, "--delta", "1e-5"]
    accounted = answer("account", "vector", "designed.json", *options)
    assert (accounted["epsilon"], accounted["input_distance"]) == (results["epsilon"], results["input_distance"])


def test_help_says_why_accounts_differ(run: Run) -> None:
    shown = " ".join(run("calibrate", "distributed-discrete-gaussian", "--help").stdout.split())
    assert "There are 2 accounts: rdp, near-gaussian. They are different upper bounds on the privacy loss of a client's messages" in shown


def test_help_says_which_outputs_are_tables(run: Run) -> None:
    for name in ("vector", "shuffled-mvu", "laplace"):
        shown = " ".join(run("calibrate", name, "--help").stdout.replace("│", " ").split())
        assert "Write the designed table, or the JSON object, here" in shown


def test_a_table_calibrated_for_vectors_is_not_advised_against(answer: Answer) -> None:
    """The stated epsilon of a table without a metric is that of the vector."""
    assert answer("calibrate", *VECTOR[:-2], *BUDGET)["advice"] is None


def test_a_table_whose_letters_are_shuffled_is_written_and_accounted_for(run: Run, answer: Answer) -> None:
    typed = ["shuffled-mvu", "--clients", "3000", "--bits-in", "2", "--bits-out", "1", "--epsilon", "0.5", "--delta", "1e-6"]
    assert run("calibrate", *typed, "--output", "shuffled.json").exit_code == 0
    result = answer("calibrate", *typed)
    assert 0 <= 0.5 - result["epsilon"] <= 2e-3
    assert result["epsilon_per_round"] > 2
    again = answer("account", "shuffled", "shuffled.json", "--clients", "3000", "--delta", "1e-6")
    assert (again["epsilon"], again["accounts"]) == (result["epsilon"], result["accounts"])


def test_a_table_keeps_the_target_by_the_account_that_is_asked_for(answer: Answer) -> None:
    result = answer("calibrate", *VECTOR, *BUDGET, "--method", "pure")
    assert 0 <= 2 - result["accounts"]["pure"]["epsilon"] <= 1e-6


def test_a_table_by_renyi_divergence_is_written_with_how_it_was_made(run: Run, folder: Path) -> None:
    typed = ["vector", "--dimension", "32", "--norm", "2", "--bits-in", "2", "--bits-out", "2", "--metric", "l1", "--objective", "renyi"]
    result = run("calibrate", *typed, "--epsilon", "4", "--delta", "1e-5", "--output", "designed.json")
    assert result.exit_code == 0, result.output
    assert read_table(folder / "designed.json").provenance.solver.startswith("renyi, order ")


@pytest.mark.parametrize("typed", [["gaussian"], [*CPSGD, "--bits", "18"], ["distributed-skellam", *SHARED]])
def test_a_table_for_people_and_a_file(run: Run, answer: Answer, folder: Path, typed: list[str]) -> None:
    result = run("calibrate", *typed, *BUDGET, "--output", "found.json")
    assert result.exit_code == 0, result.output
    for part in ("target epsilon", "adjacency", "trust model"):
        assert part in result.stdout
    assert json.loads((folder / "found.json").read_text()) == answer("calibrate", *typed, *BUDGET)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["gaussian", "--epsilon", "0", "--delta", "1e-6"], "epsilon must be a number from 1e-05 to 10000, got 0.0"),
        (["gaussian", "--epsilon", "1", "--delta", "2", "--output", "o.json"], "delta must be a number from 0 to 1, got 2.0"),
        (["cldp", "--epsilon", "1", "--delta", "0.1", "--output", "no/o.json"], "no: there is no such folder"),
        (["skellam", "--epsilon", "1", "--delta", "1e-6", "--dimension", "9", "--bits", "3"], "bits must be at least"),
        ([*VECTOR, *BUDGET, "--objective", "pure"], "objective must be one of metric, renyi, got 'pure'"),
        ([*VECTOR, *BUDGET, "--objective", "renyi", "--delta", "0"], "delta must be above 0 for the objective 'renyi', got 0.0"),
        ([*VECTOR, *BUDGET, "--norm", "l0"], "norm must be a number from 1 to 64, got 0.0"),
        (["binomial", *SIZES, "--epsilon", "-1", "--delta", "1e-5"], "epsilon must be a number from"),
        (["distributed-discrete-gaussian", *SHARED, *BUDGET, "--bits", "5"], "bits must be at least"),
        (
            ["distributed-discrete-gaussian", *SHARED, *BUDGET, "--adjacency", "both"],
            "adjacency must be one of replace-one, add-or-remove-one",
        ),
        ([*CPSGD, *BUDGET, "--bits", "3"], "bits must be at least 11 for 1000 clients to reach epsilon = 2"),
        ([*CPSGD, *BUDGET, "--method", "exact"], "method must be one of near-gaussian, rdp, theorem-1, got 'exact'"),
        (["dp-rec", *TRAINING, *BUDGET, "--index-bits", "20", "--method", "published"], "index_bits must be at least"),
        (["dp-rec", *TRAINING, *BUDGET, "--adjacency", "add-or-remove-one"], "method must name an account for add-or-remove-one adjacency"),
        (
            ["dp-rec", *TRAINING, "--epsilon", "1e-4", "--delta", "0.006", "--method", "published"],
            "clip ratio would have to be below 1e-06",
        ),
    ],
)
def test_a_fault_is_one_line_and_leaves_no_file(fault: Callable[..., str], folder: Path, typed: list[str], message: str) -> None:
    assert fault("calibrate", *typed).startswith(message)
    assert list(folder.iterdir()) == []
