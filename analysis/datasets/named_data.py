"""Data by name, for specifications: scikit-learn's digits, as they are or deformed, and the published files of a folder."""

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
# One image of each class in five is kept for the test.
TEST_EVERY = 5
USUAL_DEFORMATION = Deformation()
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


def digits_data(
    clients: int,
    seed: int,
    *,
    split: str = "iid",
    alpha: float = 1.0,
    samples: int | None = None,
    deformation: Deformation = USUAL_DEFORMATION,
) -> FederatedData:
    """Divide the digits among clients; the test's 355 images are always the same, and nobody's.

    Parameters
    ----------
    clients : int
        From 1 to 10**9. Memory does not grow with it.
    seed : int
        Root seed of the split, and of the deformations.
    split : str
        ``"iid"``, or ``"dirichlet"``: each client has its own shares of the classes.
    alpha : float
        Of the Dirichlet distribution, from 0.01 to 10**6.
    samples : int or None
        Images of a client, each a deformed one of the training's; the same image is never met twice. None: the 1442 images themselves are
        dealt out, if there is one for each client; else one deformed image each.
    deformation : Deformation
        How far images are deformed.

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
    """Return the images of the two; within a class they are in the data's order."""
    data = digits()
    rank = np.empty(len(data.labels), dtype=np.int64)
    for one in range(CLASSES):
        own = data.labels == one
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
