"""Scalar mean estimation where every client holds the same value: simulated beside exact variances, all over the interval."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...arguments import check_integer
from ...design.contracts.mechanism import MOST_CLIENTS, ScalarMechanism
from ...design.local.cldp import CLDPMechanism
from ...design.local.laplace import LaplaceMechanism
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from ...design.tables.table_mean import TableMeanMechanism
from ..provenance_columns import guarantee_columns, with_provenance
from ..random_streams import named_stream
from ..study.variance_bound import VarianceBound, certified_bound

# The setting of figure 2 of Chaudhuri, Guo, Rabbat 2022.
INTERVAL = (-1.0, 1.0)
BITS = 3
# Exact variances are parabolas between grid inputs: 20 points on each of the 7 pieces; every 7th point of all is simulated as well.
EXACT_VALUES = np.linspace(*INTERVAL, 20 * (2**BITS - 1) + 1)
SIMULATED_STEP = 7


@dataclass(frozen=True)
class SimulationSize:
    """How much is simulated at each value.

    Attributes
    ----------
    clients : int
        Clients of one run; all hold the same value.
    batches : int
        Equal parts in which the messages of a run are also decoded; divides `clients`.
    runs : int
        Independent runs; with the batches, at least two means in all.
    """

    clients: int = 100_000
    batches: int = 500
    runs: int = 10

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        check_integer("clients", self.clients, low=1, high=MOST_CLIENTS)
        check_integer("runs", self.runs, low=1, high=MOST_CLIENTS)
        check_integer("batches", self.batches, low=1 if self.runs > 1 else 2, high=self.clients)
        if self.clients % self.batches:
            raise ValueError(f"batches must divide the number of clients, {self.clients}, got {self.batches!r}")


@dataclass(frozen=True)
class SimulatedVariance:
    """What a simulation says about the variance of one client's decoded message.

    Attributes
    ----------
    variance : float
        Mean over all batches of batch size x squared error of the batch's estimate. Clients are independent, so that its expectation
        is the variance of one client for a protocol without bias, and more for one with bias.
    standard_error : float
        Standard error of `variance`, from the spread of the batches.
    squared_error : float
        Mean over the runs of the squared error of the estimate from all clients of a run.
    """

    variance: float
    standard_error: float
    squared_error: float


def simulate_variance(protocol: ScalarMechanism, value: float, size: SimulationSize, rng: np.random.Generator) -> SimulatedVariance:
    """Let clients that hold one value report it, and measure how far the estimates of their mean are off.

    Parameters
    ----------
    protocol : ScalarMechanism
        The mechanism.
    value : float
        What every client holds, inside the protocol's interval.
    size : SimulationSize
        How much to simulate.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    SimulatedVariance
        The result, in squared units of the value.

    Examples
    --------
    >>> protocol = CLDPMechanism(3.0, (-1.0, 1.0))
    >>> simulated = simulate_variance(protocol, 0.5, SimulationSize(), np.random.default_rng(1))
    >>> abs(simulated.variance - float(protocol.variance(0.5))) < 4 * simulated.standard_error
    True
    """
    values = np.full(size.clients, value)
    batch_errors, run_errors = [], []
    for _ in range(size.runs):
        messages = protocol.encode(values, rng)
        aggregates = [protocol.aggregate(batch) for batch in np.split(messages, size.batches)]
        batch_errors += [protocol.decode(aggregate, size.clients // size.batches) - value for aggregate in aggregates]
        run_errors.append(protocol.decode(np.sum(aggregates, axis=0), size.clients) - value)
    scaled = size.clients // size.batches * np.square(batch_errors)
    standard_error = scaled.std(ddof=1) / np.sqrt(len(scaled))
    return SimulatedVariance(float(scaled.mean()), float(standard_error), float(np.square(run_errors).mean()))


def scalar_mean_variances(epsilons: Iterable[float], size: SimulationSize, *, seed: int) -> pd.DataFrame:
    """Return exact and simulated variances of bRR(3), gRR(3), CLDP, MVU(1), MVU(3) and Laplace noise on [-1, 1].

    In brackets: bits of a message. Tables have 3 input bits; MVU minimises the mean variance over them under local privacy.

    Parameters
    ----------
    epsilons : iterable of float
        Privacy parameters, 0.001 to 20.
    size : SimulationSize
        How much to simulate at each value.
    seed : int
        Root seed of the solver and of the simulations, each of which has its own random stream.

    Returns
    -------
    DataFrame
        One row per epsilon, mechanism and value: ``mechanism``, ``bits_per_client``, the guarantee's columns, ``value``,
        ``exact_variance`` of one client; at every seventh value ``simulated_variance``, ``simulated_standard_error`` and
        ``mean_squared_error`` of the mean of all clients (elsewhere missing); ``lower_bound``, which the average of any mechanism's
        variances over the 8 grid inputs cannot be below (errs downward); ``clients``, ``batches``, ``runs``; and provenance.
    ConvergenceError
        If the solver fails.
    """
    frames = []
    for epsilon in epsilons:
        mvu = design_mvu(epsilon, BITS, BITS, interval=INTERVAL, seed=seed)
        protocols: dict[str, ScalarMechanism] = {
            "bRR(3)": TableMeanMechanism(bitwise_randomised_response(epsilon, BITS, interval=INTERVAL)),
            "gRR(3)": TableMeanMechanism(generalised_randomised_response(epsilon, BITS, interval=INTERVAL)),
            "CLDP": CLDPMechanism(epsilon, INTERVAL),
            "MVU(1)": TableMeanMechanism(design_mvu(epsilon, BITS, 1, interval=INTERVAL, seed=seed)),
            "MVU(3)": TableMeanMechanism(mvu),
            "Laplace": LaplaceMechanism(epsilon, INTERVAL),
        }
        bound = certified_bound(mvu)
        frames += [_variances(name, protocol, size, seed, bound) for name, protocol in protocols.items()]
    frame = pd.concat(frames, ignore_index=True).assign(clients=size.clients, batches=size.batches, runs=size.runs)
    return with_provenance(frame, "scalar mean", seed)


def _variances(name: str, protocol: ScalarMechanism, size: SimulationSize, seed: int, bound: VarianceBound | None) -> pd.DataFrame:
    """Return the rows of one mechanism at one epsilon."""
    guarantee = protocol.guarantee
    frame = pd.DataFrame(
        {
            "mechanism": name,
            "bits_per_client": protocol.bits_per_client,
            **guarantee_columns(guarantee),
            "value": EXACT_VALUES,
            "exact_variance": protocol.variance(EXACT_VALUES),
            "lower_bound": np.nan if bound is None or not bound.holds_for(guarantee) else bound.value,
        }
    )
    simulated = [
        simulate_variance(protocol, value, size, named_stream(seed, f"scalar mean, {name}, epsilon {guarantee.epsilon!r}, value {value!r}"))
        for value in EXACT_VALUES[::SIMULATED_STEP].tolist()
    ]
    results = {
        "simulated_variance": [result.variance for result in simulated],
        "simulated_standard_error": [result.standard_error for result in simulated],
        "mean_squared_error": [result.squared_error for result in simulated],
    }
    return frame.join(pd.DataFrame(results, index=frame.index[::SIMULATED_STEP]))
