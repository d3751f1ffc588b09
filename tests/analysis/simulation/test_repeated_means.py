"""Repeated rounds.

Rounds are independent of each other and of their number, wrapping is bounded, and summaries have fixed keys.
"""

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tiny_sketches import SKETCHES

from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.analysis.random_streams import named_stream
from quietbits.analysis.simulation.mean import simulate_mean
from quietbits.analysis.simulation.populations import input_chunks
from quietbits.analysis.simulation.repeated_means import MeanSummary, repeat_mean, summarise_means
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism

MECHANISM = DistributedDiscreteGaussianMechanism(NormBall(5, 2.0, 10.0), clients=30, bits=12, granularity=0.5, local_sigma=2.0, delta=1e-5)
FEW_BITS = DistributedDiscreteGaussianMechanism(NormBall(8, 2.0, 40.0), clients=10, bits=9, granularity=1.0, local_sigma=40.0, delta=1e-5)
LAPLACE = build_mechanism("laplace", Task(Interval(0.0, 5.0), 40, 1.0, 0.0, "replace-one"))


def test_measured_errors_are_as_predicted() -> None:
    # Squared errors are nearly chi-square with 5 degrees of freedom: each has a relative standard deviation of sqrt(2/5), and the margin is
    # 5 sigma of the mean.
    mechanism = replace(MECHANISM, bits=16, granularity=0.125)
    results = repeat_mean(mechanism, "uniform-l1", 400, seed=7)
    assert abs(results["squared_error"].mean() / results["predicted_squared_error"].mean() - 1) < 5 * np.sqrt(2 / 5 / 400)
    assert (results["predicted_squared_error"] <= results["worst_squared_error"]).all()
    assert (results["wrapped_coordinates"] == 0).all()
    assert results["wrap_probability"].max() < 1e-12


def test_with_few_bits_coordinates_wrap_and_no_more_than_the_bound_says() -> None:
    # At most 8 coordinates of a round wrap, and rounds are independent: by Hoeffding, the mean exceeds the bound's expectation by 8
    # sqrt(ln(1/1e-6) / (2 * 300)) with probability 1e-6.
    rounds = 300
    results = repeat_mean(FEW_BITS, "sphere", rounds, seed=8)
    measured, bound = results["wrapped_coordinates"].mean(), results["wrapped_coordinates_bound"].iloc[0]
    assert 0 < measured < bound + 8 * np.sqrt(np.log(1e6) / (2 * rounds))
    assert bound < 8


def test_the_same_noise_with_more_bits_does_not_wrap() -> None:
    narrow, wide = (repeat_mean(item, "sphere", 50, seed=9) for item in (FEW_BITS, replace(FEW_BITS, bits=30)))
    assert narrow["wrapped_coordinates"].sum() > 0
    assert wide["wrapped_coordinates"].sum() == 0
    same = narrow["wrapped_coordinates"] == 0
    assert same.any()
    np.testing.assert_array_equal(narrow.loc[same, "squared_error"], wide.loc[same, "squared_error"])
    assert (narrow.loc[~same, "squared_error"] != wide.loc[~same, "squared_error"]).all()


def test_a_repetition_does_not_depend_on_how_many_there_are() -> None:
    few, many = (repeat_mean(MECHANISM, "sphere", count, seed=3) for count in (2, 4))
    assert few.equals(many.iloc[:2])
    assert many["squared_error"].nunique() == 4
    assert not few.equals(repeat_mean(MECHANISM, "sphere", 2, seed=4).assign(seed=3))


def test_a_repetition_is_one_round_of_streams_with_names() -> None:
    row = repeat_mean(MECHANISM, "sparse", 2, seed=5, nonzero=2).iloc[1]
    vectors, noise = (named_stream(5, f"{name}, repetition 1, {part}") for name, part in (("mean", "vectors"), ("secure sum", "noise")))
    summary = simulate_mean(MECHANISM, input_chunks("sparse", MECHANISM.ball, 30, vectors, nonzero=2), noise)
    assert (row["repetition"], row["seed"], row["population"], row["clients"]) == (1, 5, "sparse", 30)
    assert row["squared_error"] == summary.squared_error
    assert row["ratio_to_central"] == row["squared_error"] / row["central_squared_error"]
    guarantee = MECHANISM.guarantee
    assert row["epsilon"] == guarantee.epsilon
    assert row["central_squared_error"] == pytest.approx(
        central_gaussian_error(MECHANISM.ball, 30, guarantee.epsilon, 1e-5, "add-or-remove-one"), rel=5e-6
    )
    # Vectors of the cube, scaled by the clip norm, are longer than the clip norm.
    assert repeat_mean(MECHANISM, "uniform-cube", 1).iloc[0]["clipped"] > 5


