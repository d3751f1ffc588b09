"""scikit-learn's digits among clients: the images themselves, or as many deformed ones as are wanted."""

from functools import cache

import numpy as np
from scipy.special import gammaincinv

from ...arguments import check_choice, check_integer, check_real
from ...arrays import IntegerArray
from ..simulation.digit_gradients import CLASSES, PIXELS, digits
from .counted_uniforms import counted_uniforms
from .deformation import NUMBERS, Deformation, deformed
from .divided_data import divided_data
from .federated_data import Cohort, Examples, FederatedData
from .splits import LARGEST_ALPHA, SMALLEST_ALPHA, SPLITS, chosen_split

SIDE = 8
# One image of each class in five is kept for the test.
TEST_EVERY = 5
MOST_CLIENTS, MOST_SAMPLES = 10**9, 10**4
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
    count = 1 if samples is None else check_integer("samples", samples, low=1, high=MOST_SAMPLES)

    def cohort(numbers: IntegerArray) -> Cohort:
        chosen = _chosen_images(numbers, count, seed, split, alpha)
        # A client's images have numbers of their own.
        images = (numbers[:, None] * count + np.arange(count)).ravel()
        uniforms = counted_uniforms(seed, "digits, deformations", images, NUMBERS)
        inputs = deformed(train.inputs[chosen].reshape(-1, SIDE, SIDE), uniforms, deformation).reshape(-1, PIXELS)
        return Cohort(Examples(inputs, train.labels[chosen]), np.full(len(numbers), count))

    def alone(client: int) -> Examples:
        return cohort(np.array([check_integer("client", client, low=0, high=clients - 1)])).examples

    return FederatedData(clients, PIXELS, CLASSES, test, alone, (SIDE, SIDE, 1), cohort)


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


def _chosen_images(clients: IntegerArray, count: int, seed: int, split: str, alpha: float) -> IntegerArray:
    """Return the training image behind each of the clients' images, shape (clients * count,)."""
    train = _train_and_test()[0]
    places = counted_uniforms(seed, "digits, images", clients, count)
    if split == "iid":
        return (places * len(train)).astype(np.int64).ravel()
    # Shares with a symmetric Dirichlet distribution are gamma numbers over their sum.
    gammas = gammaincinv(alpha, counted_uniforms(seed, "digits, shares of classes", clients, CLASSES))
    heights = np.cumsum(gammas, axis=1)
    aims = counted_uniforms(seed, "digits, classes", clients, count) * heights[:, -1:]
    classes = np.minimum((aims[:, :, None] > heights[:, None, :]).sum(axis=2), CLASSES - 1)
    sizes = np.bincount(train.labels, minlength=CLASSES)
    sorted_images = np.argsort(train.labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    return np.asarray(sorted_images[starts[classes] + (places * sizes[classes]).astype(np.int64)].ravel())
