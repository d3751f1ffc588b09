"""Mean estimation with several protocols on the same clients."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ...arguments import check_interval
from ...arrays import FloatArray
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import ScalarMechanism
from ...design.transforms.dithering import finite_values
from ..random_streams import named_stream
from .variance_bound import VarianceBound

# Number of clients per batch of encoding.
CHUNK = 2**18
# Half-width of a 95 % confidence interval, in standard errors.
Z95 = 1.96


@dataclass(frozen=True)
class MeanEstimate:
    """A protocol's estimate of the clients' mean, in the values' own units.

    Attributes
    ----------
    mechanism : str
        Name of the protocol.
    estimate : float
        Estimate of the mean of the clipped values.
    error : float
        Estimate less the true mean of the unclipped values, so that the error includes the effect of clipping.
    standard_error : float
        Exact standard deviation of the estimate over the mechanism's randomness, given these values. It depends on the values, so it is for
        experiments and must not be released.
    worst_standard_error : float
        Largest standard error for this number of clients, over all values, which may be published.
    bits_per_client : float
        Number of bits of a client's message.
    guarantee : Guarantee
        Guarantee of each client.
    objective : float or None
        Objective of the certified bound for this protocol, in squared units; None without a bound.
    lower_bound : float or None
        The certified bound, in squared units; None without a bound, or if this protocol's guarantee is weaker than the bound's.
    """

    mechanism: str
    estimate: float
    error: float
    standard_error: float
    worst_standard_error: float
    bits_per_client: float
    guarantee: Guarantee
    objective: float | None
    lower_bound: float | None

    @property
    def ratio_to_bound(self) -> float | None:
        """Objective over certified bound, at least 1.

        At 1, no unbiased mechanism with any number of bits has a smaller objective.
        """
        return None if self.objective is None or self.lower_bound is None else self.objective / self.lower_bound

    @property
    def confidence_interval(self) -> tuple[float, float]:
        """Interval of 1.96 worst-case standard errors around the estimate.

        With many clients the interval covers the clipped values' mean in at least 95 % of runs.
        """
        return self.estimate - Z95 * self.worst_standard_error, self.estimate + Z95 * self.worst_standard_error


@dataclass(frozen=True)
class MeanComparison:
    """Estimates by several protocols from the same clients.

    Attributes
    ----------
    clients : int
        Number of clients.
    clipped : int
        Number of values outside the interval.
    interval : tuple of float
        Public interval (low, high).
    true_mean : float
        Mean of the unclipped values, which is not private and known only in an experiment.
    clipped_mean : float
        Mean of the clipped values, which the protocols estimate.
    seed : int
        Root seed of the random streams.
    bound : VarianceBound or None
        The certified bound.
    estimates : tuple of MeanEstimate
        An estimate for each protocol.
    """

    clients: int
    clipped: int
    interval: tuple[float, float]
    true_mean: float
    clipped_mean: float
    seed: int
    bound: VarianceBound | None
    estimates: tuple[MeanEstimate, ...]

    @property
    def clipping_bias(self) -> float:
        """Shift of the mean by clipping, which neither clients nor bits reduce."""
        return self.clipped_mean - self.true_mean

    @property
    def clipping_warning(self) -> str | None:
        """Warning with the number of values outside the interval, and their shift of the mean.

        The result is None if no values are outside.
        """
        if not self.clipped:
            return None
        low, high = self.interval
        return (
            f"{self.clipped} of {self.clients} values lie outside [{low:g}, {high:g}] and were clipped, which moves the mean by "
            f"{self.clipping_bias:+.6g}, from {self.true_mean:.6g} to {self.clipped_mean:.6g}. Estimates are of the clipped values' mean."
        )


def estimate_mean(
    values: FloatArray,
    interval: tuple[float, float],
    protocols: Mapping[str, ScalarMechanism],
    *,
    seed: int = 0,
    bound: VarianceBound | None = None,
    on_start: Callable[[str], None] = lambda _: None,
) -> MeanComparison:
    """Estimate the mean by every protocol, and compare with the true mean.

    Each value is encoded as a client, then aggregated and decoded.

    Parameters
    ----------
    values : ndarray of shape (clients,)
        Finite values of the clients; at least one value.
    interval : tuple of float
        Public interval (low, high) to which values are clipped; every protocol must have the same interval.
    protocols : mapping of str to ScalarMechanism
        The protocols, by name. Each protocol draws from a separate random stream, keyed by (seed, name), so that its result does not depend
        on the other protocols.
    seed : int
        Root seed.
    bound : VarianceBound or None
        Certified bound to compare with.
    on_start : callable
        Called with each protocol's name before it runs.

    Examples
    --------
    >>> from quietbits.design.local.cldp import CLDPMechanism
    >>> comparison = estimate_mean(np.full(10_000, 0.25), (0.0, 1.0), {"one bit": CLDPMechanism(3.0)})
    >>> abs(comparison.estimates[0].error) < 4 * comparison.estimates[0].standard_error
    True
    """
    values = finite_values("values", values).ravel()
    interval = check_interval("interval", interval)
    if values.size == 0:
        raise ValueError("values must hold at least one number, got none")
    for name, protocol in protocols.items():
        if protocol.interval != interval:
            raise ValueError(f"interval must be that of every protocol, got {interval!r} and {protocol.interval!r} for {name!r}")
    clipped = np.clip(values, *interval)
    true_mean = _mean(values)
    estimates = []
    for name, protocol in protocols.items():
        on_start(name)
        estimates.append(_estimate(name, protocol, clipped, true_mean, seed, bound))
    return MeanComparison(
        clients=len(values),
        clipped=int(np.count_nonzero(clipped != values)),
        interval=interval,
        true_mean=true_mean,
        clipped_mean=_mean(clipped),
        seed=seed,
        bound=bound,
        estimates=tuple(estimates),
    )


def _mean(values: FloatArray) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        # The sum may exceed the largest float although the mean does not. Halving numbers of this size is exact.
        return math.fsum(values / 2.0**64) / len(values) * 2.0**64


def _estimate(
    name: str, protocol: ScalarMechanism, values: FloatArray, true_mean: float, seed: int, bound: VarianceBound | None
) -> MeanEstimate:
    rng = named_stream(seed, name)
    variance_sum = 0.0
    aggregate = protocol.aggregate(protocol.encode(values[:0], rng))
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        aggregate = aggregate + protocol.aggregate(protocol.encode(chunk, rng))
        variance_sum += float(protocol.variance(chunk).sum())
    estimate = protocol.decode(aggregate, len(values))
    return MeanEstimate(
        mechanism=name,
        estimate=estimate,
        error=estimate - true_mean,
        standard_error=math.sqrt(variance_sum) / len(values),
        worst_standard_error=math.sqrt(protocol.variance_bound / len(values)),
        bits_per_client=protocol.bits_per_client,
        guarantee=protocol.guarantee,
        objective=None if bound is None else bound.objective_of(protocol),
        lower_bound=bound.value if bound is not None and bound.holds_for(protocol.guarantee) else None,
    )
