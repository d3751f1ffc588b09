"""Clients in chunks, so that what their public seeds stand for is never all in memory."""

from collections.abc import Iterator

# Numbers that public seeds stand for, or vectors made with them, that are held in memory at a time.
CHUNK = 2**21


def client_chunks(clients: int, numbers: int, most: int = CHUNK) -> Iterator[slice]:
    """Return slices of clients, each of as many as take at most the given count of numbers, but of one at least.

    Examples
    --------
    >>> list(client_chunks(5, numbers=40, most=100))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, most // numbers)
    return (slice(start, start + size) for start in range(0, clients, size))
