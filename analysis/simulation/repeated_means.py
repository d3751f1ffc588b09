"""Repeated rounds of a mechanism, and a summary of measured, predicted and bounded errors."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import pandas as pd

from ...arguments import check_integer
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.privacy import Scalar
from ...progress import OnStep, notebook_progress
from ...shown import results_first
from ..catalogue.central_reference import central_squared_error
from ..random_streams import named_stream
from .mean import Wrapping, simulate_mean
from .populations import check_inputs, input_chunks

MOST_REPETITIONS = 10**6
WRAPPING = tuple(field.name for field in fields(Wrapping))
# Columns shared by all rounds of a mechanism on a population.
SETTING = (
    *("population", "seed", "clients", "dimension", "padded_dimension", "modulus", "bits_per_coordinate", "bits_per_client"),
    *("bias_bound", "epsilon", "delta", "adjacency", "trust_model"),
)
AVERAGED = ("squared_error", "unclipped_squared_error", "predicted_squared_error", "zero_squared_error", "wrapped_coordinates")
# These columns are missing for mechanisms to which they do not apply.
WITH_GAPS = (*WRAPPING, "central_squared_error", "ratio_to_central")


def repeat_mean(
    mechanism: Mechanism,
    population: str,
    repetitions: int,
    *,
    clients: int | None = None,
    seed: int = 0,
    nonzero: int | None = None,
    masked: bool = False,
    asked: Guarantee | None = None,
    rounds: int = 1,
    on_step: OnStep = notebook_progress,
) -> pd.DataFrame:
    """Simulate several rounds of a mechanism, with fresh inputs, noise and sketches.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism, for means.
    population : str
        Source of the inputs, as in `input_chunks`.
    repetitions : int
        Number of rounds, from 1 to 10**6.
    clients : int or None
        Number of clients; None only if the mechanism states it, as a secure sum does. A secure sum may have fewer clients, down to its
        `fewest_clients`, as if the others dropped out.
    seed : int
        Root seed; a round's inputs and noise depend only on it and on the round's number.
    nonzero : int or None
        Number of non-zero coordinates of the population, as in `input_chunks`.
    masked : bool
        Whether messages are masked, as in `simulate_mean`.
    asked : Guarantee or None
        Guarantee of the reference, a trusted server's noise; compared mechanisms should have the same. None for the mechanism's guarantee.
    rounds : int
        Number of rounds that `asked` is for.
    on_step : callable
        Called as ``on_step(done, repetitions, text)`` before each round and after the last.

    Returns
    -------
    DataFrame
        One row per round: `repetition`, `seed`, `population`, `dimension`, `bits_per_client`, `bias_bound`, the mechanism's guarantee, the
        fields of `SimulatedMean` and `Wrapping`, `central_squared_error` and `ratio_to_central`;
        inapplicable values are missing.
    """
    domain = check_inputs(population, mechanism.domain, nonzero)
    repetitions = check_integer("repetitions", repetitions, low=1, high=MOST_REPETITIONS)
    modular = isinstance(mechanism, SecureSumMechanism)
    if isinstance(mechanism, SecureSumMechanism):
        clients = mechanism.clients if clients is None else clients
        fewest = mechanism.clients if masked else mechanism.fewest_clients
        if not fewest <= clients <= mechanism.clients:
            allowed = f"{mechanism.clients}" if fewest == mechanism.clients else f"from {fewest} to {mechanism.clients}"
            raise ValueError(f"clients must be {allowed}, which the mechanism was made for, got {clients!r}")
    if clients is None:
        raise ValueError("clients must be given for a mechanism that is not made for a number of clients, got None")
    guarantee = mechanism.guarantee
    central = central_squared_error(domain, clients, guarantee) if asked is None else central_squared_error(domain, clients, asked, rounds)
    common: dict[str, Scalar] = {
        "dimension": domain.dimension,
        "bits_per_client": mechanism.bits_per_client,
        "bits_per_coordinate": mechanism.bits_per_client / domain.dimension,
        "bias_bound": mechanism.bias_bound,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "adjacency": guarantee.adjacency,
        "trust_model": guarantee.trust_model,
        "central_squared_error": central,
    }
    rows = []
    for repetition in range(repetitions):
        on_step(repetition, repetitions, "simulating rounds")
        name = "secure sum" if modular else "mean"
        # All compared mechanisms get the same inputs.
        inputs = named_stream(seed, f"mean, repetition {repetition}, vectors")
        noise = named_stream(seed, f"{name}, repetition {repetition}, noise")
        # Each round draws its own sketch, because the stated error is an expectation over this draw.
        public = named_stream(seed, f"{name}, repetition {repetition}, sketch")
        renewed = mechanism.renewed(int(public.integers(2**63)))
        result = asdict(simulate_mean(renewed, input_chunks(population, domain, clients, inputs, nonzero=nonzero), noise, masked=masked))
        wrapping = result.pop("wrapping") or dict.fromkeys(WRAPPING)
        ratio = None if central is None else result["squared_error"] / central
        head = {"repetition": repetition, "seed": seed, "population": population}
        rows.append(head | common | result | wrapping | {"ratio_to_central": ratio})
    on_step(repetitions, repetitions, "simulating rounds")
    frame = pd.DataFrame(rows)
    return frame[results_first(frame)].astype({name: float for name in WITH_GAPS if frame[name].isna().all()})


@dataclass(frozen=True)
class MeanSummary:
    """Summary of rounds; other fields are those of `SimulatedMean` and `Wrapping`.

    Attributes
    ----------
    repetitions : int
        Number of rounds.
    dimension : int
        Number of coordinates of an input.
    bits_per_coordinate : float
        Number of bits of a message divided by `dimension`, without padding.
    clipped_share : float
        Share of the inputs that were clipped.
    squared_error, unclipped_squared_error, predicted_squared_error, zero_squared_error : float
        Averages over the rounds.
    standard_error : float or None
        Standard error of the average squared error; None for a single round, unless the mechanism is always exact.
    bias_bound : float
        Upper bound on the norm of the estimate's bias.
    central_squared_error, ratio_to_central : float or None
        Least error of a trusted server's noise, and the average squared error over it; None if there is no such noise.
    wrapped_coordinates : float or None
        Average number of coordinates that wrapped in a round.
    """

    population: str
    seed: int
    repetitions: int
    clients: int
    dimension: int
    padded_dimension: int | None
    modulus: int | None
    bits_per_coordinate: float
    bits_per_client: float
    clipped_share: float
    squared_error: float
    standard_error: float | None
    unclipped_squared_error: float
    predicted_squared_error: float
    worst_squared_error: float
    zero_squared_error: float
    bias_bound: float
    central_squared_error: float | None
    ratio_to_central: float | None
    wrapped_coordinates: float | None
    wrapped_coordinates_bound: float | None
    coordinate_wrap_probability: float | None
    wrap_probability: float | None
    epsilon: float
    delta: float
    adjacency: str
    trust_model: str

    def document(self) -> dict[str, Scalar]:
        """Return the summary as a JSON document with fixed keys; infinite numbers are null."""
        return {name: None if isinstance(value, float) and math.isinf(value) else value for name, value in asdict(self).items()}


def summarise_means(results: pd.DataFrame) -> MeanSummary:
    """Return the averages of rounds of `repeat_mean`.

    The rows must be of a single mechanism and population.
    """
    if results.empty:
        raise ValueError("results must have rows, got none")
    for name in SETTING:
        if results[name].nunique(dropna=False) > 1:
            raise ValueError(
                f"results must be of one mechanism and population, got several values of {name}: {list(results[name].unique())}"
            )
    errors, first = results["squared_error"], results.iloc[0]
    central = _known(first["central_squared_error"])
    exact = first["worst_squared_error"] == first["bias_bound"] == 0
    common: dict[str, Any] = {name: _known(first[name]) for name in (*SETTING, *WRAPPING)}
    averages = {name: _known(results[name].mean()) for name in AVERAGED}
    return MeanSummary(
        **(common | averages),
        repetitions=len(results),
        clipped_share=float(results["clipped"].mean() / first["clients"]),
        standard_error=float(errors.std() / math.sqrt(len(results))) if len(results) > 1 else 0.0 if exact else None,
        worst_squared_error=float(first["worst_squared_error"]),
        central_squared_error=central,
        ratio_to_central=None if central is None else float(errors.mean() / central),
    )


def _known(value: Any) -> Any:
    """Return a cell as a Python value, or None if it is missing."""
    if isinstance(value, str):
        return value
    return None if pd.isna(value) else value.item() if hasattr(value, "item") else value
