"""OpenDP's noise on vectors, drawn with secure randomness.

The extra ``bench`` installs OpenDP.
"""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from types import ModuleType


def load_opendp() -> ModuleType | None:
    """Return OpenDP, or print why it is missing and return None."""
    try:
        import opendp.prelude as dp
    except (ImportError, OSError) as error:
        print(f"OpenDP cannot be imported, so that there is no comparison with it (pip install 'quietbits[bench]'): {error}")
        return None
    dp.enable_features("contrib")
    print(f"OpenDP {version('opendp')}")
    return dp


def discrete_gaussian(dp: ModuleType, sigma: float, count: int) -> Callable[[], object]:
    """Return a call of the discrete Gaussian mechanism on a vector of zeros."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return partial(dp.m.make_gaussian(*space, scale=sigma), [0] * count)


def gaussian(dp: ModuleType, sigma: float, count: int) -> Callable[[], object]:
    """Return a call of the Gaussian mechanism for real numbers on a vector of zeros."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    return partial(dp.m.make_gaussian(*space, scale=sigma), [0.0] * count)


def laplace(dp: ModuleType, scale: float, count: int) -> Callable[[], object]:
    """Return a call of the Laplace mechanism for real numbers on a vector of zeros."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    return partial(dp.m.make_laplace(*space, scale=scale), [0.0] * count)
