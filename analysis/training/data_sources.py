"""Names of data for trainings, and what reads or makes each."""

from functools import lru_cache

from ...arguments import check_choice
from ..datasets.digits import digits_data
from ..datasets.federated_data import FederatedData

SOURCES = ("digits",)
# Data sets that a process keeps.
KEPT = 4


@lru_cache(maxsize=KEPT)
def data_named(
    name: str, clients: int, seed: int, split: str = "iid", alpha: float = 1.0, samples: int | None = None, path: str | None = None
) -> FederatedData:
    """Return data divided among clients.

    Parameters
    ----------
    name : str
        ``"digits"``: scikit-learn's (`digits_data`).
    clients, seed, split, alpha, samples
        As in `digits_data`.
    path : str or None
        File or folder, of data that a user has on disk.
    """
    check_choice("data", name, SOURCES)
    if path is not None:
        raise ValueError(f"path must be left out for the data digits, got {path!r}")
    return digits_data(clients, seed, split=split, alpha=alpha, samples=samples)
