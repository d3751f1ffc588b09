"""Tests of `account` and `calibrate` over the registry.

Points under test: budgets without a delta, and adjacencies that a trust model allows.
"""

from pathlib import Path

import pytest

from quietbits.analysis.catalogue.accounts import account, account_options, calibrate, calibrates, calibration_options, keeps_pure_budgets
from quietbits.analysis.catalogue.registry import REGISTRY, accounted_names
from quietbits.design.tables.file import write_table
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

SIZES = {"dimension": 4, "categories": 8}


@pytest.mark.parametrize("name", [name for name in accounted_names() if calibrates(name) and keeps_pure_budgets(name)])
def test_pure_mechanisms_need_no_delta(name: str) -> None:
    given = {option.name: SIZES[option.name] for option in calibration_options(name) if option.required}
    report = calibrate(name, epsilon=1.0, rounds=2, **given).report
    assert report.privacy.delta == 0
    assert 1 - 2e-6 < report.epsilon <= 1


@pytest.mark.parametrize("name", ["gaussian", "distributed-discrete-gaussian", "vector", "shuffled-randomised-response"])
def test_others_say_that_they_need_one(name: str) -> None:
    given = {option.name: SIZES.get(option.name, 100) for option in calibration_options(name) if option.required}
    with pytest.raises(ValueError, match=f"delta must be given for {name}"):
        calibrate(name, epsilon=1.0, **given)


@pytest.mark.parametrize("name", ["cldp", "gaussian", "laplace", "sqkr", "generalised-randomised-response"])
def test_a_server_that_sees_messages_sees_who_sends_them(name: str) -> None:
    asked = {"noise_multiplier": 1.0} if name == "gaussian" else {"epsilon": 1.0}
    for call in (lambda: account(name, delta=1e-5, adjacency="add-or-remove-one", **asked), lambda: _calibrated(name)):
        with pytest.raises(ValueError, match=r"adjacency must be (one of )?replace-one"):
            call()
    assert REGISTRY[name].adjacencies == ("replace-one",)


def _calibrated(name: str) -> object:
    return calibrate(name, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")


@pytest.mark.parametrize("name", [name for name in accounted_names() for option in account_options(name) if option.name == "norm"])
def test_a_norm_is_a_number_or_a_text(name: str, tmp_path: Path) -> None:
    values = {
        "epsilon": 1.0,
        "table": tmp_path / "table.json",
        "dimension": 1 if name == "central-staircase" else 3,
        "steps": 64,
        "scale": 256.0,
        "width": 8,
        "bits": 120 if name == "split-and-mix" else 20,
        "survivors": 10,
        "noise_multiplier": 1.0,
        "variance": 1e4,
        "l1": 1.0,
        "l2": 1.0,
        "clients": 10,
        "levels": 4,
        "coordinate_clip": 0.5,
        "messages": 60,
        "trials": 40,
        "theta": 0.1,
        "granularity": 0.02,
        "local_sigma": 0.2,
        "local_variance": 0.04,
    }
    write_table(generalised_randomised_response(1.0, 2), tmp_path / "table.json")
    norms = (
        (1.0,)
        if name == "central-discrete-laplace"
        else (1.0, 2.0)
        if REGISTRY.get(name) is None or REGISTRY[name].norms is None
        else REGISTRY[name].norms
    )
    given = {option.name: values[option.name] for option in account_options(name) if option.name in values}
    for norm in norms:
        texts = [account(name, delta=1e-5, **given, norm=written).document() for written in (norm, f"{norm:g}", f"l{norm:g}")]
        assert texts[0]["epsilon"] == texts[1]["epsilon"] == texts[2]["epsilon"]
    with pytest.raises(ValueError, match=r"norm must be a number from 1 to 64, got 0\.5"):
        account(name, delta=1e-5, **given, norm=0.5)
    with pytest.raises(ValueError, match="norm must be a number or a text, got True"):
        account(name, delta=1e-5, **given, norm=True)


@pytest.mark.parametrize("name", ["sqkr", "distributed-discrete-gaussian", "sparse-discrete-gaussian"])
def test_a_norm_is_stated_as_a_number(name: str) -> None:
    options = {"sparsity": 1, "sketch_dimension": 8} if name == "sparse-discrete-gaussian" else {}
    stated = calibrate(name, epsilon=4.0, delta=1e-3, dimension=16, clients=50, norm="l2", **options).document()
    assert stated["norm"] == 2.0


def test_rounds_that_are_too_many_to_compose_are_bounded_otherwise() -> None:
    report = account("shuffled-frequency-randomised-response", epsilon=0.01, categories=10, clients=10**6, delta=1e-5, rounds=10**12)
    assert report.epsilon > 1e6


def test_a_trusted_server_may_hide_who_takes_part() -> None:
    report = account("gaussian", noise_multiplier=1.0, delta=1e-5, adjacency="add-or-remove-one", trust_model="central")
    assert (report.privacy.adjacency, report.privacy.trust_model) == ("add-or-remove-one", "central")
    assert account("laplace", epsilon=1.0, delta=1e-5, sampling=PoissonSampling(0.1)).epsilon < 0.2


def test_laplace_noise_has_no_account_for_samples_of_fixed_size() -> None:
    with pytest.raises(ValueError, match="sampling must be Poisson sampling for laplace"):
        account("laplace", epsilon=1.0, delta=1e-5, sampling=FixedSizeSampling(100, 10))
