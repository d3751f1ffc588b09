"""What clients do with the server's model: a gradient, or a few epochs of gradient steps, for many clients at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntegerArray
from ..datasets.federated_data import Cohort, Examples, FederatedData
from ..datasets.splits import Split
from .models.network import Network, is_random

# Numbers of a chunk of clients' updates: two megabytes, which caches hold; for long ones a few clients at least, up to 32 megabytes.
CHUNK_NUMBERS, LARGEST_CHUNK = 2**18, 2**22
FEW_CLIENTS = 32
# Chunks that are in memory at once, with what is made of them; and the largest block that raises malloc's threshold, 32 megabytes.
CHUNKS_AT_ONCE, LARGEST_KEPT_BLOCK = 4, 2**22 - 2**10
# Numbers of all clients' examples, up to which they are kept.
KEPT_NUMBERS = 2**22


@dataclass(frozen=True)
class LocalTraining:
    """Gradient steps of a client.

    Attributes
    ----------
    epochs : int
        Passes over the client's examples; 0: its update is the negative gradient of their mean loss at the server's model.
    batch : int or None
        Examples of a step; None for all.
    learning_rate : float
        Of each step.
    """

    epochs: int = 0
    batch: int | None = None
    learning_rate: float = 0.1

    def updates(self, network: Network, parameters: FloatArray, cohort: Cohort, rng: np.random.Generator) -> FloatArray:
        """Return how far each client moves the model, shape (clients, dimension): zeros where it has no examples.

        `rng` shuffles examples, where epochs have several batches, and draws dropout.
        """
        sizes = cohort.sizes
        if sizes.min() == sizes.max() > 0:
            every = (len(sizes), int(sizes[0]))
            inputs, labels = cohort.examples.inputs, cohort.examples.labels
            of_each = inputs.reshape(*every, -1), labels.reshape(*every, *labels.shape[1:])
            return self._of_size(network, parameters, *of_each, rng)
        starts = np.cumsum(sizes) - sizes
        found = np.zeros((len(sizes), len(parameters)))
        # Clients with the same number of examples are computed together.
        for size in np.unique(sizes[sizes > 0]).tolist():
            own = np.flatnonzero(sizes == size)
            places = starts[own][:, None] + np.arange(size)
            inputs, labels = cohort.examples.inputs[places], cohort.examples.labels[places]
            found[own] = self._of_size(network, parameters, inputs, labels, rng)
        return found

    def _of_size(
        self, network: Network, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, rng: np.random.Generator
    ) -> FloatArray:
        if is_random(network):
            network = network.drawing(rng)
        if self.epochs == 0:
            return network.gradients(parameters, inputs, labels, scale=-1.0)
        clients, size = inputs.shape[:2]
        batch = size if self.batch is None else min(self.batch, size)
        # The same for all until the first step.
        models = parameters
        for _ in range(self.epochs):
            order = np.tile(np.arange(size), (clients, 1))
            if batch < size:
                order = rng.permuted(order, axis=1)
            for start in range(0, size, batch):
                chosen = np.arange(clients)[:, None], order[:, start : start + batch]
                models = models - self.learning_rate * network.gradients(models, inputs[chosen], labels[chosen])
        return models - parameters


class KeptExamples:
    """Clients whose examples are kept in memory, if all of them together are few: asking for them one by one would take long."""

    def __init__(self, data: FederatedData) -> None:
        self._data = data
        self._all: Cohort | None = None
        # At first one client's are made, to see how many there may be.
        numbers = data.clients * max(1, len(data.client_examples(0))) * data.features
        if numbers <= KEPT_NUMBERS:
            self._all = data.cohort(np.arange(data.clients))
            starts = np.append(0, np.cumsum(self._all.sizes))
            self._split = Split(np.arange(starts[-1]), starts)
            self._of_one_example = bool((self._all.sizes == 1).all())

    def cohort(self, clients: IntegerArray) -> Cohort:
        """As `FederatedData.cohort`."""
        if self._all is None:
            return self._data.cohort(clients)
        examples = self._all.examples
        numbers, sizes = (clients, self._all.sizes[clients]) if self._of_one_example else self._split.parts(clients)
        return Cohort(Examples(examples.inputs.take(numbers, axis=0), examples.labels.take(numbers, axis=0)), sizes)


def clients_of_chunk(dimension: int) -> int:
    """Return for how many clients updates are computed at a time."""
    return max(1, CHUNK_NUMBERS // dimension, min(FEW_CLIENTS, LARGEST_CHUNK // dimension))


def keep_memory_of_chunks(dimension: int) -> None:
    """Have the process keep the memory of a chunk for the next one.

    glibc's malloc gives free memory back to the system, and takes it again page by page, beyond twice the largest block that has been freed
    (mallopt(3), ``M_MMAP_THRESHOLD``): without this, pages take longer than the updates of a small model. Elsewhere nothing happens.
    """
    np.empty(min(CHUNKS_AT_ONCE * clients_of_chunk(dimension) * dimension, LARGEST_KEPT_BLOCK))


def update_chunks(
    local: LocalTraining, network: Network, parameters: FloatArray, data: KeptExamples, clients: IntegerArray, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, IntegerArray]]:
    """Yield the updates of clients and their numbers of examples, in chunks whose size depends on the dimension only."""
    size = clients_of_chunk(len(parameters))
    for start in range(0, len(clients), size):
        cohort = data.cohort(clients[start : start + size])
        yield local.updates(network, parameters, cohort, rng), cohort.sizes
