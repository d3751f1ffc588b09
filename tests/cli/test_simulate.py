"""Tests of `quietbits simulate`.

Points under test: all mechanisms run, numbers equal those of the Python calls, and errors have one line.
"""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_sketches import SKETCHES, as_typed
from typer.testing import Result

import quietbits
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.simulation.repeated_means import MeanSummary, repeat_mean, summarise_means
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.guarantee import Guarantee
from quietbits.design.contracts.norm_ball import NormBall

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]

SIZES = ["--clients", "50", "--dimension", "12", "--clip", "2", "--epsilon", "2", "--delta", "1e-5"]
SIMULATION = ["simulate", "distributed-discrete-gaussian", *SIZES, "--bits", "16"]
ITEMS = ["simulate", "unary-encoding", "--clients", "50", "--categories", "5", "--epsilon", "2"]
CHEAP = {
    "mvu": ["--bits-in", "2", "--bits-out", "1", "--metric", "l1"],
    "poisson-binomial": ["--bits", "6"],
    **as_typed(SKETCHES),
    # The sketch is long enough to recover the only nonzero coordinate, which the stated error assumes.
    "sparse-discrete-gaussian": ["--sparsity", "1", "--sketch-dimension", "8", "--population", "sparse-mean", "--nonzero", "1"],
}


def test_a_simulation_is_one_call(answer: Answer) -> None:
    result = answer(*SIMULATION, "--repetitions", 3, "--seed", 5, "--population", "sparse", "--rotation-seed", 7)
    task = quietbits.Task(quietbits.NormBall(12, 2.0, 2.0), 50, 2.0, 1e-5, "add-or-remove-one")
    mechanism = quietbits.build_mechanism("distributed-discrete-gaussian", task, {"bits": 16, "rotation_seed": 7})
    asked = Guarantee(2.0, "add-or-remove-one", "secure-sum", delta=1e-5)
    summary = summarise_means(repeat_mean(mechanism, "sparse", 3, seed=5, asked=asked))
    least = REGISTRY["distributed-discrete-gaussian"].lower_bound(task)
    assert least is not None
    assert least < summary.worst_squared_error
    beside = {"lower_bound": least, "ratio_to_bound": summary.worst_squared_error / least, "on_real_numbers": False}
    assert result == {"mechanism": "distributed-discrete-gaussian"} | summary.document() | beside
    assert result.keys() == {"mechanism", *beside} | {field.name for field in fields(MeanSummary)}
    assert (result["bits_per_coordinate"], result["bits_per_client"], result["padded_dimension"]) == (256 / 12, 256, 16)


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if entry.private])
def test_every_mechanism_is_simulated(answer: Answer, name: str) -> None:
    options = CHEAP.get(name, [])
    kind = next(item for item in (NormBall, Categories, Interval) if item in REGISTRY[name].domains)
    sizes = {NormBall: SIZES, Categories: ["--clients", 50, "--categories", 12, "--epsilon", 2, "--delta", 1e-5]}
    result = answer("simulate", name, *sizes.get(kind, ["--clients", 50, "--epsilon", 2]), *options, "--repetitions", 2)
    assert result["dimension"] == (1 if kind is Interval else 12)
    assert result["trust_model"] == REGISTRY[name].trust_model
    assert result["epsilon"] <= 2.0
    assert 0 < result["squared_error"] < 10 * result["worst_squared_error"]
    assert (result["modulus"] is None) == (result["trust_model"] != "secure-sum" and name != "split-and-mix")


