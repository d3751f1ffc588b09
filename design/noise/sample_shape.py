"""The shape of an array of samples: a whole number, or a tuple of them."""

from ...arguments import check_integer

MOST_SAMPLES = 2**48


def sample_shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that `size` asks for: a number of samples, or a shape.

    Examples
    --------
    >>> sample_shape(5), sample_shape((2, 3))
    ((5,), (2, 3))
    """
    lengths = size if isinstance(size, tuple) else (size,)
    return tuple(check_integer("size", length, low=0, high=MOST_SAMPLES) for length in lengths)
