"""The error of a trusted server's noisy histogram, which is the reference for frequencies whose clients trust less."""

from ...arguments import MOST_CATEGORIES, MOST_CLIENTS, check_choice, check_integer
from ..contracts.domains import Categories
from ..contracts.gaussian import central_gaussian_error
from ..contracts.guarantee import ADJACENCIES
from ..contracts.mechanism import check_vector_epsilon
from ..noise.discrete_laplace import discrete_laplace_variance


def discrete_laplace_histogram_error(categories: int, clients: int, epsilon: float, adjacency: str) -> float:
    """Return the expected squared L2 error of frequencies where a trusted server adds discrete Laplace noise to every count.

    The scale is the L1 sensitivity of the counts over epsilon: 2 for ``"replace-one"`` adjacency, which moves one client from one count to
    another, and 1 for ``"add-or-remove-one"``. Delta is 0. The number of clients is public.

    Examples
    --------
    >>> round(discrete_laplace_histogram_error(1000, 10_000, 1.0, "replace-one"), 9)
    7.8354e-05
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    items = check_integer("categories", categories, low=1, high=MOST_CATEGORIES)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    sensitivity = 2 if adjacency == "replace-one" else 1
    return items * discrete_laplace_variance(sensitivity / check_vector_epsilon(epsilon)) / clients**2


def gaussian_histogram_error(categories: int, clients: int, epsilon: float, delta: float, adjacency: str) -> float:
    """Return the same for Gaussian noise, of an L2 sensitivity of sqrt(2) or 1: `central_gaussian_error` of the counts.

    Examples
    --------
    >>> round(gaussian_histogram_error(1000, 10_000, 1.0, 1e-5, "replace-one"), 9)
    0.000278352
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    return central_gaussian_error(Categories(categories).ball(adjacency), clients, epsilon, delta, adjacency)
