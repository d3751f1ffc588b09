"""Numbers of docs/explanations/secure-sum-accounting.md."""

from collections.abc import Iterator

import quietbits
from quietbits import FixedSizeSampling, PoissonSampling

BINOMIAL = {"trials": 2_560_000, "probability": 0.5, "scale": 1.0, "dimension": 1, "l1": 20.0, "l2": 20.0, "linf": 20.0}
SKELLAM = {"clients": 1000, "dimension": 64, "clip": 1.0, "local_variance": 0.25, "granularity": 0.001}
CPSGD = {"clients": 1000, "dimension": 64, "clip": 1.0, "levels": 128, "trials": 4000}


def sampled_rows() -> Iterator[list[str]]:
    """Return epsilon of 100 rounds of secure sums, for everyone and for secret samples."""
    poisson, fixed = (PoissonSampling(0.5), PoissonSampling(0.01)), (FixedSizeSampling(2000, 1000), FixedSizeSampling(100_000, 1000))
    for title, name, options, adjacency, samplings in (
        ("binomial, N = 2 560 000, p = 1/2, shift 20", "binomial", BINOMIAL, "add-or-remove-one", poisson),
        (
            "Skellam, 1000 clients, d = 64, c = 1, local variance 0.25, g = 0.001",
            "distributed-skellam",
            SKELLAM,
            "add-or-remove-one",
            poisson,
        ),
        ("cpSGD, 1000 clients, d = 64, D = 1, k = 128, m = 4000", "cpsgd", CPSGD, "add-or-remove-one", poisson),
        ("Skellam as above, samples of a fixed size", "distributed-skellam", SKELLAM, "replace-one", fixed),
    ):
        epsilons = [
            quietbits.account(name, delta=1e-5, rounds=100, sampling=sampling, adjacency=adjacency, **options).epsilon
            for sampling in (None, *samplings)
        ]
        digits = (3, 3, 4 if adjacency == "add-or-remove-one" else 3)
        yield [title, adjacency, *(f"{epsilon:.{places}f}" for epsilon, places in zip(epsilons, digits, strict=True))]
