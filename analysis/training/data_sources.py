"""The data of a training, by name; those of the last runs are kept."""

from functools import lru_cache
from pathlib import Path

from ..datasets.digits import digits_data
from ..datasets.federated_data import FederatedData
from ..datasets.named_data import WRITER, named_data

# Data sets that a process keeps.
KEPT = 4


@lru_cache(maxsize=KEPT)
def data_named(
    name: str, clients: int, seed: int, split: str = "iid", alpha: float = 1.0, samples: int | None = None, folder: str | None = None
) -> FederatedData:
    """Return data divided among clients.

    Parameters
    ----------
    name, clients, seed, split, alpha
        As in `named_data`. Where clients are writers, their number has to be that of the data: accounts rest on it.
    samples : int or None
        As in `digits_data`, for digits alone.
    folder : str or None
        Where files are.
    """
    if name == "digits":
        if folder is not None:
            raise ValueError(f"folder must be left out for the data digits, which need no files, got {folder!r}")
        return digits_data(clients, seed, split=split, alpha=alpha, samples=samples)
    if samples is not None:
        raise ValueError(f"samples must be left out for the data {name}, got {samples!r}: digits alone can be made without end")
    written = split == WRITER
    found = named_data(name, None if written else clients, seed, folder=None if folder is None else Path(folder), split=split, alpha=alpha)
    if found.clients != clients:
        raise ValueError(f"clients must be {found.clients}, the number of writers of {name}, got {clients}")
    return found