def test_exact_frequencies_have_no_error_and_no_epsilon(answer: Answer, run: Run) -> None:
    typed = ("simulate", "exact-histogram", "--clients", 30, "--categories", 1000)
    result = answer(*typed)
    # A budget is accepted as an alternative to the parameters.
    assert answer(*typed, "--epsilon", 2, "--delta", 1e-5) == result
    assert (result["epsilon"], result["squared_error"], result["standard_error"], result["worst_squared_error"]) == (None, 0, 0, 0)
    # The Bernoulli code has 120 measurements modulo 31.
    assert (result["padded_dimension"], result["modulus"]) == (120, 31)
    assert answer(*typed, "--code", "identity", "--masked")["padded_dimension"] == 1000
    assert "epsilon = inf" in run(*typed, "--code", "identity").stdout
    both = answer("simulate", "exact-histogram,frequency-randomised-response", *typed[2:6], "--epsilon", 2, "--adjacency", "replace-one")
    assert [item["epsilon"] for item in both["mechanisms"]] == [None, 2]


def test_one_round_has_no_standard_error_and_the_seed_counts(answer: Answer) -> None:
    first, again, other = (answer(*SIMULATION, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["squared_error"] != other["squared_error"]
    assert first["standard_error"] is None
    assert first["ratio_to_central"] == first["squared_error"] / first["central_squared_error"]


def test_masks_change_nothing(answer: Answer) -> None:
    assert answer(*SIMULATION, "--masked") == answer(*SIMULATION)


def test_several_mechanisms_are_compared_for_one_adjacency(answer: Answer, run: Run) -> None:
    names = ["cpsgd", "distributed-skellam", "sqkr", "dp-rec", "privunit-g"]
    typed = ["simulate", ",".join(names), *SIZES, "--adjacency", "replace-one"]
    result = answer(*typed)["mechanisms"]
    assert [item["mechanism"] for item in result] == names
    assert {item["adjacency"] for item in result} == {"replace-one"}
    # All mechanisms get the same inputs.
    assert len({item["zero_squared_error"] for item in result}) == 1
    assert result[2] == answer("simulate", "sqkr", *SIZES)
    shown = run(*typed).stdout
    assert all(name in shown for name in (*names, "secure-sum", "local"))
    # The note names the mechanisms that send floating-point noise.
    assert "privunit-g: the guarantee is of the mechanism on real numbers" in " ".join(shown.split())
    assert [item["mechanism"] for item in result if item["on_real_numbers"]] == ["privunit-g"]


def test_options_that_mechanisms_share_say_whose_they_are(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = " ".join(run("simulate", "sqkr,minimal-random-coding,dp-rec", "--help").stdout.replace("│", " ").split())
    assert "sqkr: Bits of the message; by default the best number; minimal-random-coding: log2 of the number" in shown
    assert "replace-one; must be given to compare mechanisms" in shown
    other = tuple(replace(option, choices=("1", "2")) if option.name == "message_bits" else option for option in REGISTRY["sqkr"].options)
    monkeypatch.setitem(REGISTRY, "sqkr", replace(REGISTRY["sqkr"], options=other))
    refused = run("simulate", "sqkr,minimal-random-coding", "--help")
    assert (refused.exit_code, refused.stderr.startswith("quietbits: mechanisms must agree on what message_bits is")) == (2, True)


def test_the_table_says_what_was_measured_and_what_is_proven(run: Run, answer: Answer) -> None:
    shown = run(*SIMULATION, "--repetitions", 4).stdout
    summary = answer(*SIMULATION, "--repetitions", 4)
    for text in (
        "50 clients, 12 coordinates,",
        f"{summary['squared_error']:.6g} (s.e. {summary['standard_error']:.2g})",
        f"{summary['predicted_squared_error']:.6g}",
        f"{summary['worst_squared_error']:.6g}",
        f"{summary['central_squared_error']:.6g}",
        "0 of 16 a round",
        "delta = 1e-05",
        "add-or-remove-one",
        "secure-sum",
    ):
        assert text in shown


def test_a_bound_for_unbiased_mechanisms_is_not_given_to_others(answer: Answer) -> None:
    typed = ("simulate", "mvu", "--clients", 50, "--dimension", 6, "--bits-in", 4, "--bits-out", 1, "--epsilon", 2)
    assert answer(*typed)["lower_bound"] > 0
    biased = answer(*typed, "--dithering", "rejection")
    assert biased["bias_bound"] > 0
    # The bound that also holds for biased mechanisms is smaller.
    assert 0 < biased["lower_bound"] < answer(*typed)["lower_bound"]
    assert biased["ratio_to_bound"] == biased["worst_squared_error"] / biased["lower_bound"]


def test_a_sparse_mean_is_found_at_the_predicted_error(answer: Answer, run: Run) -> None:
    """The sparse mean has as many nonzero coordinates as the mechanism expects."""
    sizes = ("--clients", 300, "--dimension", 1000, "--epsilon", 1, "--delta", 1e-5, "--adjacency", "add-or-remove-one", "--bits", 18)
    typed = ("simulate", "sparse-discrete-gaussian", *sizes, "--sparsity", 3, "--population", "sparse-mean")
    result = answer(*typed, "--nonzero", 3, "--repetitions", 5)
    # The sum of 15 squares is nearly Gaussian.
    assert 0.3 < result["squared_error"] / result["predicted_squared_error"] < 2.2
    assert result["squared_error"] < 0.01 * result["zero_squared_error"]
    # The bound holds for the worst vectors of the ball, and the stated error is for sparse means.
    assert result["lower_bound"] is result["ratio_to_bound"] is None
    assert "of sparse-mean, as the mechanism expects it" in run(*typed).stdout
    # One coordinate in 16 is nonzero, far more than the mechanism expects, so the stated error does not apply.
    assert answer(*typed)["squared_error"] > 0.1 * result["zero_squared_error"]


def test_results_are_written(run: Run, answer: Answer, folder: Path) -> None:
    assert run(*SIMULATION, "--output", "found.json").exit_code == 0
    assert json.loads((folder / "found.json").read_text()) == answer(*SIMULATION)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["simulate", "privunit-2", *SIZES],
            "mechanism must be a name that quietbits simulate --help lists, got 'privunit-2'",
        ),
        (["simulate", "sqkr,cpsgd", *SIZES], "adjacency must be given where mechanisms are compared"),
        (["simulate", "sqkr", *SIZES, "--adjacency", "add-or-remove-one"], "adjacency must be one of replace-one"),
        (["simulate", "sqkr", *SIZES, "--norm", "1"], "norm must be 2 for sqkr, got 1"),
        (["simulate", "sqkr", "--clients", "5", "--epsilon", "1"], "dimension must be given for sqkr"),
        ([*ITEMS, "--dimension", "7"], "dimension must be left out for unary-encoding, whose clients hold items, got 7"),
        ([*ITEMS, "--clip", "2"], "clip must be left out for unary-encoding, whose clients hold items, got 2.0"),
        ([*SIMULATION, "--categories", "5"], "categories must be left out for distributed-discrete-gaussian, whose clients hold "),
        ([*SIMULATION, "--interval", "0", "9"], "interval must be left out where clients hold vectors, got 0 9"),
        (["simulate", "laplace", *ITEMS[2:4], *ITEMS[6:], "--norm", "1"], "norm must be left out where clients hold numbers, got 1"),
        (["simulate", "gaussian", *SIZES[:-2]], "delta must be above 0 for gaussian, got 0.0"),
        ([*SIMULATION, "--population", "cloud"], "population must be one of uniform-l1"),
        ([*SIMULATION, "--repetitions", "0"], "repetitions must be a whole number from 1 to 1000000, got 0"),
        ([*SIMULATION, "--bits", "3"], "bits must be at least"),
        ([*SIMULATION, "--nonzero", "3"], "nonzero must be left out for the population sphere"),
        ([*SIMULATION, "--clip", "0"], "clip_norm must be a number from"),
        ([*SIMULATION, "--output", "nowhere/x.json"], "nowhere: there is no such folder"),
    ],
)
def test_faults_are_one_line(fault: Callable[..., str], folder: Path, typed: list[str], message: str) -> None:
    assert fault(*typed).startswith(message)
    assert list(folder.iterdir()) == []