def test_mechanisms_without_a_modulus() -> None:
    results = repeat_mean(LAPLACE, "ends", 3, clients=40)
    missing = [
        *("modulus", "padded_dimension", "wrapped_coordinates", "wrapped_coordinates_bound"),
        *("coordinate_wrap_probability", "wrap_probability"),
    ]
    assert results[missing].isna().all(axis=None)
    assert {results[name].dtype.name for name in missing} == {"float64"}
    assert results["squared_error"].nunique() == 3
    summary = summarise_means(results)
    assert [getattr(summary, name) for name in missing] == [None] * len(missing)
    assert (summary.clients, summary.dimension, summary.trust_model, summary.bits_per_client) == (40, 1, "local", 64.0)


def test_the_summary() -> None:
    results = repeat_mean(FEW_BITS, "uniform-cube", 4, seed=2)
    summary = summarise_means(results)
    assert summary.document().keys() == {field.name for field in fields(MeanSummary)}
    assert summary.squared_error == pytest.approx(results["squared_error"].mean(), rel=1e-14)
    assert summary.standard_error == pytest.approx(results["squared_error"].sem(), rel=1e-14)
    assert summary.wrapped_coordinates == results["wrapped_coordinates"].mean()
    assert summary.clipped_share == results["clipped"].sum() / 40
    assert summary.ratio_to_central == summary.squared_error / summary.central_squared_error
    assert (summary.modulus, summary.padded_dimension, summary.repetitions, summary.seed) == (512, 8, 4, 2)
    assert {type(value) for value in summary.document().values()} == {int, float, str}
    assert summarise_means(results.iloc[:1]).standard_error is None


def test_a_summary_is_of_one_mechanism() -> None:
    results = [repeat_mean(replace(MECHANISM, local_sigma=sigma), "sphere", 2) for sigma in (2.0, 3.0)]
    with pytest.raises(ValueError, match="results must be of one mechanism and population, got several values of epsilon"):
        summarise_means(pd.concat(results))
    with pytest.raises(ValueError, match="results must have rows, got none"):
        summarise_means(results[0].iloc[:0])


@pytest.mark.parametrize("name", REGISTRY)
def test_no_mechanism_of_the_registry_is_refused(name: str) -> None:
    entry = REGISTRY[name]
    ball = NormBall(3, (entry.norms or (2.0,))[-1])
    domain = next(item for item in (ball, Categories(3), Interval(-1.0, 1.0)) if type(item) in entry.domains)
    options = {
        "mvu": {"bits_in": 2, "bits_out": 1},
        "cpsgd": {"bits": 10},
        "poisson-binomial": {"bits": 5},
        "sketched-poisson-binomial": {"trials": 1},
        **SKETCHES,
    }.get(name, {})
    mechanism = build_mechanism(name, Task(domain, 20, 3.0, 1e-3, entry.adjacencies[0]), options)
    summary = summarise_means(repeat_mean(mechanism, "sphere" if NormBall in entry.domains else "uniform", 2, clients=20))
    assert (summary.trust_model, summary.adjacency, summary.clients) == (entry.trust_model, entry.adjacencies[0], 20)
    assert summary.epsilon <= (3.0 if entry.private else math.inf)
    assert (summary.squared_error > 0) == entry.private
    assert (summary.modulus is None) == (entry.trust_model != "secure-sum" and name != "split-and-mix")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population": "cloud"}, "population must be one of uniform-l1, .*, got 'cloud'"),
        ({"nonzero": 3}, "nonzero must be left out for the population sphere"),
        ({"repetitions": 0}, "repetitions must be a whole number from 1 to 1000000, got 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"clients": 31}, "clients must be 30, which the mechanism was made for, got 31"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"population": "sphere", "repetitions": 1} | options
    with pytest.raises(ValueError, match=message):
        repeat_mean(MECHANISM, **arguments)


def test_the_number_of_clients_must_be_known() -> None:
    with pytest.raises(ValueError, match="clients must be given for a mechanism that is not made for a number of clients, got None"):
        repeat_mean(LAPLACE, "ends", 1)
