"""Numbers of docs/frequency-sums.md."""

from collections.abc import Iterator
from pathlib import Path

import quietbits
from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs

PAGE = Path(quietbits.__file__).parent / "docs" / "frequency-sums.md"


def cells_cost(clients: int, theta: float = 0.05) -> float:
    """Return by how many percent 64 cells exceed the divergence with all others at one extreme, at order 2."""
    cells, extremes = (function(clients, 1, theta).renyi_divergences([2.0])[0] for function in (extreme_tosses, poisson_binomial_pairs))
    return 100 * (cells / extremes - 1)


def sketch_over_histogram(column: int) -> float:
    """Return the Poisson-binomial sketch's largest error over the histogram's, as the page's table says; figures compute the table."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [next(line for line in lines if line.startswith(f"| Poisson-binomial {kind}")) for kind in ("sketch", "histogram")]
    sketch, histogram = (float(row.split("|")[column + 1]) for row in rows)
    return sketch / histogram


def message_rows() -> Iterator[list[object]]:
    """Return messages of a histogram and of sketches; squared errors of all items are of the page's population, and not computed here."""
    task = quietbits.Task(quietbits.Categories(100_000), clients=50_000, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    for title, name, options in (
        ("histogram, discrete Gaussian", "sketched-discrete-gaussian-frequencies", {"width": 100_000}),
        ("histogram, Skellam", "sketched-skellam-frequencies", {"width": 100_000}),
        ("histogram, tosses (w = 2^17)", "sketched-poisson-binomial", {"width": 2**17}),
        ("15 x 1024, discrete Gaussian", "sketched-discrete-gaussian-frequencies", {"rows": 15, "width": 1024}),
        ("15 x 1024, Skellam, signs", "sketched-skellam-frequencies", {"rows": 15, "width": 1024, "signed": True}),
        ("15 x 1024, tosses, signs", "sketched-poisson-binomial", {"rows": 15, "width": 1024, "signed": True}),
    ):
        mechanism = quietbits.build_mechanism(name, task, options)
        yield [title, f"{mechanism.bits_per_client / 1000:.0f}", ..., ...]
