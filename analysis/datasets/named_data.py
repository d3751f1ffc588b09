"""Data by name: scikit-learn's digits, and the published files of a folder."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ..simulation.digit_gradients import CLASSES, digits
from .cifar import cifar10_data
from .deformation import Deformation
from .endless_images import MOST_CLIENTS, MOST_SAMPLES, EndlessImages
from .federated_data import Examples, FederatedData, divided_data
from .idx import emnist_data, mnist_data
from .leaf import femnist_data, shakespeare_data
from .splits import LARGEST_ALPHA, SMALLEST_ALPHA, SPLITS, chosen_split
from .stackoverflow import stackoverflow_tags, stackoverflow_words

SIDE = 8
# The test set takes one image in five of each class.
TEST_EVERY = 5
USUAL_DEFORMATION = Deformation()
WRITER = "writer"
# Names of data that can be dealt out to any number of clients.
_DEALT: Mapping[str, Callable[..., FederatedData]] = MappingProxyType({"mnist": mnist_data, "emnist": emnist_data, "cifar10": cifar10_data})
# Names of data whose files name the authors.
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
# Names of data with one channel, which can be deformed.
ENDLESS = (DIGITS, "mnist", "emnist")


def digits_data(
    clients: int,
    seed: int,
    *,
    split: str = "iid",
    alpha: float = 1.0,
    samples: int | None = None,
    deformation: Deformation = USUAL_DEFORMATION,
) -> FederatedData:
    """Divide the digits among clients; 355 fixed test images belong to no client.

    Parameters
    ----------
    clients : int
        Number of clients, from 1 to 10**9, which does not affect the use of memory.
    seed : int
        Root seed of the split, and of the deformations.
    split : str
        ``"iid"``, or ``"dirichlet"``: each client has its own shares of the classes.
    alpha : float
        Concentration of the Dirichlet distribution, from 0.01 to 10**6.
    samples : int or None
        Number of deformed training images of each client; no image occurs twice. With None, the split deals out the 1442 images if they
        suffice for one per client; otherwise each client has one deformed image.
    deformation : Deformation
        Largest deformation of the images.

    Examples
    --------
    >>> data = digits_data(25_000_000, seed=0)
    >>> data.client_examples(24_999_999).inputs.shape, data.cohort([3, 17_000_000]).examples.inputs.shape
    ((1, 64), (2, 64))
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    check_choice("split", split, SPLITS)
    alpha = check_real("alpha", alpha, low=SMALLEST_ALPHA, high=LARGEST_ALPHA)
    train, test = _train_and_test()
    if samples is None and clients <= len(train):
        dealt = chosen_split(train.labels, clients, split, alpha, seed)
        return divided_data(train.inputs, train.labels, test, dealt, CLASSES, (SIDE, SIDE, 1))
    endless = EndlessImages("digits", train.inputs, train.labels, test, (SIDE, SIDE), CLASSES, deformation)
    return endless.divided(clients, seed, split=split, alpha=alpha, samples=1 if samples is None else samples)


@cache
def _train_and_test() -> tuple[Examples, Examples]:
    """Return training and test images; images of a class keep the data's order."""
    data = digits()
    rank = np.empty(len(data.labels), dtype=np.int64)
    for digit in range(CLASSES):
        own = data.labels == digit
        rank[own] = np.arange(np.count_nonzero(own))
    tested = rank % TEST_EVERY == TEST_EVERY - 1
    return Examples(data.images[~tested], data.labels[~tested]), Examples(data.images[tested], data.labels[tested])


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
    """Return the data of a name in `DATA_NAMES`, divided among clients.

    Parameters
    ----------
    name : str
        Name of the data.
    clients : int or None
        Number of clients. If clients are writers, users or roles, it must be None or their number.
    seed : int
        Root seed of the split.
    folder : str, Path or None
        Folder of the files; None for the digits, which need no files.
    images : int or None
        Number of the first training images to deal out, for mnist, emnist and cifar10; None for all.
    split : str
        ``"iid"``, ``"dirichlet"``, or, for data with writers, ``"writer"``.
    alpha : float
        Concentration of the Dirichlet distribution.
    samples : int or None
        Number of newly deformed images of a client, for digits, mnist and emnist (`digits_data`, `mnist_data`).

    Examples
    --------
    >>> named_data("digits", 100, seed=0, split="dirichlet").clients
    100
    """
    check_data(name, clients, folder=folder, images=images, split=split, samples=samples)
    if name in _WRITTEN:
        data = _WRITTEN[name](Path(folder or "."))
        if clients not in (None, data.clients):
            raise ValueError(f"clients must be {data.clients}, the number of writers of {name}, got {clients}")
        return data
    if clients is None:
        raise ValueError(f"clients must be a whole number for {name}, which is dealt out to them, got None")
    if name in _DEALT:
        more = {} if samples is None else {"samples": samples}
        return _DEALT[name](Path(folder or "."), clients, seed, images=images, split=split, alpha=alpha, **more)
    return digits_data(clients, seed, split=split, alpha=alpha, samples=samples)


def check_data(name: str, clients: int | None, *, folder: str | Path | None, images: int | None, split: str, samples: int | None) -> None:
    """Refuse contradictory arguments of `named_data` before any file is read."""
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
