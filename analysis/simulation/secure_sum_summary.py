"""Repeated rounds of a secure sum in short: what was measured, beside what was predicted, bounded, and what a trusted server would pay."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

# What rounds of one mechanism on one population have in common.
SETTING = (
    *("population", "seed", "clients", "dimension", "padded_dimension", "modulus", "bits_per_coordinate", "bits_per_client"),
    *("epsilon", "delta", "adjacency", "trust_model"),
)


@dataclass(frozen=True)
class SecureSumSummary:
    """Several rounds of one mechanism on one population; the fields that are not listed are those of `SimulatedSecureSum`.

    Attributes
    ----------
    population : str
        Whence the vectors came.
    seed : int
        Root seed.
    repetitions : int
        Number of rounds.
    clipped_share : float
        Share of the vectors that were clipped.
    squared_error, predicted_squared_error : float
        Averages over the rounds.
    standard_error : float or None
        Of the average squared error; None for one round.
    ratio_to_central : float or None
        The average squared error over that of central Gaussian noise; None where there is no such noise.
    wrapped_coordinates : float
        Average number of coordinates that wrapped in a round.
    """

    population: str
    seed: int
    repetitions: int
    clients: int
    dimension: int
    padded_dimension: int
    modulus: int
    bits_per_coordinate: float
    bits_per_client: float
    clipped_share: float
    squared_error: float
    standard_error: float | None
    predicted_squared_error: float
    worst_squared_error: float
    central_gaussian_squared_error: float | None
    ratio_to_central: float | None
    wrapped_coordinates: float
    wrapped_coordinates_bound: float
    coordinate_wrap_probability: float
    wrap_probability: float
    epsilon: float
    delta: float
    adjacency: str
    trust_model: str

    def document(self) -> dict[str, str | float | bool | None]:
        """Return the summary as JSON holds it.

        Returns
        -------
        dict
            The fields by name, always the same ones.
        """
        return asdict(self)


def summarise_secure_sum(results: pd.DataFrame) -> SecureSumSummary:
    """Return the averages of repeated rounds.

    Parameters
    ----------
    results : DataFrame
        What `repeat_secure_sum` returns.

    Returns
    -------
    SecureSumSummary
        The averages.

    Raises
    ------
    ValueError
        If there are no rows, or they are of several mechanisms or populations.
    """
    if results.empty:
        raise ValueError("results must have rows, got none")
    for name in SETTING:
        if results[name].nunique(dropna=False) > 1:
            raise ValueError(
                f"results must be of one mechanism and population, got several values of {name}: {list(results[name].unique())}"
            )
    errors, first = results["squared_error"], results.iloc[0]
    central = float(first["central_gaussian_squared_error"])
    setting: dict[str, Any] = {name: first[name] if isinstance(first[name], str | float) else int(first[name]) for name in SETTING}
    return SecureSumSummary(
        **setting,
        repetitions=len(results),
        clipped_share=float(results["clipped"].mean() / first["clients"]),
        squared_error=float(errors.mean()),
        standard_error=float(errors.std() / math.sqrt(len(results))) if len(results) > 1 else None,
        predicted_squared_error=float(results["predicted_squared_error"].mean()),
        worst_squared_error=float(first["worst_squared_error"]),
        central_gaussian_squared_error=None if math.isnan(central) else central,
        ratio_to_central=None if math.isnan(central) else float(errors.mean() / central),
        wrapped_coordinates=float(results["wrapped_coordinates"].mean()),
        wrapped_coordinates_bound=float(first["wrapped_coordinates_bound"]),
        coordinate_wrap_probability=float(first["coordinate_wrap_probability"]),
        wrap_probability=float(first["wrap_probability"]),
    )
