"""scikit-learn's digits among clients: the images themselves, or as many deformed ones as are wanted."""

from functools import cache

import numpy as np

from ...arguments import check_choice, check_integer, check_real
from ..simulation.digit_gradients import CLASSES, digits
from .deformation import Deformation
from .divided_data import divided_data
from .endless_images import MOST_CLIENTS, EndlessImages
from .federated_data import Examples, FederatedData
from .splits import LARGEST_ALPHA, SMALLEST_ALPHA, SPLITS, chosen_split

SIDE = 8
# One image of each class in five is kept for the test.
TEST_EVERY = 5
USUAL_DEFORMATION = Deformation()


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
