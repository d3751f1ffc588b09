"""The error of a trusted server's noisy histogram, the reference for frequencies."""

from ...arguments import check_choice
from ..contracts.domains import Categories
from ..contracts.gaussian import central_gaussian_error
from ..contracts.guarantee import ADJACENCIES


def gaussian_histogram_error(categories: int, clients: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the expected squared L2 error of a trusted server's noisy frequencies.

    The server adds Gaussian noise to every count. The L2 sensitivity of the counts is sqrt(2) for ``"replace-one"`` adjacency and 1 for
    ``"add-or-remove-one"``. The number of clients is public.

    Examples
    --------
    >>> round(gaussian_histogram_error(1000, 10_000, 1.0, 1e-5, "replace-one"), 9)
    0.000278352
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    return central_gaussian_error(Categories(categories).ball(adjacency), clients, epsilon, delta, adjacency)
