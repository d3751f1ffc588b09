"""What masks of a secure sum cost, and how much more compression a larger cohort therefore asks for."""

import math
from dataclasses import dataclass

from ...arguments import LARGEST_DIMENSION, check_integer
from .pairwise_masks import MOST_CLIENTS, check_regular


@dataclass(frozen=True)
class MaskCost:
    """Numbers of coordinates of masks that are expanded in one secure sum; a mask is as long as a message.

    Attributes
    ----------
    client : int
        By each client: its own mask, and one for each neighbour.
    server : int
        By the server, to take off the own masks of clients that stay, and the pair masks that missing clients left with their neighbours.
    total : int
        By all clients and the server together.
    """

    client: int
    server: int
    total: int


def mask_cost(clients: int, length: int, neighbours: int, dropped: int = 0) -> MaskCost:
    """Return what the masks of one sum cost, in coordinates that are expanded; for the server at most.

    Parameters
    ----------
    clients : int
        Number of clients that mask, from 2.
    length : int
        Number of coordinates of a message.
    neighbours : int
        With how many others each client masks: a multiple of log(clients) suffices (Bell et al. 2020), everyone in Bonawitz et al. 2017.
    dropped : int
        Clients that mask, and whose messages are missing.

    Examples
    --------
    >>> mask_cost(1000, 2**16, 20).total == 2**16 * (1000 * 21 + 1000)
    True
    """
    clients = check_integer("clients", clients, low=2, high=MOST_CLIENTS)
    length = check_integer("length", length, low=1, high=LARGEST_DIMENSION)
    neighbours = check_integer("neighbours", neighbours, low=1, high=clients - 1)
    check_regular(clients, neighbours)
    dropped = check_integer("dropped", dropped, low=0, high=clients)
    one = (neighbours + 1) * length
    server = (clients - dropped + dropped * neighbours) * length
    return MaskCost(one, server, clients * one + server)


def rate_at_equal_cost(clients: int, reference_clients: int) -> float:
    """Return by how much more a cohort must compress for its secure sum to cost what that of another cohort does.

    ``n2 ln(n2) / (n1 ln(n1))`` (Chen, Choquette-Choo, Kairouz, Suresh 2022): n clients with a multiple of log(n) neighbours each expand
    masks of n log(n) times the length of a message.

    Parameters
    ----------
    clients, reference_clients : int
        n2 and n1, from 2.

    Examples
    --------
    >>> round(rate_at_equal_cost(1000, 100), 6)
    15.0
    """
    larger = check_integer("clients", clients, low=2, high=MOST_CLIENTS)
    smaller = check_integer("reference_clients", reference_clients, low=2, high=MOST_CLIENTS)
    return larger * math.log(larger) / (smaller * math.log(smaller))
