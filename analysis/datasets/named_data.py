"""Data by name, for specifications: one call for the embedded digits and for files in a folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ...arguments import check_choice, check_integer
from .cifar import cifar10_data
from .digits import digits_data
from .endless_images import MOST_SAMPLES
from .federated_data import FederatedData
from .idx import emnist_data, mnist_data
from .leaf import femnist_data, shakespeare_data
from .splits import SPLITS
from .stackoverflow import stackoverflow_tags, stackoverflow_words

WRITER = "writer"


# Data that are dealt out to any number of clients.
_DEALT: Mapping[str, Callable[..., FederatedData]] = MappingProxyType({"mnist": mnist_data, "emnist": emnist_data, "cifar10": cifar10_data})
# Data that say whose they are.
_WRITTEN: Mapping[str, Callable[[Path], FederatedData]] = MappingProxyType(
    {
        "femnist": femnist_data,
        "shakespeare": shakespeare_data,
        "stackoverflow-tags": stackoverflow_tags,
        "stackoverflow-words": stackoverflow_words,
    }
)
DIGITS = "digits"
DATA_NAMES = (DIGITS, *_DEALT, *_WRITTEN)
MOST_IMAGES = 10**9
# Data of one channel, which are deformed.
ENDLESS = (DIGITS, "mnist", "emnist")


def named_data(
    name: str,
    clients: int | None,
    seed: int,
    *,
    folder: str | Path | None = None,
    images: int | None = None,
    split: str = "iid",
    alpha: float = 1.0,
    samples: int | None = None,
) -> FederatedData:
    """Return data by name, one of `DATA_NAMES`.

    Parameters
    ----------
    name : str
        Which data.
    clients : int or None
        How many clients they are dealt out to. Where clients are writers, users or roles, None or their number.
    seed : int
        Root seed of the split.
    folder : str, Path or None
        Where the files are; None for digits, which need none.
    images : int or None
        How many of the first training images are dealt out, for mnist, emnist and cifar10; None for all.
    split : str
        ``"iid"``, ``"dirichlet"``, or, for data with writers, ``"writer"``.
    alpha : float
        Of the Dirichlet distribution.
    samples : int or None
        Images of a client, each deformed anew, for digits, mnist and emnist (`digits_data`, `mnist_data`).

    Examples
    --------
    >>> named_data("digits", 100, seed=0, split="dirichlet").clients
    100
    """
    check_data(name, clients, folder=folder, images=images, split=split, samples=samples)
    if name in _WRITTEN:
        found = _WRITTEN[name](Path(folder or "."))
        if clients not in (None, found.clients):
            raise ValueError(f"clients must be {found.clients}, the number of writers of {name}, got {clients}")
        return found
    if clients is None:
        raise ValueError(f"clients must be a whole number for {name}, which is dealt out to them, got None")
    if name in _DEALT:
        more = {} if samples is None else {"samples": samples}
        return _DEALT[name](Path(folder or "."), clients, seed, images=images, split=split, alpha=alpha, **more)
    return digits_data(clients, seed, split=split, alpha=alpha, samples=samples)


def check_data(name: str, clients: int | None, *, folder: str | Path | None, images: int | None, split: str, samples: int | None) -> None:
    """Refuse arguments of `named_data` that do not go together, before any file is read."""
    check_choice("data", name, DATA_NAMES)
    if images is not None:
        if name not in _DEALT:
            raise ValueError(f"images must be left out for {name}, got {images!r}: only those of {', '.join(_DEALT)} are dealt out")
        check_integer("images", images, low=1, high=MOST_IMAGES)
        if samples is None and clients is not None and clients > images:
            raise ValueError(f"clients must be at most {images}, the number of images that are dealt out, got {clients}")
    if name not in ENDLESS and samples is not None:
        raise ValueError(f"samples must be left out for {name}, got {samples!r}: only {', '.join(ENDLESS)} are made without end")
    if samples is not None:
        check_integer("samples", samples, low=1, high=MOST_SAMPLES)
    if name != DIGITS and folder is None:
        raise ValueError(f"folder must be where the files of {name} are, got None")
    if name == DIGITS and folder is not None:
        raise ValueError(f"folder must be left out for digits, which need no files, got {str(folder)!r}")
    check_choice("split", split, (WRITER,) if name in _WRITTEN else SPLITS)
