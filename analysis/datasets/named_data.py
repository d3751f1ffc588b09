"""Data by name, for specifications: one call for the embedded digits and for files in a folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ...arguments import check_choice
from .cifar import cifar10_data
from .digits import digits_data
from .federated_data import FederatedData
from .idx import emnist_data, mnist_data
from .leaf import femnist_data, shakespeare_data
from .splits import SPLITS
from .stackoverflow import stackoverflow_tags, stackoverflow_words

WRITER = "writer"


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes
    ----------
    clients : int
        Number of clients, where data are dealt out.
    seed : int
        Root seed of the split.
    folder : Path
        Where the files are.
    split : str
        ``"iid"`` or ``"dirichlet"``.
    alpha : float
        Of the Dirichlet distribution.
    """

    clients: int
    seed: int
    folder: Path
    split: str
    alpha: float


_DEALT: Mapping[str, Callable[[Request], FederatedData]] = MappingProxyType(
    {
        "digits": lambda of: digits_data(of.clients, of.seed, split=of.split, alpha=of.alpha),
        "mnist": lambda of: mnist_data(of.folder, of.clients, of.seed, split=of.split, alpha=of.alpha),
        "emnist": lambda of: emnist_data(of.folder, of.clients, of.seed, split=of.split, alpha=of.alpha),
        "cifar10": lambda of: cifar10_data(of.folder, of.clients, of.seed, split=of.split, alpha=of.alpha),
    }
)
# Data that say whose they are.
_WRITTEN: Mapping[str, Callable[[Path], FederatedData]] = MappingProxyType(
    {
        "femnist": femnist_data,
        "shakespeare": shakespeare_data,
        "stackoverflow-tags": stackoverflow_tags,
        "stackoverflow-words": stackoverflow_words,
    }
)
DATA_NAMES = (*_DEALT, *_WRITTEN)


def named_data(
    name: str, clients: int | None, seed: int, *, folder: Path | None = None, split: str = "iid", alpha: float = 1.0
) -> FederatedData:
    """Return data by name, one of `DATA_NAMES`.

    Parameters
    ----------
    name : str
        Which data.
    clients : int or None
        How many clients they are dealt out to. None for those whose clients are writers, users or roles.
    seed : int
        Root seed of the split.
    folder : Path or None
        Where the files are; None for digits, which need none.
    split : str
        ``"iid"``, ``"dirichlet"``, or, for data with writers, ``"writer"``.
    alpha : float
        Of the Dirichlet distribution.

    Examples
    --------
    >>> named_data("digits", 100, seed=0, split="dirichlet").clients
    100
    """
    check_choice("data", name, DATA_NAMES)
    if name != "digits" and folder is None:
        raise ValueError(f"folder must be where the files of {name} are, got None")
    if name in _WRITTEN:
        check_choice("split", split, (WRITER,))
        if clients is not None:
            raise ValueError(f"clients must be left out for {name}, whose clients are its writers, got {clients!r}")
        return _WRITTEN[name](Path(folder or "."))
    check_choice("split", split, SPLITS)
    if clients is None:
        raise ValueError(f"clients must be a whole number for {name}, which is dealt out to them, got None")
    return _DEALT[name](Request(clients, seed, Path(folder or "."), split, alpha))
