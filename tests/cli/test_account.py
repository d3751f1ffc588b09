"""`quietbits account` on the command line.

Points under test: answers have one form for the whole registry, and errors one line.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import quietbits
from quietbits.analysis.catalogue.registry import REGISTRY, accounted_names
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.frequencies.item_sketch import ItemSketch
from quietbits.design.frequencies.noisy_sketch import SketchedDiscreteGaussianFrequencies
from quietbits.design.frequencies.sketched_poisson_binomial import SketchedPoissonBinomialFrequencies
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.tables.file import write_table
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_privacy import table_privacy
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_renyi
from quietbits.solvers.divergences.vector_composition import vector_bounds

Answer = Callable[..., dict[str, Any]]
Run = Callable[..., Result]

KEYS = {
    *("mechanism", "bits_per_client", "epsilon", "delta", "rounds", "adjacency", "trust_model", "sampling", "method", "accounts"),
}
SHARED = ["--clients", "1000", "--dimension", "1024", "--clip", "1", "--delta", "1e-5"]
SENSITIVITIES = ["--probability", "0.5", "--scale", "1", "--dimension", "1", "--l1", "1", "--l2", "1", "--linf", "1", "--delta", "1e-6"]
TRAINING = ["--population", "100", "--clients-per-round", "10", "--rounds", "1000", "--index-bits", "42", "--delta", "0.006"]
VECTOR = ["vector", "table.json", "--dimension", "8", "--norm", "2"]
GAUSSIAN = ["gaussian", "--noise-multiplier", "2", "--delta", "1e-6"]
POISSON = ["poisson-binomial", "--clients", "20", "--trials", "2", "--theta", "0.25"]
BINOMIAL = ["binomial", "--trials", "1000000", *SENSITIVITIES]
DISCRETE = ["distributed-discrete-gaussian", *SHARED, "--local-sigma", "0.13", "--granularity", "0.01"]
SKETCHED = ["--clients", "1000", "--padded-dimension", "150", "--local-sigma", "0.13", "--granularity", "0.01", "--delta", "1e-5"]
CPSGD = ["cpsgd", "--clients", "1000", "--dimension", "100", "--clip", "2", "--delta", "1e-5", "--levels", "33", "--trials", "2000"]
DP_REC = ["dp-rec", "--clip-ratio", "0.545", *TRAINING]
# Arguments of each account, and the names of its methods.
DELTA = ["--delta", "1e-5"]
CODE = [
    *("--clients", "5000", "--dimension", "20", "--local-epsilon", "3"),
    *("--letter-bits", "4", "--seed-bits", "12", "--closest", "2"),
]
SPLIT = ["split-and-mix", "--clients", "1000", "--dimension", "1", "--clip", "0.5"]
SUBSAMPLED = ["subsampled-gaussian", "--clients", "1000", "--dimension", "64"]
ITEMS = ["--clients", "100", "--categories", "50", "--rows", "2", "--width", "8", "--steps", "1"]
TYPED: dict[str, tuple[list[str], set[str]]] = {
    "mvu": (["mvu", "table.json", "--delta", "1e-5"], {"pure", "rdp", "pld"}),
    "bitwise-randomised-response": (["bitwise-randomised-response", "--epsilon", "1", "--bits", "2"], {"pure", "rdp", "pld"}),
    "generalised-randomised-response": (["generalised-randomised-response", "--epsilon", "1", "--bits", "2"], {"pure", "rdp", "pld"}),
    "cldp": (["cldp", "--epsilon", "0.5", "--delta", "1e-6", "--rounds", "20"], {"pure", "rdp", "pld"}),
    "laplace": (["laplace", "--epsilon", "0.5", "--delta", "1e-6", "--rounds", "20"], {"pure", "rdp", "pld"}),
    "gaussian": (GAUSSIAN, {"rdp", "rdp-classic", "pld"}),
    "skellam": (["skellam", "--variance", "1e5", "--l1", "30", "--l2", "10", "--delta", "1e-6"], {"rdp"}),
    "sqkr": (["sqkr", "--epsilon", "0.5", "--delta", "1e-6", "--rounds", "20"], {"pure", "rdp", "pld"}),
    "privunit-g": (["privunit-g", "--epsilon", "0.5", "--dimension", "16", "--rounds", "20"], {"pure", "rdp", "pld"}),
    "privunit": (["privunit", "--epsilon", "0.5", "--dimension", "16", "--rounds", "20"], {"pure", "rdp", "pld"}),
    "projunit": (["projunit", "--epsilon", "0.5", "--dimension", "16", "--projected", "4", "--rounds", "20"], {"pure", "rdp", "pld"}),
    "fast-projunit": (["fast-projunit", "--epsilon", "0.5"], {"pure", "rdp", "pld"}),
    "rotating-simplex": (["rotating-simplex", "--epsilon", "0.5"], {"pure", "rdp", "pld"}),
    "minimal-random-coding": (["minimal-random-coding", "--epsilon", "0.5"], {"pure", "rdp", "pld"}),
    "minimal-random-coding-plain": (["minimal-random-coding-plain", "--epsilon", "0.5", "--dimension", "16"], {"pure", "rdp", "pld"}),
    "poisson-private-representation": (["poisson-private-representation", "--epsilon", "0.5"], {"pure", "rdp", "pld"}),
    "distributed-discrete-gaussian": (DISCRETE, {"rdp", "near-gaussian"}),
    "distributed-skellam": (
        ["distributed-skellam", *SHARED, "--local-variance", "0.04", "--granularity", "0.001"],
        {"rdp", "near-gaussian"},
    ),
    "cpsgd": (CPSGD, {"theorem-1", "rdp", "near-gaussian"}),
    "poisson-binomial": ([*POISSON, "--delta", "1e-5"], {"pure", "rdp", "pld"}),
    "sketched-discrete-gaussian": (["sketched-discrete-gaussian", *SKETCHED], {"rdp", "near-gaussian"}),
    "sketched-skellam": (
        ["sketched-skellam", *SKETCHED[:4], "--local-variance", "0.02", *SKETCHED[6:]],
        {"rdp", "near-gaussian"},
    ),
    "sparse-discrete-gaussian": (["sparse-discrete-gaussian", *SKETCHED], {"rdp", "near-gaussian"}),
    "central-sketch": (["central-sketch", *GAUSSIAN[1:]], {"rdp", "rdp-classic", "pld"}),
    "dp-rec": (DP_REC, {"published", "conservative", "any-bits", "any-clients", "message"}),
    "table": (["table", "table.json", "--delta", "1e-3", "--rounds", "5"], {"pure", "rdp", "pld"}),
    "vector": ([*VECTOR, "--delta", "1e-5", "--rounds", "3"], {"pure", "rdp"}),
    "binomial": (BINOMIAL, {"theorem-1", "exact", "rdp", "near-gaussian"}),
    "sketched-poisson-binomial": (
        ["sketched-poisson-binomial", *("--clients", "100", "--trials", "2", "--theta", "0.1", "--categories", "32"), *DELTA],
        {"pure", "rdp"},
    ),
    "sketched-discrete-gaussian-frequencies": (
        ["sketched-discrete-gaussian-frequencies", *ITEMS, "--local-sigma", "0.7", *DELTA],
        {"rdp", "near-gaussian"},
    ),
    "sketched-skellam-frequencies": (["sketched-skellam-frequencies", *ITEMS, "--local-variance", "0.5", *DELTA], {"rdp", "near-gaussian"}),
    "shuffled": (["shuffled", "table.json", "--clients", "5000", *DELTA], {"pure", "blanket", "clones"}),
    "shuffled-mvu": (["shuffled-mvu", "table.json", "--clients", "500", "--rounds", "3", *DELTA], {"pure", "blanket", "clones"}),
    "shuffled-randomised-response": (
        ["shuffled-randomised-response", "--epsilon", "2", "--bits", "2", "--clients", "5000", *DELTA],
        {"pure", "blanket", "clones"},
    ),
    "shuffled-frequency-randomised-response": (
        ["shuffled-frequency-randomised-response", "--epsilon", "2", "--categories", "50", "--clients", "5000", *DELTA],
        {"pure", "blanket", "clones"},
    ),
    "shuffled-rotating-simplex": (["shuffled-rotating-simplex", *CODE, *DELTA], {"pure", "blanket", "clones"}),
    "shuffled-random-coding": (["shuffled-random-coding", *CODE, *DELTA], {"pure", "blanket", "clones"}),
    "sparse-discrete-gaussian-frequencies": (
        ["sparse-discrete-gaussian-frequencies", *ITEMS, "--local-sigma", "0.7", *DELTA],
        {"rdp", "near-gaussian"},
    ),
    "distributed-discrete-laplace": (
        ["distributed-discrete-laplace", *SHARED, *("--bits", "20", "--steps", "5", "--scale", "20", "--survivors", "900"), *DELTA],
        {"pure", "rdp", "pld"},
    ),
    "central-gaussian": (["central-gaussian", *SHARED, "--steps", "65536", "--noise-multiplier", "4", *DELTA], {"rdp", "near-gaussian"}),
    "central-laplace": (["central-laplace", *SHARED, "--steps", "64", "--scale", "256", *DELTA], {"pure", "rdp", "pld"}),
    "central-discrete-laplace": (
        ["central-discrete-laplace", *SHARED, "--steps", "1", "--scale", "2", *DELTA],
        {"pure", "rdp", "pld"},
    ),
    "split-and-mix": (
        [*SPLIT, "--bits", "150", "--messages", "10", "--steps", "200", "--scale", "400", *DELTA],
        {"pure", "rdp", "pld"},
    ),
    "subsampled-gaussian": (
        [*SUBSAMPLED, "--levels", "7", "--coordinate-clip", "0.5", "--noise-multiplier", "5", *DELTA],
        {"rdp"},
    ),
    "central-staircase": (
        ["central-staircase", *("--clients", "1000", "--steps", "64", "--epsilon", "1", "--width", "50"), *DELTA],
        {"pure", "rdp", "pld"},
    ),
    "exact-histogram": (["exact-histogram", "--clients", "30", "--categories", "1000"], {"none"}),
    # These mechanisms share their arguments and methods.
    **{
        name: ([name, "--epsilon", "0.5", "--categories", "100", "--delta", "1e-6", "--rounds", "20"], {"pure", "rdp", "pld"})
        for name, entry in REGISTRY.items()
        if Categories in entry.domains and entry.trust_model == "local"
    },
}


@pytest.fixture(autouse=True)
def table(folder: Path) -> None:
    write_table(generalised_randomised_response(1.0, 2), folder / "table.json")


def test_everything_in_the_registry_is_typed_here() -> None:
    assert set(TYPED) == set(accounted_names())


@pytest.fixture(scope="module")
def accounted(answer: Answer) -> Answer:
    """Return a function that accounts for a name with its arguments, once for all tests."""
    return cache(lambda name: answer("account", *TYPED[name][0]))


@pytest.mark.parametrize("name", TYPED)
def test_every_answer_has_the_same_shape(accounted: Answer, name: str) -> None:
    result, accounts = accounted(name), TYPED[name][1]
    assert result.keys() >= KEYS
    assert result["accounts"].keys() == accounts
    for value in result["accounts"].values():
        assert value.keys() >= {"epsilon", "proven", "assumes", "adjacency", "reason"}
        assert (value["epsilon"] is None) == (value["reason"] is not None)
    proven = [
        item["epsilon"]
        for item in result["accounts"].values()
        if item["proven"] and item["assumes"] is None and item["adjacency"] == result["adjacency"] and item["epsilon"] is not None
    ]
    assert result["epsilon"] == min(proven, default=None)
    assert (result["method"] is None) == (result["epsilon"] is None)


@pytest.mark.parametrize("name", TYPED)
def test_a_table_for_people_and_a_file(run: Run, accounted: Answer, folder: Path, name: str) -> None:
    typed, accounts = TYPED[name]
    result = run("account", *typed, "--output", "account.json")
    assert result.exit_code == 0, result.output
    for part in ("epsilon", "adjacency", "trust model", *(f"by {account}" for account in accounts)):
        assert part in result.stdout
    document = accounted(name)
    assert json.loads((folder / "account.json").read_text()) == document
    shown = " ".join(result.stdout.replace("│", " ").split())
    assert ("in its low bits" in shown) == document.get("on_real_numbers", False) == (name in REGISTRY and REGISTRY[name].on_real_numbers)


def test_a_vector_at_an_order(answer: Answer) -> None:
    result = answer("account", *VECTOR, "--order", 8)
    # On the grid -1, 0, 1, eight coordinates of 1/sqrt(8), whose sum is 2.83, are rounded to at most three ones. Opposite vectors are 2
    # sqrt(3) apart, in units of the interval's 3 steps.
    distance = 2 * math.sqrt(3) / 3
    bounds = vector_bounds(generalised_randomised_response(1.0, 2).weights, 8.0, 8, 2.0, result["input_distance"])
    assert (result["rdp_lp"], result["rdp_greedy"], result["rdp_integer"]) == (bounds.linear_program, bounds.greedy, bounds.integer)
    assert (result["rdp_order"], result["dimension"], result["norm"], result["clip"]) == (8.0, 8, 2.0, 1.0)
    assert result["input_distance"] == pytest.approx(distance, rel=1e-9)
    assert result["rdp_greedy"] >= result["rdp_lp"] >= result["rdp_integer"] > 0
    assert result["bits_per_client"] == 16
    # Without a delta, the guarantee is the pure guarantee.
    assert (result["method"], result["epsilon"]) == ("pure", result["accounts"]["pure"]["epsilon"])


@pytest.mark.parametrize(("typed", "norm"), [("1", 1.0), ("inf", "inf"), ("2.5", 2.5)])
def test_norms(answer: Answer, typed: str, norm: float | str) -> None:
    result = answer("account", *VECTOR, "--norm", typed, "--order", 2)
    assert result["norm"] == norm
    # The dynamic programme counts whole units of the budget.
    assert (result["rdp_integer"] is None) == (typed == "2.5")


def test_the_infinite_order_is_the_pure_epsilon(answer: Answer) -> None:
    result = answer("account", *VECTOR, "--norm", "1", "--order", "inf")
    assert result["rdp_order"] is None
    assert result["rdp_integer"] == pytest.approx(result["accounts"]["pure"]["epsilon"])
    result = answer("account", *POISSON, "--order", "inf")
    # By default the vector has one number, for which two coefficients are sent.
    assert (result["dimension"], result["padded_dimension"]) == (1, 2)
    assert 2 * result["rdp"] == pytest.approx(result["accounts"]["pure"]["epsilon"])


def test_what_a_vector_reveals_counts_what_dithering_adds(answer: Answer, folder: Path) -> None:
    table = design_mvu(0.5, 4, 1, metric="l1")
    write_table(table, folder / "fine.json")
    options = ["--dimension", 128, "--norm", 2, "--delta", "1e-5", "--rounds", 10]
    for dithering in ("systematic", "rejection"):
        mechanism = VectorTableMechanism(table, NormBall(128, 2.0, 3.0), delta=1e-5, dithering=dithering)
        result = answer("account", "vector", "fine.json", *options, "--clip", 3, "--dithering", dithering)
        assert result["epsilon"] == mechanism.privacy().epsilon(1e-5, rounds=10)
        assert (result["input_distance"], result["dithering"]) == (mechanism.input_distance, dithering)
        assert result == answer("account", "mvu", "fine.json", *options, "--clip", 3, "--dithering", dithering)
    # With 7 steps on either side of zero, the squared norm is 49, a quarter for each of 128 coordinates, and less than 13 for the last
    # rounded-up coordinate.
    systematic = answer("account", "vector", "fine.json", *options)
    assert systematic["input_distance"] == pytest.approx(2 * math.sqrt(93) / 15, rel=1e-9)
    understated = table_privacy(table, dimension=128, norm=2.0, radius=1.0).epsilon(1e-5, rounds=10)
    assert systematic["epsilon"] > 1.2 * understated


def test_how_far_apart_two_items_are_is_computed_from_their_sketch(answer: Answer) -> None:
    sketch = ItemSketch(1000, rows=5, width=8, seed=3, signed=True)
    typed = ["--clients", 100, "--categories", 1000, "--rows", 5, "--width", 8, "--sketch-seed", 3, "--signed", *DELTA]
    mechanism = SketchedDiscreteGaussianFrequencies(sketch, 100, 4, 3.0, 1e-5, "replace-one")
    of_items = ["account", "sketched-discrete-gaussian-frequencies", *typed, "--steps", 4, "--local-sigma", 3]
    result = answer(*of_items, "--adjacency", "replace-one")
    # The worst of half a million pairs of items has opposite signs in a common bucket of at least three rows.
    assert result["squared_distance"] == mechanism.squared_distance > 2 * (5 + 2)
    assert result["epsilon"] == mechanism.privacy().epsilon(1e-5, "replace-one")
    assert answer(*of_items, "--adjacency", "add-or-remove-one")["squared_distance"] == 5
    tosses = SketchedPoissonBinomialFrequencies(sketch, 100, 1, 0.1, 1e-5)
    result = answer("account", "sketched-poisson-binomial", *typed, "--theta", 0.1)
    assert result["differing_coordinates"] == tosses.differing_coordinates > 4 * (5 + 2)
    assert result["epsilon"] == tosses.privacy().epsilon(1e-5)


def test_a_table_is_a_vector_of_one_coordinate(answer: Answer) -> None:
    options = ("--delta", "1e-3", "--rounds", 5, "--order", 3)
    scalar = answer("account", "table", "table.json", *options)
    assert scalar == answer("account", "mvu", "table.json", *options)
    assert scalar["epsilon"] == scalar["accounts"]["pld"]["epsilon"] < scalar["accounts"]["rdp"]["epsilon"]


def test_an_order_at_the_edge_is_said(run: Run, answer: Answer) -> None:
    typed = ("account", "gaussian", "--noise-multiplier", 0.02, "--delta", 0.5)
    assert "WARNING: order 1.05 of rdp is at the edge of the orders tried" in run(*typed).stdout
    assert answer(*typed)["accounts"]["rdp"]["order_at_edge"] is True
    assert "WARNING" not in run("account", *GAUSSIAN).stdout


def test_the_rounds_that_a_client_is_drawn_for_are_said(run: Run) -> None:
    typed = ["account", "gaussian", "--noise-multiplier", "0.25", "--delta", "1e-6", "--rounds", "1500"]
    sampled = [*typed, "--population", "342477", "--sample-size", "1000"]
    account = json.loads(run(*sampled, "--json").stdout)["accounts"]["pld"]
    text = " ".join(run(*sampled).stdout.replace("│", " ").split())
    assert f"of at most {account['participations']} rounds that include a client, except with probability delta / 2" in text
    assert "rounds that include" not in run(*typed).stdout


def test_pure_mechanisms(answer: Answer) -> None:
    result = answer("account", *TYPED["cldp"][0])
    report = quietbits.account("cldp", epsilon=0.5, delta=1e-6, rounds=20)
    assert result == json.loads(json.dumps(report.document()))
    assert answer("account", "cldp", "--epsilon", 0.5, "--rounds", 20)["epsilon"] == 10.0
    assert answer("account", *TYPED["laplace"][0])["epsilon"] < result["epsilon"]
    # With the dimension, the account knows that CLDP on the L2 ball is more private than its declared epsilon.
    assert answer("account", "cldp", "--epsilon", 5, "--dimension", 128, "--norm", 2)["epsilon"] == pytest.approx(2.1362, abs=1e-4)


def test_sampled_gaussian_noise(answer: Answer) -> None:
    poisson = answer("account", *GAUSSIAN, "--rounds", 10, "--sampling-probability", 0.1)
    sampling = quietbits.PoissonSampling(0.1)
    assert poisson["epsilon"] == quietbits.account("gaussian", noise_multiplier=2.0, delta=1e-6, rounds=10, sampling=sampling).epsilon
    assert (poisson["adjacency"], poisson["trust_model"]) == ("add-or-remove-one", "central")
    fixed = answer("account", *GAUSSIAN, "--rounds", 10, "--population", 50, "--sample-size", 5)
    assert (fixed["adjacency"], fixed["trust_model"]) == ("replace-one", "central")
    added = answer("account", *GAUSSIAN, "--adjacency", "add-or-remove-one", "--trust-model", "secure-sum")
    assert (added["adjacency"], added["trust_model"]) == ("add-or-remove-one", "secure-sum")


def test_the_usual_adjacency_is_what_the_sampling_asks_for(answer: Answer) -> None:
    assert answer("account", *DISCRETE)["adjacency"] == "add-or-remove-one"
    assert answer("account", *DISCRETE, "--population", 5000, "--sample-size", 500)["adjacency"] == "replace-one"
    assert answer("account", *CPSGD)["adjacency"] == "replace-one"
    assert answer("account", *CPSGD, "--sampling-probability", 0.1)["adjacency"] == "add-or-remove-one"


def test_theorem_1_is_never_the_guarantee(answer: Answer) -> None:
    result = answer("account", "binomial", "--trials", 10_000, *SENSITIVITIES, "--l1", 1000, "--l2", 1000, "--linf", 1000)
    theorem = result["accounts"]["theorem-1"]
    assert (theorem["proven"], theorem["doubtful"], round(theorem["epsilon"], 1)) == (False, True, 186.1)
    # Exact convolution gives this epsilon.
    assert result["epsilon"] >= 297.3


def test_binomial_noise_without_a_worst_pair(answer: Answer) -> None:
    accounts = answer("account", *BINOMIAL, "--dimension", 10, "--l1", 6, "--l2", 3.5, "--linf", 2)["accounts"]
    assert accounts["exact"]["epsilon"] is None
    assert accounts["theorem-1"]["epsilon"] > accounts["rdp"]["epsilon"] > accounts["near-gaussian"]["epsilon"] > 0


def test_cpsgd_without_the_theorem_has_its_reason(answer: Answer) -> None:
    result = answer("account", *CPSGD, "--levels", 3, "--trials", 1)
    assert result["accounts"]["theorem-1"]["reason"].startswith("trials must be at least ")
    assert result["squared_error_gaussian"] > 0
    plain = answer("account", *CPSGD, "--plain", "--probability", 0.25, "--rounds", 3, "--adjacency", "add-or-remove-one")
    assert (plain["rotated"], plain["bias_bound"]) == (False, 0.0)
    assert plain["epsilon"] == plain["accounts"]["rdp"]["epsilon"] < plain["accounts"]["near-gaussian"]["epsilon"]


def test_poisson_binomial_at_an_order(answer: Answer) -> None:
    result = answer("account", *POISSON, "--order", 8)
    assert result["rdp"] == poisson_binomial_renyi(20, 2, 0.25, [8.0])[0]
    assert (result["rdp_proven"], result["worst_case"], result["rdp_order"]) == (result["rdp"], "all configurations", 8.0)
    many = answer("account", *POISSON, "--clients", 1000, "--order", 8, "--delta", 1e-5)
    assert many["rdp"] < many["rdp_proven"] < 1.01 * many["rdp"]
    assert many["epsilon"] == many["accounts"]["rdp"]["epsilon"] > many["accounts"]["rdp-extremes"]["epsilon"]


def test_dp_rec_states_nothing_that_assumes_something(answer: Answer) -> None:
    result = answer("account", *DP_REC)
    assert (result["adjacency"], result["trust_model"], result["method"]) == ("replace-one", "central", "any-clients")
    assert result["epsilon"] == result["accounts"]["any-clients"]["epsilon"]
    assert {name for name, item in result["accounts"].items() if not item["assumes"]} == {"any-clients", "message"}
    assert round(answer("account", *DP_REC, "--delta", 100**-1.1)["accounts"]["published"]["epsilon"], 3) == 3.016
    added = answer("account", *DP_REC, "--adjacency", "add-or-remove-one")
    assert (added["epsilon"], added["accounts"]) == (None, result["accounts"])
    # With too few bits for the theorem, the account states a reason instead of an error; the other accounts stay.
    few = answer("account", *DP_REC, "--index-bits", 20)["accounts"]
    assert (few["published"]["epsilon"], few["any-bits"]) == (None, result["accounts"]["any-bits"])
    assert few["published"]["reason"].startswith("index_bits must be at least")


def test_shuffled_letters_reveal_less_and_cost_more_in_a_secure_sum(answer: Answer) -> None:
    result = answer("account", *TYPED["shuffled"][0])
    assert (result["adjacency"], result["trust_model"], result["method"]) == ("replace-one", "shuffled", "blanket")
    assert 0.03 < result["epsilon"] < 0.1 < result["accounts"]["clones"]["epsilon"] < result["accounts"]["pure"]["epsilon"] <= 1.0
    assert result["accounts"]["clones"]["proven"] is False
    # A shuffler takes the letter, a secure sum takes four counts of up to 5000.
    assert (result["bits_per_client"], result["secure_sum_bits"]) == (2.0, pytest.approx(4 * math.log2(5001)))
    by_itself = answer("account", *TYPED["shuffled"][0][:3], "5000")
    assert by_itself["method"] == "pure"
    rounds = answer("account", *TYPED["shuffled"][0], "--rounds", "100")
    assert 5 * result["epsilon"] < rounds["epsilon"] < 15 * result["epsilon"]
    sampled = answer("account", *TYPED["shuffled"][0], "--population", "50000", "--sample-size", "5000")
    assert sampled["epsilon"] < result["epsilon"] / 5
    few = answer("account", "shuffled", "table.json", "--clients", 100, *DELTA)
    assert few["accounts"]["clones"]["reason"].startswith("epsilon of a letter must be at most ln(clients / (8 ln(2 / delta)) - 1)")


@pytest.mark.parametrize(("suffix", "beginning"), [("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_plots(run: Run, folder: Path, suffix: str, beginning: bytes) -> None:
    result = run("account", *VECTOR, "--norm", "inf", "--delta", "1e-5", "--rounds", 4, "--plot", f"plot.{suffix}")
    assert result.exit_code == 0, result.output
    assert (folder / f"plot.{suffix}").read_bytes().startswith(beginning)


@pytest.mark.parametrize("typed", [GAUSSIAN, DISCRETE, CPSGD, DP_REC])
def test_plots_of_others(run: Run, folder: Path, typed: list[str]) -> None:
    result = run("account", *typed, "--plot", "plot.png")
    assert result.exit_code == 0, result.output
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ([*VECTOR, "--delta", "0"], "delta must be a number above 0 and below 1, got 0.0"),
        ([*VECTOR, "--delta", "nan"], "delta must be a number above 0 and below 1, got nan"),
        ([*VECTOR, "--order", "1"], "order must be a number above 1, got 1.0"),
        ([*VECTOR, "--order", "2", "--rounds", "0"], "rounds must be a whole number from 1"),
        ([*VECTOR, "--order", "2", "--radius", "1"], "No such option"),
        ([*VECTOR, "--order", "2", "--clip", "0"], "clip must be a number from 1e-100 to 1e+100, got 0.0"),
        (["mvu", "table.json", "--dimension", "8"], "dimension and norm must be given together, for a vector, got 8 and None"),
        ([*VECTOR, "--order", "2", "--norm", "cosine"], "norm must be a number of at least 1, or inf, got 'cosine'"),
        ([*VECTOR, "--order", "2", "--norm", "0.5"], "norm must be a number from 1 to 64, got 0.5"),
        ([*VECTOR, "--order", "2", "--dimension", "0"], "dimension must be a whole number from 1"),
        ([*VECTOR, "--delta", "0.1", "--plot", "plot.jpeg"], "plot must be a file that ends in .svg, .pdf, .png, got 'plot.jpeg'"),
        ([*VECTOR, "--order", "2", "--plot", "plot.svg"], "delta must be given for a plot of epsilon"),
        # The output's folder is checked before any computation, which would refuse the rounds.
        ([*VECTOR, "--delta", "0.1", "--rounds", "0", "--output", "no/account.json"], "no: there is no such folder"),
        (GAUSSIAN[:3], "delta must be given for gaussian, which has no pure guarantee"),
        ([*GAUSSIAN, "--noise-multiplier", "0"], "noise_multiplier must be a number from 0.001"),
        ([*GAUSSIAN, "--sampling-probability", "2"], "sampling_probability must be a number from 1e-09 to 1, got 2.0"),
        (
            [*GAUSSIAN, "--sampling-probability", "0.1", "--sample-size", "2"],
            "sampling_probability must be left out with population or sample_size, got 0.1",
        ),
        ([*GAUSSIAN, "--sample-size", "2"], "population and sample_size must be given together"),
        ([*GAUSSIAN, "--adjacency", "replace-one", "--sampling-probability", "0.1"], "sampling must be Poisson with add-or-remove-one"),
        (["sqkr", "--epsilon", "1", "--sampling-probability", "0.1"], "sampling must be left out in the local trust model"),
        (["cldp", "--epsilon", "-1"], "epsilon must be a number from 1e-05 to 10000, got -1.0"),
        (["table", "absent.json", "--order", "2"], "absent.json: No such file or directory"),
        ([*BINOMIAL, "--trials", "10", "--l1", "20", "--l2", "20", "--linf", "20"], "trials must be at least 1483 for Theorem 1 of cpSGD"),
        ([*BINOMIAL, "--probability", "1"], "probability must be a number from"),
        ([*BINOMIAL, "--adjacency", "both"], "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        ([*POISSON, "--theta", "0.5"], "theta must be a number from 1e-06 to 0.499, got 0.5"),
        ([*DISCRETE, "--local-sigma", "0"], "local_sigma must be a number from"),
        ([*DISCRETE, "--clip", "0"], "clip must be a number from"),
        ([*CPSGD, "--levels", "1"], "levels must be a whole number from 2 to 16777216, got 1"),
        ([*DP_REC, "--clip-ratio", "-1"], "clip_ratio must be a number from 1e-06 to 100, got -1.0"),
    ],
)
def test_a_fault_is_one_line_and_leaves_no_file(fault: Callable[..., str], folder: Path, typed: list[str], message: str) -> None:
    assert fault("account", *typed).startswith(message)
    assert [path.name for path in folder.iterdir()] == ["table.json"]


def test_a_changed_table_is_refused(fault: Callable[..., str], folder: Path) -> None:
    path = folder / "table.json"
    path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
    assert fault("account", *VECTOR, "--order", 2).startswith("table.json: refused: checksum: the file was changed")


def test_a_table_for_numbers_says_so_of_vectors(answer: Answer, run: Run) -> None:
    run("design", "mvu", "--epsilon", 1, "--bits-in", 2, "--bits-out", 1, "--output", "table.json")
    assert "calibrate vector --metric l1 designs" in str(
        answer("account", "vector", "table.json", "--dimension", 16, "--norm", 2)["advice"]
    )
    assert answer("account", "vector", "table.json", "--dimension", 1, "--norm", 2)["advice"] is None


def test_numbers_that_their_names_do_not_explain_are_explained(run: Run) -> None:
    shown = " ".join(run("account", *DISCRETE).stdout.replace("│", " ").split())
    assert "by which the sum's log-ratio to one discrete Gaussian varies at most" in shown
    assert "the largest L2 norm after rounding" in shown
