"""The range of epsilon that vector mechanisms with closed formulas serve: wider than that of tables, which are designed by a solver."""

from ...arguments import check_real

EPSILON_LOW, EPSILON_HIGH = 1e-3, 100.0


def check_vector_epsilon(epsilon: float) -> float:
    """Return the privacy parameter of a vector mechanism as a float.

    Parameters
    ----------
    epsilon : float
        1e-3 to 100.

    Returns
    -------
    float
        The same.

    Raises
    ------
    ValueError
        If it is out of range.
    """
    return check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)
