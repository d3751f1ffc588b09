"""Accounts are monotone.

Points under test: more noise, fewer rounds, a larger delta or a smaller secret sample never raise epsilon.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from quietbits.analysis.catalogue.accounts import account_options
from quietbits.analysis.catalogue.registry import NOISE as BARE_NOISE
from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.design.contracts.registry import AccountSubject, check_values
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling

# Tolerances for roots, grids of losses and compositions.
RELATIVE, ABSOLUTE = 1e-5, 1e-9
SHARES = (0.001, 0.5, 0.999, 1.0)
POPULATION = 6000

# Parameters of every mechanism with a noise parameter; the scaled parameter comes first, with factors that increase the noise.
MORE = (1.0, 1.0 + 1e-4, 1.02, 1.5, 4.0)
VECTOR = {"dimension": 3, "clip": 1.0}
SKETCH = {"clients": 50, "categories": 100, "rows": 3, "width": 16, "steps": 2}
NOISE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gaussian": ("noise_multiplier", {"noise_multiplier": 2.0}),
    "skellam": ("variance", {"variance": 3e3, "l1": 20.0, "l2": 10.0}),
    "distributed-discrete-gaussian": ("local_sigma", {"local_sigma": 0.2, "clients": 40, "granularity": 0.02, **VECTOR}),
    "distributed-discrete-gaussian clients": ("clients", {"local_sigma": 0.2, "clients": 40, "granularity": 0.02, **VECTOR}),
    "distributed-skellam": ("local_variance", {"local_variance": 0.04, "clients": 40, "granularity": 0.02, **VECTOR}),
    "distributed-skellam clients": ("clients", {"local_variance": 0.04, "clients": 40, "granularity": 0.02, **VECTOR}),
    "cpsgd": ("trials", {"trials": 700, "clients": 10, "levels": 4, "rotated": False, **VECTOR}),
    "cpsgd clients": ("clients", {"trials": 70, "clients": 100, "levels": 4, "rotated": False, **VECTOR}),
    "binomial": ("trials", {"trials": 20588, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 2.0, "l2": 2.0, "linf": 2.0}),
    "binomial skewed": ("trials", {"trials": 20588, "probability": 0.3, "scale": 1.0, "dimension": 2, "l1": 2.0, "l2": 2.0, "linf": 2.0}),
    "poisson-binomial": ("clients", {"clients": 20, "trials": 2, "theta": 0.1, "dimension": 2}),
    "distributed-discrete-laplace": ("scale", {"clients": 40, "survivors": 50, "bits": 20, "steps": 5, "scale": 9.0, **VECTOR}),
    "distributed-discrete-laplace clients": ("clients", {"clients": 40, "survivors": 50, "bits": 20, "steps": 5, "scale": 9.0, **VECTOR}),
    "split-and-mix": ("scale", {"clients": 40, "bits": 260, "messages": 13, "steps": 5, "scale": 9.0, **VECTOR}),
    "split-and-mix clients": ("clients", {"clients": 40, "bits": 260, "messages": 13, "steps": 5, "scale": 45.0, **VECTOR}),
    "central-laplace": ("scale", {"clients": 40, "steps": 5, "scale": 9.0, **VECTOR}),
    "central-gaussian": ("noise_multiplier", {"clients": 40, "steps": 500, "noise_multiplier": 2.0, **VECTOR}),
    "subsampled-gaussian": (
        "noise_multiplier",
        {"clients": 40, "levels": 3, "coordinate_share": 0.3, "coordinate_clip": 0.8, "noise_multiplier": 2.0, **VECTOR},
    ),
    "sketched-skellam-frequencies": (
        "local_variance",
        {"local_variance": 30.0, **SKETCH},
    ),
    "sketched-discrete-gaussian-frequencies": (
        "local_sigma",
        {"local_sigma": 5.0, **SKETCH},
    ),
}

# Secure sums in which each client adds hardly any noise.
SUMMED = {"granularity": 0.02, **VECTOR}
PADDED = {"granularity": 0.02, "padded_dimension": 4, "sketch_clip": 1.0, "local_sigma": 0.012}
ITEMS = {"categories": 100, "rows": 3, "width": 16, "steps": 1}
LITTLE_NOISE: Mapping[str, Mapping[str, Any]] = {
    "distributed-discrete-gaussian": {**SUMMED, "local_sigma": 0.012},
    "distributed-skellam": {**SUMMED, "local_variance": 1e-4},
    "distributed-discrete-laplace": {"survivors": 50, "bits": 30, "steps": 5, "scale": 2.0, **VECTOR},
    "split-and-mix": {"bits": 900, "messages": 30, "steps": 5, "scale": 2.0, **VECTOR},
    "cpsgd": {"levels": 4, "trials": 3, "rotated": False, **VECTOR},
    "poisson-binomial": {"trials": 1, "theta": 0.45, "dimension": 2},
    "sketched-discrete-gaussian": PADDED,
    "sketched-skellam": {**{name: value for name, value in PADDED.items() if name != "local_sigma"}, "local_variance": 1e-4},
    "sparse-discrete-gaussian": PADDED,
    "sketched-poisson-binomial": {"trials": 1, "theta": 0.45, "categories": 8, "signed": False},
    "sketched-discrete-gaussian-frequencies": {**ITEMS, "local_sigma": 0.6376769},
    "sketched-skellam-frequencies": {**ITEMS, "local_variance": 0.3},
    "sparse-discrete-gaussian-frequencies": {**ITEMS, "local_sigma": 0.6376769},
}
FEW, MANY = (2, 3, 10, 11, 100), (3000, 111_309, 122_439)


def rises(values: Iterable[float]) -> bool:
    return all(before <= after * (1 + RELATIVE) + ABSOLUTE for before, after in itertools.pairwise(values))


def noisy(name: str, factor: float) -> AccountSubject:
    parameter, values = NOISE[name]
    scaled = values[parameter] * factor
    given = {**values, parameter: math.ceil(scaled) if isinstance(values[parameter], int) else scaled}
    return subject_of(name.split()[0], given)


def subject_of(name: str, values: Mapping[str, Any], adjacency: str | None = None, sampling: Sampling | None = None) -> AccountSubject:
    checked = check_values(name, account_options(name), values) | {"delta": 1e-3}
    return (BARE_NOISE if name in BARE_NOISE else REGISTRY)[name].account(checked, adjacency, sampling)


def answers(subject: AccountSubject, delta: float, rounds: int, sampling: Sampling | None = None) -> dict[str, float]:
    report = subject.report(delta, rounds, sampling).privacy
    return {"epsilon": report.epsilon, **{account.name: account.bound.epsilon for account in report.accounts}}


@pytest.mark.parametrize("name", NOISE)
def test_more_noise_never_reveals_more(name: str) -> None:
    subjects = [noisy(name, factor) for factor in reversed(MORE)]
    for delta, rounds in ((0.05, 1), (1e-6, 1), (1e-6, 30)):
        result = [answers(subject, delta, rounds) for subject in subjects]
        for account in set.intersection(*(set(item) for item in result)):
            assert rises(item[account] for item in result), (account, delta, rounds, [item[account] for item in result])


def test_every_secure_sum_is_asked_about_more_clients() -> None:
    summed = {entry.name for entry in REGISTRY.values() if entry.trust_model == "secure-sum"} | {"split-and-mix"}
    asked = {
        entry.name
        for entry in REGISTRY.values()
        if entry.name in summed and entry.private and "clients" in {option.name for option in entry.account_options}
    }
    assert set(LITTLE_NOISE) == asked


@pytest.mark.parametrize("name", LITTLE_NOISE)
def test_more_clients_never_reveal_more(name: str) -> None:
    # A sum of more discrete Gaussians is further from a discrete Gaussian. With 0.64 steps each, an account that is not monotone gives
    # epsilon 291, and 320 for more clients.
    numbers = (*FEW, *MANY) if "discrete-gaussian" in name else FEW
    subjects = [subject_of(name, {**LITTLE_NOISE[name], "clients": clients}) for clients in reversed(numbers)]
    sampling = sampling_of(0.05, subjects[0].adjacency, population=10**6)
    for rounds, chosen in ((1, None), (30, None), (2, sampling)):
        result = [answers(subject, 1e-5, rounds, chosen) for subject in subjects]
        for account in set.intersection(*(set(item) for item in result)):
            assert rises(item[account] for item in result), (account, rounds, chosen, [item[account] for item in result])


def test_one_round_of_the_published_theorem_is_no_worse_than_two() -> None:
    # The account alone gives epsilon 0.0012 for one round, and 0.0 for two rounds.
    values = {"clients": 10**9, "dimension": 28, "clip": 0.0013, "levels": 14, "trials": 5, "rotated": False}
    subject = subject_of("cpsgd", values, "add-or-remove-one")
    assert answers(subject, 0.048, 1)["theorem-1"] <= answers(subject, 0.048, 2)["theorem-1"]


def test_gaussian_accounts_do_not_jump_as_noise_grows() -> None:
    shared = {"probability": 0.3, "scale": 1.0, "dimension": 1, "l1": 2.0, "l2": 2.0, "linf": 2.0}
    subjects = [subject_of("binomial", {**shared, "trials": 20580 + k}) for k in range(12)]
    result = [subject.privacy.account("near-gaussian").bound(1.07e-7, 2, None).epsilon for subject in reversed(subjects)]
    assert rises(result), result


def sampling_of(share: float, adjacency: str, population: int = POPULATION) -> Sampling:
    if adjacency == "add-or-remove-one":
        return PoissonSampling(share)
    return FixedSizeSampling(population, round(population * share))


@pytest.mark.parametrize("name", [name for name in NOISE if " clients" not in name])
@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
def test_a_larger_sample_never_reveals_less_nor_more_than_everyone(name: str, adjacency: str) -> None:
    entry = REGISTRY.get(name)
    if entry is not None and adjacency not in entry.adjacencies:
        pytest.skip("the mechanism has no guarantee for this adjacency")
    subject = subject_of(name.split()[0], NOISE[name][1], adjacency, sampling_of(1.0, adjacency))
    if subject.privacy.trust_model == "local":
        pytest.skip("whoever reports is seen")
    delta, rounds = 1e-5, 30
    result = [answers(subject, delta, rounds, sampling_of(share, adjacency)) for share in SHARES]
    everyone = answers(subject, delta, rounds)
    for account in everyone:
        assert rises([item[account] for item in result] + [everyone[account]]), (
            account,
            [item[account] for item in result],
            everyone[account],
        )
    # At a sampling rate of 1, all clients take part.
    assert result[-1]["epsilon"] == pytest.approx(everyone["epsilon"], rel=1e-9)
    # A sample of one client in a thousand strengthens privacy.
    assert result[0]["epsilon"] <= 0.1 * everyone["epsilon"]
