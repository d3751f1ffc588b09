"""Random parameters of accounts, with tables, sampling and adjacency as literals."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..analysis.catalogue.registry import NOISE, REGISTRY
from ..design.contracts.guarantee import ADJACENCIES
from ..design.contracts.registry import Option
from ..design.tables.file import write_table
from ..design.tables.randomised_response import generalised_randomised_response
from ..errors import ConvergenceError
from ..solvers.accounting.sampling import FixedSizeSampling, PoissonSampling, Sampling

TABLE = "table.json"
NORMS = ("1", "2", "inf", "l1", "l2")
# A mechanism refuses parameters with these errors.
REFUSALS = (ValueError, ConvergenceError)
# A number without a narrower range is drawn between these powers of ten.
USUAL: Mapping[str, tuple[float, float]] = {
    "epsilon": (-2, 1.2),
    "delta": (-12, -0.3),
    "granularity": (-4, 0),
    "scale": (-1, 1),
    "dimension": (0, 4),
    "padded_dimension": (0, 4),
    "categories": (0.31, 4),
    "clients": (0, 6),
    "trials": (0, 6),
    "bits": (0, 1.3),
    "message_bits": (0, 1.3),
    "index_bits": (0, 1.3),
}


def load_accounts() -> None:
    """Import the modules that accounts import on their first call."""
    import scipy.optimize
    import scipy.signal
    import scipy.special
    import scipy.stats  # noqa: F401

    assert all(entry.name for entry in REGISTRY.values())
    assert all(noise.name for noise in NOISE.values())


def draw_value(rng: random.Random, option: Option) -> Any:
    """Draw a value of an option within its range; texts of a few kinds."""
    if option.choices:
        return rng.choice(option.choices)
    if option.kind is bool:
        return rng.random() < 0.5
    if option.kind is Path:
        return TABLE
    if option.kind is str:
        return rng.choice(NORMS)
    if option.kind is float and option.low >= 0 and option.high <= 1:
        return rng.choice((0.5, rng.uniform(option.low, option.high), option.low + (option.high - option.low) * 10 ** rng.uniform(-4, -1)))
    low, high = USUAL.get(option.name, (-2, 3))
    drawn = min(max(10 ** rng.uniform(low, high), option.low), option.high)
    return int(drawn) if option.kind is int else drawn


def draw_parameters(rng: random.Random, options: tuple[Option, ...]) -> dict[str, Any]:
    """Draw the required and some optional parameters; a vector's norms mostly fit together."""
    drawn = {
        option.name: draw_value(rng, option) for option in options if option.required or (option.default is not None and rng.random() < 0.4)
    }
    if {"l1", "l2", "linf"} <= drawn.keys() and rng.random() < 0.9:
        drawn["linf"], drawn["l2"], drawn["l1"] = sorted((drawn["l1"], drawn["l2"], drawn["linf"]))
    if {"l1_sensitivity", "l2_sensitivity"} <= drawn.keys() and rng.random() < 0.9:
        drawn["l2_sensitivity"], drawn["l1_sensitivity"] = sorted((drawn["l1_sensitivity"], drawn["l2_sensitivity"]))
    return drawn


def draw_adjacency(rng: random.Random, name: str) -> str:
    """Draw an adjacency that the mechanism offers."""
    return rng.choice(REGISTRY[name].adjacencies if name in REGISTRY else ADJACENCIES)


def draw_sampling(rng: random.Random, name: str, adjacency: str) -> list[float] | None:
    """Draw a sampling for the adjacency, as `sampling_of` reads it.

    The result is usually None, and rarely a sampling that the mechanism does not offer.
    """
    unsampled = name in REGISTRY and (REGISTRY[name].trust_model == "local" or name == "dp-rec")
    if rng.random() < (0.97 if unsampled else 0.6):
        return None
    share = rng.choice((rng.uniform(0.01, 1), 10 ** rng.uniform(-4, 0)))
    if adjacency == "add-or-remove-one":
        return [share]
    population = int(10 ** rng.uniform(1, 6))
    return [population, max(1, math.floor(population * share))]


def sampling_of(numbers: list[float] | None) -> Sampling | None:
    """Return the sampling of a probability, or of a population and a sample size."""
    if numbers is None:
        return None
    return PoissonSampling(numbers[0]) if len(numbers) == 1 else FixedSizeSampling(int(numbers[0]), int(numbers[1]))


def placed(folder: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters, with a table in the folder if they name a table."""
    if TABLE not in parameters.values():
        return dict(parameters)
    write_table(generalised_randomised_response(1.0, 2), folder / TABLE)
    return {name: folder / TABLE if value == TABLE else value for name, value in parameters.items()}
