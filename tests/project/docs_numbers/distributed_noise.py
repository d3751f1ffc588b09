"""Numbers of docs/distributed-noise.md."""

from collections.abc import Iterator

import quietbits


def cost_rows() -> Iterator[list[object]]:
    """Return worst errors by bits of a coordinate; a conjectured account's noise is no mechanism of the registry."""
    task = quietbits.Task(quietbits.NormBall(1024, 2.0), clients=1000, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    for title, name in (
        ("discrete Gaussian, 1024 coordinates", "distributed-discrete-gaussian"),
        ("Skellam, 1024 coordinates", "distributed-skellam"),
    ):
        errors = [quietbits.build_mechanism(name, task, {"bits": bits}).error().of_mean(1000) for bits in (10, 11, 12, 13, 14, 16, 20)]
        digits = (1, 3, 4, 4, 4, 4, 4)
        yield [title, *(f"{error:.{places}f}" for error, places in zip(errors, digits, strict=True))]
    yield ["Poisson-binomial, 2048 coordinates", *[...] * 7]
    yield ["the same by `rdp-extremes`, not proven", *[...] * 7]
