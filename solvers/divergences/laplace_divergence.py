"""Rényi divergences of Laplace noise, on one number and on all coordinates of a vector."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_integer, check_norm, check_real
from ..accounting.loss_grid import LossGrid
from ..accounting.pure_privacy import LARGEST_EPSILON, check_orders
from .vector_composition import LARGEST_NORM


def laplace_renyi_divergences(shift: float, orders: ArrayLike) -> NDArray[np.float64]:
    """Return the Rényi divergence of Laplace noise from the same noise, shifted, in nats.

    With a the order and t the shift in units of the noise's scale, the divergence is ln(a / (2 a - 1) e^((a - 1) t) + (a - 1) / (2 a - 1)
    e^(-a t)) / (a - 1) (Mironov 2017, *Rényi differential privacy*, proposition 6); infinite order gives the shift.

    Examples
    --------
    >>> laplace_renyi_divergences(1.0, [2.0, float("inf")]).round(6).tolist()
    [0.619124, 1.0]
    """
    shift = check_real("shift", shift, low=0.0, high=LARGEST_EPSILON)
    array = check_orders(orders)
    order = np.where(np.isinf(array), 2.0, array)
    weight = order / (2 * order - 1)
    # Without the 1, the sum is weight (e^x - 1 - x) + (1 - weight) (e^-y - 1 + y) with x = (a - 1) t and y = a t: the linear terms cancel.
    up, down = (order - 1) * shift, order * shift
    small = up < 300
    bounded = np.where(small, up, 0.0)
    excess = weight * _exp_beyond_linear(bounded) + (1 - weight) * _exp_beyond_linear(-down)
    divergence = np.where(small, np.log1p(excess), np.log(weight) + up) / (order - 1)
    return np.asarray(np.where(np.isinf(array), shift, np.minimum(divergence, shift)))


def laplace_vector_divergences(epsilon: float, dimension: int, norm: float, orders: ArrayLike) -> NDArray[np.float64]:
    """Return a bound on the Rényi divergence of Laplace noise on two vectors of an L_p ball.

    The noise is independent on each coordinate. Its scale is the ball's largest L1 distance over epsilon. In units of it, two vectors are t
    apart with ||t||_p <= T = epsilon / dimension^(1 - 1/p), and divergences r(|t_i|) of coordinates add up. Two facts bound their sum. (a -
    1) r is convex in the shift, a logarithm of a sum of exponentials, and 0 at 0: so the sum is at most r(||t||_1) <= r(epsilon), with
    equality where p = 1 puts all on one coordinate. Its second derivative, the variance of a coin whose bias grows with the shift, falls,
    so r(sqrt(s)) is concave in s, and so is r(s^(1/q)) for every q >= 2. The sum is at most that of equal shifts, dimension * r(T /
    dimension^(1/q)) with q = max(p, 2), with equality for p >= 2. The smaller of the two is exact for p = 1 and p >= 2, and an upper bound
    in between.

    Parameters
    ----------
    epsilon : float
        Pure privacy of the noise, 0 to 1e6.
    dimension : int
        Number of coordinates.
    norm : float
        Order p of the norm, from 1 to 64, or infinity.
    orders : array_like of shape (orders,)
        Rényi orders above 1; infinity gives epsilon.

    Examples
    --------
    A distance reveals less if there are more ways to divide it up.

    >>> [round(float(laplace_vector_divergences(1.0, 128, norm, [2.0])[0]), 4) for norm in (1.0, 1.5, 2.0, float("inf"))]
    [0.6191, 0.0391, 0.0078, 0.0078]
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    norm = check_norm(norm, high=LARGEST_NORM)
    together = laplace_renyi_divergences(epsilon, orders)
    distance = epsilon / dimension ** (1 - 1 / norm)
    evenly = dimension * laplace_renyi_divergences(distance / dimension ** (1 / max(norm, 2.0)), orders)
    return np.minimum(together, np.where(np.isinf(check_orders(orders)), epsilon, evenly))


def laplace_loss_grid(shift: float, steps: int) -> LossGrid:
    """Return the distribution of the privacy loss of Laplace noise against shifted noise, on a grid.

    The hockey-stick divergence is 1 - e^((x - t) / 2) at losses x from -t to t, the shift in units of the noise's scale. Between multiples
    of h = t / steps it is taken to be linear in e^x, which is an upper bound, also under composition (Doroshenko et al. 2022, *Connect the
    dots: tighter discrete approximations of privacy loss distributions*). Its slope from x to x + h is ``-e^(-(x + t) / 2) / (1 + e^(h /
    2))``. Differences of slopes are the probabilities under the second distribution, and e^x times as large under the first:

        tanh(h / 4) e^((x - t) / 2) inside,  1 / (1 + e^(-h / 2)) at t,  and e^-t times that at -t.

    Parameters
    ----------
    shift : float
        Shift t, from 1e-9 to 1e6.
    steps : int
        Number of grid points between 0 and t.

    Examples
    --------
    >>> grid = laplace_loss_grid(1.0, 100)
    >>> round(grid.get_delta_for_epsilon(0.5), 6), round(1 - math.exp(-0.25), 6)
    (0.221199, 0.221199)
    """
    shift = check_real("shift", shift, low=1e-9, high=LARGEST_EPSILON)
    steps = check_integer("steps", steps, low=1, high=10**7)
    interval = shift / steps
    masses = math.tanh(interval / 4) * np.exp((np.arange(-steps, steps + 1) * interval - shift) / 2)
    masses[-1] = 1 / (1 + math.exp(-interval / 2))
    masses[0] = masses[-1] * math.exp(-shift)
    return LossGrid(interval, -steps, masses)


def _exp_beyond_linear(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e^x - 1 - x without cancellation."""
    series = np.zeros_like(exponents)
    near = np.where(np.abs(exponents) < 0.5, exponents, 0.0)
    # This is Horner's scheme of x^2/2! + x^3/3! + ..., whose next term is below 1e-17 of the first.
    for power in range(15, 1, -1):
        series = series * near + 1 / math.factorial(power)
    return np.where(np.abs(exponents) < 0.5, series * near**2, np.expm1(exponents) - exponents)
